"""SO-101: a ServoBus of Feetech STS servos, over the vendor's client (feetech-servo-sdk).

One request per measurement reads registers 40 to 63 of all servos: torque, goal, position, speed,
load. Each reply carries the servo's error bits, so an overload is seen in the next measurement. Six
servos' replies take 1.8 ms on the wire, so a period of 10 ms outlasts that and their patience. The
servos have no watchdog: if the process that owns the port dies they keep their last goal, and
another takes over (``bus/client.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scservo_sdk as sdk

from real_robot.core.driver import Fault, RobotFault
from real_robot.drivers.calibration import TICKS, UNFINISHED, UNIT, Calibration, JointCalibration
from real_robot.drivers.servo_bus import ServoBus, ServoReading, from_bytes, to_bytes
from real_robot.drivers.servo_port import ServoPort
from real_robot.drivers.servo_step_test import Probe, ServoSettings

Array = np.ndarray

GRIPPER_TORQUE = 500  # 0.1 %: jaws that press at full torque overload their servo

# Registers: address, and bytes where not 1.
MIN_POSITION, HOMING, RETURN_DELAY, GAIN_P, LOCK = 9, 31, 7, 21, 55
STATUS = 65  # what is wrong with it
MAX_TORQUE, SPEED_LIMIT, TORQUE_LIMIT, PRESENT = 16, 46, 48, 56
SETTINGS = ((RETURN_DELAY, 0, 1), (GAIN_P, 16, 1))  # answers at once; a gain that does not shake
OVERLOAD = 32
CAUSES = (
    (1, Fault.VOLTAGE),
    (2, Fault.ENCODER),
    (4, Fault.OVERHEAT),
    (8, Fault.OVERLOAD),  # too much current
    (OVERLOAD, Fault.OVERLOAD),
)


class FeetechPort(ServoPort, sdk.PortHandler):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The vendor's port, with ours before it."""


