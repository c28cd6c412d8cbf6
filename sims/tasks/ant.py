"""Ant: a ball on four legs that is to walk, to wave a leg, or to lie down on its back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Array, Entity, Signal, SignalReader, TaskGoal
from sims.core.terms import norm, outside
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import (
    FAR,
    Lagged,
    LaggedViews,
    body_entity,
    sum_of_squares,
    torso_readers,
    tracking_cameras,
    up_axis_height,
)

HEIGHT = (0.2, 1.0)  # m, of the torso, while healthy
LEGS = (
    ("front left", "hip_1", "left_ankle_geom"),
    ("front right", "hip_2", "right_ankle_geom"),
    ("back left", "hip_3", "third_ankle_geom"),
    ("back right", "hip_4", "fourth_ankle_geom"),
)  # what people call it, the joint that swings it, the shape that ends in its foot

# Waving: a foot in the air goes from side to side while the body stays the right way up.
ALOFT = 0.18  # m, height of a foot's centre; on the floor it is at 0.08
SWING = 0.2  # rad, that the hip turns to either side
WAVES = 3  # swings without putting the foot down
LEVEL = 0.5  # least height of the torso's own z axis

# Lying on the back.
ON_BACK = -0.9  # most height of the torso's own z axis
AT_REST = 0.3  # m/s, most speed of the torso


@dataclass
class AntViews(LaggedViews):
    """Row i is env i; qpos is torso position m and quaternion, then hip and ankle of each leg."""

    hips: Array  # (4,) columns of qpos
    side: Array = field(metadata={"owned": True})  # (N, 4) the last side swung to: -1, 0, 1
    waves: Array = field(metadata={"owned": True})  # (N, 4) swings since the foot was down
    most: Array = field(metadata={"owned": True})  # (N, 1) waves, the most in this episode


@dataclass(frozen=True, kw_only=True)
class Ant(Lagged[AntViews]):
    """Goals: forward (Gymnasium's Ant-v5), wave a leg, lie down."""

    name: ClassVar[str] = "ant"
    mirrors: ClassVar[str] = "Ant-v5"
    xml: ClassVar[str] = "ant.xml"
    act_dim: ClassVar[int] = 8
    cameras: ClassVar[tuple[Camera, ...]] = tracking_cameras("torso", 1.2, away=3.0)
    noise: ClassVar[float] = 0.1
    normal_speeds: ClassVar[bool] = True

    control_dt: float = 0.05
    episode_s: float = 50.0
    persistent: bool = True

    def bind(self, batch: Batch) -> AntViews:
        n, model = batch.nsim, batch.model
        hips = np.array([model.joint(hip).qposadr[0] for _, hip, _ in LEGS])
        side, waves, most = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 1))
        return AntViews(**self.common(batch), hips=hips, side=side, waves=waves, most=most)

    def lagging(self, v: AntViews, rows: Array | slice) -> Array:
        """Returns the torso's x and y (n, 2) m in environments ``rows``, by the derived fields."""
        return v.xpos[rows, 1, :2]

    def feet(self, v: AntViews) -> Array:
        """Returns the ends of the legs, (N, 4, 3) m, in the order of ``LEGS``."""
        self.settle(v)
        model = v.batch.model
        shins = [model.geom(shin).id for _, _, shin in LEGS]
        knees = model.geom_bodyid[shins]
        return 2.0 * v.geom_xpos[:, shins] - v.xpos[:, knees]

    def after_step(self, v: AntViews, ids: Array) -> None:
        """Updates place and external forces of environments ``ids`` (n,).

        For the goal ``wave`` it also counts the swings of each leg.
        """
        super().after_step(v, ids)
        if self.goal != "wave":
            return
        aloft = (self.feet(v)[ids, :, 2] > ALOFT) & (up_axis_height(v.qpos[ids, 3:7]) > LEVEL)[
            :, None
        ]
        hip = v.qpos[ids][:, v.hips]
        side = np.where(np.abs(hip) > SWING, np.sign(hip), v.side[ids]) * aloft
        swung = aloft & (side != 0) & (side != v.side[ids])
        v.waves[ids] = np.where(aloft, v.waves[ids] + swung, 0.0)
        v.side[ids] = side
        v.most[ids] = np.maximum(v.most[ids], v.waves[ids].max(axis=1, keepdims=True))

    def obs(self, v: AntViews) -> dict[str, Array]:
        """Returns the observation of Gymnasium's Ant-v5.

        Returns:
            ``qpos`` (N, 13) without x and y of the torso, ``qvel`` (N, 14), and ``cfrc_ext``
            (N, 78), the external torques and forces on each body, clipped to [-1, 1].
        """
        forces = np.clip(v.cfrc_ext[:, 1:], -1.0, 1.0).reshape(len(v.qpos), -1)
        return {"qpos": v.qpos[:, 2:], "qvel": v.qvel, "cfrc_ext": forces}

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        legs = ", ".join(leg for leg, _, _ in LEGS)
        feet = Signal("feet_pos", (4, 3), "m", "world", FAR, f"feet: {legs}", False)
        return (
            *super().signal_readers(),
            *torso_readers("centre of the torso", "1 upright, -1 on its back"),
            SignalReader(feet, self.feet),
        )

    def entities(self) -> tuple[Entity, ...]:
        return (body_entity("ant", ("robot", "spider", "body"), "torso", "torso_pos"),)

    def terminated(self, v: AntViews) -> Array | bool:
        """Returns where it is not ``healthy``, (N,) bool, for ``forward``; for other goals
        False."""
        return ~healthy(v) if self.goal == "forward" else False

    def goals(self) -> Mapping[str, TaskGoal[AntViews]]:
        return _goals(self)


