"""Progress: how far along a demonstration the last frames look (ReWIND, arXiv:2505.10911).

p = sigmoid(f(x_t, x_t-4, x_t-8)) of a frame and two before it, by squared error. Targets:

- a demonstration, cut where the goal is first met for good: (t + 1) / T, and 1 after that;
- rewound: a demonstration up to some frame and from there backwards, each frame with the target it
  had on the way forth, so that going back is told from getting on;
- an episode that never meets the goal: 0.

The reward is p. ReWIND adds the simulator's success to it, and reads a sentence; this does neither,
and a small network on a few frames takes the place of its transformer.

It fails where demonstrations take many ways: a place that one passes early and another late is
worth their mean. Progress is also that of a demonstration, so every start is worth 0, near the goal
or far. A frame unlike all that was seen can be worth anything.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch.nn import functional as F

from reward_models.analysis.metrics import auc, or_none, spearman
from reward_models.base import Encoder
from reward_models.scorers.embedded_episodes import EmbeddedEpisodes, frame_windows, split_episodes
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from reward_models.scorers.heads import FitProblem, Head, sigmoid, untrained_head
from reward_models.vision.config import HeadConfig

Array = np.ndarray

LAGS = (0, 4, 8)  # steps back to the frames of one score
LAST = 5  # frames at an episode's end whose mean says how far it got


class Progress(EmbeddingReward):
    """See the module's text."""

    context = LAGS[-1] + 1

    def __init__(self, encoder: Encoder, head: Head):
        super().__init__(encoder)
        self.head = head

    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns the scores (n,) of frames with unit rows (n, D); see ``EmbeddingReward.rate``."""
        along = sigmoid(self.head.values(rows[before[:, LAGS]]))
        return FrameScores(along, {"progress": along})


class ProgressTargets(NamedTuple):
    """What progress is learned from."""

    frames: Array  # (n, len(LAGS)) entries of the episodes
    target: Array  # (n,) in [0, 1]
    episode: Array  # (n,)


@dataclass(frozen=True, kw_only=True)
class ProgressLoss:
    """Squared error of the progress of demonstrations, rewound copies and failures."""

    rewinds: int = 2  # rewound copies of each demonstration

    def problem(self, episodes: EmbeddedEpisodes, config: HeadConfig) -> FitProblem:
        """Returns the fit of ``episodes``; see ``ScorerLoss``.

        Raises:
            ValueError: In a part of the episodes none meets its goal at the end.
        """
        fit, held, test = split_episodes(episodes, config.seed)
        met = episodes.met()
        if not all((met & part).any() for part in (fit, held, test)):
            raise ValueError(
                f"of {episodes.count} episodes {int(met.sum())} meet the goal at their end: too "
                "few for training, validation and test; give more demonstrations"
            )
        lessons = progress_targets(episodes, self.rewinds, np.random.default_rng(config.seed))
        rows = torch.from_numpy(episodes.rows)
        target = torch.from_numpy(lessons.target)

        def loss(head: Head, ids: Array) -> torch.Tensor:
            return F.mse_loss(torch.sigmoid(head(rows[lessons.frames[ids]])), target[ids])

        head = untrained_head(config, rows.shape[1], len(LAGS))
        fit, held = (np.flatnonzero(part[lessons.episode]) for part in (fit, held))
        settings = {"lags": LAGS, **asdict(self)}
        return FitProblem(
            [head],
            [head],
            loss,
            [fit],
            held,
            settings,
            lambda: progress_figures(head, episodes, test),
        )


def success_step(episodes: EmbeddedEpisodes, span: Array) -> int:
    """Returns the step of an episode with frames ``span`` (n,) int from which the goal is met to
    its end; n where it is not."""
    fails = np.flatnonzero(~episodes.holds[span])
    return int(fails[-1]) + 1 if len(fails) else 0


def progress_targets(
    episodes: EmbeddedEpisodes, rewinds: int, rng: np.random.Generator
) -> ProgressTargets:
    """Returns what progress is learned from.

    Args:
        episodes: The episodes.
        rewinds: Rewound copies of each demonstration.
        rng: Chooses where a copy turns back.

    Returns:
        Frames (n, len(LAGS)) and targets (n,) of every episode and rewound copy.
    """
    out: list[tuple[Array, Array, Array]] = []
    for number, span in enumerate(episodes.spans()):
        done = success_step(episodes, span)
        if done == len(span):
            target = np.zeros(len(span), np.float32)
        else:
            target = np.minimum((np.arange(len(span)) + 1) / (done + 1), 1.0).astype(np.float32)
        ways = [np.arange(len(span))]
        if done < len(span) and len(span) > 2:
            for _ in range(rewinds):
                turn = int(rng.integers(1, min(done + LAST, len(span) - 1) + 1))
                back = int(rng.integers(1, turn + 1))
                ways.append(np.concatenate([np.arange(turn + 1), turn - 1 - np.arange(back)]))
        for way in ways:
            out.append((frame_windows(span[way], LAGS), target[way], np.full(len(way), number)))
    return ProgressTargets(*map(np.concatenate, zip(*out, strict=True)))


class FrameValues(Protocol):
    """What gives frames a worth."""

    def values(self, rows: Array) -> Array:
        """Returns numbers (n,) of embeddings (n, k, D)."""
        ...


def progress_figures(head: FrameValues, episodes: EmbeddedEpisodes, test: Array) -> dict[str, Any]:
    """Judges the values of frames on episodes that were not fitted.

    Args:
        head: What gives frames their values.
        episodes: The episodes.
        test: (E,) bool, those to judge by.

    Returns:
        The order of values along demonstrations, played forwards and backwards; how well the end
        separates success from failure; the order of all frames by worth.
    """
    met, far, forth, back, worth = episodes.met(), [], [], [], []
    spans = episodes.spans()
    for number in np.flatnonzero(test):
        span = spans[number]
        along = head.values(episodes.rows[frame_windows(span, LAGS)])
        far.append(along[-LAST:].mean())
        worth.append(along)
        done = success_step(episodes, span)
        if met[number] and done > LAST:
            way = span[: done + 1]
            steps = np.arange(len(way))
            forth.append(spearman(along[: len(way)], steps))
            turned = head.values(episodes.rows[frame_windows(way[::-1], LAGS)])
            back.append(spearman(turned, steps))
    ids = np.concatenate([spans[number] for number in np.flatnonzero(test)])
    known = np.isfinite(episodes.worth[ids])  # of what somebody rated it is not
    return {
        "test_episodes": int(test.sum()),
        "demonstrations_judged": len(forth),
        "order": or_none(np.nanmean(forth)) if forth else None,
        "order_backwards": or_none(np.nanmean(back)) if back else None,
        "auc_of_the_end": or_none(auc(np.array(far), met[test])),
        "order_by_worth": or_none(
            spearman(np.concatenate(worth)[known], episodes.worth[ids][known])
        ),
    }
