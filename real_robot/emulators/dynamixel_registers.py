"""One Dynamixel X servo as its bus sees it: control table, what may be written, how it counts.

Tables are those of the maker's manual: EEPROM registers survive a reboot and can be written while
torque is off alone; a write that touches what is not there, read-only or locked is refused whole.
"""

from __future__ import annotations

from real_robot.emulators.servo_base import TICKS, UNIT, EmulatedServo, Register

BAD_RANGE, BAD_LENGTH, BAD_LIMIT, NO_ACCESS = 4, 5, 6, 7  # error numbers
VOLTAGE, OVERHEAT, ENCODER, SHOCK, OVERLOAD = 1, 4, 8, 16, 32  # hardware errors
BITS = {
    "voltage": VOLTAGE,
    "overheat": OVERHEAT,
    "encoder": ENCODER,
    "shock": SHOCK,
    "overload": OVERLOAD,
}
TRIPPED = 255  # what a watchdog that has stopped its servo reads
RAM, MEMORY = 64, 256  # first register that a reboot forgets; bytes
FAR = 1_048_575  # steps, in extended position mode


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


class DynamixelServo(EmulatedServo):
    """One servo's memory and its inner loop's goal."""

    MEMORY, REBOOT_S = MEMORY, 0.2

    def __init__(self, device: int, registers: dict[str, Register], mount: float, index: int):
        self.mirrored = False  # mounted the other way round
        self.awake = 0.0  # s since it got its power
        self.loaded = 0.0  # s, with more than the overload's torque
        self.quiet = 0.0  # s since an instruction
        self.stopped = False  # by its watchdog, until a new goal
        self.setpoint = 0.0  # steps, where the inner loop's profile is
        self.speed = 0.0  # steps/s, of the profile
        self.turns = 0  # steps that its count is behind the joint's
        super().__init__(device, registers, mount, index)

    def decode(self, name: str, raw: bytes) -> int:
        """Two's complement where the register has a sign."""
        return int.from_bytes(raw, "little", signed=name in SIGNED)

    def encode(self, name: str, value: int, size: int) -> bytes:
        """Two's complement where the register has a sign."""
        return int(value).to_bytes(size, "little", signed=name in SIGNED)

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
        self.restore(name for name, at in self.registers.items() if at.address >= RAM)
        self.loaded, self.quiet, self.stopped, self.awake = 0.0, 0.0, False, 0.0
        super().reboot()

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
            value = self.decode(name, raw)
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
