"""InvertedPendulum: a cart that is to keep its pole up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Array, Entity, Signal, TaskGoal
from sims.core.terms import outside
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import LocomotionTask, LocomotionViews, body_entity

TILT = 0.2  # rad, largest angle of a pole that has not fallen


@dataclass
class PoleViews(LocomotionViews):
    """Row i is env i; qpos is the cart's x m and the pole's angle rad."""

    time: Array  # (N,) s since the start of the episode


@dataclass(frozen=True, kw_only=True)
class InvertedPendulum(LocomotionTask[PoleViews]):
    """One goal: balance (Gymnasium's InvertedPendulum-v5)."""

    name: ClassVar[str] = "inverted_pendulum"
    mirrors: ClassVar[str] = "InvertedPendulum-v5"
    xml: ClassVar[str] = "inverted_pendulum.xml"
    act_dim: ClassVar[int] = 1
    cameras: ClassVar[tuple[Camera, ...]] = (
        Camera("side", pos=(0.0, -1.6, 0.4), target=(0.0, 0.0, 0.2)),
        Camera("front", pos=(1.5, -0.5, 0.7), target=(0.0, 0.0, 0.2)),
    )
    noise: ClassVar[float] = 0.01

    control_dt: float = 0.04
    episode_s: float = 40.0

    def bind(self, batch: Batch) -> PoleViews:
        return PoleViews(batch, batch.qpos, batch.qvel, batch.ctrl, batch.time)

    def obs(self, v: PoleViews) -> dict[str, Array]:
        return {"qpos": v.qpos, "qvel": v.qvel}

    def signals(self, v: PoleViews) -> dict[str, Array]:
        zero = np.zeros((len(v.qpos), 2))
        return {**super().signals(v), "cart_pos": np.column_stack([v.qpos[:, :1], zero])}

    def signal_docs(self) -> tuple[Signal, ...]:
        cart = Signal("cart_pos", (3,), "m", "world", (-2, 2), "middle of the cart", True)
        return (*super().signal_docs(), cart)

    def entities(self) -> tuple[Entity, ...]:
        names = ("pendulum", "stick", "rod")
        return (body_entity("pole", names, "pole", "cart_pos", ("move", "balance")),)

    def terminated(self, v: PoleViews) -> Array | bool:
        return ~upright(v)

    def goals(self) -> Mapping[str, TaskGoal[PoleViews]]:
        return _goals(self)


def upright(v: PoleViews) -> Array:
    """(N,) bool: the pole has not fallen."""
    return np.isfinite(v.qpos).all(axis=1) & (np.abs(v.qpos[:, 1]) <= TILT)


@cache
def _goals(task: InvertedPendulum) -> dict[str, TaskGoal[PoleViews]]:
    def reward(v: PoleViews, action: Array) -> dict[str, Array]:
        return {"survive": 1.0 * upright(v)}

    def left(v: PoleViews) -> Array:
        """Time (N,) s that is still to be held, and the tilt (rad) too much."""
        missing = np.maximum(task.episode_s - 0.5 * task.control_dt - v.time, 0.0)
        return missing + outside(np.abs(v.qpos[:, 1]), 0.0, TILT)

    def held(v: PoleViews) -> Array:
        return left(v) == 0.0

    return {"balance": TaskGoal("the pole stays upright", held, reward, left, "")}
