"""NullDriver: an arm that is at once where it is sent, to measure the bridge and nothing else."""

from __future__ import annotations

import numpy as np

from real_robot.core.driver import (
    Description,
    Fault,
    Identity,
    RobotFault,
    RobotState,
    Sent,
    Target,
)
from real_robot.core.pacing import Clock, RealClock
from sims.robots import Robot
from sims.robots.robot import TARGET_DT


class NullDriver:
    """RobotDriver without a device; ``robot`` lends its names, limits and home pose."""

    def __init__(self, robot: Robot, *, clock: Clock | None = None, period: float = TARGET_DT):
        self._robot, self._period = robot, period
        self._clock = clock or RealClock()
        self._target = Target(np.array(robot.home), 0.0)
        self._still = np.zeros(len(robot.joints))
        self._seq = 0
        self.stiff = False

    def describe(self) -> Description:
        """The robot's names and limits."""
        return Description.of(self._robot, self._period)

    def connect(self) -> None:
        """Nothing to open."""

    def identify(self) -> Identity:
        """No device."""
        return Identity(f"{self._robot.name} (null)", "null", "0", "")

    def enable(self) -> None:
        """Takes targets from now on."""
        self.stiff = True

    def read(self) -> RobotState:
        """The last target, as if reached."""
        self._seq += 1
        now = self._clock.now_ns() * 1e-9
        target = self._target
        return RobotState(
            now, now, self._seq, target.qpos, self._still, self._still, target.gripper
        )

    def send(self, target: Target) -> Sent:
        """Reached at once.

        Raises:
            RobotFault: ``enable`` was not called.
        """
        if not self.stiff:
            raise RobotFault(Fault.DISCONNECTED, "call enable() first")
        self._target = target
        return Sent(target.qpos, target.gripper, self._clock.now_ns() * 1e-9)

    def hold(self) -> None:
        """It never moves by itself."""

    def last_target(self) -> Target:
        """The last target."""
        return self._target

    def relax(self) -> dict[str, bool]:
        """Takes no more targets."""
        self.stiff = False
        return dict.fromkeys(self._robot.joints, True)

    def clear_fault(self) -> None:
        """It has none."""

    def close(self) -> None:
        """Nothing to close."""
        self.stiff = False
