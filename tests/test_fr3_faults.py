"""What goes wrong with a Franka robot and its hand, and what driver and bridge do about it.

In real time, but for what says that time is compressed. Needs franky, the client.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import reach_bundle
import stage_ride
from arms import Arm, apart, fr3
from hostile import Hostile
from wall_ride import Ride

import sims
from real_robot import (
    Clearance,
    Ended,
    Fault,
    PolicyBundle,
    RobotFault,
    SafetyFilter,
    SafetyStop,
    Target,
    drivers,
)
from real_robot.core.config import RunConfig
from real_robot.core.driver import MovingTarget
from real_robot.emulators.fr3 import Fr3Emulator
from real_robot.safety.guarded_driver import GuardedDriver
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.stage import closing

pytest.importorskip("franky", reason="pip install 'robo-rl[franka]'")

Took = Callable[[float, str], None]
slow = pytest.mark.slow
TASK = sims.make_task("reach", robot="fr3")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    return reach_bundle.write(tmp_path_factory.mktemp("bundle"), "fr3")


@pytest.fixture
def arm() -> Iterator[Arm]:
    with fr3() as made:
        yield made


@pytest.fixture(scope="module")
def stage() -> Iterator[EmulatedStage]:
    """On a compressed clock: times are the arm's own."""
    with closing(EmulatedStage(sims.make_task("reach", robot="fr3", goal="above_red_cube"))) as it:
        yield it


@slow
@pytest.mark.fault(44, 49, 63)
@pytest.mark.parametrize("error", ["joint_reflex", "communication_constraints_violation"])
def test_fr3_reflex_is_latched_until_an_operator_clears_it(
    arm: Arm, bundle: PolicyBundle, took: Took, error: str
) -> None:
    ride = Ride(arm, bundle, "reflex", error=error)
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.PROTECTIVE_STOP)
    assert error in ride.result.reason and "\n" not in ride.result.reason
    took(ride.delay, "latched (FR3)")
    driver = arm.driver
    driver.connect()
    driver.identify()
    for call in (driver.read, driver.enable):
        with pytest.raises(RobotFault, match=error) as caught:
            call()
        assert caught.value.fault is Fault.PROTECTIVE_STOP
    assert arm.control.call("traffic")["mode"] == "REFLEX"  # nobody has recovered it
    begun = time.monotonic()
    driver.clear_fault()
    took(time.monotonic() - begun, "cleared (FR3)")
    driver.enable()
    driver.send(Target(driver.read().qpos, 0.0))


@slow
@pytest.mark.fault(49)
def test_fr3_manual_recovery_errors_are_not_cleared(stage: EmulatedStage) -> None:
    control, scene = stage._end._control, stage.scene(1)
    driver = scene.driver
    driver.connect()
    driver.identify()
    control.call("reflex", error="power_limit_violation", manual=True)
    with pytest.raises(RobotFault, match="manual error recovery required"):
        driver.clear_fault()
    control.call("heal")
    driver.clear_fault()
    driver.enable()
    driver.close()


@slow
@pytest.mark.fault(45)
def test_fr3_user_stop_is_an_emergency_stop(arm: Arm, bundle: PolicyBundle, took: Took) -> None:
    ride = Ride(arm, bundle, "user_stop")
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.ESTOP)
    took(ride.delay, "user stop latched (FR3)")
    driver = arm.driver
    driver.connect()
    driver.identify()
    for call in (driver.read, driver.enable, driver.clear_fault):
        with pytest.raises(RobotFault, match="the user stop is pressed: release it") as caught:
            call()
        assert caught.value.fault is Fault.ESTOP
    arm.control.call("user_stop", pressed=False)
    time.sleep(0.1)  # until a state says so
    driver.clear_fault()
    driver.enable()


@slow
@pytest.mark.fault(45)
def test_fr3_hand_guiding_is_a_protective_stop(arm: Arm, bundle: PolicyBundle) -> None:
    ride = Ride(arm, bundle, "guide")
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.PROTECTIVE_STOP)
    arm.driver.connect()
    arm.driver.identify()
    with pytest.raises(RobotFault, match="robot mode Guiding, expected Idle: .* do not guide"):
        arm.driver.enable()


@slow
@pytest.mark.fault(7, 58)
@pytest.mark.parametrize("cable", ["silence", "hang_up"])
def test_fr3_cut_cable_is_a_lost_connection(bundle: PolicyBundle, took: Took, cable: str) -> None:
    given = {"seconds": 30.0} if cable == "silence" else {}
    with apart("fr3", bus={"silence": 20.0}, stale=0.3) as arm:
        ride = Ride(arm, bundle, cable, **given)
        causes = (Fault.DISCONNECTED, Fault.STALE, Fault.BUS)
        assert ride.result.ended in (Ended.FAULT, Ended.SAFETY_STOP), ride.result
        assert ride.result.fault in causes, ride.result
        took(ride.returned - ride.struck, f"back ({cable}, FR3)")
        assert not arm.control.call("traffic")["running"]


