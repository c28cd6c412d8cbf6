"""Reacher: a two-link arm in a plane whose fingertip is to reach a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, Signal, TaskGoal
from sims.core.terms import norm, outside
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import LocomotionTask, LocomotionViews, sum_of_squares

AT = 0.02  # m, from fingertip to target, that counts as there
ARENA = 0.2  # m, radius of the disc that targets lie in
LINKS = (0.10, 0.11)  # m, from joint to joint and from there to the fingertip
HEIGHT = 0.01  # m, of the plane that fingertip and target move in


@dataclass
class ReacherViews(LocomotionViews):
    """Row i is env i; qpos is two joints rad, then the target's x and y m."""

    fingertip: Array  # (N, 3) m, one substep late
    target: Array  # (N, 3) m, one substep late
    gap: Array = field(metadata={"owned": True})  # (N, 3) m, to the fingertip, as Gymnasium sees it


@dataclass(frozen=True, kw_only=True)
class Reacher(LocomotionTask[ReacherViews]):
    """One goal: reach (Gymnasium's Reacher-v5)."""

    name: ClassVar[str] = "reacher"
    mirrors: ClassVar[str] = "Reacher-v5"
    xml: ClassVar[str] = "reacher.xml"
    act_dim: ClassVar[int] = 2
    cameras: ClassVar[tuple[Camera, ...]] = (
        Camera("top", pos=(0.0, 0.0, 0.85), target=(0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0)),
        Camera("side", pos=(0.0, -0.65, 0.55), target=(0.0, 0.0, 0.0)),
    )

    control_dt: float = 0.02
    episode_s: float = 1.0

    def bind(self, batch: Batch) -> ReacherViews:
        return ReacherViews(
            batch,
            batch.qpos,
            batch.qvel,
            batch.ctrl,
            fingertip=batch.body("fingertip").xpos,
            target=batch.body("target").xpos,
            gap=np.zeros((batch.nsim, 3)),
        )

    def reset(self, v: ReacherViews, ids: Array, rng: RowRng) -> None:
        v.qpos[ids, :2] += rng.uniform(-0.1, 0.1, (2,))
        v.qpos[ids, 2:] = disc(rng)
        v.qvel[ids, :2] += rng.uniform(-0.005, 0.005, (2,))

    def scatter(self, v: ReacherViews, ids: Array, rng: RowRng) -> None:
        v.qpos[ids, :2] = rng.uniform(-3.0, 3.0, (2,))
        v.qpos[ids, 2:] = disc(rng)
        v.qvel[ids, :2] = 3.0 * rng.normal((2,))

    def after_reset(self, v: ReacherViews, ids: Array) -> None:
        v.gap[ids] = (v.fingertip - v.target)[ids]

    after_step = after_reset

    def obs(self, v: ReacherViews) -> dict[str, Array]:
        joints = v.qpos[:, :2]
        return {
            "cos": np.cos(joints),
            "sin": np.sin(joints),
            "target": v.qpos[:, 2:],
            "qvel": v.qvel[:, :2],
            "gap": v.gap[:, :2],
        }

    def signals(self, v: ReacherViews) -> dict[str, Array]:
        return {
            **super().signals(v),
            "fingertip_pos": fingertip(v),
            "target_pos": np.column_stack([v.qpos[:, 2:], np.full(len(v.qpos), HEIGHT)]),
        }

    def signal_docs(self) -> tuple[Signal, ...]:
        return (
            *super().signal_docs(),
            Signal("fingertip_pos", (3,), "m", "world", (-1, 1), "end of the second link", True),
            Signal("target_pos", (3,), "m", "world", (-1, 1), "centre of the red target", False),
        )

    def entities(self) -> tuple[Entity, ...]:
        return (
            Entity(
                "fingertip",
                ("arm", "robot", "finger", "tip"),
                "green",
                "body",
                ("move",),
                "fingertip",
                "fingertip_pos",
            ),
            Entity(
                "target",
                ("ball", "goal", "point"),
                "red",
                "ball",
                ("touch",),
                "target",
                "target_pos",
            ),
        )

    def goals(self) -> Mapping[str, TaskGoal[ReacherViews]]:
        return _goals(self)


def disc(rng: RowRng) -> Array:
    """Points (n, 2) m, uniform in the disc that targets lie in."""
    radius = ARENA * np.sqrt(rng.uniform(0.0, 1.0))
    angle = rng.uniform(-np.pi, np.pi)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def fingertip(v: ReacherViews) -> Array:
    """(N, 3) m, of the state as it is now."""
    first, second = v.qpos[:, 0], v.qpos[:, 0] + v.qpos[:, 1]
    x = LINKS[0] * np.cos(first) + LINKS[1] * np.cos(second)
    y = LINKS[0] * np.sin(first) + LINKS[1] * np.sin(second)
    return np.column_stack([x, y, np.full(len(x), HEIGHT)])


@cache
def _goals(task: Reacher) -> dict[str, TaskGoal[ReacherViews]]:
    def reward(v: ReacherViews, action: Array) -> dict[str, Array]:
        return {"dist": -norm(v.gap), "ctrl": -sum_of_squares(v.ctrl)}

    def away(v: ReacherViews) -> Array:
        return outside(norm(fingertip(v)[:, :2] - v.qpos[:, 2:]), 0.0, AT)

    def there(v: ReacherViews) -> Array:
        return away(v) == 0.0

    return {"reach": TaskGoal("the fingertip is at the red target", there, reward, away)}
