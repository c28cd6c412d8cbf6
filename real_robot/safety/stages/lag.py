"""Lag: a target stays near its measured joint, which bounds the force of the arm.

The window is wide: a soft arm leans on its own position error, and a narrow window would act as a
torque limit and freeze it. A joint that has leaned hard for a while is eased, though: brought back
to where it is until it pushes no more, before its motor's own protection lets the arm go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from real_robot.core.driver import Fault
from real_robot.safety.stages.rate_limits import RateLimits
from real_robot.safety.stages.stage import (
    EPS,
    Array,
    FilterContext,
    FilterStage,
    JointTrajectoryPoint,
    SafetyStop,
)

LEANING, _EASED = 0.9, 0.6  # of the overload: pushing hard, and no more
_EASE_S = 1.0  # s of pushing hard; motors give up after about 2
_LOST = 1.5  # windows: a joint farther than this from its target is pushed or blocked


@dataclass(frozen=True, eq=False)
class Lag(FilterStage):
    """Where a command leads out of the window, one is made that goes no farther than its edge.

    Going there is shaped like any other way, so no limit of the arm is broken for it; until the
    command is back, the window is left by what braking takes.
    """

    name: ClassVar[str] = "lag"
    joints: tuple[str, ...]
    window: Array  # (n,) rad to either side of the measured joint
    shaping: RateLimits
    overload: Array  # (n,) measured N m at which motors give up, inf where they do not

    def start(self, moment: FilterContext) -> Array:
        """(n,) s since when each joint pushes hard, inf where it does not."""
        return np.full(len(self.joints), np.inf)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Array
    ) -> tuple[JointTrajectoryPoint, Array]:
        """The motion, within the window about the measured joints; (n,) s since when each pushes.

        Raises:
            SafetyStop: No command stays within the window.
        """
        measured, pushed = moment.state.qpos, np.abs(moment.state.effort) / self.overload
        eased = moment.now - own > _EASE_S
        since = np.where(
            pushed > np.where(eased, _EASED, LEANING), np.minimum(own, moment.now), np.inf
        )
        easing = eased & np.isfinite(since)
        window = np.where(easing, 0.0, self.window)
        # One that gives way is gone along with, to where it is when it hears of it: from behind it
        # would be pushed on all the time.
        late = 2 * (moment.now - moment.state.t_host) + self.shaping.period
        along = np.where(easing, moment.state.qvel, 0.0)
        there = measured + late * along
        near = np.clip(motion.goal, there - window, there + window)
        if (np.abs(near - motion.goal) > EPS).any():
            low, high = self.shaping.position.T
            inside = (low < near) & (near < high)
            edge = motion._replace(qpos=np.clip(near, low, high), qvel=np.where(inside, along, 0.0))
            motion = self.shaping.towards(edge, moment)
        away = np.abs(motion.qpos - measured) / self.window
        if away.max() > _LOST:
            i = int(away.argmax())
            raise SafetyStop(
                Fault.TRACKING,
                f"{self.joints[i]} is at {measured[i]:.3f} rad, its target at {motion.qpos[i]:.3f} "
                f"rad: farther than {_LOST * self.window[i]:.3f} rad. Is it blocked or pushed?",
            )
        return motion, since

    def flags(
        self, before: JointTrajectoryPoint, after: JointTrajectoryPoint, moment: FilterContext
    ) -> dict[str, Array]:
        """{limit: (n,) bool} of the joints that would have left the window."""
        return {self.name: np.abs(after.goal - before.goal) > EPS}
