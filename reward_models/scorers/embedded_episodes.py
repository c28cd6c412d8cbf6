"""Episodes as an encoder saw them: what scorers learn from. Plain arrays; loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

SHARES = (0.7, 0.15, 0.15)  # of episodes: fitted on, held out to choose by, and to judge by


@dataclass(frozen=True)
class EmbeddedEpisodes:
    """Frames of ``E`` episodes, one after the other, in order."""

    rows: Array  # (M, D) f32 unit rows
    episode: Array  # (M,) int, number of the episode that a frame is of, rising from 0
    holds: Array  # (M,) bool: the goal is met in the frame
    worth: Array  # (M,) f32 the simulator's dense reward, which scripted oracles alone may read
    by: tuple[str, ...]  # (E,) who acted
    actions: Array  # (M, act_dim) f32 in [-1, 1], what each frame came of

    @property
    def count(self) -> int:
        """The number of episodes E."""
        return len(self.by)

    def spans(self) -> list[Array]:
        """Returns the frames (n,) int of each episode."""
        return np.split(np.arange(len(self.episode)), np.flatnonzero(np.diff(self.episode)) + 1)

    def beside(self, rows: Array, holds: Array, by: Sequence[str]) -> EmbeddedEpisodes:
        """Returns these episodes and further ones of a single frame, without worth or actions.

        Args:
            rows: (n, D) unit rows of the frames.
            holds: (n,) bool, whether the goal is met.
            by: Who rated each, n names.
        """
        unknown = np.full((len(rows), self.actions.shape[1]), np.nan, np.float32)
        return EmbeddedEpisodes(
            np.concatenate([self.rows, rows]),
            np.concatenate([self.episode, self.count + np.arange(len(rows))]),
            np.concatenate([self.holds, holds]),
            np.concatenate([self.worth, unknown[:, 0]]),
            (*self.by, *by),
            np.concatenate([self.actions, unknown]),
        )

    def met(self) -> Array:
        """Returns whether each episode ends with its goal met, (E,) bool."""
        return np.array([self.holds[span[-1]] for span in self.spans()])


def split_episodes(episodes: EmbeddedEpisodes, seed: int) -> tuple[Array, Array, Array]:
    """Splits episodes into parts with equal shares of successes, as far as there are any.

    Args:
        episodes: E episodes.
        seed: Of the split.

    Returns:
        Three masks (E,) bool: the episodes to fit on, to choose weights by, and to judge by.
    """
    rng = np.random.default_rng(seed)
    part, met = np.zeros(episodes.count, int), episodes.met()
    for kind in (met, ~met):
        ids = rng.permutation(np.flatnonzero(kind))
        ends = np.round(np.cumsum(SHARES) * len(ids)).astype(int)
        part[ids[ends[0] : ends[1]]], part[ids[ends[1] :]] = 1, 2
    return part == 0, part == 1, part == 2


def require_successes_and_failures(episodes: EmbeddedEpisodes, *parts: Array) -> Array:
    """Checks that each part has episodes of both kinds.

    Args:
        episodes: The episodes.
        parts: (E,) bool each.

    Returns:
        ``met()``, (E,) bool.

    Raises:
        ValueError: In one of the parts no episode of several frames meets its goal, or none fails.
    """
    met, whole = episodes.met(), np.array([len(span) > 1 for span in episodes.spans()])
    if not all((kind & part).any() for kind in (met & whole, ~met) for part in parts):
        count = int((met & whole).sum())
        raise ValueError(
            f"of {episodes.count} episodes {count} meet the goal at their end: successes and "
            "failures are needed for training, validation and test; give more"
        )
    return met


def frame_windows(span: Array, lags: tuple[int, ...]) -> Array:
    """Returns the frames that lie some steps back.

    Args:
        span: (n,) int, the frames of an episode in order.
        lags: Steps back.

    Returns:
        (n, len(lags)) int; before the first frame the first is repeated, as in
        ``embedding_reward.frame_histories``.
    """
    back = np.maximum(np.arange(len(span))[:, None] - np.array(lags), 0)
    return span[back]
