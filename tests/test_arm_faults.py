"""Faults that several arms answer alike: one suite, on each arm that makes the promise.

What one arm alone has is in its own file: ``test_so101_faults.py``, ``test_koch_faults.py``,
``test_ur_faults.py`` and ``test_fr3_faults.py``. Servo arms run on a compressed clock, where times
taken are the arm's own; arms with a controller run in real time.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import reach_bundle
import servo_ride
import wall_ride
from arms import Arm, fr3, koch, so101, ur5e, without
from servo_ride import torque

from real_robot import Ended, Fault, Phase, PolicyBundle, RobotFault, drivers

Took = Callable[[float, str], None]
slow = pytest.mark.slow
OPENED = {
    "so101": so101,
    "koch": functools.partial(koch, driver={"watchdog": 0.1}),
    "ur5e": ur5e,
    "fr3": fr3,
}
TITLES = {"so101": "SO-101", "koch": "Koch", "ur5e": "UR5e", "fr3": "FR3"}


def on(names: str, *cases: Any, slow_on: str = "") -> pytest.MarkDecorator:
    """Runs a test on each arm of ``cases``: its name, or a tuple of ``names`` that begins so."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    marked = [
        pytest.param(*row, marks=[without(row[0]), *([slow] if row[0] == slow_on else [])])
        for row in rows
    ]
    return pytest.mark.parametrize(names, marked)


@pytest.fixture
def arm(robot: str) -> Iterator[Arm]:
    with OPENED[robot]() as made:
        yield made


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], PolicyBundle]:
    """A policy that reaches its goal, by the name of its arm."""
    return functools.cache(lambda robot: reach_bundle.write(tmp_path_factory.mktemp(robot), robot))


@pytest.fixture
def bundle(robot: str, bundles: Callable[[str], PolicyBundle]) -> PolicyBundle:
    return bundles(robot)


# Servo arms.
@pytest.mark.fault(2)
@on("robot", "so101", "koch")
def test_servo_silence_is_a_latched_fault(robot: str, bundle: PolicyBundle, took: Took) -> None:
    """The SO-101 with the port's own patience for each reply."""
    waits = {"patience": 0.2, "waits": True} if robot == "so101" else {}
    with OPENED[robot](**waits) as arm:
        ride = servo_ride.Ride(arm, bundle, lambda: arm.emulator.wire("drop", count=5, device=1))
        assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.COMM_TIMEOUT)
        assert ride.result.retries == 4 and all(ride.result.acks.values())
        assert not any(torque(arm)) and ride.delay <= 0.05
    took(ride.delay, "latched")


@pytest.mark.fault(3, 5, 6)
@on("robot", "so101", "koch")
def test_servo_garbage_is_never_a_measurement(arm: Arm) -> None:
    arm.up()
    for kind in ("corrupt", "garbage", "duplicate") * 10 + ("wrong_id", "truncate"):
        arm.emulator.wire(kind, device=5)
        arm.wait(0.01)
        with pytest.raises(RobotFault) as caught:
            arm.driver.read()
        assert caught.value.fault in (Fault.COMM_TIMEOUT, Fault.COMM_CORRUPT)
        np.testing.assert_allclose(arm.driver.read().qpos, arm.truth()[:-1], atol=0.0016)


@pytest.mark.fault(10, 50)
@on(
    "robot, change, words",
    ("so101", ("id", 6, 9), r"servo 6 \(gripper\) does not answer"),
    ("so101", ("model", 2, 2825), r"servo 2 \(shoulder_lift\) is model 2825, expected 777"),
    ("koch", ("model", 3, 1060), r"servo 3 \(elbow_flex\) is model 1060, expected 1200 \(XL330-M2"),
    ("koch", ("operating_mode", 2, 3), r"servo 2 .* is in operating mode 3, expected 4"),
    ("koch", ("operating_mode", 6, 4), r"servo 6 .* is in operating mode 4, expected 5"),
    ("koch", ("drive_mode", 4, 8), r"servo 4 .* is in drive mode 8, expected 0 or 1"),
)
def test_other_servo_models_are_refused(arm: Arm, change: tuple[str, int, int], words: str) -> None:
    name, servo, value = change
    arm.emulator.register(servo - 1, name, value)
    arm.driver.connect()
    with pytest.raises(RobotFault, match=words) as caught:
        arm.driver.identify()
    assert caught.value.fault is Fault.CONFIG
    assert not any(torque(arm))


@pytest.mark.fault(13, 14, 15, 63)
@on(
    "robot, kind, fault",
    ("so101", "overload", Fault.OVERLOAD),
    ("so101", "overcurrent", Fault.OVERLOAD),
    ("so101", "overheat", Fault.OVERHEAT),
    ("so101", "voltage", Fault.VOLTAGE),
    ("so101", "encoder", Fault.ENCODER),
    ("koch", "overload", Fault.OVERLOAD),
)
def test_servo_error_bit_stops_and_torque_goes_off(
    robot: str, arm: Arm, bundle: PolicyBundle, took: Took, kind: str, fault: Fault
) -> None:
    ride = servo_ride.Ride(arm, bundle, lambda: arm.emulator.breakdown(3, kind))
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, fault)
    # The joints behind the broken one let go too, where lerobot's disconnect leaves them stiff.
    assert all(ride.result.acks.values()) and torque(arm) == [0] * 6
    assert ride.delay <= 0.01
    took(ride.delay, f"{kind} latched ({TITLES[robot]})")
    if robot == "koch":
        arm.emulator.heal()  # the servo keeps its error: it takes no torque
    again = servo_ride.Ride(arm, bundle, lambda: None)
    assert again.phases == "CONNECTED FAULT"  # only a person clears it
    arm.emulator.heal()
    arm.driver.connect()
    arm.driver.identify()
    arm.driver.clear_fault()
    assert arm.driver.read().fault is Fault.NONE
    if robot == "koch":  # whose servo was rebooted
        assert servo_ride.Ride(arm, bundle, lambda: None, steps=3).phases == servo_ride.GOOD


