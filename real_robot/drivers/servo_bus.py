"""ServoBus: RobotDriver for an arm of servos on one serial bus, whoever made them.

The vendors' clients (Feetech's is a copy of ROBOTIS') are used as they are, through a port of ours
(``servo_port.py``). What differs between them is their registers: an arm's driver names those, and
says what a measurement's bytes mean.

One request per measurement reads the same block of registers of all servos. A reply bears no
number. To tell late ones from the right ones, the length asked for and the order of the servos
change from request to request, which repeats after lengths times servos; and where more bytes came
than were asked for, the measurement is thrown away. What a given-up measurement still owes is
waited for, briefly, before the next request. What is written to one servo is read back.
"""

from __future__ import annotations

import contextlib
import fcntl
import termios
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import serial

from real_robot.core.arm_numbers import ArmNumbers
from real_robot.core.driver import (
    LOST,
    Description,
    Fault,
    FaultResponse,
    Identity,
    RobotFault,
    RobotState,
    Sent,
    Target,
    check_target,
    hold_position,
)
from real_robot.core.pacing import Clock, RealClock
from real_robot.core.usb import find_port, serial_of
from real_robot.drivers.calibration import UNIT, Calibration, JointCalibration
from real_robot.drivers.servo_port import ServoPort

Array = np.ndarray
T = TypeVar("T")

SLACK = 0.1  # rad, jumps below this are not looked at
JUMPS = 3  # readings in a row that jump before the encoder is not believed any more
WARM, HOT = 55.0, 70.0  # deg C: slower from there on, and where a servo lets go by itself
TRIES = 3  # for what must not be lost: torque on, torque off, hold


class ServoReading(NamedTuple):
    """One measurement of n servos."""

    ticks: Array  # (n,) steps
    goals: Array  # (n,) steps, as the registers hold them
    speed: Array  # (n,) rad/s, as the servo counts
    effort: Array  # (n,) N m, as the servo counts
    heat: Array  # (n,) deg C
    fault: Fault  # what a servo reports


