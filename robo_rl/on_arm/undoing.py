"""Undoing: how far a residual must reach, to be able to undo what a bundle does.

A bundle that sees things where they are not goes there, and is held there by its own actions. One
that acts gently can be held back by little; one whose actions are large all along cannot. What can
undo more than it has to is the bolder learner, and ends lower (docs/people.md).
"""

from __future__ import annotations

import numpy as np

from real_robot import PolicyBundle
from sims.batch_env import BatchEnv
from sims.task import Task

LEAST, MOST = 0.3, 1.0  # shares of an action's range
TIMES = 2.0  # what the bundle does in the mean
ROWS = 16  # simulated episodes


def undoing(bundle: PolicyBundle, task: Task) -> float:
    """A scale for a residual on ``bundle``: twice the size of what it does in the mean, in
    simulated episodes of ``task``, from LEAST to MOST."""
    env = BatchEnv(task, ROWS)
    obs, sizes = env.reset(), []
    for _ in range(env.max_steps - 1):
        action = np.stack([bundle.act(row)[0] for row in obs.astype(np.float32)])
        action = np.clip(action.reshape(ROWS, -1), -1.0, 1.0)
        sizes.append(np.abs(action).mean())
        obs = env.step(action).obs
    env.close()
    return round(float(np.clip(TIMES * np.mean(sizes), LEAST, MOST)), 2)
