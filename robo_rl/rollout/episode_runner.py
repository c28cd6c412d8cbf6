"""run_episode(): one episode of every row, judged; a row that is over is not simulated further."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sims.core.step_result import StepResult
from sims.envs.batch_env import BatchEnv

Array = np.ndarray
Act = Callable[[Array], Array]  # obs (n, obs_dim) -> action (n, act_dim), row by row
Choose = Callable[[Array, Array], Array]  # (obs (N, obs_dim), active (N,) bool) -> (N, act_dim)
Judge = Callable[[BatchEnv, StepResult], Array]  # after every step -> (N,) bool, success by now

BLOCK = 64  # rows that a policy is asked for at once, whoever of them is left


class EpisodeOutcome(NamedTuple):
    """The result of one episode in every environment."""

    success: Array  # (N,) bool, at its end
    distance: Array  # (N,) final distance to the goal; nan without a distance
    held: Array  # (N,) bool: goal met before the first action, after resampling
    returned: Array  # (N,) sum of the dense reward; nan without one


def goal_holds(env: BatchEnv, step: StepResult) -> Array:
    """(N,) bool: whether the task's goal holds now."""
    return step.info["success"]


def active_rows_policy(act: Act, width: int) -> Choose:
    """``act`` for the active rows, in blocks of one size; the others' ``width`` actions are 0.

    A network's last digits depend on how many rows it sees at once: so a row's actions are the same
    whoever else is left, and however many episodes are judged.
    """

    def choose(obs: Array, active: Array) -> Array:
        action, ids = np.zeros((len(obs), width), np.float32), np.flatnonzero(active)
        for first in range(0, len(ids), BLOCK):
            some = ids[first : first + BLOCK]
            action[some] = act(obs[np.resize(some, BLOCK)])[: len(some)]
        return action

    return choose


def zero_action(width: int) -> Choose:
    """Doing nothing: every action is 0."""
    return lambda obs, active: np.zeros((len(obs), width), np.float32)


def run_episode(
    env: BatchEnv,
    choose: Choose,
    judge: Judge = goal_holds,
    progress: Callable[[float], None] = lambda share: None,
) -> EpisodeOutcome:
    """One episode of every row; one that ends early is judged there, one that diverged has failed.

    ``judge`` is asked after every step, so it may remember; what it says at a row's end counts.
    ``progress`` is told the share of the longest episode that is done.
    """
    obs, n = env.reset(), env.num_envs
    active, failed, success = np.ones(n, bool), np.zeros(n, bool), np.zeros(n, bool)
    distance, held, returned = np.zeros(n), env.held.copy(), np.zeros(n)
    for number in range(env.max_steps):
        step = env.step(choose(obs, active), active)
        failed |= step.info["diverged"] & active
        returned[active] += step.reward[active]
        now = judge(env, step)
        ended = active & (step.terminated | step.truncated)
        if ended.any():
            success[ended] = now[ended]
            distance[ended] = env.distance()[ended] if env.judge is None else np.nan
            active = active & ~ended
        progress((number + 1) / env.max_steps)
        if not active.any():
            break
        obs = step.obs
    return EpisodeOutcome(success & ~failed, distance, held, returned)
