"""SpeedScale: the operator's share of full speed, and the share that a warm device asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.core.driver import Fault
from real_robot.safety.stages.stage import (
    FilterContext,
    FilterStage,
    JointTrajectoryPoint,
    SafetyStop,
)


@dataclass(frozen=True)
class SpeedScale(FilterStage):
    """Shortens each step of a policy or a person to that share of it.

    A step counts from the command it was made at, so a policy at half speed takes the same way in
    twice the time. The bridge's own ramps have a speed of their own and are left alone.
    """

    name: ClassVar[str] = "dial"
    pressing: ClassVar[float] = np.inf  # as the operator wants it

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        """Returns the target with its step shortened.

        Raises:
            SafetyStop: The share of full speed is not above 0 and at most 1.
        """
        share = moment.wish.dial * moment.state.derate
        if not 0.0 < share <= 1.0:
            raise SafetyStop(Fault.CONFIG, f"share of full speed must be in (0, 1], got {share}")
        if share == 1.0:
            return motion, own
        return shorten_step(motion, moment, share), own


def shorten_step(
    motion: JointTrajectoryPoint, moment: FilterContext, share: float
) -> JointTrajectoryPoint:
    """That ``share`` of a step, counted from the command it was made at."""
    origin = moment.last.qpos if moment.wish.origin is None else moment.wish.origin
    qpos = origin + share * (motion.qpos - origin)
    return motion._replace(qpos=qpos, qvel=share * motion.qvel)
