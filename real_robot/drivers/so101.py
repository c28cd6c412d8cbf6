"""SO-101: RobotDriver over the vendor's client for Feetech STS servos (feetech-servo-sdk).

The client is used as it is, through a port of ours (``feetech_port.py``).

One request per measurement reads registers 40 to 63 of all servos: torque, goal, position, speed,
load. Each reply carries the servo's error bits, so an overload is seen in the next measurement. A
reply bears no number. To tell late ones from the right ones, the length asked for and the order of
the servos change from request to request, which repeats after 42; and where more bytes came than
were asked for, the measurement is thrown away. What a given-up measurement still owes is waited
for, briefly, before the next request. The servos have no watchdog: if this process dies they keep
their last goal. A guardian process, not this driver, deals with that.
"""

from __future__ import annotations

import contextlib
import fcntl
import termios
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import numpy as np
import scservo_sdk as sdk
import serial

from real_robot.driver import (
    LOST,
    Description,
    Fault,
    Identity,
    Response,
    RobotFault,
    RobotState,
    Sent,
    Target,
    still,
)
from real_robot.drivers.calibration import UNIT, Calibration, JointCalibration
from real_robot.drivers.feetech_port import FeetechPort
from real_robot.drivers.usb import find_port, serial_of
from real_robot.pacing import Clock, RealClock
from sims import robots
from sims.robots import Robot
from sims.robots.robot import TARGET_DT

Array = np.ndarray
T = TypeVar("T")

MODEL, MODEL_NUMBER = 777, 3  # STS3215, where a servo says so
STALL = 2.94  # N m, at full load
OVERLOAD = 0.8  # of that; for 2 s, and the servo protects itself (its registers 36 and 35)
SPEED = 4.71  # rad/s without load; twice this between two readings is no motion
SLACK = 0.1  # rad, jumps below this are not looked at
JUMPS = 3  # readings in a row that jump before the encoder is not believed any more
WARM, HOT = 55.0, 70.0  # deg C: slower from there on, and where the servo lets go by itself
GRIPPER_TORQUE = 500  # 0.1 %: jaws that press at full torque overload their servo
TRIES = 3  # for what must not be lost: torque on, torque off, hold

# Registers: address, and bytes where not 1.
MIN_POSITION, HOMING, RETURN_DELAY, GAIN_P, LOCK = 9, 31, 7, 21, 55
TORQUE, GOAL, SPEED_LIMIT, TORQUE_LIMIT = 40, 42, 46, 48
BLOCK = 40  # first register of a measurement
LENGTHS = range(24, 31)  # bytes asked for in turn: registers 40 to 63 and a few behind
CAUSES = (
    (1, Fault.VOLTAGE),
    (2, Fault.ENCODER),
    (4, Fault.OVERHEAT),
    (8, Fault.OVERLOAD),  # too much current
    (32, Fault.OVERLOAD),
)