class ServoBus(ABC):
    """The arm at ``port``, a device path or a USB adapter's serial number.

    ``calibration`` names a file that the servos' own registers must agree with; without one the
    registers alone are believed. ``patience`` s is what the replies to a request may take beyond
    their time on the wire. ``numbers`` are the arm's, where the caller has them already.
    """

    name: ClassVar[str]  # of the arm, in sims/robots
    title: ClassVar[str]  # "SO-101, 6 x STS3215"
    models: ClassVar[tuple[tuple[int, str], ...]]  # number and name of each servo
    sdk: ClassVar[Any]  # the vendor's client
    new_port: ClassVar[Callable[[str, float], Any]]  # a ServoPort before the vendor's own
    new_bus: ClassVar[Callable[..., Any]]  # the vendor's packets
    stall: ClassVar[Array]  # (n,) N m that each servo can do
    fastest: ClassVar[Array]  # (n,) rad/s without load; twice this between two readings is none
    # Registers: (address, bytes).
    MODEL: ClassVar[tuple[int, int]]
    FIRMWARE: ClassVar[tuple[int, int]]
    TORQUE: ClassVar[tuple[int, int]]
    GOAL: ClassVar[tuple[int, int]]
    BLOCK: ClassVar[int]  # first register of a measurement
    LENGTHS: ClassVar[Sequence[int]]  # bytes asked for in turn, the first what is needed
    FRAME: ClassVar[int]  # bytes of a reply besides its data

    def __init__(
        self,
        port: str,
        *,
        calibration: str | Path | None = None,
        clock: Clock | None = None,
        period: float | None = None,
        patience: float = 0.006,
        numbers: ArmNumbers | None = None,
    ):
        self._robot = numbers or ArmNumbers.of(self.name)
        self._where, self._period = port, period or self._robot.period
        self._clock = clock or RealClock()
        self.joints = self._robot.actuators
        self._ids = list(range(1, len(self.joints) + 1))
        self._file = None
        if calibration is not None:
            self._file = self._calibrated(Calibration.load(Path(calibration), self.joints).joints)
        self._calibration = self._file
        self._bus = self.new_bus()
        self._patience = patience
        self._port: ServoPort | None = None
        self._identity: Identity | None = None
        self._enabled = False
        self._turn = self._seq = self._written = 0
        self._last: tuple[float, Array] | None = None  # monotonic s, steps, of the last reading
        self._jumped = 0
        self._trust = False  # whether the next reading must follow from the last

    def describe(self) -> Description:
        """Names and limits; the joint ranges shrink to the calibrated ones once those are known."""
        robot, position = self._robot, np.array(self._robot.joint_range)
        if self._calibration is not None:
            measured = self._calibration.range
            position = np.column_stack(
                [
                    np.maximum(position[:, 0], measured[:, 0]),
                    np.minimum(position[:, 1], measured[:, 1]),
                ]
            )
        return Description.of(robot, self._period, position=position)

    # What an arm's servos differ in.
    @abstractmethod
    def _read_calibration(self, servo: int, mode: int) -> JointCalibration:
        """What the servo's registers hold; ``mode`` is the file's drive mode, 0 without one.

        RobotFault where it was never calibrated, or set up otherwise than the driver expects.
        """

    @abstractmethod
    def _calibrated(self, joints: dict[str, JointCalibration]) -> Calibration:
        """The calibration of this arm."""

    @abstractmethod
    def _decode(self, table: Array, errors: Sequence[int]) -> ServoReading:
        """A measurement (n, at least ``LENGTHS[0]``) of bytes; ``errors`` are the replies'."""

    @abstractmethod
    def _prepare(self, servo: int) -> None:
        """Sets what a servo needs before it is stiffened."""

    @abstractmethod
    def _stands(self, servo: int) -> tuple[bool, int, int]:
        """Whether a servo is stiff, its goal and where it is, in steps."""

    def _seen_instead(self) -> str:
        """Where a servo that does not answer may be, for a person; empty: nobody knows."""
        return ""

    def _goal(self, servo: int, tick: int) -> int:
        """What the goal register of ``servo`` is told for a position of ``tick`` steps."""
        return tick

    # Connecting.
    def connect(self) -> None:
        """Opens the port for this process alone.

        Raises:
            RobotFault: The port cannot be opened, or another process has it.
        """
        if self._port is not None:
            return
        port = self._open_port(find_port(self._where))
        try:
            fcntl.flock(port.ser.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            port.closePort()
            raise RobotFault(
                Fault.CONFIG, f"{port.port_name} is in use by another process"
            ) from error
        self._port = port

    def _open_port(self, path: str) -> Any:
        port = type(self).new_port(path, self._patience)
        try:
            port.openPort()
        except (OSError, termios.error, serial.SerialException) as error:
            raise RobotFault(Fault.DISCONNECTED, f"cannot open {path}: {error}") from error
        self._identity, self._enabled, self._last, self._jumped = None, False, None, 0
        return port

    def identify(self) -> Identity:
        """Asks every servo what it is; refuses others than those expected, calibrated.

        Raises:
            RobotFault: A servo is missing, is another model, or is calibrated otherwise than the
                file says.
        """
        port = self._open()
        firmware = set()
        for joint, servo, (number, name) in zip(self.joints, self._ids, self.models, strict=True):
            model = self._model(servo)
            if model is None:
                raise RobotFault(
                    Fault.CONFIG,
                    f"servo {servo} ({joint}) does not answer on {port.port_name}; expected servos "
                    f"1 to {len(self._ids)}: check power, cable and ids{self._seen_instead()}",
                )
            if model != number:
                raise RobotFault(
                    Fault.CONFIG,
                    f"servo {servo} ({joint}) is model {model}, expected {number} ({name})",
                )
            firmware.add(".".join(map(str, self._ask(servo, *self.FIRMWARE))))
        self._calibrate()
        assert self._calibration is not None
        self._identity = Identity(
            self.title,
            serial_of(port.port_name),
            ", ".join(sorted(firmware)),
            self._calibration.sha256,
        )
        return self._identity

    def _model(self, servo: int) -> int | None:
        """The model number of a servo, None if it does not answer.

        Not by the vendor's ``ping``: it takes a late answer to an earlier ping for the number, and
        an IndexError comes of the two bytes that are not there.
        """
        try:
            return from_bytes(self._ask(servo, *self.MODEL))
        except RobotFault as error:
            if error.fault is Fault.DISCONNECTED:
                raise
            return None

    def _calibrate(self) -> None:
        """Takes the calibration from the servos' registers and compares it with the file."""
        found = {}
        file = {} if self._file is None else self._file.joints
        for joint, servo in zip(self.joints, self._ids, strict=True):
            want = file.get(joint)
            try:
                found[joint] = self._read_calibration(servo, want.drive_mode if want else 0)
            except ValueError as error:
                raise RobotFault(Fault.CONFIG, f"{joint}: {error}") from error
            if want is not None and found[joint] != want:
                raise RobotFault(
                    Fault.CONFIG,
                    f"{joint}: the servo's registers hold {found[joint]}, the calibration file "
                    f"{want}: the file is another arm's, or the arm was calibrated later",
                )
        self._calibration = self._calibrated(found)

    @property
    def bytes_written(self) -> int:
        """Bytes sent so far, over all connections."""
        return self._written + (0 if self._port is None else self._port.written)

    # Torque.
    def enable(self) -> None:
        """Stiffens the arm where it is; each joint's torque is read back.

        Raises:
            RobotFault: A servo reports a fault, or a register does not hold what was written.
        """
        known = self._known()
        state = self._patiently(self.read)
        if state.fault is not Fault.NONE:
            raise RobotFault(state.fault, "reported by a servo; call clear_fault() first")
        for servo in self._ids:
            self._prepare(servo)
        # The arm may sag while it is being stiffened, so each joint's goal is set just before.
        for i, servo in enumerate(self._ids):
            stiff, goal, here = self._stands(servo)
            keeps = stiff and abs(goal - here) * UNIT <= LOST
            tick = int(np.clip(goal if keeps else here, known.low[i], known.high[i]))
            address, size = self.GOAL
            self._tell(servo, address, self._goal(servo, tick), size)
            self._tell(servo, self.TORQUE[0], 1, 1)
        self._enabled = True

    def joints_with_torque(self) -> tuple[str, ...]:
        """Returns the joints whose torque is enabled, whichever process enabled it."""
        switches = (self._ask(servo, *self.TORQUE) for servo in self._ids)
        return tuple(j for j, on in zip(self.joints, switches, strict=True) if on != [0])

    def relax(self) -> dict[str, bool]:
        """Takes the torque off joint by joint and reads it back; goes on past one that fails."""
        self._open()
        self._enabled = self._trust = False  # a limp arm may be moved by hand
        acks = {}
        for joint, servo in zip(self.joints, self._ids, strict=True):
            try:
                self._tell(servo, self.TORQUE[0], 0, 1)
            except RobotFault as error:
                if error.fault is Fault.DISCONNECTED:
                    raise
                acks[joint] = False
            else:
                acks[joint] = True
        return acks

    def hold(self) -> None:
        """Says every goal again; that of a joint which does not follow is where the joint is."""
        self._open()
        if not self._enabled:
            return
        self._trust = False  # from here on the arm may be anywhere
        now = self._patiently(self._measure)
        goals = np.rint(hold_position(now.ticks * UNIT, now.goals * UNIT) / UNIT).astype(int)
        self._send(np.clip(goals, self._known().low, self._known().high))

    def last_target(self) -> Target:
        """What the goal registers hold."""
        calibration = self._known()
        goals = self._patiently(self._measure).goals
        opening = float(np.clip(calibration.opening(goals[-1]), 0.0, 1.0))
        return Target(calibration.angles(goals), opening)

    def clear_fault(self) -> None:
        """Lets go of every joint, which ends an overload; other causes end by themselves.

        Raises:
            RobotFault: A joint keeps its torque.
        """
        stiff = [joint for joint, limp in self.relax().items() if not limp]
        if stiff:
            raise RobotFault(Fault.TORQUE, f"torque is still on: {', '.join(stiff)}")

    # The exchange of every period.
    def read(self) -> RobotState:
        """A measurement of all joints, taken when the request went out."""
        calibration = self._known()
        t = self._clock.now_ns() * 1e-9
        now = self._measure()
        self._check_motion(now.ticks)
        self._seq += 1
        sign = calibration.sign
        return RobotState(
            t_device=t,
            t_host=t,
            seq=self._seq,
            qpos=calibration.angles(now.ticks),
            qvel=(sign * now.speed)[:-1],
            effort=(sign * now.effort)[:-1],
            gripper=float(np.clip(calibration.opening(now.ticks[-1]), 0.0, 1.0)),
            fault=now.fault,
            derate=float(np.clip((HOT - now.heat.max()) / (HOT - WARM), 0.1, 1.0)),
        )

    def send(self, target: Target) -> Sent:
        """Writes all goals in one packet; returns what the registers hold of them.

        Raises:
            RobotFault: ``enable`` was not called, or the target is not finite.
        """
        calibration = self._known()
        check_target(target, self._enabled)
        ticks = calibration.ticks(target.qpos, target.gripper)
        self._send(ticks)
        return Sent(
            calibration.angles(ticks), calibration.opening(ticks[-1]), self._clock.now_ns() * 1e-9
        )

    def close(self) -> None:
        """Closes the port; the servos keep what they were last told."""
        if self._port is not None:
            self._written += self._port.written
            with contextlib.suppress(OSError, termios.error):
                self._port.closePort()
        self._port, self._enabled = None, False

    # For calibration.
    def limp(self, joint: int) -> None:
        """Refuses a joint (from 0) that is stiff.

        Raises:
            RobotFault: The joint has torque.
        """
        if self.ask(joint, *self.TORQUE) != [0]:
            raise RobotFault(Fault.TORQUE, f"torque is on at {self.joints[joint]}, expected off")

    def ask(self, joint: int, address: int, length: int) -> list[int]:
        """Bytes of the servo of joint number ``joint``, from register ``address`` on."""
        return self._ask(self._ids[joint], address, length)

    def tell(self, joint: int, address: int, value: int, size: int) -> None:
        """Writes a register and reads it back."""
        self._tell(self._ids[joint], address, value, size)

    # Below the contract.
    def _measure(self) -> ServoReading:
        port, n = self._open(), len(self._ids)
        self._turn += 1
        length = self.LENGTHS[self._turn % len(self.LENGTHS)]
        first = self._turn % n
        order = self._ids[first:] + self._ids[:first]
        port.is_using = False
        asked = n * (length + self.FRAME)
        self._check(self._request(port, length, order), "request")
        table, errors = np.zeros((n, self.LENGTHS[0]), int), [0] * n
        for servo in order:
            joint = self.joints[servo - 1]
            data, result, error = self._bus.readRx(port, servo, length)
            asked += self._stuffed(error, data)
            port.owed = 0 if result == self.sdk.COMM_SUCCESS else asked - port.received
            self._check(result, joint)
            if len(data) != length or self._refused(error):
                raise RobotFault(
                    Fault.COMM_CORRUPT, f"{joint}: expected {length} bytes, got {len(data)}"
                )
            table[servo - 1], errors[servo - 1] = data[: self.LENGTHS[0]], error
        if port.received != asked:
            raise RobotFault(
                Fault.COMM_CORRUPT,
                f"expected {asked} bytes, got {port.received}: the rest are replies to earlier "
                "requests",
            )
        return self._decode(table, errors)

    def _request(self, port: Any, length: int, order: list[int]) -> int:
        """Asks the servos for ``length`` bytes from ``BLOCK`` on; the client's result."""
        return self._bus.syncReadTx(port, self.BLOCK, length, order, len(order))

    def _stuffed(self, error: int, data: Sequence[int]) -> int:
        """Bytes that came besides, because the data had to be told from a header."""
        return 0

    def _refused(self, error: int) -> bool:
        """Whether a reply with this error carries no data."""
        return False

    def _check_motion(self, ticks: Array) -> None:
        """Refuses a reading that no joint could have reached since the last."""
        now = (
            time.monotonic() if isinstance(self._clock, RealClock) else self._clock.now_ns() * 1e-9
        )
        if self._last is not None and self._trust:
            allowed = SLACK + 2 * self.fastest * (now - self._last[0])
            moved = np.abs(ticks - self._last[1]) * UNIT
            if (moved > allowed).any():
                self._jumped += 1
                i = int((moved - allowed).argmax())
                raise RobotFault(
                    Fault.ENCODER if self._jumped >= JUMPS else Fault.COMM_CORRUPT,
                    f"{self.joints[i]} jumped {moved[i]:.2f} rad between two readings, at most "
                    f"{allowed[i]:.2f} rad is possible",
                )
        self._last, self._trust, self._jumped = (now, ticks), True, 0

    def _send(self, ticks: Array) -> None:
        port, (address, size) = self._open(), self.GOAL
        port.is_using = False
        packet: list[int] = []
        for servo, tick in zip(self._ids, ticks, strict=True):
            packet += [servo, *to_bytes(self._goal(servo, int(tick)), size)]
        self._check(self._bus.syncWriteTxOnly(port, address, size, packet, len(packet)), "goals")

    def _patiently(self, what: Callable[[], T]) -> T:
        """The result of ``what``, tried again where the wire failed it."""
        for _ in range(TRIES - 1):
            try:
                return what()
            except RobotFault as error:
                if error.fault.response is not FaultResponse.RETRY:
                    raise
        return what()

    def _ask(self, servo: int, address: int, length: int) -> list[int]:
        """Reads registers of one servo, with a few tries."""
        port = self._open()
        for attempt in range(TRIES):
            port.is_using = False
            data, result, error = self._bus.readTxRx(port, servo, address, length)
            success = result == self.sdk.COMM_SUCCESS
            if success and len(data) == length and not self._refused(error):
                return data
            if attempt == TRIES - 1:
                self._check(result, f"servo {servo}")
        raise RobotFault(Fault.COMM_CORRUPT, f"servo {servo}: reply has the wrong length")

    def _tell(self, servo: int, address: int, value: int, size: int) -> None:
        """Writes a register of one servo and reads it back, with a few tries.

        An error bit in the acknowledgement does not stop it: what the register holds counts.
        """
        port = self._open()
        data = to_bytes(value, size)
        held: list[int] = []
        failure: RobotFault | None = None
        for _ in range(TRIES):
            port.is_using = False
            self._bus.writeTxRx(port, servo, address, size, data)
            try:
                held = self._ask(servo, address, size)
            except RobotFault as error:
                if error.fault is Fault.DISCONNECTED:
                    raise
                failure = error
                continue
            if held == data:
                return
        if failure is not None and not held:
            raise failure
        raise RobotFault(
            Fault.TORQUE if address == self.TORQUE[0] else Fault.CONFIG,
            f"servo {servo}: register {address} holds {held} after writing {data}",
        )

    def _check(self, result: int, what: str) -> None:
        if result == self.sdk.COMM_SUCCESS:
            return
        silent = result == self.sdk.COMM_RX_TIMEOUT
        text = self._bus.getTxRxResult(result).removeprefix("[TxRxResult] ")
        raise RobotFault(Fault.COMM_TIMEOUT if silent else Fault.COMM_CORRUPT, f"{what}: {text}")

    def _open(self) -> Any:
        if self._port is None:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")
        return self._port

    def _known(self) -> Calibration:
        self._open()
        if self._identity is None or self._calibration is None:
            raise RobotFault(
                Fault.CONFIG, "call identify() first: the calibration has not been read"
            )
        return self._calibration


def to_bytes(value: int, size: int) -> list[int]:
    """``value`` as bytes of a register, low byte first; below 0 in two's complement."""
    return list((value % 256**size).to_bytes(size, "little"))


def from_bytes(data: Sequence[int]) -> int:
    """The value of a register without a sign."""
    return int.from_bytes(bytes(data), "little")
