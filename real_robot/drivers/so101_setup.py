"""Calibrating an SO-101: zero, range and servo settings, written into the servos and to a file.

The steps are those the arm's makers teach: with the arm limp, a person puts every joint in the
middle of its travel, and the encoder there becomes 2047; then turns each joint from stop to stop,
and what was seen becomes its range. A joint that can turn all the way round keeps the whole range.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from real_robot.driver import Fault, RobotFault
from real_robot.drivers.calibration import TICKS, Calibration, JointCalibration
from real_robot.drivers.so101 import (
    GAIN_P,
    HOMING,
    LOCK,
    MIN_POSITION,
    RETURN_DELAY,
    TORQUE,
    So101Driver,
)

Array = np.ndarray

MIDDLE = 2047  # steps, half of a turn
LEAST = 300  # steps, a joint that was turned less was not turned from stop to stop
SETTINGS = ((RETURN_DELAY, 0, 1), (GAIN_P, 16, 1))  # answers at once; a gain that does not shake
PRESENT = 56


class Setup:
    """A connected, limp arm that is being calibrated."""

    def __init__(self, driver: So101Driver):
        self._driver = driver
        driver.connect()
        stiff = [joint for joint, limp in driver.relax().items() if not limp]
        if stiff:
            raise RobotFault(Fault.TORQUE, f"still stiff: {', '.join(stiff)}; cut its power")
        self._low = np.full(len(driver.joints), TICKS)
        self._high = np.full(len(driver.joints), -TICKS)
        self._offsets = np.zeros(len(driver.joints), int)

    def centre(self) -> None:
        """The pose that the arm is in becomes the middle of every joint."""
        for i in range(len(self._driver.joints)):
            self._write(i, HOMING, 0, 2)
        raw = self.positions()
        self._offsets = raw - MIDDLE
        worst = int(np.abs(self._offsets).argmax())
        if abs(self._offsets[worst]) > MIDDLE:
            raise ValueError(
                f"{self._driver.joints[worst]} reads {raw[worst]} in the middle of its travel, "
                f"expected 0 to {2 * MIDDLE}: its horn is mounted half a turn off"
            )
        for i, offset in enumerate(self._offsets):
            self._write(i, HOMING, abs(int(offset)) | (1 << 11 if offset < 0 else 0), 2)
            for address, value, size in SETTINGS:
                self._write(i, address, value, size)

    def sweep(self) -> Array:
        """Notes where the joints are now; returns how far each was turned so far, in steps."""
        here = self.positions()
        self._low, self._high = np.minimum(self._low, here), np.maximum(self._high, here)
        return self._high - self._low

    def positions(self) -> Array:
        """Present positions (n,) in steps."""
        out = []
        for i in range(len(self._driver.joints)):
            low, high = self._driver.ask(i, PRESENT, 2)
            raw = low + 256 * high
            out.append(-(raw & 0x7FFF) if raw >> 15 else raw)
        return np.array(out)

    def finish(self, file: Path) -> Calibration:
        """Writes the ranges into the servos and the calibration to ``file``."""
        turned = self._high - self._low
        short = [j for j, t in zip(self._driver.joints, turned, strict=True) if t < LEAST]
        if short:
            raise ValueError(
                f"{', '.join(short)} moved less than {LEAST} steps; turn each joint from one stop "
                "to the other"
            )
        found = {}
        for i, joint in enumerate(self._driver.joints):
            low, high = max(0, int(self._low[i])), min(TICKS - 1, int(self._high[i]))
            self._write(i, MIN_POSITION, low, 2)
            self._write(i, MIN_POSITION + 2, high, 2)
            found[joint] = JointCalibration(i + 1, 0, int(self._offsets[i]), low, high)
        calibration = Calibration(found)
        calibration.save(file)
        return calibration

    def _write(self, joint: int, address: int, value: int, size: int) -> None:
        """Writes an EEPROM register of a limp servo and locks it again."""
        if self._driver.ask(joint, TORQUE, 1) != [0]:
            raise RobotFault(Fault.TORQUE, f"{self._driver.joints[joint]} is stiff")
        self._driver.tell(joint, LOCK, 0, 1)
        self._driver.tell(joint, address, value, size)
        self._driver.tell(joint, LOCK, 1, 1)


def walk(
    setup: Setup, file: Path, say: Callable[[str], None], done: Callable[[str], bool]
) -> Calibration:
    """Leads a person through; ``done(text)`` is asked again and again until it says yes."""
    while not done("Put every joint in the middle of its travel, then confirm."):
        pass
    setup.centre()
    say("Turn every joint from stop to stop, the gripper too.")
    while not done("Confirm when all joints have touched both stops."):
        setup.sweep()
    return setup.finish(file)
