"""Ends: whether a goal wants something to be where the arm cannot bring it.

``moved(red_cube, left=8cm)`` is out of reach where the cube lies at the left end of the table
already. Such an episode could not be won by anybody, so it is not begun.
"""

from __future__ import annotations

import numpy as np

from sims.core.terms import norm
from sims.robots.robot import Workspace
from sims.tasks.scene.tabletop import Tabletop
from sims.truth.temporal import Node
from sims.truth.world import World

Array = np.ndarray

_ASIDE = {"left_of": (0, -1), "right_of": (0, 1), "in_front_of": (1, 0), "behind": (-1, 0)}


def out_of_reach(goal: Node, world: World, rows: Array) -> Array:
    """Returns whether a part of the goal that must hold is out of reach now, (n,) bool."""
    if not isinstance(world.task, Tabletop):
        return np.zeros(len(rows), bool)
    name, arguments, numbers = goal
    if name in ("and", "then"):
        return np.logical_or.reduce([out_of_reach(part, world, rows) for part in arguments])
    if name == "or":
        return np.logical_and.reduce([out_of_reach(part, world, rows) for part in arguments])
    if name == "until":
        return out_of_reach(arguments[1], world, rows)
    if name in ("hold", "once", "within", "while", "always"):  # of not and never nothing is asked
        return out_of_reach(arguments[0], world, rows)
    if numbers.get("after"):
        return np.zeros(len(rows), bool)  # it depends on where it will be by then
    if name == "nearer" and all(isinstance(argument, str) for argument in arguments):
        apart = world.point(arguments[0])[rows] - world.point(arguments[1])[rows]
        return norm(apart) < numbers["by"]
    end = _end(goal, world, rows)
    if end is None:
        return np.zeros(len(rows), bool)
    return ~within_reach(end, world.task.arm.workspace)


def within_reach(point: Array, place: Workspace) -> Array:
    """Returns whether the tip can be at points (n, 2) m on the table, (n,) bool."""
    ahead = point - [place.shoulder_x, 0.0]
    radius = np.hypot(ahead[:, 0], ahead[:, 1])
    turned = np.abs(np.arctan2(ahead[:, 1], ahead[:, 0])) <= place.air_sector
    return turned & (radius >= place.air_reach[0]) & (radius <= place.air_reach[1])


def _end(goal: Node, world: World, rows: Array) -> Array | None:
    """(n, 2) m where the first entity of a predicate is to be; None where that is not one place."""
    name, arguments, numbers = goal
    if not all(isinstance(argument, str) for argument in arguments):
        return None  # chosen at the start
    if name == "moved":
        return world.point(arguments[0])[rows, :2] + [numbers["front"], -numbers["left"]]
    if name == "at_point":
        return np.broadcast_to([numbers["x"], numbers["y"]], (len(rows), 2))
    if name in _ASIDE:
        return world.point(arguments[1])[rows, :2] + numbers["gap"] * np.array(_ASIDE[name])
    return None
