"""Calibrating an arm of servos: zero, range and settings, written into them and to a file.

The steps are those the arms' makers teach: with the arm limp, a person puts every joint in the
middle of its travel, and the encoder there becomes 2047; then turns each joint from stop to stop,
and what was seen becomes its range. A joint that can turn all the way round keeps the whole range.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from real_robot.core.driver import Fault, RobotFault
from real_robot.drivers.calibration import TICKS, UNFINISHED, Calibration, JointCalibration

Array = np.ndarray

MIDDLE = 2047  # steps, half of a turn
LEAST = 300  # steps, a joint that was turned less was not turned from stop to stop


class CalibratableServos(Protocol):
    """What a driver offers for it; ``joint`` counts from 0, positions are in steps."""

    joints: tuple[str, ...]

    def connect(self) -> None: ...
    def relax(self) -> dict[str, bool]: ...
    def positions(self) -> Array:
        """Present positions (n,) in steps."""
        ...

    def set_offset(self, joint: int, raw: int, middle: int) -> int: ...
    def set_range(self, joint: int, low: int, high: int) -> None: ...
    def set_up(self, joint: int) -> int: ...


class ServoCalibration:
    """A connected, limp arm that is being calibrated.

    Raises:
        RobotFault: A joint has torque.
    """

    def __init__(self, driver: CalibratableServos):
        self._driver = driver
        driver.connect()
        stiff = [joint for joint, limp in driver.relax().items() if not limp]
        if stiff:
            raise RobotFault(
                Fault.TORQUE, f"torque is still on: {', '.join(stiff)}; cut the arm's power"
            )
        self._low = np.full(len(driver.joints), TICKS)
        self._high = np.full(len(driver.joints), -TICKS)
        self._offsets = np.zeros(len(driver.joints), int)
        self._modes = np.zeros(len(driver.joints), int)  # 1: it counts the other way

    def centre(self) -> None:
        """The pose that the arm is in becomes the middle of every joint.

        Until ``finish`` the arm counts as not calibrated: ranges from before are of another zero.

        Raises:
            ValueError: A joint reads a position from which its middle cannot be set.
        """
        driver = self._driver
        for i in range(len(driver.joints)):
            self._modes[i] = driver.set_up(i)
            driver.set_range(i, *UNFINISHED)
            driver.set_offset(i, 0, 0)
        raw = driver.positions()
        worst = int(np.abs(raw - MIDDLE).argmax())
        if abs(raw[worst] - MIDDLE) > MIDDLE:
            raise ValueError(
                f"{driver.joints[worst]} reads {raw[worst]} in the middle of its travel, "
                f"expected 0 to {2 * MIDDLE}: its horn is mounted half a turn off; remount it"
            )
        for i, position in enumerate(raw):
            self._offsets[i] = driver.set_offset(i, int(position), MIDDLE)
        self.sweep()

    def sweep(self) -> Array:
        """Notes where the joints are now; returns how far each was turned so far (n,), in steps."""
        here = self._driver.positions()
        self._low, self._high = np.minimum(self._low, here), np.maximum(self._high, here)
        return self._high - self._low

    def finish(self, file: Path) -> Calibration:
        """Writes the ranges into the servos and the calibration to ``file``.

        Raises:
            ValueError: A joint was turned too little to know its range.
        """
        turned = self._high - self._low
        short = [j for j, t in zip(self._driver.joints, turned, strict=True) if t < LEAST]
        if short:
            raise ValueError(
                f"{', '.join(short)} moved fewer than {LEAST} steps; turn each joint from one "
                "stop to the other"
            )
        found = {}
        for i, joint in enumerate(self._driver.joints):
            low, high = max(0, int(self._low[i])), min(TICKS - 1, int(self._high[i]))
            self._driver.set_range(i, low, high)
            found[joint] = JointCalibration(
                i + 1, int(self._modes[i]), int(self._offsets[i]), low, high
            )
        calibration = Calibration(found)
        calibration.save(file)
        return calibration


def run_calibration(
    setup: ServoCalibration, file: Path, say: Callable[[str], None], done: Callable[[str], bool]
) -> Calibration:
    """Leads a person through; ``done(text)`` is asked again and again until it says yes."""
    while not done("Put every joint in the middle of its travel, then confirm."):
        pass
    setup.centre()
    say("Turn every joint from stop to stop, the gripper too.")
    while not done("Confirm when all joints have touched both stops."):
        setup.sweep()
    return setup.finish(file)