@slow
@pytest.mark.fault(49)
@pytest.mark.parametrize("lost", [pytest.param(15, marks=pytest.mark.fault(1)), 40])
def test_fr3_tolerates_few_lost_commands(
    stage: EmulatedStage, bundle: PolicyBundle, lost: int
) -> None:
    """The robot bears 20 in a row, and goes on as it was going meanwhile."""
    control, scene = stage._end._control, stage.scene(1)
    result = stage_ride.Ride(scene, bundle, lambda: control.call("lose", count=lost)).result
    assert control.call("traffic")["lost"] >= min(lost, 20)
    if lost < 20:
        assert (result.ended, result.reason) == (Ended.DONE, "")
        return
    assert (result.ended, result.fault) == (Ended.FAULT, Fault.PROTECTIVE_STOP)
    assert "communication_constraints_violation" in result.reason
    recover(stage)


@pytest.mark.fault(16, 17)
def test_fr3_external_push_stops_the_arm(
    stage: EmulatedStage, bundle: PolicyBundle, took: Took
) -> None:
    """By the bridge, or by the robot's own reflex where a stiff joint's torque is there at once."""
    control, scene = stage._end._control, stage.scene(1)
    ride = stage_ride.Ride(scene, bundle, lambda: control.call("block", joint=1))
    result = ride.result
    assert result.fault in (Fault.COLLISION, Fault.PROTECTIVE_STOP), result
    assert "push on joint2 from outside" in result.reason or "joint_reflex" in result.reason
    took(ride.delay, "stopped (FR3)")
    assert ride.delay < 1.0
    control.call("block", joint=None)
    if control.call("traffic")["mode"] == "REFLEX":  # while it was to be parked
        recover(stage)


def recover(stage: EmulatedStage) -> None:
    """An operator looks at the arm, and clears the fault."""
    driver = stage.scene(1).driver
    driver.connect()
    driver.identify()
    driver.clear_fault()
    driver.close()


@slow
@pytest.mark.fault(18, 19, 21, 23, 24)
def test_fr3_hostile_actions_cause_no_reflex(stage: EmulatedStage) -> None:
    """What the robot is told in a millisecond is within its limits, whatever a policy wants."""
    control, scene = stage._end._control, stage.scene(1)
    driver, clock, hostile = scene.driver, scene.clock, Hostile(sims.ROBOTS["fr3"], 2)
    driver.connect()
    driver.identify()
    driver.enable()
    about = driver.describe()
    safety = SafetyFilter.build(about, clearance=Clearance.of(TASK), patience=1e9)
    arm, stops = GuardedDriver(driver, safety, clock, RunConfig()), []
    arm.seed()
    before = control.call("traffic")["stops"]
    for k in range(2000):
        try:
            arm.exchange(lambda state, k=k: hostile(k, arm.memory.qpos))
        except SafetyStop:
            stops.append(k)
            arm.brake()
        clock.sleep_until_ns(clock.now_ns() + round(about.period * 1e9))
    told = control.call("traffic")
    driver.relax()
    driver.close()
    assert stops == [k for k in range(2000) if hostile.bad(k)]
    assert (told["mode"], told["stops"]) == ("MOVE", before)
    low, high = np.array(told["goal_low"]), np.array(told["goal_high"])
    assert (low >= about.position[:, 0]).all() and (high <= about.position[:, 1]).all()
    speed, acceleration, jerk = told["hardest"]
    print(f"{speed:.2f} rad/s, {acceleration:.1f} rad/s^2, {jerk:.0f} rad/s^3 at most")
    assert speed < about.velocity.max() and acceleration < 5.5 and jerk < 5000.0


@slow
def test_fr3_targets_keep_their_velocity(stage: EmulatedStage) -> None:
    """How far the robot's commands are from our targets, one period later; shown with pytest -s."""
    control, scene = stage._end._control, stage.scene(3)
    driver, clock = scene.driver, scene.clock
    driver.connect()
    driver.identify()
    wide, fast = np.array([0.4, 0.1, 0.2, 0.1, 0.3, 0.2, 0.5]), np.arange(1.0, 8.0) / 3
    zero, off = np.zeros(7), {}
    for known in (True, False):
        driver.enable()
        home, errors = driver.read().qpos, []
        way = lambda s, home=home: home + wide * (1 - np.cos(fast * s)) / 2  # noqa: E731
        for k in range(1, 401):
            s = 0.01 * k
            speed = wide * fast * np.sin(fast * s) / 2 if known else zero
            driver.send(MovingTarget(way(s), 0.5, speed, zero, zero + 3.0, zero + 150.0))
            clock.sleep_until_ns(clock.now_ns() + 10_000_000)
            errors.append(np.array(control.call("traffic")["q_d"]) - way(s))
        off[known] = 1000 * float(np.sqrt(np.mean(np.square(errors))))
        driver.relax()
        scene.driver.close()
        stage.scene(3)
        driver.connect()
        driver.identify()
    driver.close()
    print(f"off by {off[True]:.2f} mrad (rms) at their speed, {off[False]:.1f} without it")
    assert off[True] < 1.0 < off[False]


