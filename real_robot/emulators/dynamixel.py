"""Six Dynamixel X servos on one bus, Protocol 2.0: packets, dynamics, and what stops them.

Packets are ``FF FF FD 00 id length(2) instruction parameters crc(2)``; wherever ``FF FF FD`` comes
up behind the length, another ``FD`` follows it. A status packet's instruction is 0x55, behind which
an error number comes, with the alert bit while a hardware error stands.

Bus Watchdog: silence stops a stiff servo where it is, and goals are refused until it is set to 0.
Hardware errors that ``shutdown`` names take the torque away until a reboot. A servo counts turns on
from where it woke, in its first turn.

The servo's inner loop is the simulated arm's own actuator. The maker says that a load above the
most for some time is an overload, and neither how much nor how long: here 80 % for 2 s. Nor does it
say what a servo does once a watchdog's error is cleared: here it waits for a new goal. What is not
modelled: gains, heat, supply and shocks by cause (a test sets them), velocity and PWM modes, the
bulk, clear and factory reset instructions, indirect addresses, the time that bytes take at other
baud rates than 1 M.
"""

from __future__ import annotations

import termios
from collections.abc import Callable, Sequence

import numpy as np

from real_robot.emulators.dynamixel_registers import (
    BAD_LENGTH,
    BITS,
    MEMORY,
    NO_ACCESS,
    OVERLOAD,
    TRIPPED,
    XL330,
    DynamixelServo,
)
from real_robot.emulators.motion_profile import advance_profile
from real_robot.emulators.physics import ArmPhysics
from real_robot.emulators.servo_base import (
    ACTION,
    BROADCAST,
    MIDDLE,
    PING,
    READ,
    REBOOT,
    REG_WRITE,
    SYNC_READ,
    SYNC_WRITE,
    TICKS,
    UNIT,
    WRITE,
    EmulatedServoBus,
    Register,
)
from real_robot.emulators.wire_faults import BYTE_S, ServoReply

HEADER = b"\xff\xff\xfd\x00"
STUFFED = b"\xff\xff\xfd"

STATUS, FAST_SYNC_READ = 0x55, 0x8A
BAD_INSTRUCTION = 2  # error number
ALERT = 0x80

RATES = (  # by the register's value
    termios.B9600,
    termios.B57600,
    termios.B115200,
    termios.B1000000,
    termios.B2000000,
    termios.B3000000,
    termios.B4000000,
)
OVERLOAD_SHARE, OVERLOAD_S = 0.8, 2.0  # of the most torque, and s of it: assumed
WATCHDOG_S = 0.02  # s, the unit of the watchdog
EXTENDED, CURRENT_BASED = 4, 5  # operating modes
SPEED = 0.229 * 2 * np.pi / 60 / UNIT  # steps/s, the unit of speed registers
PUSH = 214.577 * 2 * np.pi / 3600 / UNIT  # steps/s^2, the unit of acceleration registers
STALL_MA = 1470  # mA of the XL330 at 5 V


def crc(data: bytes, start: int = 0) -> int:
    """CRC-16 of ``data``: polynomial 0x8005, highest bit first, nothing inverted."""
    value = start
    for byte in data:
        value = ((value << 8) ^ _TABLE[(value >> 8) ^ byte]) & 0xFFFF
    return value


