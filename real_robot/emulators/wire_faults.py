"""What can go wrong on a wire: the script of faults that an emulator plays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

KINDS = ("drop", "delay", "corrupt", "duplicate", "truncate", "garbage", "wrong_id")
BYTE_S = 10 / 1_000_000  # s on a servo bus, start and stop bit included


class ServoReply(NamedTuple):
    """A status packet on its way."""

    data: bytes
    wire: float  # s after the instruction's last byte, at 1 Mbaud
    late: float  # s more, where something is wrong


@dataclass
class Traffic:
    """What the device end of a servo bus has seen, for tests and soak runs."""

    packets: int = 0
    bad_checksums: int = 0
    goals: int = 0  # goal positions written
    beyond_limits: int = 0  # goals outside the position limits


@dataclass(frozen=True)
class WireFault:
    """One kind of trouble for the replies to come.

    Raises:
        ValueError: The kind is unknown, or a number is out of its range.
    """

    kind: str  # one of KINDS
    count: int = 1  # replies
    rate: float = 1.0  # chance that a reply is hit; one that is spared does not count
    seconds: float = 0.0  # of a delay
    device: int | None = None  # only replies of this device; None: of any

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown wire fault {self.kind!r}; available: {', '.join(KINDS)}")
        if self.count < 1 or not 0 < self.rate <= 1 or not 0 <= self.seconds < math.inf:
            raise ValueError(
                "count must be at least 1, rate above 0 and at most 1, seconds finite and not "
                f"negative; got {self.count}, {self.rate}, {self.seconds}"
            )


class FaultyWire:
    """Plays scheduled faults on replies.

    The first ``framing`` bytes of a packet say where it ends; ``someone_else`` makes a good packet
    of another device of it.
    """

    def __init__(self, seed: int, framing: int, someone_else: Callable[[bytes], bytes]):
        self._framing, self._someone_else = framing, someone_else
        self._rng = np.random.default_rng(seed)
        self._script: list[WireFault] = []
        self.played: dict[str, int] = dict.fromkeys(KINDS, 0)

    def schedule(self, fault: WireFault) -> None:
        """The next replies suffer ``fault``."""
        self._script.append(fault)

    def clear(self) -> None:
        """From now on the wire is good."""
        self._script.clear()

    def carry(self, device: int, reply: bytes) -> Iterator[tuple[bytes, float]]:
        """What arrives of ``reply``: (bytes, s of extra delay), in no, one or two parts."""
        for i, fault in enumerate(self._script):
            if fault.device not in (None, device) or self._rng.random() >= fault.rate:
                continue
            if fault.count == 1:
                del self._script[i]
            else:
                self._script[i] = replace(fault, count=fault.count - 1)
            self.played[fault.kind] += 1
            yield from self._spoil(fault, reply)
            return
        yield reply, 0.0

    def _spoil(self, fault: WireFault, reply: bytes) -> Iterator[tuple[bytes, float]]:
        spoilt = bytearray(reply)
        if fault.kind == "drop":
            return
        if fault.kind == "corrupt":  # behind what frames it
            at = int(self._rng.integers(self._framing, len(reply)))
            spoilt[at] ^= 1 << int(self._rng.integers(8))
        elif fault.kind == "truncate":
            del spoilt[int(self._rng.integers(1, len(reply))) :]
        elif fault.kind == "garbage":
            spoilt[:0] = self._rng.bytes(int(self._rng.integers(1, 9)))
        elif fault.kind == "wrong_id":
            spoilt = bytearray(self._someone_else(reply))
        yield bytes(spoilt), fault.seconds if fault.kind == "delay" else 0.0
        if fault.kind == "duplicate":
            yield reply, 0.0
