"""A way to a pose, seen before it is gone: straight, or with a step aside first.

An arm that leans on the table with a finger gains room by few of its ways, and the straight one to
where it is parked need not be among them: the filter would hold it where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from real_robot.core.clearance import Clearance

Array = np.ndarray

_APART = 0.05  # rad between two poses that are looked at
_ASIDE = (0.1, 0.2, 0.4)  # rad, of one joint


def plan_escape(
    clearance: Clearance, start: Array, goal: Array, gripper: float, position: Array
) -> list[Array]:
    """Poses (n,) rad to go to in turn, the last of them ``goal``, each on a straight way that
    loses no room below the margin; ``goal`` alone where none is found. Those before it are
    within ``position`` (n, 2) rad."""
    for step in _detours(start, position):
        legs = [*step, goal]
        if _clear(clearance, [start, *legs], gripper):
            return legs
    return [goal]


def _detours(start: Array, position: Array) -> Iterator[list[Array]]:
    """What to go through before: nothing, or one joint aside, the least first."""
    yield []
    for size in _ASIDE:
        for joint in range(len(start)):
            for sign in (-1.0, 1.0):
                aside = start.copy()
                aside[joint] += sign * size
                if position[joint, 0] <= aside[joint] <= position[joint, 1]:
                    yield [aside]


def _clear(clearance: Clearance, poses: list[Array], gripper: float) -> bool:
    """Whether an arm may go through ``poses``: what room it has gained it keeps."""
    floor = min(clearance.margin, clearance.near(poses[0], gripper).room)
    for one, two in zip(poses[:-1], poses[1:], strict=True):
        places = max(1, int(np.ceil(np.abs(two - one).max() / _APART)))
        for part in np.arange(1, places + 1) / places:
            room = clearance.near(one + part * (two - one), gripper).room
            if room < floor:
                return False
            floor = min(clearance.margin, room)
    return True
