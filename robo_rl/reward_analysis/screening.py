"""The archive that screens judge a reward by: episodes of known policies, with how they ended."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from reward_models.analysis.screens import ArchiveEpisodes, ScreeningResult, screen_reward
from reward_models.base import Segment, positions_from_start
from reward_models.programs import Program, ProgramReward
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

ARCHIVE_SEED = 300_000_000  # of the episodes; nothing is trained, chosen or quoted on it
ROWS = {"expert": 6, "loose": 8, "short": 12, "still": 3, "random": 4, "swing": 3}
LEFT = (0.7, 0.5, 0.35, 0.25)  # shares of the way at which those that stop short stop
NOISE = 0.6  # deviation of a loose expert's actions
PERIOD = 6  # control steps of swinging to and fro
STEPS = 400  # of an episode at most: bodies' are long, and show early what they do


@cache
def archive_episodes(task: Task[Any]) -> tuple[ArchiveEpisodes, Array]:
    """(archive of a task's goal, the dense reward (T, N) of the same steps).

    Where no expert knows the way to the goal, only policies that do not aim at anything are in it.
    """
    kinds = [k for k, n in ROWS.items() for _ in range(n)]
    if not task.solved:
        kinds = [k for k in kinds if k in ("still", "random", "swing")]
    kind = np.array(kinds)
    rows = len(kind)
    env = BatchEnv(task, rows, seed=ARCHIVE_SEED)
    env.reset()
    rng = np.random.default_rng(ARCHIVE_SEED)
    begun = env.distance()
    share = np.resize(LEFT, rows)
    stopped = np.zeros(rows, bool)
    over = np.zeros(rows, bool)
    side = np.where(rng.random((rows, env.act_dim)) < 0.5, -1.0, 1.0)
    signals, actions, dense, success, valid = [env.signals()], [], [], [], []
    live, terminated = [], []
    for step in range(min(env.max_steps, STEPS)):
        action = np.zeros((rows, env.act_dim))
        if task.solved:
            action = np.array(task.expert(env.views, rng))
        loose = kind == "loose"
        action[loose] += rng.normal(0.0, NOISE, (int(loose.sum()), env.act_dim))
        stopped |= (kind == "short") & (env.distance() <= share * begun)
        action[stopped | (kind == "still")] = 0.0
        action[kind == "random"] = rng.uniform(
            -1.0, 1.0, (int((kind == "random").sum()), env.act_dim)
        )
        swing = kind == "swing"
        action[swing] = side[swing] * np.sign(np.sin(2 * np.pi * (step + 0.5) / PERIOD))
        action = np.clip(action, -1.0, 1.0)
        result = env.step(action)
        signals.append(env.signals())
        actions.append(action)
        dense.append(result.reward)
        success.append(result.info["success"])
        live.append(~over)
        terminated.append(result.terminated)
        over |= result.info["diverged"]
        valid.append(~over)
        over |= result.terminated
    env.close()
    stacked = {name: np.stack([s[name] for s in signals]) for name in signals[0]}
    place = positions_from_start(np.stack(live), np.stack(terminated))
    segment = Segment(stacked, _no_frames, np.stack(actions), np.stack(valid), place)
    ends = bool(np.asarray(~segment.valid).any())
    return ArchiveEpisodes(segment, np.stack(success), kind, ends), np.stack(dense).astype(float)


def screen_program(program: Program, task: Task[Any]) -> ScreeningResult:
    """Returns the screens' findings on a program for a task's goal."""
    archive, _ = archive_episodes(task)
    model = ProgramReward(program, episode_steps=len(archive.success))
    return screen_reward(model.score(archive.segment).reward.astype(float), archive)


def _no_frames(camera: str, where: Array) -> Array:
    raise ValueError(f"the archive has no frames of camera {camera!r}")
