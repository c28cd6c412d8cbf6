"""Hopper: one leg in a plane, that is to hop forward or to turn a flip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, Signal, SignalReader, TaskGoal
from sims.core.terms import outside
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import (
    FAR,
    TORSO_POS,
    Runner,
    RunnerViews,
    body_entity,
    strictly_within,
    sum_of_squares,
    torso_in_plane,
    tracking_cameras,
)

TALL = 0.7  # m, height of the torso's middle above which the hopper stands
UPRIGHT = 0.2  # rad, Gymnasium's largest pitch
HALF_TORSO = 0.2  # m, from the torso's middle to its top

# A flip: once round, over the head in the air, and up again.
OVER = 0.6  # rad, from upside down, where the head must be clear of the floor
CLEAR = 0.10  # m, of the head when upside down; its radius is half of that
LANDED = 0.5  # rad, from a whole turn, when it stands again
# Of a flip that is under way when an episode begins: what the torso's middle may have, at most.
TOSSED, RISING, TURNING = 1.9, 3.0, 10.0  # m, m/s, rad/s


@dataclass
class HopperViews(RunnerViews):
    """Row i is env i; qpos is x m, height m, pitch rad (forward), then three joints."""

    before_pitch: Array = field(metadata={"owned": True})  # (N, 1) rad, before the last action
    over: Array = field(metadata={"owned": True})  # (N, 2) 1 after passing over, [front, back]
    flipped: Array = field(metadata={"owned": True})  # (N, 2) 1 after landing a flip


@dataclass(frozen=True, kw_only=True)
class Hopper(Runner[HopperViews]):
    """Goals: forward (Gymnasium's Hopper-v5), front flip, back flip."""

    name: ClassVar[str] = "hopper"
    mirrors: ClassVar[str] = "Hopper-v5"
    xml: ClassVar[str] = "hopper.xml"
    act_dim: ClassVar[int] = 3
    cameras: ClassVar[tuple[Camera, ...]] = tracking_cameras("torso", -0.2)
    noise: ClassVar[float] = 5e-3

    control_dt: float = 0.008
    episode_s: float = 8.0

    def bind(self, batch: Batch) -> HopperViews:
        n = batch.nsim
        return HopperViews(
            batch,
            batch.qpos,
            batch.qvel,
            batch.ctrl,
            np.zeros((n, 1)),
            np.zeros((n, 1)),
            np.zeros((n, 2)),
            np.zeros((n, 2)),
        )

    def control(self, v: HopperViews, action: Array) -> None:
        """Copies the pitch to ``v.before_pitch`` and applies ``action`` (N, 3) in [-1, 1]."""
        v.before_pitch[:] = v.qpos[:, 2:3]
        super().control(v, action)

    def scatter(self, v: HopperViews, ids: Array, rng: RowRng) -> None:
        """Writes random states into rows ``ids`` (n,); half are in the air, amid a flip."""
        super().scatter(v, ids, rng)
        part = rng.uniform(-1.0, 1.0, (5,))
        tossed, part = ids[part[:, 0] < 0.0], part[part[:, 0] < 0.0]
        turn = part[:, 1] * (2 * np.pi - LANDED)
        v.qpos[tossed, 1] = TALL + (TOSSED - TALL) * np.abs(part[:, 2])
        v.qpos[tossed, 2] = turn
        v.qvel[tossed, 1] = RISING * part[:, 3]
        v.qvel[tossed, 2] = TURNING * np.abs(part[:, 4]) * np.sign(turn)
        v.over[tossed] = np.stack([turn, -turn], axis=1) > np.pi

    def after_step(self, v: HopperViews, ids: Array) -> None:
        """Updates, for rows ``ids`` (n,), which flips passed the head and which landed."""
        height, pitch = v.qpos[ids, 1], v.qpos[ids, 2]
        clear = height + HALF_TORSO * np.cos(pitch) > CLEAR
        for side, turn in enumerate((pitch, -pitch)):
            v.over[ids, side] = np.maximum(v.over[ids, side], (np.abs(turn - np.pi) < OVER) & clear)
            landed = (np.abs(turn - 2 * np.pi) < LANDED) & (height > TALL)
            v.flipped[ids, side] = np.maximum(v.flipped[ids, side], landed * v.over[ids, side])

    def obs(self, v: HopperViews) -> dict[str, Array]:
        """Returns ``qpos`` (N, 5) without the torso's x, and ``qvel`` (N, 6), clipped at 10."""
        return {"qpos": v.qpos[:, 1:], "qvel": np.clip(v.qvel, -10.0, 10.0)}

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        pitch = Signal("pitch", (1,), "rad", "world", FAR, "forward turn since start", False)
        return (
            *super().signal_readers(),
            SignalReader(TORSO_POS, torso_in_plane),
            SignalReader(pitch, lambda v: v.qpos[:, 2:3]),
        )

    def entities(self) -> tuple[Entity, ...]:
        return (body_entity("hopper", ("robot", "leg", "body"), "torso", "torso_pos"),)

    def terminated(self, v: HopperViews) -> Array | bool:
        """Returns where it is not ``healthy``, (N,) bool, for ``forward``; for other goals
        False."""
        return ~healthy(v) if self.goal == "forward" else False

    def goals(self) -> Mapping[str, TaskGoal[HopperViews]]:
        return _goals(self)


def healthy(v: HopperViews) -> Array:
    """Returns where a state is healthy as in Gymnasium, (N,) bool.

    The torso is high and upright, and no joint or speed is beyond 100.
    """
    sound = strictly_within(v.qpos[:, 2:], -100.0, 100.0).all(axis=1)
    sound &= strictly_within(v.qvel, -100.0, 100.0).all(axis=1)
    return sound & (v.qpos[:, 1] > TALL) & strictly_within(v.qpos[:, 2], -UPRIGHT, UPRIGHT)


@cache
def _goals(task: Hopper) -> dict[str, TaskGoal[HopperViews]]:
    def forward(v: HopperViews, action: Array) -> dict[str, Array]:
        return {"forward": task.speed(v), "survive": 1.0 * healthy(v), "ctrl": _effort(v)}

    def hopped(v: HopperViews) -> Array:
        return healthy(v) & (task.way_left(v) == 0.0)

    return {
        "forward": TaskGoal("the hopper hops forward", hopped, forward, task.way_left),
        "front_flip": _flip(task, "the hopper does a front flip", 0),
        "back_flip": _flip(task, "the hopper does a back flip", 1),
    }


def _flip(task: Hopper, sentence: str, side: int) -> TaskGoal[HopperViews]:
    """A whole turn about the side axis, forward (0) or backward (1), landed on the foot."""
    sign = 1.0 if side == 0 else -1.0

    def success(v: HopperViews) -> Array:
        return v.flipped[:, side] > 0

    def left(v: HopperViews) -> Array:
        """Turn (N,) rad that is still missing."""
        turn = sign * v.qpos[:, 2]
        return np.where(success(v), 0.0, np.maximum(outside(turn, 2 * np.pi - LANDED), 0.1))

    def reward(v: HopperViews, action: Array) -> dict[str, Array]:
        rate = sign * (v.qpos[:, 2] - v.before_pitch[:, 0]) / task.control_dt
        done = success(v)
        return {
            # Turning counts in the air: on the floor it would be rolling.
            "turn": np.where(done, 0.0, np.clip(rate, -10.0, 10.0) * (v.qpos[:, 1] > 0.5)),
            "height": np.clip(v.qpos[:, 1] - TALL, -0.5, 1.0),
            "flipped": 3.0 * done,
            "ctrl": _effort(v),
        }

    return TaskGoal(sentence, success, reward, left, "rad")


def _effort(v: HopperViews) -> Array:
    return -1e-3 * sum_of_squares(v.ctrl)
