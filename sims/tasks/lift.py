"""Lift: grasp the red cube and hold it in the air."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, outside
from sims.tasks.scene.manipulation import ManipulationTask, ManipulationViews

LIFTED = 0.05  # m, height of the cube's lower face over the table
WITH_HAND = 0.06  # m, between cube and grip point: a cube that was thrown does not count
CUBE = 0  # its index among the things


@dataclass(frozen=True, kw_only=True)
class Lift(ManipulationTask):
    """One goal: the cube in the air, in the hand."""

    name: ClassVar[str] = "lift"

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places the cube of environments ``ids`` (n,) at random, with the jaws open."""
        self.begin(v, ids, rng)
        spot = self.spot(v, rng, len(ids), (-0.8, 0.8))
        self.place_thing(v, ids, CUBE, spot, self.square(spot, rng))

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that grasps the cube and holds it 8 cm over the table."""
        over = v.thing_pos[CUBE].copy()
        over[:, 2] = self.objects[CUBE].height + LIFTED + 0.03
        return self.fetch(v, CUBE, over)[0]


@cache
def _goals(task: Lift) -> dict[str, TaskGoal[ManipulationViews]]:
    half = task.objects[CUBE].height

    def missing(v: ManipulationViews) -> Array:
        return outside(v.thing_pos[CUBE][:, 2] - half, LIFTED)

    def success(v: ManipulationViews) -> Array:
        in_hand = task.to_grip(v, CUBE) < WITH_HAND
        return (missing(v) == 0.0) & in_hand

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        grasp = task.grasping(v, CUBE)
        height = 1.0 - missing(v) / LIFTED
        return {
            "reach": 0.3 * near(task.to_grip(v, CUBE), 0.10),
            "grasp": 0.4 * grasp,
            "lift": 1.5 * grasp * np.clip(height, 0.0, 1.0),
        }

    return {"lift_cube": TaskGoal("the gripper lifts the red cube", success, reward, missing)}
