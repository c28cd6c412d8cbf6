"""What the servos of every bus have in common: a table of registers, packets in and packets out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Generic, NamedTuple, TypeVar

from real_robot.emulators.physics import ArmPhysics, JointTargetHistory
from real_robot.emulators.wire_faults import BYTE_S, FaultyWire, ServoReply, Traffic

TICKS = 4096  # encoder steps in a turn
UNIT = 2 * math.pi / TICKS  # rad, one step
MIDDLE = 2047  # what a homed servo reads in the middle of its travel
BROADCAST = 0xFE
PING, READ, WRITE, REG_WRITE, ACTION, REBOOT = 1, 2, 3, 4, 5, 8  # instructions
SYNC_READ, SYNC_WRITE = 0x82, 0x83


class Register(NamedTuple):
    """Where it is, what a servo fresh from the factory holds, and what may be written."""

    address: int
    size: int
    initial: int
    range: tuple[int, int] | None = None  # None: read-only, or not checked


class EmulatedServo(ABC):
    """One servo's memory, and what a test may do to it."""

    MEMORY: ClassVar[int]  # bytes
    REBOOT_S: ClassVar[float]  # s, silent while it starts

    def __init__(self, device: int, registers: Mapping[str, Register], mount: float, index: int):
        self.index, self.mount = index, mount  # joint; encoder reading at the joint's zero
        self.registers = registers
        self.memory = bytearray(self.MEMORY)
        self.forced = 0  # error bits that a test keeps raised
        self.silent = 0.0  # s left until it has restarted
        self.pending: tuple[int, bytes] | None = None  # of REG_WRITE
        self.glitches = 0  # readings to come in which the encoder is a third of a turn off
        self.refused = 0  # writes to registers that are locked, read-only or not there
        self.restore(registers)
        self.put("id", device)

    @abstractmethod
    def decode(self, name: str, raw: bytes) -> int:
        """The value of register ``name`` that holds ``raw``."""

    @abstractmethod
    def encode(self, name: str, value: int, size: int) -> bytes:
        """The ``size`` bytes of register ``name`` for ``value``."""

    def get(self, name: str) -> int:
        """The value of a register, signed where it has a sign."""
        address, size = self.registers[name][:2]
        return self.decode(name, self.memory[address : address + size])

    def put(self, name: str, value: int) -> None:
        """Sets a register, whatever its kind."""
        address, size = self.registers[name][:2]
        self.memory[address : address + size] = self.encode(name, value, size)

    def restore(self, names: Iterable[str]) -> None:
        """Registers ``names`` are as from the factory."""
        for name in names:
            self.put(name, self.registers[name].initial)

    def reboot(self) -> None:
        """Power off and on: RAM is as from the factory, so the torque is gone."""
        self.silent, self.pending = self.REBOOT_S, None

    def heal(self) -> None:
        """What a test broke works again."""
        self.forced = self.glitches = 0

    def put_position(self, position: int) -> None:
        """The encoder's reading in steps, unless a glitch is due."""
        if self.glitches > 0:
            self.glitches -= 1
            position += TICKS // 3
        self.put("present_position", position)

    def register(self, address: int, data: bytes) -> None:
        """Keeps a write for ACTION."""
        self.pending = address, data
        self.put("pending", 1)

    def release(self) -> None:
        """The write that was kept is done."""
        self.pending = None
        self.put("pending", 0)


S = TypeVar("S", bound=EmulatedServo)


class EmulatedServoBus(ABC, Generic[S]):
    """The servos of ``physics`` as one bus: bytes in, bytes out. Joint i is servo i + 1."""

    HEADER: ClassVar[bytes]  # of every packet
    FRAMING: ClassVar[int]  # bytes of a packet that say where it ends
    registers: ClassVar[Mapping[str, Register]]
    bits: ClassVar[Mapping[str, int]]  # {what breaks: its error bit}

    servos: list[S]

    def __init__(self, physics: ArmPhysics, seed: int, from_other_servo: Callable[[bytes], bytes]):
        self.physics = physics
        self.wire = FaultyWire(seed, self.FRAMING, from_other_servo)
        self.traffic = Traffic()
        self.joint_targets = JointTargetHistory(len(physics.joints))
        self.speed: int | None = None  # termios' constant of the host's baud rate; None: ours
        self._input = bytearray()

    @abstractmethod
    def advance(self, heard: bool = False) -> None:
        """Physics up to the present, whether or not something was ``heard``."""

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
            start = self._input.find(self.HEADER)
            if start < 0:
                del self._input[: max(0, len(self._input) - len(self.HEADER) + 1)]
                return None
            del self._input[:start]
            if len(self._input) < self.FRAMING:
                return None
            size = self._size(self._input)
            if len(self._input) < size:
                return None
            whole = bytes(self._input[:size])
            found = self._unpack(whole) if size else None
            if found is None:
                self.traffic.bad_checksums += size > 0
                del self._input[0]
                continue
            del self._input[:size]
            return found

    @abstractmethod
    def _size(self, begun: bytes) -> int:
        """Bytes of the packet that has ``begun``; 0 where none can begin so."""

    @abstractmethod
    def _unpack(self, whole: bytes) -> tuple[int, int, bytes] | None:
        """A packet's id, instruction and parameters; None where its checksum is wrong."""

    @abstractmethod
    def _answer(self, device: int, instruction: int, data: bytes) -> list[ServoReply]:
        """The replies to one packet."""

    def _awake(self, device: int) -> list[S]:
        """The servos that listen to ``device``."""
        return [
            servo
            for servo in self.servos
            if servo.silent <= 0 and device in (servo.get("id"), BROADCAST)
        ]

    def _in_turn(self, packets: Iterable[tuple[S, bytes]]) -> list[ServoReply]:
        """Status packets one behind the other, as far as the wire carries them."""
        out, t = [], 0.0
        for servo, whole in packets:
            t += servo.get("return_delay") * 2e-6 + len(whole) * BYTE_S
            for data, late in self.wire.carry(servo.index + 1, whole):
                out.append(ServoReply(data, t, late))
        return out
