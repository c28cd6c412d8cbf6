"""An arm that must be able to stop soon rests 50 ms after its bridge or its policy was killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import reach_bundle
from arms import without
from test_processes import Deployed

import sims
from real_robot import NullDriver, SafetyFilter, read_log

Took = Callable[[float, str], None]
LATER = 0.08  # s, of a policy that stands still, which has three ticks, behind franky
PROMISED = 0.05  # s, with the time in which it is noticed that nobody gives goals any more


def within(**arms: float) -> pytest.MarkDecorator:
    """Each arm with the time, s, that it has to stop."""
    cases = [pytest.param(arm, id=arm[0], marks=without(arm[0])) for arm in arms.items()]
    return pytest.mark.parametrize("deployed", cases, indirect=True)


@pytest.fixture
def deployed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> Iterator[Deployed]:
    folder, (robot, stop_s) = tmp_path_factory.mktemp("bundle"), request.param
    reach_bundle.write(folder, robot)
    arm = NullDriver(sims.ROBOTS[robot]).describe()
    fastest = SafetyFilter.build(arm, stop_s=stop_s).shaping.cruise.max()
    deployed = Deployed(robot, folder, tmp_path / "log", stop_s)
    try:
        deployed.await_motion(0.05 * fastest)  # half as fast as it may be, or more
        yield deployed
    finally:
        deployed.close()


@pytest.mark.slow
@pytest.mark.fault(31, 32)
@within(so101=0.03, ur5e=0.03, fr3=0.02)  # franky takes a period more to get to a goal
@pytest.mark.parametrize(
    "whom", ["bridge", "bridge and policy", "stopped bridge", "stopped bridge and policy"]
)
def test_any_killed_process_stops_the_arm_within_stop_within(
    deployed: Deployed, whom: str, took: Took
) -> None:
    policy = deployed.child("policy_process")
    killed = time.monotonic()
    how = signal.SIGSTOP if "stopped" in whom else signal.SIGKILL
    if "policy" in whom:
        os.kill(policy, how)
    os.kill(deployed.bridge.pid, how)
    moved = deployed.last_moved(killed)
    took(moved, f"held, by the device's record, told to stop soon ({whom}, {deployed.robot})")
    assert 0.0 < moved <= PROMISED
    report = deployed.report()
    assert report["states"][:2] == ["hold", "park"] and "relax" in report["states"], report
    assert all(report["limp"].values()) and report["notes"] == []
    assert deployed.limp()


@pytest.mark.slow
@pytest.mark.fault(26)
@within(so101=0.02, ur5e=0.02, fr3=0.02)  # its end is noticed later than a bridge's
def test_killed_policy_stops_the_arm_within_stop_within(deployed: Deployed, took: Took) -> None:
    rest = rest_after(deployed, signal.SIGKILL)
    took(rest, f"held, by the device's record, told to stop soon ({deployed.robot})")
    assert rest <= PROMISED


@pytest.mark.slow
@pytest.mark.fault(25)
@within(so101=0.02, ur5e=0.02, fr3=0.02)
def test_stalled_policy_stops_the_arm_within_stop_within(deployed: Deployed, took: Took) -> None:
    rest = rest_after(deployed, signal.SIGSTOP)
    took(rest, f"held, by the device's record, told to stop soon ({deployed.robot})")
    assert rest <= (LATER if deployed.robot == "fr3" else PROMISED)


def rest_after(deployed: Deployed, how: signal.Signals) -> float:
    """s from when its policy got the signal to when the device was last told to move."""
    policy, moved = deployed.child("policy_process"), [0.0]
    begun = time.monotonic()
    os.kill(policy, how)
    while time.monotonic() < begun + 0.2:  # it is parked soon
        moved.append(deployed.control.call("traffic")["moved"])
        time.sleep(0.002)
    assert deployed.bridge.wait(90) == 1 and deployed.limp()
    log = read_log(sorted(deployed.log.glob("*.mcap"))[-1])
    parks = next(t["t"] for t in log.transitions if t["after"] == "park")
    return max(0.0, max(t for t in moved if t < parks) - begun)
