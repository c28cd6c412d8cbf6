"""Six Dynamixel X servos on one bus, Protocol 2.0: control table, packets, and what stops them.

Packets are ``FF FF FD 00 id length(2) instruction parameters crc(2)``; wherever ``FF FF FD`` comes
up behind the length, another ``FD`` follows it. A status packet's instruction is 0x55, behind which
an error number comes, with the alert bit while a hardware error stands. Tables are those of the
maker's manual: EEPROM registers survive a reboot and can be written while torque is off alone; a
write that touches what is not there, read-only or locked is refused whole.

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
from typing import NamedTuple

import numpy as np

from real_robot.emulators.motion_profile import advance_profile
from real_robot.emulators.physics import ArmPhysics, GoalHistory
from real_robot.emulators.wire_faults import BYTE_S, FaultyWire, ServoReply, Traffic

TICKS = 4096  # encoder steps in a turn
UNIT = 2 * np.pi / TICKS  # rad, one step
MIDDLE = 2047  # what a homed servo reads in the middle of its travel
BROADCAST = 0xFE
HEADER = b"\xff\xff\xfd\x00"
STUFFED = b"\xff\xff\xfd"

PING, READ, WRITE, REG_WRITE, ACTION, REBOOT = 1, 2, 3, 4, 5, 8
STATUS, SYNC_READ, SYNC_WRITE, FAST_SYNC_READ = 0x55, 0x82, 0x83, 0x8A
BAD_INSTRUCTION, BAD_RANGE, BAD_LENGTH, BAD_LIMIT, NO_ACCESS = 2, 4, 5, 6, 7  # error numbers
ALERT = 0x80

VOLTAGE, OVERHEAT, ENCODER, SHOCK, OVERLOAD = 1, 4, 8, 16, 32  # hardware errors
RATES = (  # by the register's value
    termios.B9600,
    termios.B57600,
    termios.B115200,
    termios.B1000000,
    termios.B2000000,
    termios.B3000000,
    termios.B4000000,
)
BITS = {
    "voltage": VOLTAGE,
    "overheat": OVERHEAT,
    "encoder": ENCODER,
    "shock": SHOCK,
    "overload": OVERLOAD,
}
OVERLOAD_SHARE, OVERLOAD_S = 0.8, 2.0  # of the most torque, and s of it: assumed
REBOOT_S = 0.2  # s, silent while it starts
WATCHDOG_S, TRIPPED = 0.02, 255  # s, its unit; what it reads when it has stopped the servo
EXTENDED, CURRENT_BASED = 4, 5  # operating modes
SPEED = 0.229 * 2 * np.pi / 60 / UNIT  # steps/s, the unit of speed registers
PUSH = 214.577 * 2 * np.pi / 3600 / UNIT  # steps/s^2, the unit of acceleration registers
STALL_MA = 1470  # mA of the XL330 at 5 V
RAM, MEMORY = 64, 256
FAR = 1_048_575  # steps, in extended position mode


class Register(NamedTuple):
    """Where it is, what a servo fresh from the factory holds, and what may be written."""

    address: int
    size: int
    initial: int
    range: tuple[int, int] | None = None  # None: read-only


def _x_series(
    model: int, hottest: int, volts: tuple[int, int], shutdown: int, speed: int, gains: tuple
) -> dict[str, Register]:
    """The control table that all servos of the X series share, with one model's numbers."""
    least, most = volts
    position_p, position_d, velocity_i, velocity_p = gains
    gain, turn = (0, 16_383), (0, TICKS - 1)
    return {
        "model": Register(0, 2, model),
        "firmware": Register(6, 1, 46),
        "id": Register(7, 1, 1, (0, 252)),
        "baud": Register(8, 1, 1, (0, 6)),
        "return_delay": Register(9, 1, 250, (0, 254)),  # 2 us
        "drive_mode": Register(10, 1, 0, (0, 13)),  # 1: the other way round
        "operating_mode": Register(11, 1, 3, (0, 16)),
        "secondary_id": Register(12, 1, 255, (0, 255)),
        "protocol": Register(13, 1, 2, (2, 2)),
        "homing_offset": Register(20, 4, 0, (-1_044_479, 1_044_479)),
        "moving_threshold": Register(24, 4, 10, (0, 1023)),
        "temperature_limit": Register(31, 1, hottest, (0, 100)),
        "max_voltage": Register(32, 2, most, (least, most)),  # 0.1 V
        "min_voltage": Register(34, 2, least, (least, most)),
        "pwm_limit": Register(36, 2, 885, (0, 885)),
        "velocity_limit": Register(44, 4, speed, (0, 2047)),
        "max_position": Register(48, 4, TICKS - 1, turn),
        "min_position": Register(52, 4, 0, turn),
        "shutdown": Register(63, 1, shutdown, (0, 63)),
        "torque_enable": Register(64, 1, 0, (0, 1)),
        "led": Register(65, 1, 0, (0, 1)),
        "status_level": Register(68, 1, 2, (0, 2)),
        "pending": Register(69, 1, 0),
        "hardware_error": Register(70, 1, 0),
        "velocity_i": Register(76, 2, velocity_i, gain),
        "velocity_p": Register(78, 2, velocity_p, gain),
        "position_d": Register(80, 2, position_d, gain),
        "position_i": Register(82, 2, 0, gain),
        "position_p": Register(84, 2, position_p, gain),
        "feedforward_2": Register(88, 2, 0, gain),
        "feedforward_1": Register(90, 2, 0, gain),
        "bus_watchdog": Register(98, 1, 0, (0, 127)),  # 20 ms; 0: off
        "goal_pwm": Register(100, 2, 885, (-885, 885)),
        "goal_velocity": Register(104, 4, 0, (-2047, 2047)),
        "profile_acceleration": Register(108, 4, 0, (0, 32_767)),  # 0: as fast as it can
        "profile_velocity": Register(112, 4, 0, (0, 32_767)),  # 0: as fast as it can
        "goal_position": Register(116, 4, 0, (-FAR, FAR)),
        "realtime_tick": Register(120, 2, 0),  # ms
        "moving": Register(122, 1, 0),
        "present_pwm": Register(124, 2, 0),
        "present_load": Register(126, 2, 0),  # 0.1 %
        "present_velocity": Register(128, 4, 0),  # 0.229 rpm
        "present_position": Register(132, 4, 0),
        "present_voltage": Register(144, 2, least + 2 * (most - least) // 3),  # 0.1 V
        "present_temperature": Register(146, 1, 30),  # deg C
    }


XL430 = _x_series(1060, 72, (60, 140), 52, 265, (640, 4000, 1000, 100))
XL330 = _x_series(1200, 70, (35, 70), 53, 445, (400, 0, 1600, 180)) | {
    "current_limit": Register(38, 2, 1750, (0, 1750)),  # mA
    "pwm_slope": Register(62, 1, 140, (1, 255)),
    "goal_current": Register(102, 2, 1750, (-1750, 1750)),  # mA
    "present_load": Register(126, 2, 0),  # mA, of the motor
}
SIGNED = {
    "homing_offset",
    "goal_pwm",
    "goal_current",
    "goal_velocity",
    "goal_position",
    "present_pwm",
    "present_load",
    "present_velocity",
    "present_position",
}
GOALS = ("goal_pwm", "goal_current", "goal_velocity", "goal_position")


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


class DynamixelServo:
    """One servo's memory and its inner loop's goal."""

    def __init__(self, device: int, registers: dict[str, Register], mount: float, index: int):
        self.index, self.mount = index, mount  # joint; encoder reading at the joint's zero
        self.mirrored = False  # mounted the other way round
        self.registers = registers
        self.memory = bytearray(MEMORY)
        self.forced = 0  # hardware errors that a test keeps raised
        self.awake = 0.0  # s since it got its power
        self.loaded = 0.0  # s, with more than the overload's torque
        self.silent = 0.0  # s left until it has restarted
        self.quiet = 0.0  # s since an instruction
        self.stopped = False  # by its watchdog, until a new goal
        self.pending: tuple[int, bytes] | None = None  # of REG_WRITE
        self.setpoint = 0.0  # steps, where the inner loop's profile is
        self.speed = 0.0  # steps/s, of the profile
        self.glitches = 0  # readings to come in which the encoder is a third of a turn off
        self.refused = 0  # writes that were not taken
        self.turns = 0  # steps that its count is behind the joint's
        for name, register in registers.items():
            self.put(name, register.initial)
        self.put("id", device)

    def get(self, name: str) -> int:
        """The value of a register."""
        address, size = self.registers[name][:2]
        raw = self.memory[address : address + size]
        return int.from_bytes(raw, "little", signed=name in SIGNED)

    def put(self, name: str, value: int) -> None:
        """Sets a register, whatever its kind."""
        address, size = self.registers[name][:2]
        raw = int(value).to_bytes(size, "little", signed=name in SIGNED)
        self.memory[address : address + size] = raw

    @property
    def way(self) -> int:
        """1, or -1 where it counts against the joint."""
        return -1 if self.get("drive_mode") & 1 != self.mirrored else 1

    def count(self, qpos: float) -> float:
        """What it reads, in steps and parts of one, where its joint is at ``qpos`` rad."""
        return self.way * qpos / UNIT + self.mount - self.turns + self.get("homing_offset")

    def wake(self, qpos: float) -> None:
        """It gets its power with its joint at ``qpos`` rad: what it reads is in the first turn."""
        self.turns = 0
        self.turns = int((self.count(qpos) - self.get("homing_offset")) // TICKS) * TICKS

    def reboot(self) -> None:
        """Power off and on: RAM is as from the factory, so the torque is gone."""
        for name, register in self.registers.items():
            if register.address >= RAM:
                self.put(name, register.initial)
        self.loaded, self.quiet, self.silent, self.pending = 0.0, 0.0, REBOOT_S, None
        self.stopped, self.awake = False, 0.0

    def heal(self) -> None:
        """What a test broke is well; a hardware error stands until a reboot, as ever."""
        self.forced = self.glitches = 0

    def raise_error(self, bits: int) -> None:
        """Hardware errors come up; those that its ``shutdown`` names take its torque."""
        self.put("hardware_error", self.get("hardware_error") | bits)
        if self.get("hardware_error") & self.get("shutdown"):
            self.put("torque_enable", 0)

    def write(self, address: int, data: bytes) -> int:
        """A write from the bus, whole or not at all; returns the error number."""
        error = self._judge(address, data)
        if error:
            self.refused += 1
            return error
        self.memory[address : address + len(data)] = data
        return 0

    def _judge(self, address: int, data: bytes) -> int:
        """The error number that a write earns."""
        end = address + len(data)
        covered = 0
        for name, (at, size, _, allowed) in self.registers.items():
            if at + size <= address or at >= end:
                continue
            if allowed is None or (at < RAM and self.get("torque_enable")):
                return NO_ACCESS
            if at < address or at + size > end:
                return BAD_LENGTH
            raw = data[at - address : at - address + size]
            value = int.from_bytes(raw, "little", signed=name in SIGNED)
            if name in GOALS and self.get("bus_watchdog") == TRIPPED:
                return BAD_RANGE
            if not allowed[0] <= value <= allowed[1]:
                return BAD_LIMIT
            if name == "torque_enable" and value and self._shut_down:
                return NO_ACCESS
            covered += size
        return 0 if covered == len(data) else NO_ACCESS

    @property
    def _shut_down(self) -> bool:
        return bool(self.get("hardware_error") & self.get("shutdown"))


class DynamixelBus:
    """The servos of ``physics`` as one bus: bytes in, bytes out.

    Joint i is servo i + 1. Fresh from the factory, or calibrated so that the middle of each joint's
    travel reads 2047. ``seed`` decides how the horns are mounted on the encoders: anyhow.
    """

    registers, bits = XL330, BITS

    def __init__(
        self,
        physics: ArmPhysics,
        models: Sequence[dict[str, Register]],
        *,
        calibrated: bool = True,
        seed: int = 0,
    ):
        self.physics = physics
        self.wire = FaultyWire(seed, 7, from_other_servo)
        self.traffic = Traffic()
        self.goals = GoalHistory(len(physics.joints))
        rng = np.random.default_rng(seed)
        self.speed: int | None = None  # of the host, as termios has it; None: the servos' own
        self._input, self._heard = bytearray(), False
        self.servos: list[DynamixelServo] = []
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
        position = round(servo.count(physics.qpos[i]))
        if servo.glitches > 0:
            servo.glitches -= 1
            position += TICKS // 3
        servo.put("present_position", position)
        servo.put("present_velocity", round(speed / SPEED))
        most = STALL_MA if "goal_current" in servo.registers else 1000
        servo.put("present_load", round(most * share))
        servo.put("present_pwm", round(885 * share))
        servo.put("moving", int(abs(speed / SPEED) > servo.get("moving_threshold")))
        servo.put("realtime_tick", int(servo.awake * 1000) % 32_768)

    # Packets.
    def feed(self, data: bytes) -> list[ServoReply]:
        """The replies to what came in."""
        self._input += data
        replies: list[ServoReply] = []
        while (found := self._next()) is not None:
            self.traffic.packets += 1
            replies += self._answer(*found)
        return replies

    def _next(self) -> tuple[int, int, bytes] | None:
        """The next good packet (id, instruction, parameters); skips what is none."""
        while True:
            start = self._input.find(HEADER)
            if start < 0:
                del self._input[: max(0, len(self._input) - len(HEADER) + 1)]
                return None
            del self._input[:start]
            if len(self._input) < 7:
                return None
            length = int.from_bytes(self._input[5:7], "little")
            if not 3 <= length <= 1024:
                del self._input[0]
                continue
            if len(self._input) < 7 + length:
                return None
            whole = bytes(self._input[: 7 + length])
            if crc(whole[:-2]) != int.from_bytes(whole[-2:], "little"):
                self.traffic.bad_checksums += 1
                del self._input[0]
                continue
            del self._input[: len(whole)]
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
        """The servos that listen to ``device``."""
        return [
            servo
            for servo in self.servos
            if servo.silent <= 0
            and device in (servo.get("id"), BROADCAST)
            and self.speed in (None, RATES[servo.get("baud")])
        ]

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
        servo.pending = int.from_bytes(data[:2], "little"), data[2:]
        servo.put("pending", 1)
        return 0, b""

    def _action(self, servo: DynamixelServo, data: bytes) -> tuple[int, bytes]:
        if servo.pending is None:
            return 1, b""  # nothing was registered
        error = self._write(servo, *servo.pending)
        servo.pending = None
        servo.put("pending", 0)
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
            self.goals.add(servo.index, *told)
        middle = (servo.get("min_position") + servo.get("max_position")) / 2
        half = (servo.get("max_position") - servo.get("min_position")) / 2
        turn = TICKS * round((goal - middle) / TICKS)
        if abs(goal - turn - middle) > half:
            self.traffic.beyond_limits += 1
        return 0

    def _replies(self, answers: list[tuple[DynamixelServo, int, bytes]]) -> list[ServoReply]:
        """Status packets one behind the other, as far as the wire carries them."""
        out, t = [], 0.0
        for servo, error, content in answers:
            alert = ALERT if servo.get("hardware_error") else 0
            whole = packet(servo.get("id"), bytes([STATUS, error | alert]) + content)
            t += servo.get("return_delay") * 2e-6 + len(whole) * BYTE_S
            for data, late in self.wire.carry(servo.index + 1, whole):
                out.append(ServoReply(data, t, late))
        return out

    def _together(
        self, answers: list[tuple[DynamixelServo, int, bytes]], size: int, asked: int
    ) -> list[ServoReply]:
        """One status packet that the servos write in turn, none of it stuffed."""
        if len(answers) < asked:
            return []  # each waits for those before it
        length = 1 + asked * (size + 4)
        whole = HEADER + bytes([BROADCAST]) + length.to_bytes(2, "little") + bytes([STATUS])
        for servo, error, content in answers:
            alert = ALERT if servo.get("hardware_error") else 0
            whole += bytes([error | alert, servo.get("id")]) + content.ljust(size, b"\0")
            whole += crc(whole).to_bytes(2, "little")
        t = len(whole) * BYTE_S
        return [ServoReply(data, t, late) for data, late in self.wire.carry(BROADCAST, whole)]
