"""StepResult: what a step of a batched environment returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class StepResult(NamedTuple):
    """One step of every row; ``info`` has ``diverged`` and, where there is a goal, ``success`` and,
    where that has a hand-written reward, ``reward/<term>``; of a task with several goals at once
    ``reached`` (N, goals)."""

    obs: Array  # (N, obs_dim) f32
    reward: Array  # (N,) f32, the hand-written dense reward of the task's goal; nan without one
    terminated: Array  # (N,) bool
    truncated: Array  # (N,) bool
    info: dict[str, Array]  # {name: (N,)}
    action: Array  # (N, act_dim) what was executed of the action asked for
