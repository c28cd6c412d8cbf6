"""Pick and place: put the red cube on the green target and let go of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.fixtures import TARGET
from sims.tasks.scene.manipulation import Fixture, ManipulationTask, ManipulationViews

ON_TARGET = 0.03  # m, between the centres of cube and target
STANDING = 0.006  # m, the cube's centre no further from its height on the table
CUBE = 0  # its index among the things


@dataclass(frozen=True, kw_only=True)
class PickPlace(ManipulationTask):
    """One goal: the cube on the target, and the hand off it."""

    name: ClassVar[str] = "pick_place"
    fixtures: ClassVar[tuple[Fixture, ...]] = (TARGET,)

    episode_s: float = 6.0  # s

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places cube and target of environments ``ids`` (n,) on opposite sides of the table."""
        n = len(ids)
        self.begin(v, ids, rng)
        side = np.where(rng.uniform(0, 1) < 0.5, -1.0, 1.0)  # cube to one side, target to the other
        cube, target = self.spot(v, rng, n, (0.2, 0.8)), self.spot(v, rng, n, (0.2, 0.8))
        cube[:, 1] *= side
        target[:, 1] *= -side
        self.place_thing(v, ids, CUBE, cube, self.square(cube, rng))
        v.mocap[ids, 0, :2] = target

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that carries the cube to the target and lets go."""
        place = v.point["target"].copy()
        place[:, 2] = self.objects[CUBE].height + 0.002
        return self.fetch_and_leave(v, CUBE, place, close_to=0.012)


@cache
def _goals(task: PickPlace) -> dict[str, TaskGoal[ManipulationViews]]:
    half = task.objects[CUBE].height

    def aside(v: ManipulationViews) -> Array:
        return norm((v.point["target"] - v.thing_pos[CUBE])[:, :2])

    def missing(v: ManipulationViews) -> Array:
        up = outside(v.thing_pos[CUBE][:, 2] - half, -STANDING, STANDING)
        return outside(aside(v), 0.0, ON_TARGET) + up

    def success(v: ManipulationViews) -> Array:
        return (missing(v) == 0.0) & task.let_go(v, CUBE)

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        grasp, there = task.grasping(v, CUBE), near(aside(v), 0.10)
        done = (aside(v) < ON_TARGET) & (missing(v) == 0.0)
        high = np.clip((v.thing_pos[CUBE][:, 2] - half) / 0.03, 0.0, 1.0)
        carried = np.maximum(grasp * high, done)
        return {
            "reach": 0.3 * np.maximum(near(task.to_grip(v, CUBE), 0.10), done),
            "grasp": 0.4 * np.maximum(grasp, done),
            "carry": carried * (0.5 + 1.5 * there),
            "leave": 2.0 * (done & task.let_go(v, CUBE)),
        }

    return {
        "cube_at_target": TaskGoal("the red cube is on the target", success, reward, missing, "")
    }