class So101Driver(ServoBus):
    """Six STS3215 on a serial adapter."""

    name = "so101"
    title = "SO-101, 6 x STS3215"
    models = ((777, "STS3215"),) * 6
    sdk, new_port, new_bus = sdk, FeetechPort, lambda _: sdk.PacketHandler(0)
    # Its load is the motor's share of full voltage. That is its share of torque where it does not
    # turn, which is what a stall is told by, and what the servo's own protection goes by.
    stall = np.full(6, 2.94)
    fastest = np.full(6, 4.71)
    MODEL, FIRMWARE, TORQUE, GOAL = (3, 2), (0, 2), (40, 1), (42, 2)
    BLOCK, LENGTHS, FRAME = 40, range(24, 31), 6  # registers 40 to 63 and a few behind

    def _calibrated(self, joints: dict[str, JointCalibration]) -> Calibration:
        return Calibration(joints)

    def _read_calibration(self, servo: int, mode: int) -> JointCalibration:
        low, high = _words(self._ask(servo, MIN_POSITION, 4))
        offset = _signed(from_bytes(self._ask(servo, HOMING, 2)), 11)
        new = (low, high) in ((0, 0), (0, TICKS - 1)) and offset == 0
        if new or (low, high) == UNFINISHED:
            raise RobotFault(
                Fault.CONFIG,
                f"servo {servo} ({self.joints[servo - 1]}) is not calibrated"
                f"{'' if new else ': calibration was not finished'}; run robo-rl calibrate so101",
            )
        return JointCalibration(servo, mode, offset, low, high)

    def _prepare(self, servo: int) -> None:
        limit = GRIPPER_TORQUE if servo == self._ids[-1] else 1000
        self._tell(servo, TORQUE_LIMIT, limit, 2)
        self._tell(servo, SPEED_LIMIT, 0, 2)

    def _stands(self, servo: int) -> tuple[bool, int, int]:
        block = self._ask(servo, self.BLOCK, 18)
        goal, here = (_signed(from_bytes(block[i : i + 2]), 15) for i in (2, 16))
        return bool(block[0]), goal, here

    def _decode(self, table: Array, errors: Sequence[int]) -> ServoReading:
        bits = int(np.bitwise_or.reduce(errors))
        fault = next((f for bit, f in CAUSES if bits & bit), Fault.NONE)
        if self._enabled and fault is Fault.NONE and not table[:, 0].all():
            fault = Fault.TORQUE
        word = table[:, 16:22:2] + 256 * table[:, 17:22:2]
        return ServoReading(
            ticks=_signs(word[:, 0], 15),
            goals=_signs(table[:, 2] + 256 * table[:, 3], 15),
            speed=_signs(word[:, 1], 15) * UNIT,
            effort=_signs(word[:, 2], 10) * self.stall / 1000,
            heat=table[:, 23],
            fault=fault,
        )

    def clear_fault(self) -> None:
        """Lets go of every joint, which ends an overload; one that stands is an error.

        Raises:
            RobotFault: A joint keeps its torque, or a servo still reports an overload.
        """
        super().clear_fault()
        still = [
            joint
            for joint, servo in zip(self.joints, self._ids, strict=True)
            if self._ask(servo, STATUS, 1)[0] & OVERLOAD
        ]
        if still:
            raise RobotFault(
                Fault.OVERLOAD,
                f"{', '.join(still)}: overload is reported with torque off; switch the servos' "
                "power off for a moment (the arm falls), then clear the fault again",
            )

    # For calibration.
    def positions(self) -> Array:
        """Present positions (n,) in steps."""
        there = (from_bytes(self._ask(servo, PRESENT, 2)) for servo in self._ids)
        return np.array([_signed(raw, 15) for raw in there])

    def set_offset(self, joint: int, raw: int, middle: int) -> int:
        """Has the position that reads ``raw`` without an offset read ``middle``; the offset."""
        offset = raw - middle
        self.store(joint, HOMING, abs(offset) | (1 << 11 if offset < 0 else 0), 2)
        return offset

    def set_range(self, joint: int, low: int, high: int) -> None:
        """The range of a joint, steps."""
        self.store(joint, MIN_POSITION, low, 2)
        self.store(joint, MIN_POSITION + 2, high, 2)

    def set_up(self, joint: int) -> int:
        """Sets what the driver expects of a servo besides; its drive mode."""
        for address, value, size in SETTINGS:
            self.store(joint, address, value, size)
        return 0

    # For a step test of one servo.
    def probe(self, joint: int) -> Probe:
        """One servo now, by one short question."""
        asked = self._clock.now_ns()
        block = self.ask(joint, self.BLOCK, STATUS + 1 - self.BLOCK)
        t = (asked + self._clock.now_ns()) / 2e9
        goal, here, speed, load = _words([block[i] for i in (2, 3, *range(16, 22))])
        bits = block[STATUS - self.BLOCK]
        fault = next((f for bit, f in CAUSES if bits & bit), Fault.NONE)
        if fault is Fault.NONE and not block[0]:
            fault = Fault.TORQUE
        return Probe(
            t=t,
            goal=_signed(goal, 15),
            position=_signed(here, 15),
            speed=_signed(speed, 15),
            load=_signed(load, 10) / 1000,
            volts=block[22] / 10,
            heat=block[23],
            fault=fault,
        )

    def aim(self, joint: int, tick: int) -> None:
        """Writes the goal of one joint, steps, and does not wait for an answer."""
        port, (address, size) = self._open(), self.GOAL
        port.is_using = False
        packet = [self._ids[joint], *to_bytes(tick, size)]
        self._check(self._bus.syncWriteTxOnly(port, address, size, packet, len(packet)), "goal")

    def settings(self, joint: int) -> ServoSettings:
        """What the servo's loop is set to."""
        p, d, i, low, high, clockwise, counter = self.ask(joint, GAIN_P, 7)
        most = min(from_bytes(self.ask(joint, at, 2)) for at in (MAX_TORQUE, TORQUE_LIMIT))
        return ServoSettings(p, d, i, (low + 256 * high) / 1000, (clockwise, counter), most / 1000)

    def room(self, joint: int) -> tuple[int, int]:
        """The calibrated range of a joint, steps."""
        known = self._known()
        return int(known.low[joint]), int(known.high[joint])

    def store(self, joint: int, address: int, value: int, size: int) -> None:
        """Writes an EEPROM register of a limp servo and locks it again."""
        self.limp(joint)
        self.tell(joint, LOCK, 0, 1)
        self.tell(joint, address, value, size)
        self.tell(joint, LOCK, 1, 1)


def _words(data: list[int]) -> list[int]:
    """16-bit values, low byte first."""
    return [a + 256 * b for a, b in zip(data[::2], data[1::2], strict=True)]


def _signed(raw: int, bit: int) -> int:
    """The value of a sign-and-magnitude register with its sign in ``bit``."""
    magnitude = raw & ((1 << bit) - 1)
    return -magnitude if raw >> bit & 1 else magnitude


def _signs(raw: Array, bit: int) -> Array:
    """``_signed`` of each element."""
    magnitude = raw & ((1 << bit) - 1)
    return np.where(raw >> bit & 1, -magnitude, magnitude)
