"""Pusher: a seven-joint arm that is to push a white cylinder onto a red disc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, Signal, TaskGoal
from sims.core.terms import norm, outside
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import LocomotionTask, LocomotionViews, sum_of_squares

DISC_RADIUS = 0.08  # m
ON = 0.06  # m, between the centres, that counts as on the disc
APART = 0.17  # m, least between the centres at the start
TABLE = np.array([0.45, -0.05])  # m, where cylinder and disc are at qpos 0
CYLINDER_HEIGHT, DISC_HEIGHT = -0.275, -0.323  # m, of the centres


@dataclass
class PusherViews(LocomotionViews):
    """Row i is env i; qpos is 7 joints rad, then y and x m of the cylinder and of the disc."""

    xpos: Array  # (N, nbody, 3) m, one substep late
    bodies: list[int]  # tip, cylinder, disc
    seen: Array = field(metadata={"owned": True})  # (N, 3, 3) m, tip, cylinder, disc as Gymnasium


@dataclass(frozen=True, kw_only=True)
class Pusher(LocomotionTask[PusherViews]):
    """One goal: push (Gymnasium's Pusher-v5)."""

    name: ClassVar[str] = "pusher"
    mirrors: ClassVar[str] = "Pusher-v5"
    xml: ClassVar[str] = "pusher_v5.xml"
    act_dim: ClassVar[int] = 7
    cameras: ClassVar[tuple[Camera, ...]] = (
        Camera("front", pos=(1.9, 0.0, 0.8), target=(0.3, -0.2, -0.2)),
        Camera("top", pos=(0.35, -0.2, 1.9), target=(0.35, -0.2, 0.0), up=(-1.0, 0.0, 0.0)),
    )

    control_dt: float = 0.05
    episode_s: float = 5.0

    def bind(self, batch: Batch) -> PusherViews:
        return PusherViews(
            batch,
            batch.qpos,
            batch.qvel,
            batch.ctrl,
            xpos=batch.xpos,
            bodies=[batch.model.body(name).id for name in ("tips_arm", "object", "goal")],
            seen=np.zeros((batch.nsim, 3, 3)),
        )

    def reset(self, v: PusherViews, ids: Array, rng: RowRng) -> None:
        # Gymnasium draws x and y of the cylinder until it is far from the disc at the origin.
        spots = rng.uniform((-0.3, -0.2), (0.0, 0.2), (32, 2))
        near = norm(spots) <= APART
        v.qpos[ids, 7:9] = spots[np.arange(len(ids)), np.argmin(near, axis=1)]
        v.qvel[ids, :7] += rng.uniform(-0.005, 0.005, (7,))

    def scatter(self, v: PusherViews, ids: Array, rng: RowRng) -> None:
        super().scatter(v, ids, rng)
        v.qpos[ids, 7:11] = rng.uniform(-0.3, 0.3, (4,))
        v.qvel[ids, 7:] = 0.0

    def after_reset(self, v: PusherViews, ids: Array) -> None:
        v.seen[ids] = v.xpos[ids][:, v.bodies]

    after_step = after_reset

    def obs(self, v: PusherViews) -> dict[str, Array]:
        return {
            "qpos": v.qpos[:, :7],
            "qvel": v.qvel[:, :7],
            "tip": v.seen[:, 0],
            "cylinder": v.seen[:, 1],
            "disc": v.seen[:, 2],
        }

    def signals(self, v: PusherViews) -> dict[str, Array]:
        v.batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS.value)
        tall = np.full(len(v.qpos), CYLINDER_HEIGHT), np.full(len(v.qpos), DISC_HEIGHT)
        return {
            **super().signals(v),
            "tip_pos": v.xpos[:, v.bodies[0]],
            "cylinder_pos": np.column_stack([TABLE + v.qpos[:, [8, 7]], tall[0]]),
            "disc_pos": np.column_stack([TABLE + v.qpos[:, [10, 9]], tall[1]]),
        }

    def signal_docs(self) -> tuple[Signal, ...]:
        return (
            *super().signal_docs(),
            Signal("tip_pos", (3,), "m", "world", (-2, 2), "between the arm's two tips", True),
            Signal("cylinder_pos", (3,), "m", "world", (-11, 11), "the white cylinder", False),
            Signal("disc_pos", (3,), "m", "world", (-11, 11), "the red disc", False),
        )

    def entities(self) -> tuple[Entity, ...]:
        return (
            Entity("arm", ("robot", "tip"), "", "body", ("move",), "tips_arm", "tip_pos"),
            Entity(
                "cylinder",
                ("can", "puck"),
                "white",
                "cylinder",
                ("push",),
                "object",
                "cylinder_pos",
            ),
            Entity(
                "disc",
                ("goal", "target"),
                "red",
                "disc",
                (),
                "goal",
                "disc_pos",
                (DISC_RADIUS, DISC_RADIUS, 0.0),
            ),
        )

    def goals(self) -> Mapping[str, TaskGoal[PusherViews]]:
        return _goals(self)


@cache
def _goals(task: Pusher) -> dict[str, TaskGoal[PusherViews]]:
    def reward(v: PusherViews, action: Array) -> dict[str, Array]:
        tip, cylinder, disc = (v.seen[:, i] for i in range(3))
        return {
            "dist": -norm(cylinder - disc),
            "ctrl": -0.1 * sum_of_squares(v.ctrl),
            "near": -0.5 * norm(cylinder - tip),
        }

    def away(v: PusherViews) -> Array:
        return outside(norm(v.qpos[:, 7:9] - v.qpos[:, 9:11]), 0.0, ON)

    def there(v: PusherViews) -> Array:
        return away(v) == 0.0

    return {"push": TaskGoal("the white cylinder is on the red disc", there, reward, away)}
