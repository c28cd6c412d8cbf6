"""A device that stops answering, at each point of a session: nothing is waited for, anywhere.

Every arm, behind the process that owns its port, in real time and with deadlines as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import reach_bundle
from arms import apart, without
from wall_ride import Ride

from real_robot import Ended, Fault, Phase, PolicyBundle

Took = Callable[[float, str], None]
# What a starved emulator may take while all is well; the deadlines of calls are as they are.
OPTIONS: dict[str, dict[str, float]] = {
    "so101": {},
    "koch": {"patience": 0.006, "watchdog": 2.0},
    "ur5e": {"watchdog": 2.0, "stale": 0.3},
    "fr3": {"stale": 0.3},
}
MOST = 4.0  # s within which a run comes back: 2, and what a busy machine adds
FIRST = {"ur5e": 3.0}  # from a device that is silent from the first, where that is less
STOPS = {"so101": "freeze", "koch": "freeze", "ur5e": "silence", "fr3": "silence"}
CAUSES = (Fault.DISCONNECTED, Fault.STALE, Fault.COMM_TIMEOUT, Fault.BUS, Fault.CONFIG)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PolicyBundle]:
    return {r: reach_bundle.write(tmp_path_factory.mktemp(r), r) for r in OPTIONS}


@pytest.mark.slow
@pytest.mark.fault(46, 58)
@pytest.mark.parametrize("when", ["connect", "enable", "run", "park", "close"])
@pytest.mark.parametrize("robot", [pytest.param(name, marks=without(name)) for name in OPTIONS])
def test_unresponsive_device_never_blocks_the_loop(
    bundles: dict[str, PolicyBundle], took: Took, robot: str, when: str
) -> None:
    """For 30 s; UR's client alone comes back after 300, from ``servoStop``."""
    phase = {"enable": Phase.ARMED, "park": Phase.PARK, "close": Phase.RELAX}.get(when)
    with apart(robot, bus={"silence": 20.0}, **OPTIONS[robot]) as arm:
        ride = Ride(
            arm,
            bundles[robot],
            STOPS[robot],
            at=60 if when == "run" else 10**9,
            phase=phase,
            before=when == "connect",
            seconds=30.0,
        )
        seconds = ride.returned - ride.struck
        most = FIRST.get(robot, MOST) if when == "connect" else MOST
        assert seconds < most, ride.result
        took(seconds, f"back ({robot}, {when})")
        # Before anything was open there is nothing to latch; behind RELAX nobody asks any more.
        if when == "close":
            assert ride.result.ended is Ended.DONE, ride.result
        else:
            assert ride.result.fault in CAUSES, ride.result
        if when not in ("connect", "close"):
            assert ride.result.ended is Ended.FAULT, ride.result
            assert ride.result.history[-1].after is Phase.FAULT
        if robot in ("ur5e", "fr3"):
            arm.control.call("silence", seconds=0.0)
            time.sleep(0.7)  # a program, or a motion, without its client
            assert not arm.control.call("traffic")["running"]
