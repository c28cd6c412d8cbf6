"""Preferences: a reward under which what was preferred is worth more (Bradley-Terry; PEBBLE,
arXiv:2106.05091; from pictures, RL-VLM-F, arXiv:2402.03681).

P(a before b) = sigmoid(sum_t r(a_t) - sum_t r(b_t)) of two stretches of a few frames, with
r = tanh(f(x)) of an embedding x, by cross-entropy; a tie counts half for each. An ensemble of f,
each fitted on pairs of its own draw; the reward is the mean of their r, its doubt their deviation.
Pairs to ask about next are those on whose answer the members disagree most.

A rating (ERL-VLM, arXiv:2506.12822) says of a stretch alone how far it is, and so of each that was
rated otherwise which is better: each is paired with a few of those. Two of one rating say nothing
of each other.

A refit raises the version: what was rewarded before is rewarded anew by whoever keeps it.

It fails where nobody was asked about what the policy now does: the first pairs are of random moves,
so more are asked while it learns. Answers that are wrong alike, not by chance, teach what they say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from reward_models.base import Encoder
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from reward_models.scorers.heads import FitProblem, Head, fit_head, sigmoid, untrained_head
from reward_models.vision.config import HeadConfig

Array = np.ndarray

HELD = 5  # one pair in so many is held out, to stop by and to judge by
MEMBERS = 3
PAIRED = 4  # a rated stretch with so many others


@dataclass(frozen=True)
class PreferencePairs:
    """``P`` pairs of stretches that somebody compared."""

    first: Array  # (P, L, D) unit rows
    second: Array  # (P, L, D)
    answer: Array  # (P,) 1 the first is better, 0 the second, 0.5 neither
    # (P,) int, by which it is held out, one in ``HELD``; -1, or None for all: by its own place.
    turn: Array | None = None

    def __post_init__(self) -> None:
        if self.turn is None:
            object.__setattr__(self, "turn", np.full(len(self.answer), -1))

    @property
    def held(self) -> Array:
        """(P,) bool: those that are not fitted on, to stop by and to judge by."""
        assert self.turn is not None  # set by __post_init__
        alone = self.turn < 0
        return np.where(alone, np.cumsum(alone) - 1, self.turn) % HELD == 0

    @property
    def enough(self) -> bool:
        """Whether something can be learned from them, and judged."""
        return len(self) >= 2 * HELD and bool(self.held.any() and not self.held.all())

    def __add__(self, other: PreferencePairs) -> PreferencePairs:
        parts = zip(vars(self).values(), vars(other).values(), strict=True)
        return PreferencePairs(*(np.concatenate(part) for part in parts))

    def __len__(self) -> int:
        return len(self.answer)


def pairs_from_ratings(films: Array, rating: Array, seed: int) -> PreferencePairs:
    """Pairs films that were rated otherwise.

    Args:
        films: (R, L, D) unit rows.
        rating: (R,) ratings; more is better.
        seed: Of the random choice of pairs.

    Returns:
        Pairs of each film with up to ``PAIRED`` others; those of a film that is held out are held
        out, too.
    """
    rng = np.random.default_rng([seed, len(rating)])
    # What two people rated is one film.
    _, film = np.unique(
        films.reshape(len(films), math.prod(films.shape[1:])), axis=0, return_inverse=True
    )
    turn, sides = rng.permutation(len(rating))[film.ravel()], []
    held = turn % HELD == 0
    for one in range(len(rating)):
        others = np.flatnonzero((rating != rating[one]) & (held == held[one]) & (turn != turn[one]))
        sides += [(one, other) for other in rng.permutation(others)[:PAIRED]]
    one, other = np.array(sides, int).reshape(-1, 2).T
    return PreferencePairs(
        films[one], films[other], (rating[one] > rating[other]).astype(float), turn[one]
    )


class Preferences(EmbeddingReward):
    """See the module's text."""

    def __init__(self, encoder: Encoder, heads: Sequence[Head]):
        super().__init__(encoder)
        self.heads, self.version = list(heads), 0

    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns the scores (n,) of frames with unit rows (n, D); see ``EmbeddingReward.rate``."""
        worth = np.tanh([head.values(rows[:, None]) for head in self.heads])
        return FrameScores(worth.mean(axis=0), doubt=worth.std(axis=0))

    def refit(self, pairs: PreferencePairs, config: HeadConfig) -> dict[str, Any]:
        """Fits new networks to ``pairs`` and returns the figures of ``fit_head``."""
        self.heads, figures = fit_head(PreferencesLoss(members=len(self.heads)), pairs, config)
        self.version += 1
        return figures

    def state_dict(self) -> dict[str, Array]:
        """Returns the weights by name and the version, for a checkpoint."""
        named = {
            f"{number}/{name}": tensor.numpy()
            for number, head in enumerate(self.heads)
            for name, tensor in head.state_dict().items()
        }
        return {"version": np.array(self.version), **named}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays of ``state_dict``."""
        self.version = int(saved["version"])
        for number, head in enumerate(self.heads):
            names = head.state_dict()
            head.load_state_dict(
                {name: torch.from_numpy(saved[f"{number}/{name}"].copy()) for name in names}
            )


