"""CollisionStage: shortens a target that leads out of the workspace, into the table or into the
arm itself.

The stage looks along the way to the target in a few places. That the arm can always stop in the
clear, however it is shaped afterwards, is the shaping stage's to see to, with ``admit`` below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.core.clearance import Clearance
from real_robot.safety.stages.stage import Array, FilterContext, FilterStage, JointTrajectoryPoint

_APART = 0.1  # rad between two places on the way that are looked at
_PLACES = 8  # looked at in one tick; the rest of a long way will be looked at later
_HALVINGS = 4


@dataclass(frozen=True, eq=False)
class CollisionStage(FilterStage):
    """Shortens the way to a target to the part that keeps ``clearance.margin`` of room."""

    name: ClassVar[str] = "clearance"
    clearance: Clearance | None  # None: nothing is known of the surroundings

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        if self.clearance is None:
            return motion, own
        start, way = moment.last.qpos, motion.qpos - moment.last.qpos
        floor = self._floor(start, moment.last.gripper)
        farthest = float(np.abs(way).max())
        places = min(_PLACES, max(1, math.ceil(farthest / _APART)))
        looked = min(1.0, places * _APART / max(farthest, _APART))  # at that part of the way
        good = 0.0
        for place in range(1, places + 1):
            part = looked * place / places
            if self._room(start + part * way, motion.gripper) < floor:
                bad = part
                break
            good = part
        else:
            return motion, own
        for _ in range(_HALVINGS):
            middle = (good + bad) / 2
            if self._room(start + middle * way, motion.gripper) < floor:
                bad = middle
            else:
                good = middle
        return motion._replace(qpos=start + good * way, qvel=np.zeros_like(way)), own

    def admit(self, way: Sequence[Array], gripper: float, last: JointTrajectoryPoint) -> bool:
        """Whether the arm may rest in the last pose (n,) rad of ``way``, ``gripper`` open.

        On the way there it need not keep the margin, but it may not touch. ``last`` is the command
        before, and an arm that has less room than that already may only gain some.
        """
        if self.clearance is None:
            return True
        *passed, rest = way
        floor = self._floor(last.qpos, last.gripper)
        return self._room(rest, gripper) >= floor and all(
            self._room(pose, gripper) >= min(floor, 0.0) for pose in passed
        )

    def travel(self, pose: Array, gripper: float, last: JointTrajectoryPoint) -> float:
        """m that the tool moves from the last command to ``pose`` (n,) rad; 0 if nothing is known
        of the arm."""
        if self.clearance is None:
            return 0.0
        near = self.clearance.near
        return math.dist(near(pose, gripper).tool, near(last.qpos, last.gripper).tool)

    def _room(self, pose: Array, gripper: float) -> float:
        return self.clearance.near(pose, gripper).room

    def _floor(self, pose: Array, gripper: float) -> float:
        """m of room that must be kept; an arm that has less already may only gain some."""
        return min(self.clearance.margin, self._room(pose, gripper))
