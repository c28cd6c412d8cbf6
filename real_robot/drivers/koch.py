"""Koch v1.1: a ServoBus of Dynamixel X servos, over the vendor's client (dynamixel-sdk).

Shoulder and lift are XL430-W250, the others XL330-M288, Protocol 2.0 at 1 Mbaud; the arm joints in
extended position mode, the gripper in current-based position mode, where it presses with no more
than it is told. One request per measurement reads registers 98 to 146 of all servos: watchdog,
goal, load, speed, position, heat; their replies take 3.6 ms on the wire.

A servo stops by itself where it is, stiff, when it hears nothing for ``watchdog`` s (its Bus
Watchdog), as where the process that owns its port is gone. A shut-down (overload, heat) takes a
servo's torque away until it is rebooted, which ``clear_fault()`` does. Every reply has a bit for
it, and then the cause is asked for. A servo that restarted is told by its watchdog, which is off
then.

In extended position mode a servo counts turns on, and after a restart begins in whichever is the
first: the same pose can read 4096 steps more or less. Positions are taken within half a turn of the
middle of a joint's range, as long as the arm is limp, and goals are said in the servo's own turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dynamixel_sdk as sdk
import numpy as np
from dynamixel_sdk.protocol2_packet_handler import Protocol2PacketHandler

from real_robot.core.driver import Fault, RobotFault
from real_robot.drivers.calibration import TICKS, UNFINISHED, Calibration, JointCalibration
from real_robot.drivers.servo_bus import ServoBus, ServoReading, from_bytes
from real_robot.drivers.servo_port import ServoPort

Array = np.ndarray

XL430, XL330 = (1060, "XL430-W250"), (1200, "XL330-M288")
EXTENDED, CURRENT_BASED = 4, 5  # operating modes
GRIPPER_CURRENT = 500  # mA, a third of what stalls its motor: jaws that press on overload it
AMPERE = 0.52 / 1.47  # N m / A of the XL330, stall torque over stall current at 5 V
SPEED = 0.229 * 2 * np.pi / 60  # rad/s, the unit of speed registers
TICK_S = 0.02  # s, the unit of the watchdog
TRIPPED = 255  # what a watchdog that stopped its servo reads
FACTORY_BAUD = 57_600
REBOOT_S = 1.0  # s that a servo is given to answer again
ALERT = 0x80  # in a reply's error: look into the hardware error status

# Registers: address, and bytes.
RETURN_DELAY, DRIVE_MODE, OPERATING_MODE = (9, 1), (10, 1), (11, 1)
HOMING, MAX_POSITION, MIN_POSITION = (20, 4), (48, 4), (52, 4)
STATUS_LEVEL, HARDWARE_ERROR, WATCHDOG, GOAL_CURRENT = (68, 1), (70, 1), (98, 1), (102, 2)
PROFILE_ACCELERATION, PROFILE_SPEED, PRESENT = (108, 4), (112, 4), (132, 4)
CAUSES = (
    (1, Fault.VOLTAGE),
    (4, Fault.OVERHEAT),
    (8, Fault.ENCODER),
    (16, Fault.OVERLOAD),  # an electrical shock, or too little current to turn
    (32, Fault.OVERLOAD),
)


class DynamixelPort(ServoPort, sdk.PortHandler):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The vendor's port, with ours before it."""


