"""Six Feetech STS3215 servos on one bus: registers, packets, dynamics, and what breaks them.

Packets are ``FF FF id length instruction parameters checksum``, the checksum the inverted sum of
everything behind the header; a status packet has the servo's error bits where an instruction packet
has the instruction. Registers are those of the vendor's STS memory table; EEPROM registers survive
a reboot and can be written while ``lock`` is 0 alone. Signed values are sign and magnitude.

A goal stiffens its servo, as was seen on hardware (huggingface/lerobot issue 3585). One that was
told none since it got its power stays where it is stiffened: LeRobot's ``connect()`` relies on that
on every SO-101, though no document says how the servo does it.

The servo's inner loop is the simulated arm's own actuator. Angles, speeds and loads pass through
the 12-bit encoder, the homing offset and the units of the registers. What is not modelled: heat,
supply sag and current by cause (a test sets them), modes other than position, baud rates other than
1 M.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from real_robot.emulators.physics import ArmPhysics, Goals
from real_robot.emulators.profile import advance
from real_robot.emulators.wire import BYTE_S, FaultyWire, Reply, Traffic

TICKS = 4096  # encoder steps in a turn
UNIT = 2 * np.pi / TICKS  # rad, one step
MIDDLE = 2047  # what a homed servo reads in the middle of its travel
MODEL = 777  # STS3215
BROADCAST = 0xFE

PING, READ, WRITE, REG_WRITE, ACTION = 1, 2, 3, 4, 5
REBOOT, SYNC_READ, SYNC_WRITE = 8, 0x82, 0x83

VOLTAGE, ANGLE, OVERHEAT, OVERCURRENT, OVERLOAD = 1, 2, 4, 8, 32  # error bits
BITS = {
    "voltage": VOLTAGE,
    "encoder": ANGLE,
    "overheat": OVERHEAT,
    "overcurrent": OVERCURRENT,
    "overload": OVERLOAD,
}
REBOOT_S = 0.1  # s, silent while it starts

# name: (address, bytes, value from the factory)
REGISTERS: dict[str, tuple[int, int, int]] = {
    "firmware_major": (0, 1, 3),
    "firmware_minor": (1, 1, 10),
    "model": (3, 2, MODEL),
    "id": (5, 1, 1),
    "baud": (6, 1, 0),
    "return_delay": (7, 1, 250),  # 2 us
    "status_level": (8, 1, 1),
    "min_position": (9, 2, 0),
    "max_position": (11, 2, TICKS - 1),
    "max_temperature": (13, 1, 70),  # deg C
    "max_voltage": (14, 1, 140),  # 0.1 V
    "min_voltage": (15, 1, 40),  # 0.1 V
    "max_torque": (16, 2, 1000),  # 0.1 %
    "unloading_condition": (19, 1, 44),
    "p": (21, 1, 32),
    "d": (22, 1, 32),
    "i": (23, 1, 0),
    "homing_offset": (31, 2, 0),  # sign in bit 11
    "mode": (33, 1, 0),
    "protective_torque": (34, 1, 20),  # %
    "protection_time": (35, 1, 200),  # 10 ms
    "overload_torque": (36, 1, 80),  # %
    "torque_enable": (40, 1, 0),
    "acceleration": (41, 1, 0),  # 100 steps/s^2; 0: as fast as it can
    "goal_position": (42, 2, 0),  # sign in bit 15
    "goal_time": (44, 2, 0),
    "goal_velocity": (46, 2, 0),  # steps/s, 0: as fast as it can
    "torque_limit": (48, 2, 1000),  # 0.1 %
    "lock": (55, 1, 1),
    "present_position": (56, 2, 0),  # sign in bit 15
    "present_velocity": (58, 2, 0),  # steps/s, sign in bit 15
    "present_load": (60, 2, 0),  # 0.1 %, sign in bit 10
    "present_voltage": (62, 1, 120),  # 0.1 V
    "present_temperature": (63, 1, 30),  # deg C
    "pending": (64, 1, 0),
    "status": (65, 1, 0),
    "moving": (66, 1, 0),
    "present_current": (69, 2, 0),  # 6.5 mA
}
EEPROM = range(5, 40)
MEMORY = 87
READ_ONLY = {*range(5), *range(56, 71)}
SIGN = {"homing_offset": 11, "goal_position": 15, "present_position": 15}
SIGN |= {"present_velocity": 15, "present_load": 10}
AMPS = 2.7 / 2.94  # A / (N m), stall current over stall torque


def checksum(body: bytes) -> int:
    """The last byte of a packet whose bytes behind the header are ``body``."""
    return ~sum(body) & 0xFF


def someone_else(packet: bytes) -> bytes:
    """The same packet, good, from another servo."""
    body = bytes([packet[2] % 250 + 1]) + packet[3:-1]
    return packet[:2] + body + bytes([checksum(body)])


def encode(value: int, bit: int) -> int:
    """A sign-and-magnitude register: the sign in ``bit``."""
    return min(abs(value), (1 << bit) - 1) | (1 << bit if value < 0 else 0)


def decode(raw: int, bit: int) -> int:
    """The value of a sign-and-magnitude register."""
    magnitude = raw & ((1 << bit) - 1)
    return -magnitude if raw >> bit & 1 else magnitude


class Servo:
    """One servo's memory and its inner loop's goal."""

    def __init__(self, device: int, mount: int, index: int):
        self.index, self.mount = index, mount  # joint; encoder reading at the joint's zero
        self.memory = bytearray(MEMORY)
        for name, (_, _, value) in REGISTERS.items():
            self.put(name, value)
        self.put("id", device)
        self.error = 0  # error bits raised by itself or by a test
        self.forced = 0  # error bits that a test keeps raised
        self.loaded = 0.0  # s, with more than the overload torque
        self.silent = 0.0  # s left until it has restarted
        self.pending: tuple[int, bytes] | None = None  # of REG_WRITE
        self.setpoint = 0.0  # steps, where the inner loop's profile is
        self.speed = 0.0  # steps/s, of the profile
        self.glitches = 0  # readings to come in which the encoder is a third of a turn off
        self.told = False  # a goal since it got its power
        self.refused = 0  # writes to registers that are locked, read-only or not there

    def get(self, name: str) -> int:
        """The value of a register, signed where it has a sign."""
        address, size, _ = REGISTERS[name]
        raw = int.from_bytes(self.memory[address : address + size], "little")
        return decode(raw, SIGN[name]) if name in SIGN else raw

    def put(self, name: str, value: int) -> None:
        """Sets a register, whatever its kind."""
        address, size, _ = REGISTERS[name]
        raw = encode(value, SIGN[name]) if name in SIGN else value
        self.memory[address : address + size] = raw.to_bytes(size, "little")

    @property
    def status(self) -> int:
        """The error bits of its next status packet."""
        return self.error | self.forced

    def write(self, address: int, data: bytes) -> None:
        """A write from the bus, register by register where allowed."""
        for at, byte in enumerate(data, address):
            locked = at in EEPROM and self.memory[REGISTERS["lock"][0]]
            if at >= MEMORY or at in READ_ONLY or locked:
                self.refused += 1
                continue
            if at == REGISTERS["torque_enable"][0] and byte == 0:
                self.error &= ~OVERLOAD  # letting go ends an overload
                self.loaded = 0.0
            self.memory[at] = byte

    def heal(self) -> None:
        """Nothing is wrong any more."""
        self.error = self.forced = self.glitches = 0

    def reboot(self) -> None:
        """Power off and on: RAM is as from the factory, so the torque is gone."""
        for name, (address, _, value) in REGISTERS.items():
            if address >= 40:
                self.put(name, value)
        self.error, self.loaded, self.silent, self.pending = 0, 0.0, REBOOT_S, None
        self.told = False


class FeetechBus:
    """The servos of ``physics`` as one bus: bytes in, bytes out.

    Joint i is servo i + 1. Fresh from the factory, or calibrated so that the middle of each joint's
    travel reads 2047. ``seed`` decides how the horns are mounted on the encoders.
    """

    registers, bits = REGISTERS, BITS

    def __init__(self, physics: ArmPhysics, *, calibrated: bool = True, seed: int = 0):
        self.physics = physics
        self.wire = FaultyWire(seed, 4, someone_else)
        self.traffic = Traffic()
        self.goals = Goals(len(physics.joints))
        rng = np.random.default_rng(seed)
        self.servos = [
            Servo(index + 1, MIDDLE + int(rng.integers(-180, 181)), index)
            for index in range(len(physics.joints))
        ]
        self.speed: int | None = None  # of the host, which is not looked at
        self._input = bytearray()
        if calibrated:
            self._calibrate()
        physics.advance(self._control)

    def _calibrate(self) -> None:
        robot = self.physics.robot
        for servo, (low, high) in zip(
            self.servos, [*robot.joint_range, robot.gripper_range], strict=True
        ):
            servo.put("homing_offset", servo.mount - MIDDLE)
            if servo.index < len(robot.joints):
                low, high = -max(-low, high), max(-low, high)  # zero is the middle of the range
            servo.put("min_position", MIDDLE + round(low / UNIT))
            servo.put("max_position", MIDDLE + round(high / UNIT))
            servo.put("return_delay", 0)
            servo.put("p", 16)

    # Dynamics.
    def advance(self, heard: bool = False) -> None:
        """Physics up to the present, whether or not something was ``heard``."""
        self.physics.advance(self._control)

    def position(self, servo: Servo) -> float:
        """What the encoder reads less the homing offset, in steps and parts of a step."""
        raw = (self.physics.qpos[servo.index] / UNIT + servo.mount) % TICKS
        return raw - servo.get("homing_offset")

    def _control(self, dt: float) -> None:
        """The inner loops, before every physics step of ``dt`` s."""
        physics = self.physics
        qpos, load = physics.qpos, np.abs(physics.effort) / physics.strength
        for servo in self.servos:
            if servo.silent > 0:
                servo.silent = max(0.0, servo.silent - dt)
            i = servo.index
            here = self.position(servo)
            if not servo.get("torque_enable"):
                physics.torque[i] = 0.0
                servo.setpoint, servo.speed = here, 0.0
                continue
            self._protect(servo, load[i], dt)
            share = min(servo.get("torque_limit"), servo.get("max_torque")) / 1000
            if servo.status & OVERLOAD:
                share = min(share, servo.get("protective_torque") / 100)
            if servo.status & OVERHEAT:
                share = 0.0
            physics.torque[i] = share
            self._profile(servo, dt)
            physics.goal[i] = qpos[i] + (servo.setpoint - here) * UNIT

    @staticmethod
    def _protect(servo: Servo, load: float, dt: float) -> None:
        """Too much torque for too long is an overload."""
        over = load * 100 >= servo.get("overload_torque")
        servo.loaded = servo.loaded + dt if over else 0.0
        if servo.loaded > servo.get("protection_time") * 0.01:
            servo.error |= OVERLOAD

    @staticmethod
    def _profile(servo: Servo, dt: float) -> None:
        """Moves the setpoint to the goal at the register's speed and acceleration."""
        low, high = servo.get("min_position"), servo.get("max_position")
        goal = min(max(servo.get("goal_position"), low), high)
        top, push = servo.get("goal_velocity"), 100 * servo.get("acceleration")
        servo.setpoint, servo.speed = advance(servo.setpoint, servo.speed, goal, top, push, dt)

    def _measure(self, servo: Servo) -> None:
        """Brings the read-only registers up to date."""
        physics, i = self.physics, servo.index
        load = physics.effort[i] / physics.strength[i]
        speed = physics.qvel[i] / UNIT
        position = round(self.position(servo))
        if servo.glitches > 0:
            servo.glitches -= 1
            position += TICKS // 3
        servo.put("present_position", position)
        servo.put("present_velocity", round(speed))
        servo.put("present_load", round(1000 * load))
        servo.put("present_current", round(abs(physics.effort[i]) * AMPS / 0.0065))
        servo.put("moving", int(abs(speed) > 20))
        servo.put("status", servo.status)

    # Packets.
    def feed(self, data: bytes) -> list[Reply]:
        """The replies to what came in."""
        self._input += data
        replies: list[Reply] = []
        while (packet := self._next()) is not None:
            self.traffic.packets += 1
            replies += self._answer(*packet)
        return replies

    def _next(self) -> tuple[int, int, bytes] | None:
        """The next good packet (id, instruction, parameters); skips what is none."""
        while True:
            start = self._input.find(b"\xff\xff")
            if start < 0:
                del self._input[: max(0, len(self._input) - 1)]
                return None
            del self._input[:start]
            if len(self._input) < 4:
                return None
            length = self._input[3]
            if self._input[2] == 0xFF or length < 2:
                del self._input[0]
                continue
            if len(self._input) < 4 + length:
                return None
            body = bytes(self._input[2 : 4 + length])
            if checksum(body[:-1]) != body[-1]:
                self.traffic.bad_checksums += 1
                del self._input[0]
                continue
            del self._input[: 4 + length]
            return body[0], body[2], body[3:-1]

    def _answer(self, device: int, instruction: int, data: bytes) -> list[Reply]:
        """The replies to one packet."""
        self.advance()
        if instruction == SYNC_READ and len(data) >= 2:
            chosen = [s for i in data[2:] for s in self._awake(i)]
            return self._replies([(s, self._read(s, data[0], data[1])) for s in chosen])
        if instruction == SYNC_WRITE and len(data) >= 2:
            address, size = data[0], data[1]
            for at in range(2, len(data) - size, size + 1):
                for servo in self._awake(data[at]):
                    self._write(servo, address, data[at + 1 : at + 1 + size])
            return []
        answers: list[tuple[Servo, bytes]] = []
        for servo in self._awake(device):
            content = b""
            if instruction == READ and len(data) == 2:
                content = self._read(servo, data[0], data[1])
            elif instruction == WRITE and data:
                self._write(servo, data[0], data[1:])
            elif instruction == REG_WRITE and data:
                servo.pending = data[0], data[1:]
                servo.put("pending", 1)
            elif instruction == ACTION and servo.pending is not None:
                self._write(servo, *servo.pending)
                servo.pending = None
                servo.put("pending", 0)
            elif instruction == REBOOT:
                servo.reboot()
                continue
            elif instruction not in (PING, ACTION):
                continue  # not an instruction that it knows
            answers.append((servo, content))
        return self._replies(answers) if device != BROADCAST else []

    def _awake(self, device: int) -> Sequence[Servo]:
        """The servos that listen to ``device``."""
        return [
            servo
            for servo in self.servos
            if servo.silent <= 0 and device in (servo.get("id"), BROADCAST)
        ]

    def _read(self, servo: Servo, address: int, size: int) -> bytes:
        self._measure(servo)
        return bytes(servo.memory[address : address + size]).ljust(size, b"\0")

    def _write(self, servo: Servo, address: int, data: bytes) -> None:
        goal, _, _ = REGISTERS["goal_position"]
        limp = not servo.get("torque_enable")
        before = self.position(servo) if limp else servo.get("goal_position")
        servo.write(address, data)
        sent = address <= goal < address + len(data)
        servo.told |= sent
        if sent and limp:
            servo.write(REGISTERS["torque_enable"][0], b"\1")
        if limp and servo.get("torque_enable"):
            servo.setpoint, servo.speed = self.position(servo), 0.0
            if not servo.told:
                servo.put("goal_position", round(servo.setpoint))
        if not sent:
            return
        self.traffic.goals += 1
        after = servo.get("goal_position")
        if servo.get("torque_enable"):
            zero = servo.mount - servo.get("homing_offset")  # what it reads at the joint's zero
            self.goals.add(servo.index, (after - zero) * UNIT, (before - zero) * UNIT)
        if not servo.get("min_position") <= after <= servo.get("max_position"):
            self.traffic.beyond_limits += 1

    def _replies(self, answers: list[tuple[Servo, bytes]]) -> list[Reply]:
        """Status packets one behind the other, as far as the wire carries them."""
        out, t = [], 0.0
        for servo, content in answers:
            body = bytes([servo.get("id"), len(content) + 2, servo.status]) + content
            packet = b"\xff\xff" + body + bytes([checksum(body)])
            t += servo.get("return_delay") * 2e-6 + len(packet) * BYTE_S
            for data, late in self.wire.carry(servo.index + 1, packet):
                out.append(Reply(data, t, late))
        return out
