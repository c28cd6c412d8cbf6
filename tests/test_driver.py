"""The simulated arm keeps the driver contract, with the delays and roundings of a real one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sims
from real_robot import (
    Fault,
    RobotDriver,
    RobotFault,
    SafetyFilter,
    SafetyStop,
    SimDriver,
    Target,
    VirtualClock,
)
from real_robot.core.driver import Description, FaultResponse
from real_robot.safety.filter import TargetRequest
from real_robot.sim.sim_driver import ENCODER
from sims.envs.batch_env import BatchEnv

TASK = sims.make_task("reach", robot="so101")


def arm(clock: VirtualClock, **options: object) -> SimDriver:
    driver = SimDriver(TASK, clock=clock, **options)
    driver.connect()
    driver.enable()
    return driver


def test_sim_driver_describes_itself_before_connecting() -> None:
    driver = SimDriver(TASK, period=0.02)
    assert isinstance(driver, RobotDriver)
    about = driver.describe()
    assert (about.name, len(about.joints), about.period) == ("so101", 5, 0.02)
    for call in (driver.read, driver.identify, driver.hold, driver.enable, driver.relax):
        with pytest.raises(RobotFault, match=r"call connect\(\) first"):
            call()
    driver.connect()
    with pytest.raises(RobotFault, match=r"call enable\(\) first"):
        driver.send(Target(np.zeros(5), 0.0))
    driver.close()
    driver.close()


def test_sim_driver_scene_starts_and_succeeds_as_the_task() -> None:
    env = BatchEnv(TASK, 1, seed=11)
    env.reset()
    driver = SimDriver(TASK, seed=11)
    np.testing.assert_array_equal(driver.scene.state(), env.state()[0])
    assert driver.scene.success() is False
    assert driver.scene.distance() == pytest.approx(env.distance()[0])
    driver.scene.reset(12)
    assert not np.array_equal(driver.scene.state(), env.state()[0])


def test_sim_driver_follows_targets_in_encoder_steps() -> None:
    clock = VirtualClock(100.0)
    driver = arm(clock)
    start = driver.read()
    wanted = start.qpos - 0.2
    sent = driver.send(Target(wanted, 0.5))
    assert np.abs(sent.qpos - wanted).max() <= ENCODER / 2 + 1e-12
    clock.advance(1.0)
    state = driver.read()
    assert state.seq > start.seq and state.t_host == pytest.approx(101.0)
    np.testing.assert_allclose(state.qpos, wanted, atol=0.01)
    np.testing.assert_allclose(state.qpos / ENCODER, np.round(state.qpos / ENCODER), atol=1e-9)
    assert state.gripper == pytest.approx(0.5, abs=0.02)
    assert np.abs(state.qvel).max() < 0.01 and np.abs(state.effort).max() > 0.1  # gravity
    driver.send(Target(np.full(5, 9.0), 2.0))
    assert (
        driver.send(Target(np.full(5, 9.0), 2.0)).qpos == driver.describe().position[:, 1]
    ).all()


def test_sustained_contact_is_eased_then_stopped_as_stall() -> None:
    """Eased every second, before motors of its kind give up after two, and stopped after three."""
    clock = VirtualClock()
    driver = arm(clock)
    about = driver.describe()
    filter, start = SafetyFilter.build(about), clock.now_ns() * 1e-9
    memory = filter.start(driver.read(), start)
    wish = TargetRequest(
        driver.scene.robot.home + [0.0, 0.45, 0.0, 0.0, 0.0], 0.5
    )  # 2 cm in the table
    over, longest, began = 0.0, 0.0, np.inf
    with pytest.raises(SafetyStop) as caught:
        for _ in range(1000):
            clock.advance(about.period)
            state, now = driver.read(), clock.now_ns() * 1e-9 - start
            pushes = (np.abs(state.effort) > about.overload).any()
            began = min(began, now) if pushes else began
            over = over + about.period if pushes else 0.0
            longest = max(longest, over)
            safe, memory, _ = filter.step(state, wish, now, memory)
            driver.send(safe)
    assert caught.value.fault is Fault.STALL and now - began > 2.9
    assert 0.8 < longest < 1.4


def test_reads_at_one_time_return_one_measurement() -> None:
    driver = arm(VirtualClock(), noise=0.01)
    one, other = driver.read(), driver.read()
    assert one.seq == other.seq
    np.testing.assert_array_equal(one.qpos, other.qpos)


def test_latency_delays_targets_and_measurements() -> None:
    clock = VirtualClock()
    driver = arm(clock, command_delay=0.04, latency=0.03, encoder=0.0)
    clock.advance(0.1)
    start = driver.read()
    assert start.t_host == pytest.approx(0.07)
    driver.send(Target(start.qpos - 0.2, 0.0))
    clock.advance(0.04)
    np.testing.assert_allclose(driver.read().qpos, start.qpos, atol=1e-4)
    clock.advance(0.03)
    np.testing.assert_allclose(driver.read().qpos, start.qpos, atol=1e-4)  # seen 0.03 s late
    clock.advance(0.03)
    assert np.abs(driver.read().qpos - start.qpos).min() > 1e-3


def test_arm_falls_without_torque_and_not_while_held() -> None:
    clock = VirtualClock()
    driver = arm(clock)
    start = driver.read().qpos
    driver.send(Target(start - [0.0, 0.8, 0.0, 0.0, 0.0], 0.0))  # up
    clock.advance(0.3)
    driver.hold()
    held = driver.read().qpos
    clock.advance(0.5)
    np.testing.assert_allclose(driver.read().qpos, held, atol=0.08)  # it had speed
    assert set(driver.relax()) == set(driver.scene.robot.actuators)
    clock.advance(1.0)
    assert np.abs(driver.read().qpos - held).max() > 0.1
    assert np.abs(driver.read().effort).max() == 0.0
    driver.enable()  # where it lies now: no jump
    before = driver.read().qpos
    clock.advance(0.5)
    np.testing.assert_allclose(driver.read().qpos, before, atol=0.02)
    driver.relax()
    with pytest.raises(RobotFault, match=r"call enable\(\) first"):
        driver.send(Target(before, 0.0))


def test_hold_drops_delayed_targets() -> None:
    clock = VirtualClock()
    driver = arm(clock, command_delay=0.05)
    start = driver.read().qpos
    driver.send(Target(start - 0.2, 0.0))
    driver.hold()
    clock.advance(0.5)
    np.testing.assert_allclose(driver.read().qpos, start, atol=0.005)


def test_device_fault_is_reported_until_cleared() -> None:
    clock = VirtualClock()
    driver = arm(clock)
    driver.fault = Fault.OVERLOAD
    assert driver.read().fault is Fault.OVERLOAD
    with pytest.raises(RobotFault, match=r"overload.*clear_fault\(\) first"):
        driver.enable()
    driver.clear_fault()
    driver.enable()
    with pytest.raises(RobotFault, match="nonfinite"):
        driver.send(Target(np.full(5, np.nan), 0.0))


def test_every_fault_has_a_response_and_unknown_ones_latch() -> None:
    assert Fault.NONE.response is FaultResponse.NONE
    assert Fault.COMM_TIMEOUT.response is FaultResponse.RETRY
    assert Fault.NONFINITE.response is FaultResponse.HOLD
    for fault in (Fault.DISCONNECTED, Fault.OVERLOAD, Fault.ESTOP, Fault.PROTECTIVE_STOP):
        assert fault.response is FaultResponse.LATCH


def test_invalid_robot_description_is_refused() -> None:
    good = SimDriver(TASK).describe()
    with pytest.raises(ValueError, match=r"velocity must be finite with shape \(5,\)"):
        dataclasses.replace(good, velocity=np.ones(4))
    with pytest.raises(ValueError, match="period must be above 0"):
        dataclasses.replace(good, period=0.0)
    with pytest.raises(ValueError):
        good.position[0] = 9.0
    assert isinstance(good, Description)
