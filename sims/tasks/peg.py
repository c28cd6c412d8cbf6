"""Peg: put a round peg into a square hole that is one millimetre wider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.fixtures import HOLE_DEPTH, PEG_HALF, PEG_RADIUS, SOCKET
from sims.tasks.scene.manipulation import (
    HOVER,
    Fixture,
    ManipulationTask,
    ManipulationViews,
    upright,
)
from sims.tasks.scene.scene_objects import SceneObject

PEG_THING = SceneObject(
    "peg",
    "",
    "peg",
    ("peg", "pin", "dowel", "rod", "stick"),
    (0.95, 0.55, 0.05, 1.0),
    (PEG_RADIUS, PEG_HALF),
    PEG_HALF,
)
INSERTED = 0.015  # m, the peg's lower end below the rim; the hole is twice as deep
UPRIGHT = 0.97  # cosine: in the hole it cannot lean further
PEG = 0  # its index among the things


@dataclass(frozen=True, kw_only=True)
class Peg(ManipulationTask):
    """One goal: the peg in the hole."""

    name: ClassVar[str] = "peg"
    objects: ClassVar[tuple[SceneObject, ...]] = (PEG_THING,)
    fixtures: ClassVar[tuple[Fixture, ...]] = (SOCKET,)
    affordances: ClassVar[tuple[str, ...]] = ("touch", "lift", "place", "insert")

    episode_s: float = 8.0  # s

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places the peg of environments ``ids`` (n,) on the left and the hole on the right."""
        n = len(ids)
        self.begin(v, ids, rng)
        peg, hole = self.spot(v, rng, n, (-0.8, -0.3)), self.spot(v, rng, n, (0.3, 0.7))
        self.place_thing(v, ids, PEG, peg, rng.uniform(-np.pi, np.pi))
        v.mocap[ids, 0, :2] = hole

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that grasps the peg, lowers it into the hole and lets go."""
        above = v.point["hole"].copy()
        above[:, 2] += PEG_HALF + 0.010
        action, held = self.fetch(v, PEG, above, depth=-0.015)
        # Over the hole to within a third of a millimetre, then down; inside, straight on down.
        end = v.thing_pos[PEG] - PEG_HALF * _axis(v)
        off = (v.point["hole"] - end)[:, :2]
        depth = v.point["hole"][:, 2] - end[:, 2]
        over = held & (norm(off) < 0.02) & (depth > -0.03)
        down = over & ((norm(off) < 0.0004) | (depth > 0.001))
        target = v.tip.copy()
        target[:, :2] += np.where((depth < 0.001)[:, None], off, 0.0)
        target[:, 2] += np.where(down, -0.012, np.where(depth > -0.003, 0.002, -0.003))
        inserted = (depth > INSERTED + 0.006) & (norm(off) < 0.005)
        leave = v.tip + (0.0, 0.0, HOVER)
        closed, opened = self.arm.grip_range
        free = v.gripper[:, 0] > closed + 0.6 * (opened - closed)
        action = np.where(over[:, None], self.go(v, target, -1.0), action)
        leave = np.where(free[:, None], leave, v.tip)
        return np.where(inserted[:, None], self.go(v, leave, 1.0), action)


def _axis(v: ManipulationViews) -> Array:
    """(N, 3) the peg's own up, in the world."""
    return v.thing_mat[PEG].reshape(-1, 3, 3)[:, :, 2]


@cache
def _goals(task: Peg) -> dict[str, TaskGoal[ManipulationViews]]:
    def end(v: ManipulationViews) -> Array:
        """(N, 3) m the peg's lower end from the middle of the rim."""
        return v.thing_pos[PEG] - PEG_HALF * _axis(v) - v.point["hole"]

    def missing(v: ManipulationViews) -> Array:
        at = end(v)
        return outside(norm(at[:, :2]), 0.0, 0.005) + outside(-at[:, 2], INSERTED)

    def success(v: ManipulationViews) -> Array:
        return (missing(v) == 0.0) & (upright(v, PEG) > UPRIGHT)

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        at, done = end(v), success(v)
        grasp = np.maximum(task.grasping(v, PEG), done)
        high = np.clip((v.thing_pos[PEG][:, 2] - PEG_HALF) / HOLE_DEPTH, 0.0, 1.0)
        inside = near(norm(at[:, :2]), 0.01) * np.clip(-at[:, 2] / INSERTED, 0.0, 1.0)
        return {
            "reach": 0.3 * np.maximum(near(task.to_grip(v, PEG), 0.10), done),
            "grasp": 0.4 * grasp,
            "carry": grasp * np.maximum(high, done) * (0.5 + near(norm(at[:, :2]), 0.05)),
            "insert": 2.0 * inside,
        }

    return {"insert": TaskGoal("the peg is in the hole", success, reward, missing)}
