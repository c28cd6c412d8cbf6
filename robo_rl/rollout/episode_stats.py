"""EpisodeStats: what finished episodes were worth. For people to read, never for learning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Array = np.ndarray


class EpisodeStats:
    """Lengths, returns of the task's own reward, and true success, at the end of each episode."""

    def __init__(self, num_envs: int):
        self._return, self._length = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._finished: list[Array] = []  # (k, 3) each: success or nan, return, length

    def restart(self) -> None:
        """Forgets the episodes under way."""
        self._return[:] = 0
        self._length[:] = 0

    def add(self, reward: Array, done: Array, diverged: Array, success: Array | None) -> None:
        """Counts one step of all environments; an episode that diverged is not a result.

        Args:
            reward: (N,) the task's own reward.
            done: (N,) bool, the episode ended.
            diverged: (N,) bool, the simulation failed.
            success: (N,) bool, the judge's verdict; None: there is no judge.
        """
        self._return += reward
        self._length += 1
        if not done.any():
            return
        ended = done & ~diverged
        judged = success[ended] if success is not None else np.full(ended.sum(), np.nan)
        self._finished.append(np.column_stack([judged, self._return[ended], self._length[ended]]))
        self._return[done] = 0
        self._length[done] = 0

    def pop(self) -> dict[str, float]:
        """``episodes`` finished since the last call and, if there are any, their means.

        What the simulator does not know (success, a reward of its own) is left out.
        """
        rows = np.concatenate(self._finished) if self._finished else np.zeros((0, 3))
        self._finished = []
        found = {"episodes": float(len(rows))}
        if len(rows):
            names = ("success", "episode_return", "episode_steps")
            means = zip(names, rows.mean(axis=0), strict=True)
            found |= {name: float(mean) for name, mean in means if not np.isnan(mean)}
        return found

    def state_dict(self) -> dict[str, Array]:
        """Returns the running episodes, and those that finished since the last ``pop``.

        Returns:
            ``return`` (N,), ``length`` (N,) steps, and ``finished`` (k, 3): success or nan, return,
            length.
        """
        finished = np.concatenate([np.zeros((0, 3)), *self._finished])
        return {"return": self._return.copy(), "length": self._length.copy(), "finished": finished}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays, (N,) and (k, 3), that ``state_dict`` returned."""
        self._return[:], self._length[:] = saved["return"], saved["length"]
        self._finished = [np.array(saved["finished"])]
