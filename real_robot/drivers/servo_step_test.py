"""A step test of one servo of a stiff arm: small steps around where it stands, and what it tells.

The other joints are held. The test stops by itself on a fault, on heat, on effort that lasts, and
where the joint is carried away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from real_robot.core.driver import Fault, RobotFault
from real_robot.core.pacing import Clock
from real_robot.drivers.calibration import UNIT

Array = np.ndarray

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # steps of the encoder, to either side
REST_S = 0.35  # s at each goal
SETTLE_S = 1.0  # s after stiffening: a soft joint gives by its load first
MOVING_S = 0.15  # s behind a new goal, in which something happens
SAMPLE_S = (0.002, 0.02)  # s between samples then, and later; its own loop needs about 1 ms
PUSH, PUSH_S = 0.9, 0.25  # share of its torque, and s of it, that end the test
AWAY = 0.35  # rad beside where it should be at most
WARM = 55  # deg C


class Probe(NamedTuple):
    """One servo at one moment, in its own units."""

    t: float  # s, halfway between question and answer
    goal: int  # steps
    position: int  # steps
    speed: int  # steps/s
    load: float  # share of the voltage, with a sign
    volts: float
    heat: int  # deg C
    fault: Fault


class ServoSettings(NamedTuple):
    """What the servo is set to."""

    p: int
    d: int
    i: int
    startup: float  # share of the voltage
    dead: tuple[int, int]  # steps, clockwise and counter-clockwise
    limit: float  # share of the voltage, at most


class ServoStep(NamedTuple):
    """A goal and what was measured until the next."""

    told: float  # s, when it was written
    change: int  # steps
    probes: list[Probe]


class StepTestStopped(Exception):
    """Somebody stopped the test."""


@runtime_checkable
class ProbeableDriver(Protocol):
    """A driver whose servos tell the share of voltage that their motors get."""

    joints: tuple[str, ...]

    def probe(self, joint: int) -> Probe: ...
    def aim(self, joint: int, tick: int) -> None: ...
    def settings(self, joint: int) -> ServoSettings: ...
    def room(self, joint: int) -> tuple[int, int]: ...


def swing_range(swing: float = 0.0) -> float:
    """How far it turns to either side at most, rad; ``swing`` rad is the longer way, 0: none."""
    return max(SIZES[-1] * UNIT, swing / 2)


class StepTest:
    """Steps of ``joint`` (from 0) of a stiff arm; ``swing`` rad is a longer way at full speed.

    Raises:
        ValueError: The joint is too near to an end of its range.
    """

    def __init__(self, driver: ProbeableDriver, joint: int, clock: Clock, swing: float = 0.0):
        self._driver, self._joint, self._clock = driver, joint, clock
        self.settings = driver.settings(joint)
        first = driver.probe(joint)
        self.centre = first.goal
        self._swing = round(swing / 2 / UNIT)
        low, high = driver.room(joint)
        far = max(SIZES[-1], self._swing)
        if not low <= self.centre - far or not self.centre + far <= high:
            raise ValueError(
                f"{driver.joints[joint]} is {self.centre - low} and {high - self.centre} steps "
                f"from the ends of its range, expected at least {far} from both: turn it "
                "further in"
            )
        self._pushed: float | None = None  # s, since when it has pushed hard

    def run(
        self,
        progress: Callable[[float], None] = lambda share: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[ServoStep]:
        """Does all steps; ``progress`` hears the share that is done. Stopped where ``stop()``."""
        self._stop = stop
        goals = [goal for size in SIZES for goal in (size, 0, -size, 0)]
        steps = [self._step(0, 0, SETTLE_S)]
        for i, (before, goal) in enumerate(zip([0, *goals], goals, strict=False)):
            steps.append(self._step(before, goal, REST_S))
            progress((i + 1) / len(goals))
        if self._swing:
            for before, goal in ((0, self._swing), (self._swing, -self._swing)):
                steps.append(self._step(before, goal, 4 * REST_S))
            self._step(-self._swing, 0, REST_S)
        return steps

    def _step(self, before: int, goal: int, seconds: float) -> ServoStep:
        """Tells it ``goal`` and measures for ``seconds``."""
        now = self._clock.now_ns
        self._driver.aim(self._joint, self.centre + goal)
        told = now() * 1e-9
        step = ServoStep(told, goal - before, [])
        far = AWAY / UNIT + abs(goal - before)
        while now() * 1e-9 < told + seconds:
            if self._stop():
                raise StepTestStopped
            between = SAMPLE_S[now() * 1e-9 > told + MOVING_S]
            due = now() + round(between * 1e9)
            probe = self._driver.probe(self._joint)
            self._check(probe, far)
            step.probes.append(probe)
            self._clock.sleep_until_ns(due)
        return step

    def _check(self, probe: Probe, far: float) -> None:
        """Ends the test where it must not go on."""
        name = self._driver.joints[self._joint]
        if probe.fault is not Fault.NONE:
            raise RobotFault(probe.fault, f"reported by {name}")
        if probe.heat >= WARM:
            raise RobotFault(Fault.OVERHEAT, f"{name} is at {probe.heat} deg C: let it cool")
        if abs(probe.position - probe.goal) > far:
            raise RobotFault(
                Fault.TRACKING,
                f"{name} is {abs(probe.position - probe.goal) * UNIT:.2f} rad away from its goal",
            )
        if abs(probe.load) < PUSH * self.settings.limit or abs(probe.speed) > 50:
            self._pushed = None
        elif self._pushed is None:
            self._pushed = probe.t
        elif probe.t - self._pushed > PUSH_S:
            raise RobotFault(
                Fault.STALL, f"{name} has pushed at its torque limit for {PUSH_S} s: is it blocked?"
            )