def healthy(v: AntViews) -> Array:
    """Returns where a state is healthy as in Gymnasium, (N,) bool.

    It is finite, and the torso neither flat on the floor nor in the air.
    """
    sound = np.isfinite(v.qpos).all(axis=1) & np.isfinite(v.qvel).all(axis=1)
    return sound & (HEIGHT[0] <= v.qpos[:, 2]) & (v.qpos[:, 2] <= HEIGHT[1])


@cache
def _goals(task: Ant) -> dict[str, TaskGoal[AntViews]]:
    def effort(v: AntViews) -> Array:
        return -0.5 * sum_of_squares(v.ctrl)

    def forward(v: AntViews, action: Array) -> dict[str, Array]:
        forces = np.clip(v.cfrc_ext, -1.0, 1.0).reshape(len(v.qpos), -1)
        return {
            "forward": task.speed(v),
            "survive": 1.0 * healthy(v),
            "ctrl": effort(v),
            "contact": -5e-4 * sum_of_squares(forces),
        }

    def walked(v: AntViews) -> Array:
        return healthy(v) & (task.way_left(v) == 0.0)

    def waved(v: AntViews) -> Array:
        return v.most[:, 0] >= WAVES

    def swings_left(v: AntViews) -> Array:
        """(N,) swings that are still missing."""
        return np.maximum(WAVES - v.most[:, 0], 0.0)

    def wave(v: AntViews, action: Array) -> dict[str, Array]:
        height = task.feet(v)[:, :, 2].max(axis=1)
        return {
            "raise": np.clip(height - 0.08, 0.0, 0.2) / 0.2,
            "swings": np.minimum(v.waves.max(axis=1), WAVES),
            "level": 0.5 * up_axis_height(v.qpos[:, 3:7]),
            "ctrl": 0.1 * effort(v),
        }

    def tilt(v: AntViews) -> Array:
        """(N,) how far the torso's own z axis is from pointing down, and its speed too much."""
        return outside(up_axis_height(v.qpos[:, 3:7]), -1.0, ON_BACK) + outside(
            norm(v.qvel[:, :3]), 0, AT_REST
        )

    def lies(v: AntViews) -> Array:
        return tilt(v) == 0.0

    def lie_down(v: AntViews, action: Array) -> dict[str, Array]:
        turned = 0.5 - 0.5 * up_axis_height(v.qpos[:, 3:7])
        return {
            "turned": turned,
            "still": turned * np.exp(-norm(v.qvel[:, :3])),
            "there": 1.0 * lies(v),
            "ctrl": 0.1 * effort(v),
        }

    return {
        "forward": TaskGoal("the ant walks forward", walked, forward, task.way_left),
        "wave": TaskGoal("the ant waves a leg", waved, wave, swings_left, "swings"),
        "lie_down": TaskGoal("the ant lies down on its back", lies, lie_down, tilt, ""),
    }
