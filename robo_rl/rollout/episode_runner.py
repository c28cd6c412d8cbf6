"""run_episode(): an episode of every environment, judged; what is over is not simulated further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sims.core.step_result import StepResult
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv

Array = np.ndarray
Act = Callable[[Array], Array]  # obs (n, obs_dim) -> action (n, act_dim), row by row
Choose = Callable[[Array, Array], Array]  # (obs (N, obs_dim), active (N,) bool) -> (N, act_dim)
# After every step -> (N,) bool, success by now; None: no success judge.
Judge = Callable[[Any, StepResult], Array | None]

BLOCK = 64  # envs whose actions are computed at once, running or not


class EpisodeOutcome(NamedTuple):
    """What became of one episode of every environment."""

    success: Array | None  # (N,) bool, at its end; None: no success judge
    distance: Array  # (N,) final distance to the goal; nan without a distance
    held: Array  # (N,) bool: goal met before the first action, after resampling
    returned: Array  # (N,) sum of the environment's own reward; nan without one
    once: Array | None = None  # (N,) bool, success at any step; None: no success judge


def goal_holds(env: BatchEnv | GymnasiumEnv, step: StepResult) -> Array | None:
    """(N,) bool: whether the goal holds now; None where the environment does not say."""
    return step.info.get("success")


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
    env: BatchEnv | GymnasiumEnv,
    choose: Choose,
    judge: Judge = goal_holds,
    progress: Callable[[float], None] = lambda share: None,
) -> EpisodeOutcome:
    """Returns what became of one episode of each of the N environments.

    An episode that ends early is judged there, and one that diverged has failed.

    Args:
        env: the environments; they are reset first.
        choose: the policy, (obs (N, obs_dim), active (N,) bool) -> action (N, act_dim).
        judge: asked after every step, so it may remember; what it says at an episode's end counts.
        progress: called with the share of the longest episode that is done, in [0, 1].
    """
    obs, n = env.reset(), env.num_envs
    active, failed, success = np.ones(n, bool), np.zeros(n, bool), np.zeros(n, bool)
    returned, once, judged = np.zeros(n), np.zeros(n, bool), False
    own = env if isinstance(env, BatchEnv) else None  # another's has no distance and no held goal
    distance = np.zeros(n) if own is not None and own.judge is None else np.full(n, np.nan)
    held = own.held.copy() if own is not None else np.zeros(n, bool)
    for number in range(env.max_steps):
        action = choose(obs, active)
        step = own.step(action, active) if own is not None else env.step(action)
        failed |= step.info["diverged"] & active
        returned[active] += step.reward[active]
        now = judge(env, step)
        ended = active & (step.terminated | step.truncated | (number + 1 == env.max_steps))
        if now is not None:
            judged = True
            success[ended] = now[ended]
            once |= active & now
        if ended.any():
            if own is not None and own.judge is None:
                distance[ended] = own.distance()[ended]
            active = active & ~ended
        progress((number + 1) / env.max_steps)
        if not active.any():
            break
        obs = step.obs
    if not judged:
        return EpisodeOutcome(None, distance, held, returned)
    return EpisodeOutcome(success & ~failed, distance, held, returned, once)


def run_episodes(
    env: BatchEnv | GymnasiumEnv,
    choose: Choose,
    episodes: int,
    progress: Callable[[float], None] = lambda share: None,
) -> EpisodeOutcome:
    """Returns what became of the first ``episodes`` episodes of ``env``, one after the other in
    each environment where there are fewer of them.

    The arrays of the outcome have shape (episodes,); ``progress`` gets the share that is done.
    """
    parts: list[EpisodeOutcome] = []
    share = min(env.num_envs / episodes, 1.0)  # of all, in one go
    while (done := len(parts) * env.num_envs / episodes) < 1.0:
        parts.append(
            run_episode(
                env, choose, progress=lambda s, done=done: progress(min(done + share * s, 1.0))
            )
        )
    joined = [
        None if any(array is None for array in arrays) else np.concatenate(arrays)[:episodes]
        for arrays in zip(*parts, strict=True)
    ]
    return EpisodeOutcome(*joined)
