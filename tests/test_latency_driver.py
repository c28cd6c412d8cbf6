"""Latency on top of any driver, and time that passes in another process first."""

from __future__ import annotations

import numpy as np
import pytest

from real_robot import SimDriver, VirtualClock
from real_robot.core.driver import Target
from real_robot.emulators.emulator import SteppedClock
from real_robot.sim.latency_driver import DelayedDriver
from sims import make_task

PERIOD = 0.01  # s


def _arm(delay: float, latency: float) -> tuple[DelayedDriver, SimDriver, VirtualClock]:
    clock = VirtualClock(10.0)
    inner = SimDriver(make_task("reach"), clock=clock, encoder=0.0)
    late = DelayedDriver(inner, clock, delay=delay, latency=latency)
    late.connect()
    late.enable()
    return late, inner, clock


def test_latency_driver_delays_measurements() -> None:
    late, _, clock = _arm(0.0, 0.02)
    ages = []
    for _ in range(6):
        ages.append(clock.now_ns() * 1e-9 - late.read().t_host)
        clock.advance(PERIOD)
    assert ages == pytest.approx([0.0, 0.01, 0.02, 0.02, 0.02, 0.02])


def test_latency_driver_age_is_bounded_without_reads() -> None:
    """What a loop that brakes without asking gets next is no older than ever."""
    late, _, clock = _arm(0.0, 0.02)
    for _ in range(6):
        late.read()
        clock.advance(PERIOD)
    clock.advance(0.2)
    for _ in range(6):
        assert clock.now_ns() * 1e-9 - late.read().t_host <= 0.02 + 1e-9
        clock.advance(PERIOD)
    assert clock.now_ns() * 1e-9 - late.read().t_host == pytest.approx(0.02)


def test_latency_driver_delays_every_target() -> None:
    late, inner, clock = _arm(0.02, 0.0)
    home = late.read().qpos
    seen = []
    for k in range(6):
        late.send(Target(home + 0.01 * k, 0.0))
        clock.advance(PERIOD)
        inner.read()  # takes up what was sent
        seen.append(inner.scene.ctrl[inner.scene.arm.ctrl][0] - home[0])
    assert seen == pytest.approx([0.0, 0.0, 0.0, 0.01, 0.02, 0.03], abs=1e-9)


def test_latency_driver_stops_at_once_and_drops_targets() -> None:
    late, _inner, clock = _arm(0.02, 0.0)
    home = late.read().qpos
    late.send(Target(home + 0.2, 0.0))
    late.hold()
    for _ in range(5):
        clock.advance(PERIOD)
        late.read()
    assert np.abs(late.read().qpos - home).max() < 0.05


def test_latency_driver_advances_stepped_time_first() -> None:
    asked, told = [], iter([0.0, 0.0, 7.0])

    def until(t: int) -> float:
        assert clock.now_ns() < t
        asked.append(t)
        return 7.0

    clock = SteppedClock(until)
    clock.follow(lambda: next(told))
    then = clock.now_ns() + 10_000_000
    clock.sleep_until_ns(then)
    assert asked == [then] and clock.now_ns() == then and next(told, None) is None
    clock.sleep_until_ns(then)  # no time passes, nobody is asked
    assert asked == [then]