@pytest.mark.fault(16)
@on("robot, joint", ("so101", 0), ("so101", 2), ("koch", 0), slow_on="koch")
def test_blocked_servo_joint_is_eased_before_overload(
    robot: str, arm: Arm, bundle: PolicyBundle, took: Took, joint: int
) -> None:
    """Its load tells; the servo itself, which gives up after 2 s, is eased before that."""
    ride = servo_ride.Ride(arm, bundle, lambda: arm.emulator.block(joint), steps=120)
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.STALL)
    assert f"{arm.driver.joints[joint]} has pushed with" in ride.result.reason
    assert 3.0 <= ride.delay < 3.5 and all(ride.result.acks.values())
    took(ride.delay, f"stopped ({TITLES[robot]})")


@pytest.mark.fault(43)
@on("robot", "so101", "koch")
def test_servo_restart_is_detected(arm: Arm, bundle: PolicyBundle, took: Took) -> None:
    def blink() -> None:
        arm.emulator.reboot(1)
        arm.emulator.bus.servos[1].silent = 0.0  # too short to miss a reply

    ride = servo_ride.Ride(arm, bundle, blink)
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.TORQUE)
    assert ride.delay <= 0.01 and not any(torque(arm))
    took(ride.delay, "latched")


# Arms with a controller.
@slow
@on("robot", "ur5e", "fr3")
def test_policy_succeeds_through_the_vendors_client(
    robot: str, arm: Arm, bundle: PolicyBundle
) -> None:
    ride = wall_ride.Ride(arm, bundle)
    assert (ride.result.ended, ride.result.reason) == (Ended.DONE, "")
    assert ride.success and all(ride.result.acks.values())
    traffic = arm.control.call("traffic")
    assert traffic["stops"][-1] == "stopped by its client"
    if robot == "ur5e":
        assert traffic["targets"] > 20 and traffic["largest_step"] < 0.5
    else:
        assert traffic["largest_step"] < 0.003 and traffic["mode"] == "IDLE"


@slow
@pytest.mark.fault(46)
@on("robot", "ur5e", "fr3")
def test_silent_controller_stream_is_stale(robot: str, took: Took) -> None:
    with OPENED[robot](stale=0.016 if robot == "ur5e" else 0.03) as arm:
        for _ in range(50):
            try:
                arm.up()
                break
            except RobotFault:  # starved
                arm.driver.close()
        arm.control.call("mute", seconds=3.0)
        begun, before = time.monotonic(), None
        with pytest.raises(RobotFault) as caught:
            while time.monotonic() < begun + 2.0:
                before = arm.driver.read()
        assert caught.value.fault is Fault.STALE
        took(time.monotonic() - begun, f"stale ({TITLES[robot]})")
        if robot == "fr3":
            time.sleep(0.1)
            stops = arm.control.call("traffic")["stops"]
            assert stops[-1] == "communication_constraints_violation"
        elif before is not None:  # the client still reports the last measurement's time
            assert arm.driver.newest == pytest.approx(before.t_device, abs=0.1)


@slow
@pytest.mark.fault(59)
@on(
    "robot, gripper, words",
    ("ur5e", "gripper", "disconnected"),
    ("fr3", "hand", "hand does not answer"),
)
def test_lost_gripper_ends_the_run_safely(
    robot: str, arm: Arm, bundle: PolicyBundle, took: Took, gripper: str, words: str
) -> None:
    ride = wall_ride.Ride(arm, bundle, f"cut_{gripper}")
    assert (ride.result.ended, ride.result.fault) == (Ended.SAFETY_STOP, Fault.GRIPPER)
    assert f"the {gripper} does not move" in ride.result.reason and ride.result.notes == ()
    assert Phase.PARK in {t.after for t in ride.result.history} and all(ride.result.acks.values())
    took(ride.delay, f"held ({TITLES[robot]})")
    with pytest.raises(RobotFault, match=words):
        arm.driver.connect()


@pytest.mark.fault(7)
@on(
    "robot, host, words",
    ("ur5e", "127.0.0.3", "disconnected: 127.0.0.3"),
    ("fr3", "127.0.0.22", "Connection to FCI refused.*enable FCI mode"),
)
def test_missing_controller_is_a_clear_fault(robot: str, host: str, words: str) -> None:
    driver = drivers.make(robot, host)
    with pytest.raises(RobotFault, match=words) as caught:
        driver.connect()
    assert caught.value.fault is Fault.DISCONNECTED
