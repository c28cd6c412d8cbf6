"""Time: the clocks a loop can run on, absolute deadlines, and a quiet interpreter.

A loop that sleeps ``period - elapsed`` drifts (2 % at 100 Hz, measured); one that sleeps until
absolute deadlines does not. Only monotonic time is used, so setting the wall clock changes nothing.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Iterator
from typing import Protocol

SPIN_NS = 300_000  # the last 0.3 ms before a deadline are spun: a sleep wakes that much late
SWITCH_S = 0.0005  # s, longest time another thread keeps the interpreter from the loop


class Clock(Protocol):
    """Where the loop and its simulated devices take their time from."""

    def now_ns(self) -> int:
        """Monotonic time, ns."""
        ...

    def sleep_until_ns(self, t: int) -> None:
        """Returns at ``t`` ns, at once if that is past."""
        ...


class RealClock:
    """The host's monotonic clock."""

    def now_ns(self) -> int:
        """Monotonic time, ns."""
        return time.monotonic_ns()

    def sleep_until_ns(self, t: int) -> None:
        """Sleeps until shortly before ``t`` ns and spins the rest."""
        left = t - time.monotonic_ns()
        if left > SPIN_NS:
            time.sleep((left - SPIN_NS) * 1e-9)
        while time.monotonic_ns() < t:
            pass


class VirtualClock:
    """Compressed time: it stands still until someone sleeps, so a run takes as long as its work."""

    def __init__(self, start: float = 0.0):
        self._now = round(start * 1e9)

    def now_ns(self) -> int:
        """Virtual time, ns."""
        return self._now

    def sleep_until_ns(self, t: int) -> None:
        """Time jumps to ``t`` ns."""
        self._now = max(self._now, t)

    def advance(self, seconds: float) -> None:
        """Time passes, as if work had taken ``seconds``."""
        self._now += round(seconds * 1e9)


class Pacer:
    """Deadlines every ``period`` s on a fixed grid from the moment it is made."""

    def __init__(self, period: float, clock: Clock):
        self._period, self._clock = round(period * 1e9), clock
        self._deadline = clock.now_ns()

    def wait(self) -> tuple[int, float]:
        """Returns at the next deadline: (periods skipped, s by which it woke late).

        Missed periods are skipped, never made up for in a burst. A little late is better than a
        whole period late: a tick less than half a period behind runs at once.
        """
        self._deadline += self._period
        late = self._clock.now_ns() - self._deadline
        skipped = (late + self._period // 2) // self._period if late > 0 else 0
        self._deadline += skipped * self._period
        self._clock.sleep_until_ns(self._deadline)
        return skipped, (self._clock.now_ns() - self._deadline) * 1e-9


@contextlib.contextmanager
def low_latency_interpreter() -> Iterator[None]:
    """No garbage collection and short thread switches inside; as before afterwards.

    A full collection of a training process's objects takes hundreds of milliseconds: none is made
    before either, since an episode's garbage is little.
    """
    collecting, interval = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        if collecting:
            gc.enable()
