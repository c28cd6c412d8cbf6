"""HalfCheetah: a hind and a fore leg in a plane, that are to run forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Array, Entity, SignalReader, TaskGoal
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import (
    TORSO_POS,
    Runner,
    RunnerViews,
    body_entity,
    sum_of_squares,
    torso_in_plane,
    tracking_cameras,
)

HEIGHT = 0.7  # m, of the torso where qpos[1] is zero


@dataclass(frozen=True, kw_only=True)
class HalfCheetah(Runner[RunnerViews]):
    """One goal: forward (Gymnasium's HalfCheetah-v5)."""

    name: ClassVar[str] = "half_cheetah"
    mirrors: ClassVar[str] = "HalfCheetah-v5"
    xml: ClassVar[str] = "half_cheetah.xml"
    act_dim: ClassVar[int] = 6
    cameras: ClassVar[tuple[Camera, ...]] = tracking_cameras("torso", 0.4)
    noise: ClassVar[float] = 0.1
    normal_speeds: ClassVar[bool] = True

    control_dt: float = 0.05
    episode_s: float = 50.0

    def bind(self, batch: Batch) -> RunnerViews:
        return RunnerViews(batch, batch.qpos, batch.qvel, batch.ctrl, np.zeros((batch.nsim, 1)))

    def obs(self, v: RunnerViews) -> dict[str, Array]:
        """Returns ``qpos`` (N, 8) without the torso's x, and ``qvel`` (N, 9)."""
        return {"qpos": v.qpos[:, 1:], "qvel": v.qvel}

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        return (
            *super().signal_readers(),
            SignalReader(TORSO_POS, lambda v: torso_in_plane(v, HEIGHT)),
        )

    def entities(self) -> tuple[Entity, ...]:
        return (body_entity("cheetah", ("robot", "body"), "torso", "torso_pos"),)

    def goals(self) -> Mapping[str, TaskGoal[RunnerViews]]:
        return _goals(self)


@cache
def _goals(task: HalfCheetah) -> dict[str, TaskGoal[RunnerViews]]:
    def forward(v: RunnerViews, action: Array) -> dict[str, Array]:
        return {"forward": task.speed(v), "ctrl": -0.1 * sum_of_squares(v.ctrl)}

    def ran(v: RunnerViews) -> Array:
        return task.way_left(v) == 0.0

    return {"forward": TaskGoal("the cheetah runs forward", ran, forward, task.way_left)}
