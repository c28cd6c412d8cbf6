"""What goes wrong on a Koch's bus and in its servos, and what driver and bridge do about it.

The clock is compressed but where a process is killed: times taken are the arm's own.
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
from arms import Arm, koch

import sims
from real_robot import Fault, PolicyBundle, RobotFault, Target, emulators
from real_robot.drivers.koch import KochDriver
from real_robot.emulators.dynamixel_registers import TRIPPED
from real_robot.emulators.servo_base import TICKS

Took = Callable[[float, str], None]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    return reach_bundle.write(tmp_path_factory.mktemp("bundle"), "koch")


@pytest.fixture
def arm() -> Iterator[Arm]:
    with koch(driver={"watchdog": 0.1}) as made:
        yield made


# Trouble on the wire.
@pytest.mark.fault(7)
def test_koch_pulled_cable_is_a_fault_and_servos_stop(arm: Arm) -> None:
    driver = arm.up().driver
    driver.read()
    arm.emulator.unplug()
    with pytest.raises(RobotFault) as caught:
        driver.read()
    assert caught.value.fault is Fault.DISCONNECTED
    arm.clock.follow(lambda: 0, lambda: 0)  # nothing is on its way any more
    arm.wait(0.2)
    arm.truth()
    assert [s.get("bus_watchdog") for s in arm.emulator.bus.servos] == [TRIPPED] * 6


def test_koch_stuffed_replies_are_read(arm: Arm) -> None:
    driver = arm.up().driver
    for goal in (0x00FDFFFF, 0x07FDFFFF):  # registers that look like a header on the wire
        for servo in range(6):
            arm.emulator.register(servo, "goal_velocity", goal)
        for _ in range(7):
            np.testing.assert_allclose(driver.read().qpos, arm.truth()[:-1], atol=0.0016)


# Silence.
@pytest.mark.fault(64)
def test_koch_servos_stop_without_commands(arm: Arm, took: Took) -> None:
    driver = arm.up().driver
    start = driver.read()
    driver.send(
        Target(start.qpos + [1.5, 0, 0, 0, 0], start.gripper)
    )  # farther than 0.1 s takes it
    arm.wait(0.25)
    stopped = arm.truth()
    assert 0.1 < stopped[0] - start.qpos[0] < 1.0
    took(0.1, "stopped by its watchdogs (Koch)")
    arm.wait(0.5)
    np.testing.assert_allclose(arm.truth(), stopped, atol=0.01)
    assert driver.read().fault is Fault.PROTECTIVE_STOP
    driver.send(Target(start.qpos, start.gripper))  # which no servo takes
    arm.wait(0.09)
    np.testing.assert_allclose(arm.truth(), stopped, atol=0.02)
    assert arm.emulator.traffic()["refused"] >= 6
    assert all(driver.relax().values())
    driver.enable()
    np.testing.assert_allclose(arm.truth(), stopped, atol=0.03)
    assert driver.read().fault is Fault.NONE


@pytest.mark.slow
@pytest.mark.fault(64)
def test_koch_arm_stops_after_its_bridge_is_killed(took: Took) -> None:
    task = sims.make_task("reach", robot="koch")
    with emulators.make("koch", task).start() as emulator:
        code = (
            "import time\n"
            "from real_robot import drivers, Target\n"
            f"arm = drivers.make('koch', '{emulator.where}', patience=0.5, watchdog=0.3)\n"
            "arm.connect(); arm.identify(); arm.enable(); q = arm.read().qpos\n"
            "print('up', flush=True)\n"
            "while True:\n"
            "    q = q + [0.004, 0, 0, 0, 0]; arm.send(Target(q, 0.0)); time.sleep(0.01)\n"
        )
        bridge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert bridge.stdout.readline() == "up\n"
        time.sleep(0.3)
        os.kill(bridge.pid, signal.SIGKILL)
        begun = time.monotonic()
        while {s.get("bus_watchdog") for s in emulator.bus.servos} != {TRIPPED}:
            assert time.monotonic() < begun + 10.0
            time.sleep(0.005)
        took(time.monotonic() - begun, "stopped by its watchdogs of 0.3 s (Koch)")
        time.sleep(0.3)
        before = emulator.joints()["qpos"]
        time.sleep(0.5)
        np.testing.assert_allclose(emulator.joints()["qpos"], before, atol=2e-3)
        assert [s.get("torque_enable") for s in emulator.bus.servos] == [1] * 6
        bridge.wait()
        bridge.stdout.close()


# Trouble in the servos.
@pytest.mark.fault(13, 14, 15)
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("shock", Fault.OVERLOAD),
        ("overheat", Fault.OVERHEAT),
        ("voltage", Fault.VOLTAGE),
        ("encoder", Fault.ENCODER),
    ],
)
def test_koch_hardware_error_gives_its_cause(arm: Arm, kind: str, fault: Fault) -> None:
    driver = arm.up().driver
    arm.emulator.breakdown(2, kind)
    arm.wait(0.01)
    assert driver.read().fault is fault
    # What is not well after a reboot either stays.
    with pytest.raises(RobotFault, match="reported by a servo"):
        driver.enable()
    driver.clear_fault()
    arm.wait(0.01)
    assert driver.read().fault is fault
    arm.emulator.heal()
    driver.clear_fault()
    assert driver.read().fault is Fault.NONE


# Which turn it is, and the wrong arm.
def test_koch_multi_turn_offset_is_handled() -> None:
    behind = 0
    for seed in range(4):
        with koch(seed=seed) as arm:
            robot = arm.emulator.physics.robot
            rng = np.random.default_rng(seed)
            arm.driver.connect()
            arm.driver.identify()
            low, high = np.array([*robot.joint_range, robot.gripper_range]).T
            for _ in range(3):
                there = rng.uniform(low + 0.05, high - 0.05)
                there[1:4] = robot.home[1:4]  # clear of the table
                arm.emulator.hand(list(there))
                for servo in arm.emulator.bus.servos:
                    servo.wake(there[servo.index])  # as after a night without power
                arm.driver.relax()  # it is limp, and may have been moved
                state = arm.driver.read()
                np.testing.assert_allclose(state.qpos, there[:-1], atol=0.0016)
                reads = [round(s.count(there[s.index])) for s in arm.emulator.bus.servos]
                behind += int((np.abs(np.subtract(reads, 2047)) > TICKS / 2).sum())
            arm.driver.enable()
            arm.wait(0.2)
            np.testing.assert_allclose(arm.truth(), there, atol=0.03)
    assert behind > 5  # some did read a turn off


@pytest.mark.fault(10)
def test_koch_missing_servo_is_searched_at_other_settings() -> None:
    with koch() as arm:
        arm.emulator.register(5, "id", 9)
        arm.emulator.register(2, "baud", 1)  # as bought
        arm.driver.connect()
        with pytest.raises(RobotFault) as caught:
            arm.driver.identify()
        assert "servo 3 (elbow_flex) does not answer" in str(caught.value)
        assert "servos that answer: 1, 2, 4, 5, 9 at 1000000 baud; 3 at 57600 baud" in str(
            caught.value
        )


def test_koch_reversed_servo_uses_drive_mode(arm: Arm) -> None:
    servo = arm.emulator.bus.servos[1]
    middle = arm.emulator.physics.robot.joint_range[1].mean()
    reads = servo.count(middle)
    servo.mirrored = True
    arm.emulator.register(1, "drive_mode", 1)
    assert servo.count(middle) == pytest.approx(reads)
    arm.up()
    np.testing.assert_allclose(arm.driver.read().qpos, arm.truth()[:-1], atol=0.0016)
    assert arm.driver._calibration.joints["shoulder_lift"].drive_mode == 1


@pytest.mark.parametrize("watchdog", [0.0, 0.001, 2.6, np.nan])
def test_koch_invalid_watchdog_is_refused(watchdog: float) -> None:
    with pytest.raises(ValueError, match=r"watchdog must be from 0.02 to 2.54 s, got"):
        KochDriver("/dev/null", watchdog=watchdog)
