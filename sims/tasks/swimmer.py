"""Swimmer: three links in a viscous fluid, that are to swim forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Array, Entity, Signal, TaskGoal
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import Runner, RunnerViews, body_entity, sum_of_squares

PACE = 0.1  # m/s, mean over an episode that counts as having swum forward


@dataclass(frozen=True, kw_only=True)
class Swimmer(Runner[RunnerViews]):
    """One goal: forward (Gymnasium's Swimmer-v5)."""

    name: ClassVar[str] = "swimmer"
    mirrors: ClassVar[str] = "Swimmer-v5"
    xml: ClassVar[str] = "swimmer.xml"
    act_dim: ClassVar[int] = 2
    cameras: ClassVar[tuple[Camera, ...]] = (
        Camera("side", pos=(0.0, -4.0, 4.0), target=(0.0, 0.0, 0.0), body="torso"),
        Camera("top", (0.0, 0.0, 5.5), (0.0, 0.0, 0.0), body="torso", up=(0.0, 1.0, 0.0)),
    )
    noise: ClassVar[float] = 0.1

    control_dt: float = 0.04
    episode_s: float = 40.0

    def bind(self, batch: Batch) -> RunnerViews:
        return RunnerViews(batch, batch.qpos, batch.qvel, batch.ctrl, np.zeros((batch.nsim, 1)))

    def obs(self, v: RunnerViews) -> dict[str, Array]:
        return {"qpos": v.qpos[:, 2:], "qvel": v.qvel}

    def signals(self, v: RunnerViews) -> dict[str, Array]:
        torso = np.column_stack([v.qpos[:, :2], np.zeros(len(v.qpos))])
        return {**super().signals(v), "torso_pos": torso}

    def signal_docs(self) -> tuple[Signal, ...]:
        torso = Signal("torso_pos", (3,), "m", "world", (-1e3, 1e3), "the first link", False)
        return (*super().signal_docs(), torso)

    def entities(self) -> tuple[Entity, ...]:
        return (body_entity("swimmer", ("robot", "snake", "body"), "torso", "torso_pos"),)

    def goals(self) -> Mapping[str, TaskGoal[RunnerViews]]:
        return _goals(self)


@cache
def _goals(task: Swimmer) -> dict[str, TaskGoal[RunnerViews]]:
    def forward(v: RunnerViews, action: Array) -> dict[str, Array]:
        return {"forward": task.speed(v), "ctrl": -1e-4 * sum_of_squares(v.ctrl)}

    def left(v: RunnerViews) -> Array:
        return task.way_left(v, PACE)

    def swam(v: RunnerViews) -> Array:
        return left(v) == 0.0

    return {"forward": TaskGoal("the swimmer swims forward", swam, forward, left)}
