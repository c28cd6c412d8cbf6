"""The emulated STS3215 inside: each test fails without the feature that it is named for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from arms import Arm, so101

from real_robot import Fault, RobotFault
from real_robot.emulators.servo_base import UNIT
from real_robot.emulators.sts3215 import RESISTANCE, STALL, VOLTS, Gains, Loops, Power

PAN, LIFT, ELBOW = 0, 1, 2


@pytest.fixture
def arm() -> Iterator[Arm]:
    with so101() as made:
        made.up()
        made.wait(0.5)
        yield made


def told(arm: Arm, joint: int) -> dict[str, int]:
    """The registers of a joint as its bus would read them now."""
    with arm.emulator.lock:
        arm.emulator.advance()
        servo = arm.emulator.bus.servos[joint]
        arm.emulator.bus._measure(servo)
        return arm.emulator.registers(joint)


def aim(arm: Arm, joint: int, steps: int, wait: float = 1.0) -> None:
    """Moves a goal by ``steps`` of the encoder."""
    with arm.emulator.lock:
        servo = arm.emulator.bus.servos[joint]
        servo.put("goal_position", servo.get("goal_position") + steps)
    arm.wait(wait)
    arm.emulator.advance()


def set_all(arm: Arm, name: str, value: int) -> None:
    for joint in range(6):
        arm.emulator.register(joint, name, value)


def droop(arm: Arm, joint: int) -> float:
    """How far a joint hangs from its goal, rad."""
    with arm.emulator.lock:
        arm.emulator.advance()
        physics = arm.emulator.physics
        return float(abs(physics.goal[joint] - physics.qpos[joint]))


def effort(arm: Arm, joint: int) -> float:
    with arm.emulator.lock:
        arm.emulator.advance()
        return float(abs(arm.emulator.physics.effort[joint]))


# The loop alone.
def gains(**changes: float) -> Gains:
    usual = {"p": 5.0, "d": 0.5, "i": 0.0, "below": 0.002, "above": 0.001, "least": 0.02, "most": 1}
    return Gains(**{name: np.full(1, float(v)) for name, v in (usual | changes).items()})


@pytest.mark.parametrize(
    ("error", "speed", "changes", "duty"),
    [
        (0.101, 0.0, {}, 0.5),  # the dead band's step is not counted
        (-0.102, 0.0, {}, -0.5),  # nor is the other side's
        (0.101, 0.4, {}, 0.3),
        (0.101, 0.0, {"p": 2.5}, 0.25),
        (0.101, 0.4, {"d": 1.0}, 0.1),
        (0.0009, 0.0, {}, 0.0),
        (0.0011, 0.0, {}, 0.02),  # the start-up force
        (-0.0021, 0.0, {}, -0.02),
        (1.0, 0.0, {}, 1.0),
        (1.0, 0.0, {"most": 0.2}, 0.2),
        (1.0, 0.0, {"most": 0.0}, 0.0),
    ],
)
def test_servo_duty_follows_the_position_error(
    error: float, speed: float, changes: dict[str, float], duty: float
) -> None:
    got = Loops(1).duty(np.array([error]), np.array([speed]), gains(**changes), 0.002)
    assert got == pytest.approx(duty)


def test_motor_and_supply_match_the_data_sheet() -> None:
    power = Power(2)
    power.ohm = 0.0
    duty, on = np.ones(2), np.ones(2, bool)
    power.step(duty, np.array([0.0, 45 * 2 * np.pi / 60]), on, 0.002)
    assert power.current == pytest.approx([2.7, 0.18])
    power = Power(2)
    for _ in range(20):
        power.step(duty, np.zeros(2), on, 0.002)
    assert power.volts == pytest.approx(11.24, abs=0.01) and power.current[0] < 2.6
    power.step(duty, np.zeros(2), ~on, 0.002)
    assert not power.current.any() and power.volts == VOLTS


def test_servo_temperature_matches_measurements() -> None:
    """Issue 134 of TheRobotStudio/SO-ARM100: 1.47 N m, 48 deg C after 10 minutes, and no more."""
    power, seen = Power(1), []
    duty = np.array([1.47 / STALL])
    for second in range(3600):
        power.step(duty, np.zeros(1), np.ones(1, bool), 1.0)
        power.warm()
        if second in (599, 3599):
            seen.append(float(power.heat[0]))
    assert seen[0] == pytest.approx(48, abs=2) and seen[1] - seen[0] < 1.5


# On the arm.
@pytest.mark.parametrize("stiffness", [10.0, 18.0, 100.0])
def test_joint_droop_is_load_over_stiffness(arm: Arm, stiffness: float) -> None:
    arm.emulator.soften(stiffness)
    set_all(arm, "torque_limit", 1000)
    arm.wait(3.0)
    load = effort(arm, LIFT)
    assert load > 0.2
    assert droop(arm, LIFT) == pytest.approx(load / stiffness + UNIT, rel=0.01)
    set_all(arm, "p", 32)
    arm.wait(3.0)
    assert droop(arm, LIFT) == pytest.approx(effort(arm, LIFT) / (2 * stiffness) + UNIT, rel=0.01)


def test_integral_gain_removes_droop(arm: Arm) -> None:
    arm.emulator.soften(18.0)
    arm.wait(2.0)
    assert droop(arm, LIFT) > 10 * UNIT
    arm.emulator.register(LIFT, "i", 16)
    arm.wait(5.0)
    assert droop(arm, LIFT) < 2 * UNIT


@pytest.mark.parametrize("way", [1, -1])
def test_dead_band_ignores_small_errors(arm: Arm, way: int) -> None:
    zone = {1: "ccw_dead_zone", -1: "cw_dead_zone"}[way]
    arm.emulator.register(PAN, zone, 20)
    start = told(arm, PAN)["present_position"]
    aim(arm, PAN, 15 * way)
    assert told(arm, PAN)["present_position"] == start
    aim(arm, PAN, 35 * way)
    moved = way * (told(arm, PAN)["present_position"] - start)
    assert 29 <= moved <= 48  # it coasts a little
    arm.emulator.register(PAN, zone, 0)
    arm.wait(1.0)
    assert abs(told(arm, PAN)["present_position"] - (start + 50 * way)) <= 2


def test_minimum_force_applies_outside_the_dead_band(arm: Arm) -> None:
    arm.emulator.soften(10.0)
    arm.wait(1.0)
    arm.emulator.block(PAN)
    aim(arm, PAN, 6, 0.05)
    assert told(arm, PAN)["present_load"] < 40
    arm.emulator.register(PAN, "startup_force", 300)
    arm.wait(0.05)
    assert told(arm, PAN)["present_load"] == 300


def test_reported_load_equals_duty(arm: Arm) -> None:
    arm.emulator.soften(18.0)
    arm.wait(1.0)
    arm.emulator.block(PAN)
    aim(arm, PAN, -100, 0.1)
    want = 18.0 * 99 * UNIT / STALL  # the dead band's step is not counted
    assert told(arm, PAN)["present_load"] == pytest.approx(-1000 * want, rel=0.02)
    assert told(arm, PAN)["present_current"] * 0.0065 == pytest.approx(want * 2.7, rel=0.03)
    arm.emulator.block(None)
    arm.emulator.soften(None)
    aim(arm, PAN, 900, 0.2)
    seen = told(arm, PAN)
    assert seen["present_load"] == 1000 and seen["present_velocity"] * UNIT > 2.5
    # All of the voltage, and yet less than half of the current: the motor itself gives voltage.
    assert seen["present_current"] * 0.0065 < 1.35


def test_the_supply_sags_and_the_torque_with_it(arm: Arm) -> None:
    assert told(arm, PAN)["present_voltage"] == 120
    arm.emulator.supply(12.0, ohm=1.0)
    arm.emulator.block(PAN)
    aim(arm, PAN, 300, 0.2)
    seen = told(arm, PAN)
    assert seen["present_voltage"] < 105 and seen["present_load"] == 1000
    assert told(arm, LIFT)["present_voltage"] == seen["present_voltage"]
    assert effort(arm, PAN) == pytest.approx(STALL * seen["present_voltage"] / 120, rel=0.01)


def test_a_lower_supply_is_slower(arm: Arm) -> None:
    speeds = []
    for volts, way in ((12.0, 900), (8.0, -900)):
        arm.emulator.supply(volts)
        arm.emulator.physics.highest_speed[:] = 0.0
        aim(arm, PAN, way, 1.0)
        speeds.append(arm.emulator.physics.highest_speed[PAN])
    assert speeds[1] / speeds[0] == pytest.approx(8 / 12, abs=0.06)


@pytest.mark.parametrize("volts", [3.8, 14.5])
def test_voltage_error_is_reported_while_it_lasts(arm: Arm, volts: float) -> None:
    arm.emulator.supply(volts)
    arm.wait(0.05)
    assert told(arm, PAN)["status"] == 1 and arm.driver.read().fault is Fault.VOLTAGE
    assert told(arm, PAN)["torque_enable"] == 1  # register 19 does not name it
    arm.emulator.supply(12.0)
    arm.wait(0.05)
    assert arm.driver.read().fault is Fault.NONE
    set_all(arm, "unloading_condition", 45)
    arm.emulator.supply(volts)
    arm.wait(0.05)
    assert told(arm, PAN)["torque_enable"] == 0


def test_blocked_servo_heats_and_cools_without_torque(arm: Arm) -> None:
    set_all(arm, "unloading_condition", 0)
    arm.emulator.block(PAN)
    aim(arm, PAN, 300, 10.0)
    warm = told(arm, PAN)["present_temperature"]
    assert 28 <= warm <= 31 and told(arm, LIFT)["present_temperature"] <= 26
    arm.driver.relax()
    arm.wait(60.0)
    assert told(arm, PAN)["present_temperature"] < warm


@pytest.mark.parametrize("condition", [44, 40])
def test_overheated_servo_turns_torque_off_if_configured(arm: Arm, condition: int) -> None:
    set_all(arm, "unloading_condition", condition)
    arm.emulator.register(PAN, "overload_torque", 200)  # which it never reaches
    arm.emulator.register(PAN, "present_temperature", 69)
    arm.emulator.block(PAN)
    aim(arm, PAN, 300, 2.5)
    seen = told(arm, PAN)
    assert seen["status"] == 4 and arm.driver.read().fault is Fault.OVERHEAT
    assert seen["torque_enable"] == (condition == 40)
    if condition == 44:
        arm.wait(20.0)
        arm.emulator.advance()  # here, not while the driver waits for an answer
        arm.driver.clear_fault()
        seen = told(arm, PAN)  # cooled, and still limp
        assert (seen["status"], seen["torque_enable"], seen["present_load"]) == (0, 0, 0)
        assert seen["present_temperature"] < 69


def test_overcurrent_turns_torque_off(arm: Arm) -> None:
    arm.emulator.register(PAN, "overload_torque", 200)
    arm.emulator.register(PAN, "protection_current", 100)
    arm.emulator.block(PAN)
    aim(arm, PAN, 300, 1.5)
    assert told(arm, PAN)["present_current"] > 100 and told(arm, PAN)["status"] == 0
    arm.wait(1.0)
    assert (told(arm, PAN)["status"], told(arm, PAN)["torque_enable"]) == (8, 0)


@pytest.mark.parametrize("stubborn", [False, True])
def test_overload_ends_by_torque_off_or_power_cycle(arm: Arm, stubborn: bool) -> None:
    arm.emulator.stubborn(stubborn)
    arm.emulator.block(PAN)
    aim(arm, PAN, 300, 2.5)
    assert arm.driver.read().fault is Fault.OVERLOAD
    assert told(arm, PAN)["present_load"] == (0 if stubborn else 200)
    if not stubborn:
        arm.driver.clear_fault()
        assert arm.driver.read().fault is Fault.NONE
        return
    with pytest.raises(
        RobotFault, match="shoulder_pan: overload is reported with torque off; switch the"
    ):
        arm.driver.clear_fault()
    arm.emulator.register(PAN, "torque_enable", 1)
    arm.wait(0.5)
    assert told(arm, PAN)["present_load"] == 0
    arm.emulator.reboot(PAN)
    arm.wait(0.5)
    arm.driver.clear_fault()
    assert arm.driver.read().fault is Fault.NONE


def test_stall_current_follows_from_resistance() -> None:
    assert VOLTS / RESISTANCE == pytest.approx(2.7)
