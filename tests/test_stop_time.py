"""An arm that must be able to stop within some time: it always can, and still gets there."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hostile import Hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from test_safety import FILTER, ROBOT, assert_within, follow, measured

import sims
from real_robot import Clearance, Fault, RunConfig, SafetyFilter, SafetyStop
from real_robot.core.driver import Description
from real_robot.safety.filter import FilterMemory, TargetRequest, TargetSource
from real_robot.safety.stages.braking import brake, max_stopping_speed
from real_robot.sim.null_driver import NullDriver

TIMES = (0.02, 0.03, 0.05, 0.1, 0.3)  # s


def described(robot: str) -> Description:
    return NullDriver(sims.ROBOTS[robot]).describe()


def seconds(filter: SafetyFilter, memory: FilterMemory) -> float:
    """s that the quickest stop from the last command takes."""
    stop, command = filter.shaping, memory.command
    told = command.qpos, command.qvel, command.qacc
    return brake(*told, stop.acceleration, stop.jerk, filter.period).seconds


@settings(max_examples=200, deadline=None)
@given(
    most=st.floats(0.02, 1.0),
    acceleration=st.floats(0.5, 50.0),
    jerk=st.floats(20.0, 5000.0),
    part=st.floats(0.0, 1.0),
)
def test_stop_time_bound_holds_in_every_motion_phase(
    most: float, acceleration: float, jerk: float, part: float
) -> None:
    """Speed that is still building up counts: what it comes to, and the time until it has ended."""
    a, j = np.array([acceleration]), np.array([jerk])
    speed, building = max_stopping_speed(most, a, j)
    assert (speed > 0).all() and (building <= a).all()
    qacc = part * building
    qvel = speed - qacc**2 / (2 * j)  # as fast in the end as may be
    took = brake(np.zeros(1), qvel, qacc, a, j, 0.01).seconds
    assert took <= most * (1 + 1e-9)
    if part == 1.0:
        assert took == pytest.approx(most)  # and no slower than it must be


@pytest.mark.parametrize("most", TIMES)
@pytest.mark.parametrize("robot", sims.ROBOTS)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_arm_can_always_stop_in_time(robot: str, most: float, seed: int) -> None:
    """Hostile actions, on an arm that follows badly and whose bus brakes now and then."""
    arm, rng = sims.ROBOTS[robot], np.random.default_rng(seed)
    filter = SafetyFilter.build(
        described(robot),
        clearance=Clearance.of(sims.make_task("reach", robot=robot)),
        patience=1e9,
        tool_speed=1.0,
        stop_s=most,
    )
    joint, sent, hostile = arm.home.copy(), [arm.home], Hostile(arm, seed)
    memory, longest = filter.start(measured(joint), 0.0), 0.0
    for k in range(100):
        t = filter.period * (k + 1)
        asked = hostile(k, memory.qpos)
        try:
            if rng.random() < 0.02:
                raise SafetyStop(Fault.STALE, "braked by who owns the port")
            safe, memory, _ = filter.step(measured(joint, t, k), asked, t, memory)
        except SafetyStop:
            safe, memory = filter.brake(memory)
        longest = max(longest, seconds(filter, memory))
        assert longest <= most
        joint = joint + 0.7 * (safe.qpos - joint)
        sent.append(safe.qpos)
    assert_within(filter, np.array(sent))
    for _ in range(math.ceil(most / filter.period)):  # whole periods
        _, memory = filter.brake(memory)
    assert not memory.moving


def test_arm_above_the_speed_bound_brakes_first() -> None:
    """Found under way, by a filter that would not have let it become so fast."""
    slow = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5, stop_s=0.1)
    _, _, memory = follow(FILTER, [(1.5, 0.9)] * 12)
    left = seconds(slow, memory)
    assert left > 0.2
    for k in range(12, 40):
        t = slow.period * (k + 1)
        wish = TargetRequest(np.array([1.5, 0.9]), 0.0)
        _, memory, _ = slow.step(measured(memory.qpos, t, k), wish, t, memory)
        if left > 0.1 + slow.period:
            assert seconds(slow, memory) == pytest.approx(left - slow.period)
        else:
            assert seconds(slow, memory) <= 0.1
        left = seconds(slow, memory)


@settings(max_examples=60, deadline=None)
@given(
    wishes=st.lists(
        st.tuples(*[st.floats(-3, 3)] * 2, *[st.floats(-9, 9)] * 2), min_size=1, max_size=60
    ),
    most=st.floats(0.06, 1.0),
    gain=st.floats(0.3, 1.0),
)
def test_moving_targets_respect_the_stop_time(
    wishes: list[tuple[float, ...]], most: float, gain: float
) -> None:
    filter = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5, stop_s=most)
    joint, memory = np.zeros(2), filter.start(measured((0, 0)), 0.0)
    for k, (a, b, va, vb) in enumerate(wishes):
        t = filter.period * (k + 1)
        source = TargetSource.POLICY if k % 2 else TargetSource.HUMAN
        wish = TargetRequest(np.array([a, b]), 0.0, qvel=np.array([va, vb]), source=source)
        _, memory, _ = filter.step(measured(joint, t, k), wish, t, memory)
        assert seconds(filter, memory) <= most
        joint = joint + gain * (memory.qpos - joint)


@pytest.mark.parametrize("robot", sims.ROBOTS)
def test_stop_time_slowdown_is_not_a_limit_timeout(robot: str) -> None:
    """0.5 rad at 0.15 (SO-101) to 0.02 rad/s (FR3): longer than any stage may limit a joint."""
    home = sims.ROBOTS[robot].home
    filter = SafetyFilter.build(described(robot), stop_s=0.03, patience=0.5)
    goal = home.copy()
    goal[0] += 0.5
    fastest = filter.shaping.cruise[0]
    ticks = round((0.5 / fastest + 1.0) / filter.period)
    targets, flags, _ = follow(filter, [goal] * ticks, start=home)
    np.testing.assert_allclose(targets[-1], goal, atol=1e-6)
    assert_within(filter, targets, home)
    speed = np.abs(np.diff(targets[:, 0])).max() / filter.period
    assert 0.9 * fastest < speed <= fastest * (1 + 1e-6)
    held = np.mean([flag["stop_time"][0] for flag in flags])
    assert held > 0.5 and not any(flag["velocity"].any() for flag in flags[20:])
    assert not any(flag["limited_long"].any() for flag in flags)


def test_tool_speed_slowdown_is_not_a_limit_timeout() -> None:
    robot = sims.ROBOTS["ur5e"]
    clearance = Clearance.of(sims.make_task("reach", robot="ur5e"))
    filter = SafetyFilter.build(described("ur5e"), clearance=clearance, tool_speed=0.1)
    goal = robot.home + [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # half a metre, 5 s and more
    targets, flags, _ = follow(filter, [goal] * 800, start=robot.home)
    np.testing.assert_allclose(targets[-1], goal, atol=1e-6)
    assert not any(flag["limited_long"].any() for flag in flags)


def test_stuck_joint_is_detected_with_stop_time() -> None:
    slow = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5, stop_s=0.1)
    with pytest.raises(SafetyStop, match="was limited by lag for") as stop:
        follow(slow, [(1.5, 0.9)] * 600, gain=0.0)
    assert stop.value.fault is Fault.LIMIT


@pytest.mark.parametrize("source", [TargetSource.POLICY, TargetSource.HUMAN])
def test_stop_time_scales_all_joints_alike(source: TargetSource) -> None:
    """Both joints are asked for more than they may, one for four times as much as the other."""
    filter = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5, stop_s=0.1)
    memory, way, places, flags = filter.start(measured((0, 0)), 0.0), np.array([2.0, 0.5]), [], []
    for k in range(250):
        t = filter.period * (k + 1)
        wish = TargetRequest(
            memory.goal + way * filter.period, 0.0, qvel=way, origin=memory.goal, source=source
        )
        _, memory, flag = filter.step(measured(memory.qpos, t, k), wish, t, memory)
        places.append(memory.qpos)
        flags.append(flag)
    places = np.array(places)
    assert 0.5 < places[-1, 0]
    np.testing.assert_allclose(places[:, 1], places[:, 0] / 4, atol=0.01)
    assert all(flag["stop_time"].all() for flag in flags)
    assert not any(flag["limited_long"].any() or flag["dial"].any() for flag in flags)


def test_stop_time_leaves_slow_policies_alone() -> None:
    filter = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5, stop_s=0.3)
    memory, way = filter.start(measured((0, 0)), 0.0), np.array([0.4, 0.2])
    for k in range(100):
        t = filter.period * (k + 1)
        wish = TargetRequest(memory.goal + way * filter.period, 0.0, qvel=way, origin=memory.goal)
        before = memory.qpos
        _, memory, flags = filter.step(measured(memory.qpos, t, k), wish, t, memory)
    np.testing.assert_allclose((memory.qpos - before) / filter.period, way)
    assert not np.any(list(flags.values()))


def test_no_stop_time_no_slowdown() -> None:
    shaping = FILTER.shaping
    assert shaping.stop_s == math.inf
    np.testing.assert_array_equal(shaping.cruise, ROBOT.velocity)
    np.testing.assert_array_equal(shaping.building, ROBOT.acceleration)


@pytest.mark.parametrize("most", [0.0, -1.0, 0.03, math.nan])
def test_too_short_stop_times_are_refused(most: float) -> None:
    with pytest.raises(ValueError, match="stop_s must be at least 0.04 s, 2 periods of two, got"):
        SafetyFilter.build(ROBOT, stop_s=most)


@pytest.mark.parametrize("most", [0.0, -1.0, math.nan, math.inf])
def test_run_config_refuses_invalid_stop_times(most: Any) -> None:
    with pytest.raises(ValueError, match="stop_s must be above 0 and finite"):
        RunConfig(stop_s=most)
    assert dataclasses.replace(RunConfig(), stop_s=None).stop_s is None