def preference_probabilities(heads: Sequence[Head], first: Array, second: Array) -> Array:
    """Returns (members, P), how likely each member finds that the first stretch (P, L, D) is better
    than the second (P, L, D)."""

    def worth(head: Head, stretches: Array) -> Array:
        flat = stretches.reshape(-1, 1, stretches.shape[-1])
        return np.tanh(head.values(flat)).reshape(stretches.shape[:2]).sum(axis=1)

    return np.stack([sigmoid(worth(head, first) - worth(head, second)) for head in heads])


@dataclass(frozen=True, kw_only=True)
class PreferencesLoss:
    """Bradley-Terry cross-entropy of an ensemble, each member on a sample of its own."""

    members: int = MEMBERS

    def problem(self, pairs: PreferencePairs, config: HeadConfig) -> FitProblem:
        """Returns the fit of ``pairs``, one in five of which is held out; see ``ScorerLoss``.

        Raises:
            ValueError: There are too few pairs, or those of a part are all of one rating.
        """
        if len(pairs) < 2 * HELD:
            raise ValueError(f"expected at least {2 * HELD} answers for training, got {len(pairs)}")
        if not pairs.enough:
            raise ValueError(
                "all ratings of the training or the test part are equal: add ratings that differ"
            )
        fit, held = np.flatnonzero(~pairs.held), np.flatnonzero(pairs.held)
        dim = pairs.first.shape[2]
        first, second = (
            torch.from_numpy(side.astype(np.float32)) for side in (pairs.first, pairs.second)
        )
        answer = torch.from_numpy(pairs.answer.astype(np.float32))

        def loss(head: Head, ids: Array) -> torch.Tensor:
            flat = torch.cat([first[ids], second[ids]]).reshape(-1, 1, dim)
            worth = torch.tanh(head(flat)).reshape(2, len(ids), -1).sum(dim=2)
            return F.binary_cross_entropy_with_logits(worth[0] - worth[1], answer[ids])

        heads, samples = [], []
        for member in range(self.members):
            heads.append(untrained_head(config, dim, member=member))
            rng = np.random.default_rng([config.seed, member])
            samples.append(fit[rng.integers(len(fit), size=len(fit))])
        settings = {"pairs": len(pairs), "ties": int((pairs.answer == 0.5).sum())}
        return FitProblem(
            heads, heads, loss, samples, held, settings, lambda: _agreement(heads, pairs, held)
        )


def _agreement(heads: Sequence[Head], pairs: PreferencePairs, held: Array) -> dict[str, Any]:
    """How many of the clear answers ``held`` (m,) the members' mean agrees with."""
    chance = preference_probabilities(heads, pairs.first[held], pairs.second[held]).mean(axis=0)
    clear = pairs.answer[held] != 0.5
    right = (chance > 0.5) == (pairs.answer[held] > 0.5)
    return {
        "agreement_held_out": float(right[clear].mean()) if clear.any() else None,
        "answers_held_out": int(clear.sum()),
    }


def most_disputed(heads: Sequence[Head], first: Array, second: Array, count: int) -> Array:
    """Returns the indices (count,) of the candidates (P, L, D) that members disagree on most."""
    return np.argsort(-preference_probabilities(heads, first, second).std(axis=0), kind="stable")[
        :count
    ]
