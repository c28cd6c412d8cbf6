"""One STS servo as its bus sees it: registers, what may be written, what a reboot forgets.

Registers are those of the vendor's STS memory table; EEPROM registers survive a reboot and can be
written while ``lock`` is 0 alone. Signed values are sign and magnitude.
"""

from __future__ import annotations

from real_robot.emulators.servo_base import TICKS, EmulatedServo, Register

MODEL = 777  # STS3215

VOLTAGE, ANGLE, OVERHEAT, OVERCURRENT, OVERLOAD = 1, 2, 4, 8, 32  # error bits
BITS = {
    "voltage": VOLTAGE,
    "encoder": ANGLE,
    "overheat": OVERHEAT,
    "overcurrent": OVERCURRENT,
    "overload": OVERLOAD,
}

# name: (address, bytes, value from the factory)
_TABLE = {
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
    "unloading_condition": (19, 1, 44),  # error bits that take the torque away
    "p": (21, 1, 32),
    "d": (22, 1, 32),
    "i": (23, 1, 0),
    "startup_force": (24, 2, 16),  # 0.1 %
    "cw_dead_zone": (26, 1, 1),  # steps
    "ccw_dead_zone": (27, 1, 1),  # steps
    "protection_current": (28, 2, 500),  # 6.5 mA
    "homing_offset": (31, 2, 0),  # sign in bit 11
    "mode": (33, 1, 0),
    "protective_torque": (34, 1, 20),  # %
    "protection_time": (35, 1, 200),  # 10 ms
    "overload_torque": (36, 1, 80),  # %
    "overcurrent_time": (38, 1, 200),  # 10 ms
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
    "present_temperature": (63, 1, 25),  # deg C
    "pending": (64, 1, 0),
    "status": (65, 1, 0),
    "moving": (66, 1, 0),
    "present_current": (69, 2, 0),  # 6.5 mA
}
REGISTERS = {name: Register(*row) for name, row in _TABLE.items()}
EEPROM, GOAL = range(5, 40), range(42, 44)
MEMORY = 87  # bytes
READ_ONLY = {*range(5), *range(56, 71)}
SIGN = {"homing_offset": 11, "goal_position": 15, "present_position": 15}
SIGN |= {"present_velocity": 15, "present_load": 10}
RAM, PRESENT = 40, 56  # first registers that a reboot forgets, and that the servo measures


def encode(value: int, bit: int) -> int:
    """A sign-and-magnitude register: the sign in ``bit``."""
    return min(abs(value), (1 << bit) - 1) | (1 << bit if value < 0 else 0)


def decode(raw: int, bit: int) -> int:
    """The value of a sign-and-magnitude register."""
    magnitude = raw & ((1 << bit) - 1)
    return -magnitude if raw >> bit & 1 else magnitude


class FeetechServo(EmulatedServo):
    """One servo's memory, and what is wrong with it."""

    MEMORY, REBOOT_S = MEMORY, 0.1

    def __init__(self, device: int, mount: int, index: int):
        self.aimed = self.changed = True  # its goal, other registers, since somebody looked
        self.error = 0  # error bits raised by itself
        self.stubborn = False  # an overload ends with the power alone
        self.told = False  # a goal since it got its power
        super().__init__(device, REGISTERS, mount, index)

    def decode(self, name: str, raw: bytes) -> int:
        """Sign and magnitude where the register has a sign."""
        value = int.from_bytes(raw, "little")
        return decode(value, SIGN[name]) if name in SIGN else value

    def encode(self, name: str, value: int, size: int) -> bytes:
        """Sign and magnitude where the register has a sign."""
        raw = encode(value, SIGN[name]) if name in SIGN else value
        return raw.to_bytes(size, "little")

    def put(self, name: str, value: int) -> None:
        """Sets a register, whatever its kind."""
        super().put(name, value)
        self._note(self.registers[name].address)

    def _note(self, address: int) -> None:
        """Somebody wrote to ``address``."""
        if address in GOAL:
            self.aimed = True
        elif address < PRESENT:
            self.changed = True

    @property
    def status(self) -> int:
        """The error bits of its next status packet."""
        return self.error | self.forced

    def write(self, address: int, data: bytes) -> None:
        """A write from the bus, register by register where allowed."""
        for at, byte in enumerate(data, address):
            locked = at in EEPROM and self.memory[REGISTERS["lock"].address]
            if at >= MEMORY or at in READ_ONLY or locked:
                self.refused += 1
                continue
            if at == REGISTERS["torque_enable"].address and byte == 0:
                ends = OVERCURRENT | OVERHEAT | OVERLOAD * (not self.stubborn)
                self.error &= ~ends  # while it is hot, that one comes back
            self.memory[at] = byte
            self._note(at)

    def heal(self) -> None:
        """Nothing is wrong any more."""
        super().heal()
        self.error = 0

    def reboot(self) -> None:
        """Power off and on: RAM is as from the factory, so the torque is gone."""
        self.restore(name for name, at in REGISTERS.items() if RAM <= at.address < PRESENT)
        self.put("torque_limit", self.get("max_torque"))
        self.put("pending", 0)
        self.error, self.told = 0, False
        super().reboot()
