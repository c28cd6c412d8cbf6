"""Reach: bring the gripper to, above, beside or away from one of three objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.scene_objects import THINGS
from sims.tasks.scene.tabletop import LEFT, Tabletop, TabletopViews, sample_spots

TOUCHING = 0.02  # m, a finger this near an object's surface, or in contact, touches it
ABOVE = (0.02, 0.09)  # m, height of the tip over the object's top
OVER = 0.025  # m, horizontal distance that still counts as over the object
ASIDE = 0.05  # m, least sideways distance between the tip and the object's centre
ABREAST = 0.05  # m, largest distance in depth when beside it
FAR = 0.18  # m, between the tip and the object's centre


@dataclass(frozen=True, kw_only=True)
class Reach(Tabletop[TabletopViews]):
    """Fifteen goals: touch, above, left of, right of, far from, for each object."""

    name: ClassVar[str] = "reach"

    def reset(self, v: TabletopViews, ids: Array, rng: RowRng) -> None:
        """Places arm and objects of environments ``ids`` (n,) at random."""
        arm, place = self.arm, self.arm.workspace
        jitter = rng.uniform(-place.jitter, place.jitter, (len(arm.joints),))
        jitter[:, 0] = rng.uniform(-place.turn, place.turn)  # the arm starts turned anywhere
        self.place_arm(v, ids, arm.home + jitter)
        spots, yaw = sample_spots(place, rng, len(ids), gap=0.075), rng.uniform(-np.pi, np.pi, (3,))
        for thing in range(3):
            self.place_thing(v, ids, thing, spots[:, thing], yaw[:, thing])

    def goals(self) -> Mapping[str, TaskGoal[TabletopViews]]:
        return _goals(self)

    def expert(self, v: TabletopViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 3) that moves the tip to where the goal holds."""
        relation, thing = _parse(self.goal)
        return _towards(v, self._waypoint(v, relation, thing), self.tip_step)

    def _waypoint(self, v: TabletopViews, relation: str, thing: int) -> Array:
        """Where the tip should go next, (N, 3) m."""
        pos, half = v.thing_pos[thing], THINGS[thing].height
        if relation == "touch":
            # Come down from above: a sideways approach would knock over what stands in between.
            over = norm(v.tip[:, :2] - pos[:, :2])
            height = pos[:, 2] + half + np.where(over < 0.02, 0.004, 0.05)
            return np.column_stack([pos[:, :2], height])
        if relation == "above":
            return np.column_stack([pos[:, :2], pos[:, 2] + half + ABOVE[0] + 0.02])
        if relation in ("left_of", "right_of"):
            side = LEFT if relation == "left_of" else -LEFT
            return pos + side * (ASIDE + 0.02) + np.array([0.0, 0.0, 0.07])
        away = np.where(pos[:, 1:2] > 0, -1.0, 1.0)  # to the other side of the table, and up
        x, y, z = self.arm.workspace.aside
        return np.column_stack([np.full(len(pos), x), y * away[:, 0], np.full(len(pos), z)])


def _towards(v: TabletopViews, target: Array, step: float) -> Array:
    """The action (N, 3) that moves the tip straight to ``target`` (N, 3) m, without overshoot."""
    return np.clip(0.6 * (target - v.tip) / step, -1.0, 1.0)


def _parse(goal: str) -> tuple[str, int]:
    for index, thing in enumerate(THINGS):
        if goal.endswith(thing.name):
            return goal.removesuffix("_" + thing.name), index
    raise ValueError(f"goal {goal!r} names no object of the tabletop")


SENTENCES = {
    "touch": "the gripper touches the {}",
    "above": "the gripper is above the {}",
    "left_of": "the gripper is left of the {}",
    "right_of": "the gripper is right of the {}",
    "far_from": "the gripper is far from the {}",
}


@cache
def _goals(task: Reach) -> dict[str, TaskGoal[TabletopViews]]:
    return {
        f"{relation}_{thing.name}": _goal(
            task, relation, index, sentence.format(f"{thing.colour} {thing.kind}")
        )
        for index, thing in enumerate(THINGS)
        for relation, sentence in SENTENCES.items()
    }


def _goal(task: Reach, relation: str, thing: int, sentence: str) -> TaskGoal[TabletopViews]:
    """The ground truth of one goal, from the positions of tip, fingers and object alone."""

    def distance(v: TabletopViews) -> Array:
        from_thing = v.tip - v.thing_pos[thing]
        if relation == "touch":
            return task.surface_distance(v, thing)
        if relation == "above":
            height = from_thing[:, 2] - THINGS[thing].height
            return np.hypot(outside(norm(from_thing[:, :2]), 0.0, OVER), outside(height, *ABOVE))
        if relation in ("left_of", "right_of"):
            aside = from_thing @ (LEFT if relation == "left_of" else -LEFT)
            return np.hypot(outside(aside, ASIDE), outside(from_thing[:, 0], -ABREAST, ABREAST))
        return outside(norm(from_thing), FAR)

    reached = TOUCHING if relation == "touch" else 0.0

    def success(v: TabletopViews) -> Array:
        return distance(v) <= reached

    def reward(v: TabletopViews, action: Array) -> dict[str, Array]:
        away = outside(distance(v), 0.0, reached)
        return {"near": near(away, 0.10), "there": 0.5 * (away == 0.0)}

    return TaskGoal(sentence, success, reward, distance)
