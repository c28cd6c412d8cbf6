"""FinalCheck: the last look at a target before the driver turns it into the device's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.core.driver import Fault
from real_robot.safety.stages.stage import (
    EPS,
    Array,
    CheckStage,
    FilterContext,
    JointTrajectoryPoint,
    SafetyStop,
)


@dataclass(frozen=True, eq=False)
class FinalCheck(CheckStage):
    """Stops on a target that the stages before should have prevented; it means a bug in one of
    them."""

    name: ClassVar[str] = "encode"
    joints: tuple[str, ...]
    position: Array  # (n, 2) rad, low and high
    velocity: Array  # (n,) rad/s
    period: float  # s

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        """Lets the motion pass.

        Raises:
            SafetyStop: The target is out of a limit: a bug of a stage before.
        """
        last = moment.last.qpos
        low = np.minimum(self.position[:, 0], last) - EPS  # who starts outside comes in
        high = np.maximum(self.position[:, 1], last) + EPS
        good = (low <= motion.qpos) & (motion.qpos <= high)
        good &= np.abs(motion.qpos - last) <= self.velocity * self.period + EPS
        if not good.all() or not 0.0 <= motion.gripper <= 1.0:
            raise SafetyStop(
                Fault.CONFIG,
                f"target {np.round(motion.qpos, 3)} after {np.round(last, 3)} rad, gripper "
                f"{motion.gripper}, exceeds the limits of {', '.join(self.joints)}: a bug in "
                "the safety filter",
            )
        return motion, own
