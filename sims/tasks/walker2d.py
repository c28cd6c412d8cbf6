"""Walker2d: two legs in a plane, that are to walk forward."""

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
    strictly_within,
    sum_of_squares,
    torso_in_plane,
    tracking_cameras,
)

HEIGHT = (0.8, 2.0)  # m, of the torso, while healthy
PITCH = (-1.0, 1.0)  # rad


@dataclass(frozen=True, kw_only=True)
class Walker2d(Runner[RunnerViews]):
    """One goal: forward (Gymnasium's Walker2d-v5)."""

    name: ClassVar[str] = "walker2d"
    mirrors: ClassVar[str] = "Walker2d-v5"
    xml: ClassVar[str] = "walker2d_v5.xml"
    act_dim: ClassVar[int] = 6
    cameras: ClassVar[tuple[Camera, ...]] = tracking_cameras("torso", -0.2)
    noise: ClassVar[float] = 5e-3

    control_dt: float = 0.008
    episode_s: float = 8.0

    def bind(self, batch: Batch) -> RunnerViews:
        return RunnerViews(batch, batch.qpos, batch.qvel, batch.ctrl, np.zeros((batch.nsim, 1)))

    def obs(self, v: RunnerViews) -> dict[str, Array]:
        """Returns ``qpos`` (N, 8) without the torso's x, and ``qvel`` (N, 9), clipped at 10."""
        return {"qpos": v.qpos[:, 1:], "qvel": np.clip(v.qvel, -10.0, 10.0)}

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        return (*super().signal_readers(), SignalReader(TORSO_POS, torso_in_plane))

    def entities(self) -> tuple[Entity, ...]:
        return (body_entity("walker", ("robot", "biped", "body"), "torso", "torso_pos"),)

    def terminated(self, v: RunnerViews) -> Array | bool:
        """Returns where the walker is not ``healthy``, (N,) bool."""
        return ~healthy(v)

    def goals(self) -> Mapping[str, TaskGoal[RunnerViews]]:
        return _goals(self)


def healthy(v: RunnerViews) -> Array:
    """Returns where a state is healthy as in Gymnasium, (N,) bool: neither fallen nor flown."""
    return strictly_within(v.qpos[:, 1], *HEIGHT) & strictly_within(v.qpos[:, 2], *PITCH)


@cache
def _goals(task: Walker2d) -> dict[str, TaskGoal[RunnerViews]]:
    def forward(v: RunnerViews, action: Array) -> dict[str, Array]:
        return {
            "forward": task.speed(v),
            "survive": 1.0 * healthy(v),
            "ctrl": -1e-3 * sum_of_squares(v.ctrl),
        }

    def walked(v: RunnerViews) -> Array:
        return healthy(v) & (task.way_left(v) == 0.0)

    return {"forward": TaskGoal("the walker walks forward", walked, forward, task.way_left)}