class DynamixelPackets(Protocol2PacketHandler):
    """The vendor's packets, but for two stuffed bytes in one: it reads what it has overwritten."""

    def removeStuffing(self, packet: list[int]) -> list[int]:
        """The packet without what was stuffed into it."""
        whole = bytes(packet)
        body = whole[7:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
        return [*whole[:5], *(len(body) + 2).to_bytes(2, "little"), *body, *whole[-2:]]


class KochDriver(ServoBus):
    """Two XL430 and four XL330 on a serial adapter; ``watchdog`` s from 0.02 to 2.54.

    Raises:
        ValueError: ``watchdog`` is out of that range.
    """

    name = "koch"
    title = "Koch v1.1, 2 x XL430-W250, 4 x XL330-M288"
    models = (XL430, XL430, XL330, XL330, XL330, XL330)
    sdk, new_port, new_bus = sdk, DynamixelPort, lambda _: DynamixelPackets()
    stall = np.array([1.5, 1.5, 0.52, 0.52, 0.52, 0.52])  # at 12 and 5 V
    fastest = np.array([6.39, 6.39, 10.8, 10.8, 10.8, 10.8])
    MODEL, FIRMWARE, TORQUE, GOAL = (0, 2), (6, 1), (64, 1), (116, 4)
    BLOCK, LENGTHS, FRAME = 98, range(49, 56), 11  # registers 98 to 146 and a few behind

    def __init__(
        self,
        port: str,
        *,
        patience: float = 0.003,
        watchdog: float = 0.1,
        **options: Any,  # of every ServoBus
    ):
        if not TICK_S <= watchdog <= 127 * TICK_S:
            raise ValueError(f"watchdog must be from 0.02 to 2.54 s, got {watchdog:g}")
        self._watchdog = round(watchdog / TICK_S)
        super().__init__(port, patience=patience, **options)
        self._turns = np.zeros(len(self._ids), int)  # steps, that the servos count besides
        self._begun: Array | None = None  # the same, while the arm is calibrated

    def _calibrated(self, joints: dict[str, JointCalibration]) -> Calibration:
        return Calibration(joints, self._robot.joint_range.mean(axis=1), reversing=True)

    def _read_calibration(self, servo: int, mode: int) -> JointCalibration:
        """Its drive mode is the servo's own register, whatever the file's ``mode``."""
        joint, setup = self.joints[servo - 1], "run robo-rl calibrate koch"
        offset = _signed(from_bytes(self._ask(servo, *HOMING)), 4)
        low, high = (from_bytes(self._ask(servo, *at)) for at in (MIN_POSITION, MAX_POSITION))
        drive, operating = self._ask(servo, DRIVE_MODE[0], 2)
        if (new := (low, high, offset) == (0, TICKS - 1, 0)) or (low, high) == UNFINISHED:
            end = "" if new else ": calibration was not finished"
            raise RobotFault(
                Fault.CONFIG, f"servo {servo} ({joint}) is not calibrated{end}; {setup}"
            )
        want = CURRENT_BASED if servo == self._ids[-1] else EXTENDED
        if operating != want:
            raise RobotFault(
                Fault.CONFIG,
                f"servo {servo} ({joint}) is in operating mode {operating}, expected {want}; "
                f"{setup}",
            )
        if drive > 1:  # its profiles are by time, or a goal stiffens it
            raise RobotFault(
                Fault.CONFIG,
                f"servo {servo} ({joint}) is in drive mode {drive}, expected 0 or 1; {setup}",
            )
        return JointCalibration(servo, drive, offset, low, high)

    def _seen_instead(self) -> str:
        """Asks everybody, and the arm's own ids at the rate that servos have when they are bought,
        too: to wait there for all 253 as well would take longer than a device may be silent."""
        port = self._open()
        port.is_using = False
        told = {port.ser.baudrate: sorted(self._bus.broadcastPing(port)[0])}
        usual = port.ser.baudrate, port.tx_time_per_byte
        ms = 2 * 10_000 / FACTORY_BAUD  # per byte of ten bits: asking takes as long as the answer
        port.ser.baudrate, port.tx_time_per_byte = FACTORY_BAUD, ms
        told[FACTORY_BAUD] = [servo for servo in self._ids if self._model(servo) is not None]
        port.ser.baudrate, port.tx_time_per_byte = usual
        answers = [
            f"{', '.join(map(str, ids))} at {rate} baud" for rate, ids in told.items() if ids
        ]
        return f" (servos that answer: {'; '.join(answers) or 'none'})"

    def _prepare(self, servo: int) -> None:
        self._tell(servo, WATCHDOG[0], 0, 1)  # also lets goals be written again
        for address, size in (PROFILE_ACCELERATION, PROFILE_SPEED):
            self._tell(servo, address, 0, size)
        if servo == self._ids[-1]:
            self._tell(servo, GOAL_CURRENT[0], GRIPPER_CURRENT, GOAL_CURRENT[1])

    def _stands(self, servo: int) -> tuple[bool, int, int]:
        turn = int(self._turns[servo - 1])
        goal, here = (
            _signed(from_bytes(self._ask(servo, *at)), 4) - turn for at in (self.GOAL, PRESENT)
        )
        return self._ask(servo, *self.TORQUE) == [1], goal, here

    def _goal(self, servo: int, tick: int) -> int:
        return tick + int(self._turns[servo - 1])

    def enable(self) -> None:
        """As every arm's; from then on the servos stop by themselves when the bus is silent."""
        self._enabled = False  # positions are taken anew
        super().enable()
        for servo in self._ids:
            self._tell(servo, WATCHDOG[0], self._watchdog, 1)

    def clear_fault(self) -> None:
        """Lets go of every joint and reboots those that shut down; the cause must have ended."""
        super().clear_fault()
        port = self._open()
        down = [servo for servo in self._ids if self._ask(servo, *HARDWARE_ERROR)[0]]
        for servo in down:
            port.is_using = False
            self._bus.reboot(port, servo)
        if down:
            self._clock.sleep_until_ns(self._clock.now_ns() + round(REBOOT_S * 1e9))
        self._last = None  # a servo may count in another turn now

    def _decode(self, table: Array, errors: Sequence[int]) -> ServoReading:
        def register(address: int, size: int, first: int = self.BLOCK) -> Array:
            at = address - first
            powers = 256 ** np.arange(size)
            return _signed(table[:, at : at + size] @ powers, size)

        raw, known = register(*PRESENT), self._calibration
        if not self._enabled and known is not None:
            middle = (known.low + known.high) / 2
            self._turns = TICKS * np.rint((raw - middle) / TICKS).astype(int)
        effort = register(126, 2) / 1000  # share of the most (XL430), or A (XL330)
        shares = np.array([model == XL430 for model in self.models])
        return ServoReading(
            ticks=raw - self._turns,
            goals=register(*self.GOAL) - self._turns,
            speed=register(128, 4) * SPEED,
            effort=effort * np.where(shares, self.stall, AMPERE),
            heat=table[:, 146 - self.BLOCK],
            fault=self._fault(table[:, WATCHDOG[0] - self.BLOCK], errors),
        )

    def _fault(self, watchdogs: Array, errors: Sequence[int]) -> Fault:
        """What is wrong with a servo; a cause is asked for where a reply says that there is one."""
        for servo, error in zip(self._ids, errors, strict=True):
            if error & ALERT:
                bits = self._ask(servo, *HARDWARE_ERROR)[0]
                return next((fault for bit, fault in CAUSES if bits & bit), Fault.OVERLOAD)
        if not self._enabled or (watchdogs == self._watchdog).all():
            return Fault.NONE
        # Stopped because nobody spoke to it, or no longer as it was set.
        return Fault.PROTECTIVE_STOP if (watchdogs == TRIPPED).any() else Fault.TORQUE

    def _request(self, port: Any, length: int, order: list[int]) -> int:
        # Not the fast kind: one lost bit would cost all six replies.
        return self._bus.syncReadTx(port, self.BLOCK, length, order, len(order), False)

    def _stuffed(self, error: int, data: Sequence[int]) -> int:
        return bytes([0x55, error, *data]).count(b"\xff\xff\xfd")

    def _refused(self, error: int) -> bool:
        """The client gives the checksum of a reply without data for two bytes of data."""
        return bool(error & ~ALERT)

    # For calibration.
    def positions(self) -> Array:
        """Present positions (n,) in steps, counted on from the first turn."""
        raw = (from_bytes(self._ask(servo, *PRESENT)) for servo in self._ids)
        there = np.array([_signed(value, 4) for value in raw])
        if self._begun is None:
            self._begun = TICKS * (there // TICKS)
        return there - self._begun

    def set_offset(self, joint: int, raw: int, middle: int) -> int:
        """Has the position that reads ``raw`` without an offset read ``middle``; the offset."""
        self.store(joint, *HOMING, middle - raw)
        self._begun = None
        return middle - raw

    def set_range(self, joint: int, low: int, high: int) -> None:
        """The range of a joint, steps."""
        self.store(joint, *MIN_POSITION, low)
        self.store(joint, *MAX_POSITION, high)

    def set_up(self, joint: int) -> int:
        """Sets what the driver expects of a servo besides; its drive mode.

        Whether it counts the other way round stays as it is: it is how the arm was put together.
        """
        mode = self.ask(joint, *DRIVE_MODE)[0] & 1
        self.store(joint, *RETURN_DELAY, 0)
        self.store(joint, *DRIVE_MODE, mode)
        last = joint == len(self.joints) - 1
        self.store(joint, *OPERATING_MODE, CURRENT_BASED if last else EXTENDED)
        return mode

    def store(self, joint: int, address: int, size: int, value: int) -> None:
        """Writes an EEPROM register of a limp servo."""
        self.limp(joint)
        self.tell(joint, address, value, size)


def _signed(raw: Any, size: int) -> Any:
    """The value of a register of ``size`` bytes in two's complement."""
    half = 1 << (8 * size - 1)
    return (raw + half) % (2 * half) - half