def _row(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = (value << 1) ^ (0x8005 if value & 0x8000 else 0)
    return value & 0xFFFF


_TABLE = [_row(byte) for byte in range(256)]


def packet(device: int, body: bytes) -> bytes:
    """A whole packet of ``body``: the instruction, then what follows it."""
    body = body.replace(STUFFED, STUFFED + b"\xfd")
    head = HEADER + bytes([device]) + (len(body) + 2).to_bytes(2, "little")
    return head + body + crc(head + body).to_bytes(2, "little")


def from_other_servo(whole: bytes) -> bytes:
    """The same packet, good, from another servo."""
    body = whole[7:-2].replace(STUFFED + b"\xfd", STUFFED)
    return packet(whole[4] % 250 + 1, body)


class DynamixelBus(EmulatedServoBus[DynamixelServo]):
    """The servos of ``physics``, fresh from the factory, or calibrated so that the middle of each
    joint's travel reads 2047. ``seed`` decides how the horns are mounted on the encoders: anyhow.
    """

    HEADER, FRAMING = HEADER, 7
    registers, bits = XL330, BITS

    def __init__(
        self,
        physics: ArmPhysics,
        models: Sequence[dict[str, Register]],
        *,
        calibrated: bool = True,
        seed: int = 0,
    ):
        super().__init__(physics, seed, from_other_servo)
        rng = np.random.default_rng(seed)
        self._heard = False
        self.servos = []
        ranges = [*physics.robot.joint_range, physics.robot.gripper_range]
        for index, (model, (low, high)) in enumerate(zip(models, ranges, strict=True)):
            middle = int(rng.integers(TICKS))  # what its encoder reads there
            servo = DynamixelServo(index + 1, model, middle - (low + high) / 2 / UNIT, index)
            servo.put("baud", 3)
            self.servos.append(servo)
            if calibrated:
                self._calibrate(servo, middle, round((high - low) / 2 / UNIT))
            servo.wake(physics.qpos[index])
        if calibrated:
            self.servos[-1].put("operating_mode", CURRENT_BASED)  # the gripper
        physics.advance(self._control)

    @staticmethod
    def _calibrate(servo: DynamixelServo, middle: int, half: int) -> None:
        servo.put("homing_offset", MIDDLE - middle)
        servo.put("min_position", MIDDLE - half)
        servo.put("max_position", MIDDLE + half)
        servo.put("return_delay", 0)
        servo.put("operating_mode", EXTENDED)

    # Dynamics.
    def advance(self, heard: bool = False) -> None:
        """Physics up to the present.

        ``heard``: bytes have come, to be fed next. How long they have waited for an emulator that
        its host kept waiting is not known, and no silence.
        """
        self._heard = heard
        self.physics.advance(self._control)
        self._heard = False

    def _control(self, dt: float) -> None:
        """The inner loops, before every physics step of ``dt`` s."""
        physics = self.physics
        qpos, load = physics.qpos, np.abs(physics.effort) / physics.strength
        for servo in self.servos:
            i = servo.index
            servo.awake += dt
            if servo.silent > 0:
                servo.silent = max(0.0, servo.silent - dt)
                servo.wake(qpos[i])
            servo.loaded = servo.loaded + dt if load[i] >= OVERLOAD_SHARE else 0.0
            over = OVERLOAD if servo.loaded > OVERLOAD_S else 0
            servo.raise_error(servo.forced | over)
            here = servo.count(qpos[i])
            if not servo.get("torque_enable"):
                physics.torque[i] = 0.0
                servo.setpoint, servo.speed, servo.quiet = here, 0.0, 0.0
                continue
            share = min(abs(servo.get("goal_pwm")), servo.get("pwm_limit")) / 885
            if servo.get("operating_mode") == CURRENT_BASED:
                current = min(abs(servo.get("goal_current")), servo.get("current_limit"))
                share = min(share, current / STALL_MA)
            physics.torque[i] = share
            if not self._heard:
                self._watch(servo, here, dt)
            self._profile(servo, dt)
            physics.goal[i] = qpos[i] + servo.way * (servo.setpoint - here) * UNIT

    @staticmethod
    def _watch(servo: DynamixelServo, here: float, dt: float) -> None:
        """Silence stops it."""
        servo.quiet += dt
        allowed = servo.get("bus_watchdog")
        if 0 < allowed < TRIPPED and servo.quiet > allowed * WATCHDOG_S:
            servo.put("bus_watchdog", TRIPPED)
            servo.stopped, servo.setpoint, servo.speed = True, here, 0.0

    @staticmethod
    def _profile(servo: DynamixelServo, dt: float) -> None:
        """Moves the setpoint to the goal at the registers' speed and acceleration."""
        if servo.stopped:
            return
        goal = servo.get("goal_position")
        if servo.get("operating_mode") not in (EXTENDED, CURRENT_BASED):
            goal = min(max(goal, servo.get("min_position")), servo.get("max_position"))
        top = SPEED * servo.get("profile_velocity")
        push = PUSH * servo.get("profile_acceleration")
        servo.setpoint, servo.speed = advance_profile(
            servo.setpoint, servo.speed, goal, top, push, dt
        )

    def _measure(self, servo: DynamixelServo) -> None:
        """Brings the read-only registers up to date."""
        physics, i = self.physics, servo.index
        share = servo.way * physics.effort[i] / physics.strength[i]
        speed = servo.way * physics.qvel[i] / UNIT
        servo.put_position(round(servo.count(physics.qpos[i])))
        servo.put("present_velocity", round(speed / SPEED))
        most = STALL_MA if "goal_current" in servo.registers else 1000
        servo.put("present_load", round(most * share))
        servo.put("present_pwm", round(885 * share))
        servo.put("moving", int(abs(speed / SPEED) > servo.get("moving_threshold")))
        servo.put("realtime_tick", int(servo.awake * 1000) % 32_768)

    # Packets.
    def _size(self, begun: bytes) -> int:
        length = int.from_bytes(begun[5:7], "little")
        return 7 + length if 3 <= length <= 1024 else 0

    def _unpack(self, whole: bytes) -> tuple[int, int, bytes] | None:
        if crc(whole[:-2]) != int.from_bytes(whole[-2:], "little"):
            return None
        body = whole[7:-2].replace(STUFFED + b"\xfd", STUFFED)
        return whole[4], body[0], body[1:]

    def _answer(self, device: int, instruction: int, data: bytes) -> list[ServoReply]:
        """The replies to one packet."""
        self.advance()
        if instruction == STATUS:
            return []
        listening = self._awake(device)
        for servo in listening:
            servo.quiet = 0.0
        if instruction in (SYNC_READ, FAST_SYNC_READ, SYNC_WRITE) and len(data) >= 4:
            address, size = (int.from_bytes(data[i : i + 2], "little") for i in (0, 2))
            if instruction == SYNC_WRITE:
                for at in range(4, len(data) - size, size + 1):
                    for servo in self._awake(data[at]):
                        self._write(servo, address, data[at + 1 : at + 1 + size])
                return []
            chosen = [servo for i in data[4:] for servo in self._awake(i)]
            read = [(servo, *self._read(servo, address, size)) for servo in chosen]
            if instruction == FAST_SYNC_READ:
                return self._together(read, size, len(data) - 4)
            return self._replies(read)
        act = self._ACTIONS.get(instruction, lambda *_: (BAD_INSTRUCTION, b""))
        answers = [(servo, *act(self, servo, data)) for servo in listening]
        if device == BROADCAST and instruction != PING:
            return []
        level = 0 if instruction == PING else 1 if instruction == READ else 2
        return self._replies([a for a in answers if a[0].get("status_level") >= level])

    def _awake(self, device: int) -> list[DynamixelServo]:
        """The servos that listen to ``device`` at the host's baud rate."""
        awake = super()._awake(device)
        return [s for s in awake if self.speed in (None, RATES[s.get("baud")])]

    # Instructions to one servo: what they answer, as (error, data).
    def _ping(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        return 0, bytes([*servo.get("model").to_bytes(2, "little"), servo.get("firmware")])

    def _read_one(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        if len(data) != 4:
            return BAD_LENGTH, b""
        return self._read(servo, *(int.from_bytes(data[i : i + 2], "little") for i in (0, 2)))

    def _write_one(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        if len(data) < 3:
            return BAD_LENGTH, b""
        return self._write(servo, int.from_bytes(data[:2], "little"), data[2:]), b""

    def _register_write(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        if len(data) < 3:
            return BAD_LENGTH, b""
        servo.register(int.from_bytes(data[:2], "little"), data[2:])
        return 0, b""

    def _action(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        if servo.pending is None:
            return 1, b""  # nothing was registered
        error = self._write(servo, *servo.pending)
        servo.release()
        return error, b""

    def _reboot(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        servo.reboot()
        return 0, b""

    _ACTIONS: dict[int, Callable[[DynamixelBus, DynamixelServo, bytes], tuple[int, bytes]]] = {
        PING: _ping,
        READ: _read_one,
        WRITE: _write_one,
        REG_WRITE: _register_write,
        ACTION: _action,
        REBOOT: _reboot,
    }

    def _read(self, servo: DynamixelServo, address: int, size: int) -> tuple[int, bytes]:
        if address + size > MEMORY:
            return NO_ACCESS, b""
        self._measure(servo)
        return 0, bytes(servo.memory[address : address + size])

    def _write(self, servo: DynamixelServo, address: int, data: bytes) -> int:
        """The error number; goals of stiff servos are noted."""
        stiff, before = servo.get("torque_enable"), servo.get("goal_position")
        here = servo.count(self.physics.qpos[servo.index])
        error = servo.write(address, data)
        if error:
            return error
        if not stiff:  # stiffened: it stays where it is until its goal takes over
            servo.setpoint, servo.speed, servo.stopped = here, 0.0, False
        at = servo.registers["goal_position"].address
        if not address <= at < address + len(data):
            return 0
        servo.stopped = False
        self.traffic.goals += 1
        goal = servo.get("goal_position")
        if stiff:
            zero = servo.count(0.0)  # what it reads at the joint's zero
            told = (servo.way * (g - zero) * UNIT for g in (goal, before))
            self.joint_targets.add(servo.index, *told)
        middle = (servo.get("min_position") + servo.get("max_position")) / 2
        half = (servo.get("max_position") - servo.get("min_position")) / 2
        turn = TICKS * round((goal - middle) / TICKS)
        if abs(goal - turn - middle) > half:
            self.traffic.beyond_limits += 1
        return 0

    def _replies(self, answers: list[tuple[DynamixelServo, int, bytes]]) -> list[ServoReply]:
        """A status packet for each answer, one behind the other."""
        return self._in_turn(
            (servo, packet(servo.get("id"), bytes([STATUS, error | _alert(servo)]) + content))
            for servo, error, content in answers
        )

    def _together(
        self, answers: list[tuple[DynamixelServo, int, bytes]], size: int, asked: int
    ) -> list[ServoReply]:
        """One status packet that the servos write in turn, none of it stuffed."""
        if len(answers) < asked:
            return []  # each waits for those before it
        length = 1 + asked * (size + 4)
        whole = HEADER + bytes([BROADCAST]) + length.to_bytes(2, "little") + bytes([STATUS])
        for servo, error, content in answers:
            whole += bytes([error | _alert(servo), servo.get("id")]) + content.ljust(size, b"\0")
            whole += crc(whole).to_bytes(2, "little")
        t = len(whole) * BYTE_S
        return [ServoReply(data, t, late) for data, late in self.wire.carry(BROADCAST, whole)]


def _alert(servo: DynamixelServo) -> int:
    """The bit of a reply that says that a hardware error stands."""
    return ALERT if servo.get("hardware_error") else 0
