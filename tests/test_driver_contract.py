"""What every driver keeps, over its own wire where it has one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from arms import ARMS, Arm, without

import sims
from real_robot import Fault, RobotDriver, RobotFault, SimDriver, Target, arms

# They keep the wall clock.
WALL = {name for name in arms.ARMS if arms.spec(name).apart} | {"so101 bus"}


@pytest.fixture(
    params=[
        pytest.param(n, marks=[without(n)] + ([pytest.mark.slow] if n in WALL else []))
        for n in ARMS
    ]
)
def arm(request: pytest.FixtureRequest) -> Iterator[Arm]:
    with ARMS[request.param]() as made:
        yield made


def test_driver_only_describes_itself_before_connecting(arm: Arm) -> None:
    driver = arm.driver
    assert isinstance(driver, RobotDriver)
    n = len(driver.describe().joints)
    for call in (driver.read, driver.identify, driver.hold, driver.enable, driver.relax):
        with pytest.raises(RobotFault, match=r"call connect\(\) first") as caught:
            call()
        assert caught.value.fault is Fault.DISCONNECTED
    driver.connect()
    identity = driver.identify()
    assert identity.model and identity.firmware
    with pytest.raises(RobotFault, match=r"call enable\(\) first"):
        driver.send(Target(np.zeros(n), 0.0))
    driver.close()
    driver.close()


def test_simulated_arm_has_the_drivers_motors(arm: Arm) -> None:
    about = arm.driver.describe()
    simulated = SimDriver(sims.make_task("reach", robot=about.name)).describe()
    np.testing.assert_array_equal(simulated.effort, about.effort)
    np.testing.assert_array_equal(simulated.overload, about.overload)


def test_measurement_is_accurate_and_timestamped(arm: Arm) -> None:
    arm.up()
    seen = []
    for _ in range(5):
        arm.wait(0.02)
        before = arm.clock.now_ns() * 1e-9
        state = arm.driver.read()
        after = arm.clock.now_ns() * 1e-9
        seen.append(state.seq)
        # A stream may have measured a period before it was asked.
        oldest = before - arm.driver.describe().period - arm.late
        assert oldest <= state.t_host <= after
        np.testing.assert_allclose(state.qpos, arm.truth()[:-1], atol=0.002 + arm.resolution)
        assert state.fault is Fault.NONE
        assert np.isfinite([*state.qvel, *state.effort]).all()
    assert seen == sorted(set(seen))


def test_enable_does_not_move_the_arm_and_targets_are_reached(arm: Arm) -> None:
    driver = arm.driver
    driver.connect()
    driver.identify()
    start = driver.read().qpos
    driver.enable()
    arm.wait(0.3)
    np.testing.assert_allclose(driver.read().qpos, start, atol=0.01)
    wanted = start.copy()
    for _ in range(100):
        wanted = wanted - 0.002
        sent = driver.send(Target(wanted, 0.5))
        assert np.abs(sent.qpos - wanted).max() <= arm.resolution
        arm.wait(driver.describe().period)
    arm.wait(0.5)
    state = driver.read()
    np.testing.assert_allclose(state.qpos, wanted, atol=0.01)
    assert state.gripper == pytest.approx(0.5, abs=0.05)
    assert np.abs(state.qvel).max() < 0.05


def test_driver_holds_and_relaxes_every_joint(arm: Arm) -> None:
    arm.up()
    driver, start = arm.driver, arm.driver.read().qpos
    wanted = start.copy()
    for _ in range(30):
        wanted[0] += 0.004
        driver.send(Target(wanted, 0.0))
        arm.wait(driver.describe().period)
    driver.hold()
    driver.hold()
    held = driver.read().qpos
    arm.wait(0.5)
    np.testing.assert_allclose(driver.read().qpos, held, atol=0.06)
    acks = driver.relax()
    assert set(driver.describe().joints) <= set(acks) and all(acks.values())
    with pytest.raises(RobotFault, match=r"call enable\(\) first"):
        driver.send(Target(held, 0.0))
    driver.enable()
    driver.send(Target(driver.read().qpos, 0.0))


@pytest.mark.fault(18, 19)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_driver_refuses_nonfinite_targets(arm: Arm, bad: float) -> None:
    arm.up()
    qpos = arm.driver.read().qpos
    for target in (Target(np.where(np.arange(len(qpos)) == 1, bad, qpos), 0.0), Target(qpos, bad)):
        with pytest.raises(RobotFault) as caught:
            arm.driver.send(target)
        assert caught.value.fault is Fault.NONFINITE


def test_driver_clips_targets_and_reports_it(arm: Arm) -> None:
    arm.up()
    _low, high = arm.driver.describe().position.T
    arm.driver.send(Target(arm.driver.read().qpos, 0.0))
    sent = arm.driver.send(Target(high + 0.5, 2.0))
    np.testing.assert_allclose(sent.qpos, high, atol=arm.resolution)
    assert sent.gripper == pytest.approx(1.0)


def test_driver_can_reconnect(arm: Arm) -> None:
    arm.up()
    first = arm.driver.identify()
    arm.driver.relax()
    arm.driver.close()
    arm.up()
    assert arm.driver.identify() == first
    arm.driver.read()
