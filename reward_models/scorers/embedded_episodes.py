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
        """These, and episodes of one frame each, with unit rows (n, D), of whose worth and actions
        nothing is known."""
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
        """(E,) bool: whether an episode ends with its goal met."""
        return np.array([self.holds[span[-1]] for span in self.spans()])


def split_episodes(episodes: EmbeddedEpisodes, seed: int) -> tuple[Array, Array, Array]:
    """(E,) bool of the episodes to fit on, to choose by and to judge by; each third has its share
    of those that end well and of the others, as far as there are any."""
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
    """(n, len(lags)) frames so many steps before each of ``span`` (n,); none is before its first,
    as in ``embedding_reward.histories``."""
    back = np.maximum(np.arange(len(span))[:, None] - np.array(lags), 0)
    return span[back]
