"""StoppingTime: no step asks for more speed than the time in which the arm must be able to stop
allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.safety.stages.speed_scale import shorten_step
from real_robot.safety.stages.stage import Array, FilterContext, FilterStage, JointTrajectoryPoint


@dataclass(frozen=True, eq=False)
class StoppingTime(FilterStage):
    """Shortens each step of a policy or a person until every joint can go along.

    All joints are shortened alike, so the arm stays on its way, and the next step counts from where
    this one came to: as behind the dial. Targets without a speed of their own are left to shaping.
    """

    name: ClassVar[str] = "stop_time"
    pressing: ClassVar[float] = np.inf  # as the operator wants it
    fastest: Array  # (n,) rad/s, inf where a stop may take as long as it takes

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        most = float((np.abs(motion.qvel) / self.fastest).max())
        return (motion if most <= 1.0 else shorten_step(motion, moment, 1.0 / most)), own
