"""Lag: a target stays near its measured joint, which bounds the force of the arm.

The window is wide: a soft arm leans on its own position error, and a narrow window would act as a
torque limit and freeze it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.driver import Fault
from real_robot.filters.shaping import Shaping
from real_robot.filters.stage import EPS, Array, Moment, Motion, SafetyStop, Stage

_LOST = 1.5  # windows: a joint farther than this from its target is pushed or blocked


@dataclass(frozen=True, eq=False)
class Lag(Stage):
    """Where a command leads out of the window, one is made that goes no farther than its edge.

    Going there is shaped like any other way, so no limit of the arm is broken for it; until the
    command is back, the window is left by what braking takes.
    """

    name: ClassVar[str] = "lag"
    joints: tuple[str, ...]
    window: Array  # (n,) rad to either side of the measured joint
    shaping: Shaping

    def step(self, motion: Motion, moment: Moment, own: Any) -> tuple[Motion, Any]:
        measured = moment.state.qpos
        near = np.clip(motion.goal, measured - self.window, measured + self.window)
        if (np.abs(near - motion.goal) > EPS).any():
            low, high = self.shaping.position.T
            edge = motion._replace(qpos=np.clip(near, low, high), qvel=np.zeros_like(near))
            motion = self.shaping.towards(edge, moment)
        away = np.abs(motion.qpos - measured) / self.window
        if away.max() > _LOST:
            i = int(away.argmax())
            raise SafetyStop(
                Fault.TRACKING,
                f"{self.joints[i]} is at {measured[i]:.3f} rad, its target at {motion.qpos[i]:.3f} "
                f"rad: farther than {_LOST * self.window[i]:.3f} rad. Is it blocked or pushed?",
            )
        return motion, own

    def flags(self, before: Motion, after: Motion, moment: Moment) -> dict[str, Array]:
        """The joints that would have left the window."""
        return {self.name: np.abs(after.goal - before.goal) > EPS}
