"""States in which a goal holds: what goal pictures are taken of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robo_rl.vision.state_collection import collect_states
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

ROWS = 128
MOST = 40  # episodes of every row, or so many batches of states by chance, before it gives up


def states_at_success(
    task: Task[Any], act: Callable[[BatchEnv, Array], Array], count: int, seed: int
) -> Array:
    """State rows (count, nstate) at the end of episodes of ``act(env, obs)`` that succeed."""
    env = BatchEnv(task, min(ROWS, max(count, 8)), seed=seed)
    states: list[Array] = []
    for _ in range(MOST):
        obs = env.reset()
        for _ in range(env.max_steps):
            step = env.step(act(env, obs))
            obs = step.obs
        states.append(env.state()[step.info["success"]])
        if sum(map(len, states)) >= count:
            break
    env.close()
    return _enough(states, count, f"{MOST} episodes of every row that were to end in it")


def random_goal_states(task: Task[Any], count: int, seed: int) -> Array:
    """State rows (count, nstate) among scattered and random ones in which the goal holds; nobody
    who knows the way to it was asked."""
    env = BatchEnv(task, ROWS, seed=seed)
    goal, found_states = env.task.goals()[env.task.goal], []
    for batch in range(MOST):
        states, _ = collect_states(env, 4 * ROWS, seed + batch)
        for part in np.split(states, 4):
            env.set_state(part)
            found_states.append(part[np.asarray(goal.success(env.views))])
        if sum(map(len, found_states)) >= count:
            break
    env.close()
    return _enough(found_states, count, f"{MOST * 4 * ROWS:,} scattered and random states")


def _enough(kept: list[Array], count: int, looked_at: str) -> Array:
    states = np.concatenate(kept)
    if len(states) < count:
        raise ValueError(f"the goal holds in {len(states)} of {looked_at}, expected {count}")
    return states[:count]
