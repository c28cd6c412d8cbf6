"""Finite: every number is finite, and each joint has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.core.driver import Fault, RobotState
from real_robot.safety.stages.stage import (
    Array,
    CheckStage,
    FilterContext,
    JointTrajectoryPoint,
    SafetyStop,
)


@dataclass(frozen=True)
class Finite(CheckStage):
    """Stops on NaN, inf, values that are no numbers and wrong shapes, measured or in the target."""

    name: ClassVar[str] = "finite"
    joints: tuple[str, ...]

    def start(self, moment: FilterContext) -> None:
        self._measured(moment.state)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        """Returns the target as float64.

        Raises:
            SafetyStop: A number is not finite, or a shape is wrong.
        """
        self._measured(moment.state)
        qpos = self._numbers(motion.qpos, "target")
        qvel = self._numbers(motion.qvel, "speed of the target")
        if not np.isfinite(motion.gripper):
            raise SafetyStop(Fault.NONFINITE, f"target of the gripper is {motion.gripper}")
        return motion._replace(qpos=qpos, qvel=qvel, gripper=float(motion.gripper)), own

    def _measured(self, state: RobotState) -> None:
        """To every comparison NaN is no: it would be no stall and no hit."""
        self._numbers(state.qpos, "measured position")
        self._numbers(state.qvel, "measured speed")
        self._numbers(state.effort, "measured effort")
        if state.outside is not None:
            self._numbers(state.outside, "measured push from outside")

    def _numbers(self, values: Array, what: str) -> Array:
        """``values`` as (n,) finite float64."""
        try:
            values = np.asarray(values, float)
        except (TypeError, ValueError) as error:
            raise SafetyStop(Fault.NONFINITE, f"{what} does not hold numbers: {error}") from error
        if values.shape != (len(self.joints),):
            raise SafetyStop(
                Fault.CONFIG,
                f"{what} must have shape ({len(self.joints)},) for {', '.join(self.joints)}; "
                f"got {values.shape}",
            )
        finite = np.isfinite(values)
        if not finite.all():
            i = int(np.argmin(finite))
            raise SafetyStop(Fault.NONFINITE, f"{what} of {self.joints[i]} is {values[i]}")
        return values
