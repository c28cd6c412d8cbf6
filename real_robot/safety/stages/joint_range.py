"""JointRange: keeps targets within the range of the joints, less a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.safety.stages.stage import (
    EPS,
    Array,
    FilterContext,
    FilterStage,
    JointTrajectoryPoint,
)


@dataclass(frozen=True, eq=False)
class JointRange(FilterStage):
    """Clips a target into the range of the joints and of the gripper."""

    name: ClassVar[str] = "range"
    position: Array  # (n, 2) rad, low and high, margin taken off
    # (n, 2) rad, how far beyond the low and the high end a target may lie without
    # counting as limited: the range of the simulated arm, which is a little wider.
    leeway: Array | float = 0.0

    def presses(self, before: JointTrajectoryPoint, after: JointTrajectoryPoint) -> Array:
        """(n,) bool of the joints whose target is beyond their range."""
        low, high = np.broadcast_to(self.leeway, self.position.shape).T
        beyond = before.qpos - after.qpos
        return (-beyond > low + EPS) | (beyond > high + EPS)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        gripper = min(max(motion.gripper, 0.0), 1.0)
        low, high = self.position.T
        qpos = np.minimum(np.maximum(motion.qpos, low), high)
        if (qpos == motion.qpos).all():
            return motion._replace(gripper=gripper), own
        inside = np.abs(qpos - motion.qpos) <= EPS
        return motion._replace(qpos=qpos, qvel=motion.qvel * inside, gripper=gripper), own