class So101Driver:
    """The arm at ``port``, a device path or a USB adapter's serial number.

    ``calibration`` names a file that the servos' own registers must agree with; without one the
    registers alone are believed. ``patience`` s is what the replies to a request may take beyond
    their time on the wire: six servos' take 1.8 ms there, so a period of 10 ms outlasts both.
    """

    def __init__(
        self,
        port: str,
        *,
        calibration: Path | None = None,
        clock: Clock | None = None,
        period: float = TARGET_DT,
        patience: float = 0.005,
    ):
        self._where, self._period = port, period
        self._clock = clock or RealClock()
        self._robot: Robot = robots.get("so101")
        self.joints = self._robot.actuators
        self._ids = list(range(1, len(self.joints) + 1))
        self._file = None if calibration is None else Calibration.load(calibration, self.joints)
        self._calibration = self._file
        self._bus = sdk.PacketHandler(0)
        self._patience = patience
        self._port: FeetechPort | None = None
        self._identity: Identity | None = None
        self._enabled = False
        self._turn = self._seq = self._written = 0
        self._last: tuple[float, Array] | None = None  # monotonic s, steps, of the last reading
        self._jumped = 0
        self._goals = np.zeros(len(self._ids), int)  # steps, as the registers last told
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
        # Its load is the motor's share of full voltage. That is its share of torque where it does
        # not turn, which is what a stall is told by, and what the servo's own protection goes by.
        full = np.full(len(robot.joints), STALL)
        return Description.of(
            robot, self._period, position=position, effort=full, overload=OVERLOAD * full
        )

    # Connecting.
    def connect(self) -> None:
        """Opens the port for this process alone."""
        inherited = self._port is not None
        port = self._port or self._open_port(find_port(self._where))
        try:
            fcntl.flock(port.ser.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not inherited:
                port.closePort()
            raise RobotFault(
                Fault.CONFIG, f"{port.port_name} is in use by another process"
            ) from error
        self._port = port

    def _open_port(self, path: str) -> FeetechPort:
        port = FeetechPort(path, self._patience)
        try:
            port.openPort()
        except (OSError, termios.error, serial.SerialException) as error:
            raise RobotFault(Fault.DISCONNECTED, f"cannot open {path}: {error}") from error
        self._identity, self._enabled, self._last, self._jumped = None, False, None, 0
        return port

    def identify(self) -> Identity:
        """Asks every servo what it is; refuses others than six calibrated STS3215."""
        port = self._open()
        firmware = set()
        for joint, servo in zip(self.joints, self._ids, strict=True):
            model = self._model(servo)
            if model is None:
                raise RobotFault(
                    Fault.CONFIG,
                    f"servo {servo} ({joint}) does not answer on {port.port_name}; expected servos "
                    f"1 to {len(self._ids)}: check power, cable and ids",
                )
            if model != MODEL:
                raise RobotFault(
                    Fault.CONFIG,
                    f"servo {servo} ({joint}) is model {model}, expected {MODEL} (STS3215)",
                )
            major, minor = self._ask(servo, 0, 2)
            firmware.add(f"{major}.{minor}")
        self._calibrate()
        assert self._calibration is not None
        self._identity = Identity(
            "SO-101, 6 x STS3215",
            serial_of(port.port_name),
            ", ".join(sorted(firmware)),
            self._calibration.sha256,
        )
        return self._identity

    def bequeath(self) -> dict:
        """Port, identity and calibration, for another process."""
        joints = self._known().joints
        return {
            "port": self._open().port_name,
            "identity": asdict(self._identity),
            "calibration": {joint: asdict(servo) for joint, servo in joints.items()},
        }

    def inherit(self, known: dict) -> None:
        """Believes what a process that is dead found out, and that the arm is stiff.

        Its lock on the port may outlive it for a while, so the lock waits for ``connect``.
        """
        self._port = self._open_port(known["port"])
        joints = {joint: JointCalibration(**part) for joint, part in known["calibration"].items()}
        self._calibration, self._identity = Calibration(joints), Identity(**known["identity"])
        self._enabled = True

    def _model(self, servo: int) -> int | None:
        """The model number of a servo, None if it does not answer.

        Not by the vendor's ``ping``: it takes a late answer to an earlier ping for the number, and
        an IndexError comes of the two bytes that are not there.
        """
        try:
            return _words(self._ask(servo, MODEL_NUMBER, 2))[0]
        except RobotFault as error:
            if error.fault is Fault.DISCONNECTED:
                raise
            return None

    def _calibrate(self) -> None:
        """Takes the calibration from the servos' registers and compares it with the file."""
        found = {}
        modes = {} if self._file is None else self._file.joints
        for joint, servo in zip(self.joints, self._ids, strict=True):
            low, high = _words(self._ask(servo, MIN_POSITION, 4))
            offset = _signed(*_words(self._ask(servo, HOMING, 2)), 11)
            if (low, high) in ((0, 0), (0, 4095)) and offset == 0:
                raise RobotFault(
                    Fault.CONFIG,
                    f"servo {servo} ({joint}) was never calibrated; run robo-rl calibrate so101",
                )
            mode = modes[joint].drive_mode if joint in modes else 0
            try:
                found[joint] = JointCalibration(servo, mode, offset, low, high)
            except ValueError as error:
                raise RobotFault(Fault.CONFIG, f"{joint}: {error}") from error
            want = modes.get(joint)
            if want is not None and found[joint] != want:
                raise RobotFault(
                    Fault.CONFIG,
                    f"{joint}: the servo holds {found[joint]}, the calibration file {want}; it is "
                    "another arm's file, or the arm was calibrated since",
                )
        self._calibration = Calibration(found)

    @property
    def bytes_written(self) -> int:
        """Bytes sent so far, over all connections."""
        return self._written + (0 if self._port is None else self._port.written)

    # Torque.
    def enable(self) -> None:
        """Stiffens the arm where it is; each joint's torque is read back."""
        self._known()
        state = self._patiently(self.read)
        if state.fault is not Fault.NONE:
            raise RobotFault(state.fault, "a servo reports it; clear_fault() first")
        for servo in self._ids:
            limit = GRIPPER_TORQUE if servo == self._ids[-1] else 1000
            self._tell(servo, TORQUE_LIMIT, limit, 2)
            self._tell(servo, SPEED_LIMIT, 0, 2)
        # The arm may sag while it is being stiffened, so each joint's goal is set just before.
        for servo in self._ids:
            block = self._ask(servo, BLOCK, 18)
            stiff, goal, here = block[0], *(_signed(*_words(block[i : i + 2]), 15) for i in (2, 16))
            keeps = stiff and abs(goal - here) * UNIT <= LOST
            self._tell(servo, GOAL, self._within(servo, goal if keeps else here), 2)
            self._tell(servo, TORQUE, 1, 1)
        self._enabled = True

    def relax(self) -> dict[str, bool]:
        """Takes the torque off joint by joint and reads it back; goes on past one that fails."""
        self._open()
        self._enabled = self._trust = False  # a limp arm may be moved by hand
        acks = {}
        for joint, servo in zip(self.joints, self._ids, strict=True):
            try:
                self._tell(servo, TORQUE, 0, 1)
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
        ticks, *_ = self._patiently(self._measure)
        goals = np.rint(still(ticks * UNIT, self._goals * UNIT) / UNIT).astype(int)
        self._send(np.clip(goals, self._known().low, self._known().high))

    def told(self) -> Target:
        """What the goal registers hold."""
        calibration = self._known()
        self._patiently(self._measure)
        opening = float(np.clip(calibration.opening(self._goals[-1]), 0.0, 1.0))
        return Target(calibration.angles(self._goals), opening)

    def clear_fault(self) -> None:
        """Lets go of every joint, which ends an overload; other causes end by themselves."""
        stiff = [joint for joint, limp in self.relax().items() if not limp]
        if stiff:
            raise RobotFault(Fault.TORQUE, f"still stiff: {', '.join(stiff)}")

    # The exchange of every period.
    def read(self) -> RobotState:
        """A measurement of all joints, taken when the request went out."""
        calibration = self._known()
        t = self._clock.now_ns() * 1e-9
        ticks, words, torque, error, heat = self._measure()
        fault = next((f for bit, f in CAUSES if error & bit), Fault.NONE)
        if self._enabled and fault is Fault.NONE and not torque.all():
            fault = Fault.TORQUE
        self._check_motion(ticks)
        self._seq += 1
        speed, load = words
        sign = calibration.sign
        return RobotState(
            t_device=t,
            t_host=t,
            seq=self._seq,
            qpos=calibration.angles(ticks),
            qvel=(sign * speed * UNIT)[:-1],
            effort=(sign * load * (STALL / 1000))[:-1],
            gripper=float(np.clip(calibration.opening(ticks[-1]), 0.0, 1.0)),
            fault=fault,
            derate=float(np.clip((HOT - heat.max()) / (HOT - WARM), 0.1, 1.0)),
        )

    def send(self, target: Target) -> Sent:
        """Writes all goals in one packet; returns what the registers hold of them."""
        calibration = self._known()
        if not self._enabled:
            raise RobotFault(Fault.DISCONNECTED, "call enable() first")
        if not (np.isfinite(target.qpos).all() and np.isfinite(target.gripper)):
            raise RobotFault(Fault.NONFINITE, f"target {target} cannot be encoded")
        ticks = calibration.ticks(target.qpos, target.gripper)
        self._send(ticks)
        return Sent(
            calibration.angles(ticks),
            calibration.opening(ticks[-1]),
            self._clock.now_ns() * 1e-9,
        )

    def close(self) -> None:
        """Closes the port; the servos keep what they were last told."""
        if self._port is not None:
            self._written += self._port.written
            with contextlib.suppress(OSError, termios.error):
                self._port.closePort()
        self._port, self._enabled = None, False

    # For calibration.
    def ask(self, joint: int, address: int, length: int) -> list[int]:
        """Bytes of the servo of joint number ``joint``, from register ``address`` on."""
        return self._ask(self._ids[joint], address, length)

    def tell(self, joint: int, address: int, value: int, size: int) -> None:
        """Writes a register and reads it back."""
        self._tell(self._ids[joint], address, value, size)

    # Below the contract.
    def _measure(self) -> tuple[Array, tuple[Array, Array], Array, int, Array]:
        """Positions (n,) in steps, (speeds, loads), torque switches, all error bits, deg C."""
        port, n = self._open(), len(self._ids)
        self._turn += 1
        length = LENGTHS[self._turn % len(LENGTHS)]
        first = self._turn % n
        order = self._ids[first:] + self._ids[:first]
        port.is_using = False
        asked = n * (length + 6)
        self._check(self._bus.syncReadTx(port, BLOCK, length, order, n), "request")
        table, bits = np.zeros((n, 24), int), 0
        for servo in order:
            joint = self.joints[servo - 1]
            data, result, error = self._bus.readRx(port, servo, length)
            port.owed = 0 if result == sdk.COMM_SUCCESS else asked - port.received
            self._check(result, joint)
            if len(data) != length:
                raise RobotFault(Fault.COMM_CORRUPT, f"{joint}: {len(data)} bytes, not {length}")
            table[servo - 1] = data[:24]
            bits |= error
        if port.received != asked:
            raise RobotFault(
                Fault.COMM_CORRUPT,
                f"{port.received} bytes came, {asked} were asked for: some are late",
            )
        self._goals = _signs(table[:, 2] + 256 * table[:, 3], 15)
        word = table[:, 16:24:2] + 256 * table[:, 17:24:2]  # position, speed, load, volts and heat
        return (
            _signs(word[:, 0], 15),
            (_signs(word[:, 1], 15), _signs(word[:, 2], 10)),
            table[:, 0],
            bits,
            table[:, 23],
        )

    def _check_motion(self, ticks: Array) -> None:
        """Refuses a reading that no joint could have reached since the last."""
        now = (
            time.monotonic() if isinstance(self._clock, RealClock) else self._clock.now_ns() * 1e-9
        )
        if self._last is not None and self._trust:
            allowed = SLACK + 2 * SPEED * (now - self._last[0])
            moved = np.abs(ticks - self._last[1]) * UNIT
            if moved.max() > allowed:
                self._jumped += 1
                joint = self.joints[int(moved.argmax())]
                raise RobotFault(
                    Fault.ENCODER if self._jumped >= JUMPS else Fault.COMM_CORRUPT,
                    f"{joint} jumped {moved.max():.2f} rad, allowed is {allowed:.2f} rad",
                )
        self._last, self._trust, self._jumped = (now, ticks), True, 0

    def _send(self, ticks: Array) -> None:
        port = self._open()
        port.is_using = False
        packet: list[int] = []
        for servo, tick in zip(self._ids, ticks, strict=True):
            packet += [servo, int(tick) & 0xFF, int(tick) >> 8]
        self._check(self._bus.syncWriteTxOnly(port, GOAL, 2, packet, len(packet)), "goals")

    def _patiently(self, what: Callable[[], T]) -> T:
        """The result of ``what``, tried again where the wire failed it."""
        for _ in range(TRIES - 1):
            try:
                return what()
            except RobotFault as error:
                if error.fault.response is not Response.RETRY:
                    raise
        return what()

    def _ask(self, servo: int, address: int, length: int) -> list[int]:
        """Reads registers of one servo, with a few tries."""
        port = self._open()
        for attempt in range(TRIES):
            port.is_using = False
            data, result, _ = self._bus.readTxRx(port, servo, address, length)
            if result == sdk.COMM_SUCCESS and len(data) == length:
                return data
            if attempt == TRIES - 1:
                self._check(result, f"servo {servo}")
        raise RobotFault(Fault.COMM_CORRUPT, f"servo {servo}: a reply of the wrong length")

    def _tell(self, servo: int, address: int, value: int, size: int) -> None:
        """Writes a register of one servo and reads it back, with a few tries.

        An error bit in the acknowledgement does not stop it: what the register holds counts.
        """
        port = self._open()
        data = [value & 0xFF, value >> 8][:size]
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
            Fault.TORQUE if address == TORQUE else Fault.CONFIG,
            f"servo {servo} holds {held} in register {address}, told {data}",
        )

    def _check(self, result: int, what: str) -> None:
        if result == sdk.COMM_SUCCESS:
            return
        silent = result == sdk.COMM_RX_TIMEOUT
        text = self._bus.getTxRxResult(result).removeprefix("[TxRxResult] ")
        raise RobotFault(Fault.COMM_TIMEOUT if silent else Fault.COMM_CORRUPT, f"{what}: {text}")

    def _within(self, servo: int, tick: int) -> int:
        calibration, i = self._known(), servo - 1
        return int(np.clip(tick, calibration.low[i], calibration.high[i]))

    def _open(self) -> FeetechPort:
        if self._port is None:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")
        return self._port

    def _known(self) -> Calibration:
        self._open()
        if self._identity is None or self._calibration is None:
            raise RobotFault(Fault.CONFIG, "call identify() first: the calibration is not known")
        return self._calibration


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
