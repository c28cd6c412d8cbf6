"""Six Feetech STS3215 servos on one bus: registers, packets, dynamics, and what breaks them.

Packets are ``FF FF id length instruction parameters checksum``, the checksum the inverted sum of
everything behind the header; a status packet has the servo's error bits where an instruction packet
has the instruction.

A goal stiffens its servo, as was seen on hardware (huggingface/lerobot issue 3585). One that was
told none since it got its power stays where it is stiffened: LeRobot's ``connect()`` relies on that
on every SO-101, though no document says how the servo does it.

The inner loop is the servo's own (``sts3215.py``). Its stiffness and damping are the simulated
arm's, or what ``soften`` makes of it, at the gains 16 and 32; the registers scale them. Angles,
speeds and duties pass through the 12-bit encoder, the homing offset and the units of the registers.
What is not modelled: modes other than position, baud rates other than 1 M, a servo that restarts
because its supply breaks down, and backlash.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from real_robot.emulators.feetech_registers import (
    BITS,
    OVERCURRENT,
    OVERHEAT,
    OVERLOAD,
    REGISTERS,
    VOLTAGE,
    FeetechServo,
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
)
from real_robot.emulators.sts3215 import GAIN_D, GAIN_P, VOLTS, Gains, Loops, Power
from real_robot.emulators.wire_faults import ServoReply

Array = np.ndarray

CURRENT = 0.0065  # A, the unit of a current
LOOK_S = 0.1  # s, between two looks at what is slow: heat


def checksum(body: bytes) -> int:
    """The last byte of a packet whose bytes behind the header are ``body``."""
    return ~sum(body) & 0xFF


def from_other_servo(packet: bytes) -> bytes:
    """The same packet, good, from another servo."""
    body = bytes([packet[2] % 250 + 1]) + packet[3:-1]
    return packet[:2] + body + bytes([checksum(body)])


class FeetechBus(EmulatedServoBus[FeetechServo]):
    """The servos of ``physics``, fresh from the factory, or calibrated so that the middle of each
    joint's travel reads 2047. ``seed`` decides how the horns are mounted on the encoders.
    """

    HEADER, FRAMING = b"\xff\xff", 4
    registers, bits = REGISTERS, BITS

    def __init__(self, physics: ArmPhysics, *, calibrated: bool = True, seed: int = 0):
        super().__init__(physics, seed, from_other_servo)
        rng = np.random.default_rng(seed)
        self.servos = [
            FeetechServo(index + 1, MIDDLE + int(rng.integers(-180, 181)), index)
            for index in range(len(physics.joints))
        ]
        n = len(self.servos)
        self.loops, self.power = Loops(n), Power(n)
        self.duty = np.zeros(n)  # share of the supply's voltage that each motor gets
        self._setpoint, self._pace = np.zeros(n), np.zeros(n)  # steps, steps/s: of the profiles
        self._overloaded, self._overdrawn = np.zeros(n), np.zeros(n)  # s, of too much
        self._given: Array | None = None  # duties, as measured
        self._looked = 0.0  # s since the last look at what is slow
        self._volted = False  # the supply was too low or too high for some servo
        if calibrated:
            self._calibrate()
        self._look()
        self._left = self._gains  # with what errors leave of the torque
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
        self._given = None

    def position(self, servo: FeetechServo) -> float:
        """What the encoder reads less the homing offset, in steps and parts of a step."""
        raw = (self.physics.qpos[servo.index] / UNIT + servo.mount) % TICKS
        return raw - servo.get("homing_offset")

    def _control(self, dt: float) -> None:
        """The inner loops, before every physics step of ``dt`` s."""
        physics, power = self.physics, self.power
        if self._of is not physics.stiffness or any([s.changed for s in self.servos]):
            self._look()
        if any([s.aimed for s in self.servos]):
            self._aim()
        qpos, speed = physics.qpos, physics.qvel
        here = (qpos / UNIT + self._mount) % TICKS - self._offset
        gains = self._left = self._protect(dt)
        self._advance(here, dt)
        error = (self._setpoint - here) * UNIT
        self.duty = self.loops.duty(error, speed, gains, dt)
        physics.torque[:] = gains.most
        physics.goal[:] = qpos + error
        physics.push = self.duty * physics.strength * (power.volts / VOLTS)
        power.step(self.duty, speed, self._stiff, dt)

    def _look(self) -> None:
        """Takes in what the registers say."""
        physics, servos = self.physics, self.servos

        def column(name: str) -> Array:
            return np.array([servo.get(name) for servo in servos], float)

        for servo in servos:
            servo.changed = False
        self._of = physics.stiffness
        self._mount = np.array([servo.mount for servo in servos])
        self._offset = column("homing_offset")
        self._range = column("min_position"), column("max_position")
        self._aim()
        self._top, self._push = column("goal_velocity"), 100 * column("acceleration")
        self._profiled = np.flatnonzero((self._top > 0) | (self._push > 0))
        self._stiff = column("torque_enable") > 0
        stiffness = physics.stiffness / physics.strength / GAIN_P
        self._gains = Gains(
            p=stiffness * column("p"),
            d=physics.damping / physics.strength / GAIN_D * column("d"),
            i=stiffness * column("i"),
            below=column("cw_dead_zone") * UNIT,
            above=column("ccw_dead_zone") * UNIT,
            least=column("startup_force") / 1000,
            most=self._stiff * np.minimum(column("torque_limit"), column("max_torque")) / 1000,
        )
        self._overload = column("overload_torque") / 100
        self._overload_s = column("protection_time") * 0.01
        self._overcurrent = column("protection_current") * CURRENT
        self._overcurrent_s = column("overcurrent_time") * 0.01
        self._volts = column("min_voltage").max() / 10, column("max_voltage").min() / 10

    def _aim(self) -> None:
        """Takes in the goals."""
        goal = np.array([servo.get("goal_position") for servo in self.servos], float)
        self._goal = np.minimum(np.maximum(goal, self._range[0]), self._range[1])
        for servo in self.servos:
            servo.aimed = False

    def _advance(self, here: Array, dt: float) -> None:
        """Moves the setpoints to the goals at the registers' speed and acceleration."""
        before = self._setpoint
        self._setpoint = np.where(self._stiff, self._goal, here)
        for i in self._profiled:
            if self._stiff[i]:
                self._setpoint[i], self._pace[i] = advance_profile(
                    before[i], self._pace[i], self._goal[i], self._top[i], self._push[i], dt
                )
            else:
                self._pace[i] = 0.0

    # What protects a servo from itself.
    def _protect(self, dt: float) -> Gains:
        """Raises error bits by their causes; the gains with what they leave of the torque."""
        power, free = self.power, not self.physics.held
        over = self._stiff & (np.abs(self.duty) >= self._overload) & free
        self._overloaded = np.where(over, self._overloaded + dt, 0.0)
        self._raise(OVERLOAD, self._overloaded > self._overload_s)
        over = np.abs(power.current) >= self._overcurrent
        self._overdrawn = np.where(over, self._overdrawn + dt, 0.0)
        self._raise(OVERCURRENT, self._overdrawn > self._overcurrent_s)
        volted = not self._volts[0] <= power.volts <= self._volts[1]
        if volted or self._volted:
            self._volted = volted
            for servo in self.servos:
                low, high = servo.get("min_voltage"), servo.get("max_voltage")
                well = low <= 10 * power.volts <= high  # told as long as it lasts
                servo.error = servo.error & ~VOLTAGE if well else servo.error | VOLTAGE
        self._looked += dt
        if self._looked >= LOOK_S:
            self._warm()
        ill = [servo for servo in self.servos if servo.status or servo.silent > 0]
        if not ill:
            return self._gains
        most = self._gains.most.copy()
        for servo in ill:
            servo.silent = max(0.0, servo.silent - dt)
            most[servo.index] = self._spared(servo, most[servo.index])
        return self._gains._replace(most=most)

    def _raise(self, bit: int, which: Array) -> None:
        """Servos ``which`` raise an error that lasts."""
        for i in np.flatnonzero(which):
            self.servos[i].error |= bit

    def _warm(self) -> None:
        """Heat: what was made of the motors' currents, or what somebody set."""
        self._looked, heat = 0.0, self.power.heat
        for servo in self.servos:
            told = servo.get("present_temperature")
            if told != round(heat[servo.index]):
                heat[servo.index] = told
        self.power.warm()
        for servo in self.servos:
            warm = min(255, round(heat[servo.index]))
            servo.put("present_temperature", warm)
            if warm >= servo.get("max_temperature"):
                servo.error |= OVERHEAT

    @staticmethod
    def _spared(servo: FeetechServo, most: float) -> float:
        """What its errors leave of a servo's torque limit ``most``, as its register 19 says."""
        acts = servo.status & servo.get("unloading_condition")
        if acts & ~OVERLOAD:
            servo.put("torque_enable", 0)
            return 0.0
        if acts & OVERLOAD:
            return 0.0 if servo.stubborn else min(most, servo.get("protective_torque") / 100)
        return most

    @property
    def _load(self) -> Array:
        """The duties (n,) at what is measured now: the last step's are of where it began."""
        if self._given is None:
            error = self._setpoint - (self.physics.qpos / UNIT + self._mount) % TICKS + self._offset
            duty = self.loops.duty(error * UNIT, self.physics.qvel, self._left, 0.0)
            self._given = duty * (not self.physics.held)
        return self._given

    def _measure(self, servo: FeetechServo) -> None:
        """Brings the read-only registers up to date."""
        physics, power, i = self.physics, self.power, servo.index
        speed = physics.qvel[i] / UNIT
        servo.put_position(round(self.position(servo)))
        servo.put("present_velocity", round(speed))
        servo.put("present_load", round(1000 * self._load[i]))
        servo.put("present_current", round(abs(power.current[i]) / CURRENT))
        servo.put("present_voltage", min(255, round(10 * power.volts)))
        servo.put("moving", int(abs(speed) > 20))
        servo.put("status", servo.status)

    # Packets.
    def _size(self, begun: bytes) -> int:
        length = begun[3]
        return 0 if begun[2] == 0xFF or length < 2 else 4 + length

    def _unpack(self, whole: bytes) -> tuple[int, int, bytes] | None:
        body = whole[2:-1]
        return (body[0], body[2], body[3:]) if checksum(body) == whole[-1] else None

    def _answer(self, device: int, instruction: int, data: bytes) -> list[ServoReply]:
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
        answers: list[tuple[FeetechServo, bytes]] = []
        for servo in self._awake(device):
            content = b""
            if instruction == READ and len(data) == 2:
                content = self._read(servo, data[0], data[1])
            elif instruction == WRITE and data:
                self._write(servo, data[0], data[1:])
            elif instruction == REG_WRITE and data:
                servo.register(data[0], data[1:])
            elif instruction == ACTION and servo.pending is not None:
                self._write(servo, *servo.pending)
                servo.release()
            elif instruction == REBOOT:
                servo.reboot()
                continue
            elif instruction not in (PING, ACTION):
                continue  # not an instruction that it knows
            answers.append((servo, content))
        return self._replies(answers) if device != BROADCAST else []

    def _read(self, servo: FeetechServo, address: int, size: int) -> bytes:
        self._measure(servo)
        return bytes(servo.memory[address : address + size]).ljust(size, b"\0")

    def _write(self, servo: FeetechServo, address: int, data: bytes) -> None:
        goal = REGISTERS["goal_position"].address
        limp = not servo.get("torque_enable")
        before = self.position(servo) if limp else servo.get("goal_position")
        servo.write(address, data)
        sent = address <= goal < address + len(data)
        servo.told |= sent
        if sent and limp:
            servo.write(REGISTERS["torque_enable"].address, b"\1")
        if limp and servo.get("torque_enable"):
            i, here = servo.index, self.position(servo)
            self._setpoint[i], self._pace[i] = here, 0.0
            if not servo.told:
                servo.put("goal_position", round(here))
        if not sent:
            return
        self.traffic.goals += 1
        after = servo.get("goal_position")
        if servo.get("torque_enable"):
            zero = servo.mount - servo.get("homing_offset")  # what it reads at the joint's zero
            self.joint_targets.add(servo.index, (after - zero) * UNIT, (before - zero) * UNIT)
        if not servo.get("min_position") <= after <= servo.get("max_position"):
            self.traffic.beyond_limits += 1

    def _replies(self, answers: Iterable[tuple[FeetechServo, bytes]]) -> list[ServoReply]:
        """A status packet for each answer, one behind the other."""
        packets = []
        for servo, content in answers:
            body = bytes([servo.get("id"), len(content) + 2, servo.status]) + content
            packets.append((servo, self.HEADER + body + bytes([checksum(body)])))
        return self._in_turn(packets)
