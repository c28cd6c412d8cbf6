"""DelayedDriver: any driver with latency added, as if the device were slow to tell and to obey."""

from __future__ import annotations

from collections import deque

from real_robot.core.driver import Description, Identity, RobotDriver, RobotState, Sent, Target
from real_robot.core.pacing import Clock

LULL = 0.05  # s without a question, after which what was told before is news no longer


class DelayedDriver:
    """``driver`` whose measurements are ``latency`` s old and whose targets wait ``delay`` s.

    Both are rounded up to whole periods, since only then is the driver spoken to. Stops are not
    delayed, and what still waits is forgotten by them. A device goes on measuring while nobody asks
    it; the first measurements after such a lull are newer than they would be.
    """

    def __init__(self, driver: RobotDriver, clock: Clock, *, delay: float, latency: float):
        self._driver, self._clock = driver, clock
        self._delay, self._latency = delay, latency
        self._targets: deque[tuple[float, Target]] = deque()  # s when due
        self._states: deque[RobotState] = deque()

    def describe(self) -> Description:
        """The driver's own."""
        return self._driver.describe()

    def connect(self) -> None:
        """Connects the driver."""
        self._targets.clear()
        self._states.clear()
        self._driver.connect()

    def identify(self) -> Identity:
        """The driver's own."""
        return self._driver.identify()

    def enable(self) -> None:
        """At once."""
        self._targets.clear()
        self._driver.enable()

    def read(self) -> RobotState:
        """The newest measurement that is at least ``latency`` old, else the oldest there is."""
        self._states.append(self._driver.read())
        newest = self._now() - self._latency + 1e-9
        while len(self._states) > 1 and (
            self._states[1].t_host <= newest or self._states[0].t_host < newest - LULL
        ):
            self._states.popleft()
        return self._states[0]

    def send(self, target: Target) -> Sent:
        """Takes a target in, and sends the newest that is due."""
        now = self._now()
        self._targets.append((now + self._delay - 1e-9, target))
        due = None
        while self._targets and self._targets[0][0] <= now:
            due = self._targets.popleft()[1]
        if due is not None:
            self._driver.send(due)
        return Sent(target.qpos, target.gripper, now)

    def hold(self) -> None:
        """At once."""
        self._targets.clear()
        self._driver.hold()

    def last_target(self) -> Target | None:
        """The driver's own."""
        return self._driver.last_target()

    def relax(self) -> dict[str, bool]:
        """At once."""
        self._targets.clear()
        return self._driver.relax()

    def clear_fault(self) -> None:
        """At once."""
        self._driver.clear_fault()

    def close(self) -> None:
        """Closes the driver."""
        self._driver.close()

    def _now(self) -> float:
        return self._clock.now_ns() * 1e-9