@slow
def test_fr3_external_torque_is_measured(stage: EmulatedStage) -> None:
    control, scene = stage._end._control, stage.scene(2)
    driver, clock = scene.driver, scene.clock
    driver.connect()
    driver.identify()
    driver.enable()
    home = driver.read().qpos
    turn = np.array([0.1, 0, 0, 0, 0, 0, 0])
    for k in range(50):
        driver.send(Target(home + np.sin(0.06 * k) * turn, 0.5))
        clock.sleep_until_ns(clock.now_ns() + 10_000_000)
        assert np.abs(driver.read().outside).max() < 2.0  # friction, which the model leaves out
    for k in range(90):
        if k == 30:  # at rest
            control.call("block", joint=0)
            home = driver.read().qpos
        driver.send(Target(home - 0.003 * (turn > 0) * (k > 30), 0.5))
        clock.sleep_until_ns(clock.now_ns() + 10_000_000)
    state, truth = driver.read(), control.call("joints")["effort"][0]
    control.call("block", joint=None)
    assert abs(truth) > 5.0 and state.outside[0] == pytest.approx(truth, rel=0.1)
    assert control.call("traffic")["hand"] > 0 and state.gripper == pytest.approx(0.5, abs=0.05)
    driver.close()


@pytest.mark.fault(10, 50)
def test_fr3_other_model_or_version_is_refused() -> None:
    host = "127.0.0.21"
    with Fr3Emulator(TASK, host=host, model="fp3").start() as emulator:
        driver = drivers.make("fr3", host, patience=20.0)
        controller = emulator.controller

        def refused() -> str:
            with pytest.raises(RobotFault) as caught:
                driver.connect()
                driver.identify()
                driver.enable()
            driver.close()
            assert "\n" not in str(caught.value)
            return str(caught.value)

        assert "reports model 'fp3', expected 'fr3'" in refused()
        emulator._urdf = emulator._urdf.replace(b"fp3", b"fr3")
        emulator._version = 9
        assert "server version: 9" in (told := refused()) and "franky speaks FCI version 10" in told
        emulator._version = 10
        controller.hand_mass = 0.0
        assert "is configured for an end effector of 0.00 kg, but a hand is mounted" in refused()
        controller.hand_mass = 0.73
        controller.guide(True)
        assert "robot mode Guiding, expected Idle" in refused()
        controller.guide(False)
        emulator.cut_hand()
        assert "the hand does not answer" in refused()
        emulator.heal()
        driver.connect()
        assert driver.identify().firmware == "FCI server 10"
        driver.enable()
        driver.close()


@slow
@pytest.mark.fault(62, 64)
def test_fr3_brakes_and_holds_after_its_bus_is_killed(took: Took) -> None:
    code = (
        "import time\n"
        "from real_robot import Bus, BusConfig, Target\n"
        "arm = Bus(BusConfig(robot='fr3', where='127.0.0.1', options={'stale': 1.0},\n"
        "                    deadline=2.0, patience=20.0))\n"
        "arm.connect(); arm.identify(); arm.enable(); q = arm.read().qpos\n"
        "print(arm.pid, flush=True)\n"
        "for _ in range(500):\n"
        "    q = q + [0.003, 0, 0, 0, 0, 0, 0]; arm.send(Target(q, 0.0)); time.sleep(0.01)\n"
    )
    with fr3() as arm:
        bridge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        bus = int(bridge.stdout.readline())
        time.sleep(0.3)
        assert arm.control.call("traffic")["running"]
        os.kill(bus, signal.SIGKILL)
        begun = time.monotonic()
        while arm.control.call("traffic")["running"]:
            assert time.monotonic() < begun + 5.0
            time.sleep(0.001)
        took(time.monotonic() - begun, "the robot stops (SIGKILL, FR3)")
        assert arm.control.call("traffic")["stops"][-1] in (
            "its client has gone",
            "communication_constraints_violation",
        )
        time.sleep(0.5)
        before = arm.truth()
        time.sleep(0.3)
        np.testing.assert_allclose(arm.truth(), before, atol=1e-3)
        bridge.kill()
        bridge.wait()
