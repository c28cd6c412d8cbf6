"""Stack: put the red cube on the blue cube and let go of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.manipulation import RED_CUBE, ManipulationTask, ManipulationViews
from sims.tasks.scene.scene_objects import SceneObject

BLUE_CUBE = replace(RED_CUBE, name="blue_cube", colour="blue", rgba=(0.06, 0.18, 0.95, 1.0))
ASIDE = 0.02  # m, between the centres seen from above: further off it would fall
HEIGHT = 0.006  # m, the centres no further from one cube's height apart
RED, BLUE = 0, 1  # indices among the things


@dataclass(frozen=True, kw_only=True)
class Stack(ManipulationTask):
    """One goal: red on blue, and the hand off it."""

    name: ClassVar[str] = "stack"
    objects: ClassVar[tuple[SceneObject, ...]] = (RED_CUBE, BLUE_CUBE)
    affordances: ClassVar[tuple[str, ...]] = ("touch", "push", "lift", "place", "stack")

    episode_s: float = 6.0  # s

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places red and blue cube of environments ``ids`` (n,) on opposite sides of the table."""
        n = len(ids)
        self.begin(v, ids, rng)
        side = np.where(rng.uniform(0, 1) < 0.5, -1.0, 1.0)  # red to one side, blue to the other
        for thing, way in ((RED, side), (BLUE, -side)):
            spot = self.spot(v, rng, n, (0.25, 0.8))
            spot[:, 1] *= way
            self.place_thing(v, ids, thing, spot, self.square(spot, rng))

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that puts the red cube on the blue one and lets go."""
        top = v.thing_pos[BLUE].copy()
        top[:, 2] += 2 * self.objects[BLUE].height + 0.002
        return self.fetch_and_leave(v, RED, top, close_to=0.008)


@cache
def _goals(task: Stack) -> dict[str, TaskGoal[ManipulationViews]]:
    edge = 2 * task.objects[RED].height

    def aside(v: ManipulationViews) -> Array:
        return norm((v.thing_pos[RED] - v.thing_pos[BLUE])[:, :2])

    def missing(v: ManipulationViews) -> Array:
        over = v.thing_pos[RED][:, 2] - v.thing_pos[BLUE][:, 2] - edge
        fallen = outside(v.thing_pos[BLUE][:, 2], 0.5 * edge - HEIGHT, 0.5 * edge + HEIGHT)
        return outside(aside(v), 0.0, ASIDE) + outside(over, -HEIGHT, HEIGHT) + fallen

    def success(v: ManipulationViews) -> Array:
        return (missing(v) == 0.0) & task.let_go(v, RED)

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        grasp, there = task.grasping(v, RED), near(aside(v), 0.10)
        done = missing(v) == 0.0
        high = np.clip((v.thing_pos[RED][:, 2] - 0.5 * edge) / edge, 0.0, 1.0)
        carried = np.maximum(grasp * high, done)
        return {
            "reach": 0.3 * np.maximum(near(task.to_grip(v, RED), 0.10), done),
            "grasp": 0.4 * np.maximum(grasp, done),
            "carry": carried * (0.5 + 1.5 * there),
            "leave": 2.0 * (done & task.let_go(v, RED)),
        }

    return {
        "red_on_blue": TaskGoal("the red cube is on the blue cube", success, reward, missing, "")
    }
