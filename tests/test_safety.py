"""The safety filter: whatever is asked of it, what comes out may be sent."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from real_robot import Fault, Limits, RobotState, SafetyFilter, SafetyStop, Target
from real_robot.driver import Description
from real_robot.safety import STAGES, FilterMemory

ROBOT = Description(
    name="two",
    joints=("a", "b"),
    position=np.array([[-2.0, 2.0], [-0.5, 1.0]]),
    velocity=np.array([2.0, 4.0]),
    acceleration=np.array([10.0, 40.0]),
    period=0.02,
)
FILTER = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5)
HOSTILE = st.one_of(
    st.floats(-3, 3),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 2.0, -2.0]),
)


def measured(qpos: object, t: float = 0.0, seq: int = 0, **changes: object) -> RobotState:
    qpos = np.asarray(qpos, float)
    zero = np.zeros_like(qpos)
    return dataclasses.replace(RobotState(t, t, seq, qpos, zero, zero, 0.0), **changes)


def follow(
    filter: SafetyFilter, wishes: object, *, gain: float = 1.0, start: object = (0.0, 0.0)
) -> tuple[np.ndarray, list[dict[str, np.ndarray]], FilterMemory]:
    """Targets (T, n) of an arm that closes ``gain`` of the distance to its target each period."""
    joint = np.array(start, float)
    memory, targets, flags = filter.start(measured(joint), 0.0), [], []
    for k, wish in enumerate(np.asarray(wishes, float)):
        t = filter.period * (k + 1)
        safe, memory, flag = filter.step(measured(joint, t, k), Target(wish, 0.0), t, memory)
        joint = joint + gain * (safe.qpos - joint)
        targets.append(safe.qpos)
        flags.append(flag)
    return np.array(targets), flags, memory


def within_limits(filter: SafetyFilter, before: FilterMemory, target: np.ndarray) -> None:
    low, high = filter.position.T
    assert np.isfinite(target).all()
    assert (low <= target).all() and (target <= high).all()
    assert (np.abs(target - before.qpos) <= filter.velocity * filter.period + 1e-9).all()


@settings(max_examples=150, deadline=None)
@given(
    wishes=st.lists(st.lists(HOSTILE, min_size=1, max_size=3), min_size=1, max_size=40),
    gain=st.floats(0.0, 1.0),
    pushes=st.lists(st.floats(-0.4, 0.4), min_size=40, max_size=40),
)
def test_whatever_is_asked_limits_hold_or_it_stops(
    wishes: list[list[float]], gain: float, pushes: list[float]
) -> None:
    """Hostile wishes to an arm that follows badly and is pushed about."""
    joint = np.zeros(2)
    memory = FILTER.start(measured(joint), 0.0)
    for k, (wish, push) in enumerate(zip(wishes, pushes, strict=False)):
        t = 0.02 * (k + 1)
        kept = dataclasses.asdict(memory)
        bad = len(wish) != 2 or not np.isfinite(wish).all()
        try:
            safe, after, flags = FILTER.step(
                measured(joint, t, k), Target(np.array(wish), 0.5), t, memory
            )
        except SafetyStop as stop:
            assert bad or stop.fault is Fault.TRACKING
            after = memory
        else:
            assert not bad
            within_limits(FILTER, memory, safe.qpos)
            assert (np.abs(safe.qpos - joint) <= FILTER.lag + 1e-9).all()
            change = np.abs((safe.qpos - memory.qpos) - memory.step)
            hard = change > FILTER.acceleration * 0.02**2 + 1e-9
            assert not (hard & ~flags["lag"]).any()
            assert set(flags) == {*STAGES, "limited_long"}
            joint = joint + gain * (safe.qpos - joint) + push * 0.1
        for name, value in dataclasses.asdict(memory).items():
            np.testing.assert_array_equal(value, kept[name])  # pure: memory is never written to
        memory = after


@settings(max_examples=50, deadline=None)
@given(
    wish=st.tuples(st.floats(-1.9, 1.9), st.floats(-0.44, 0.94)),
    others=st.lists(st.tuples(st.floats(-1.9, 1.9), st.floats(-0.44, 0.94)), max_size=20),
)
def test_a_feasible_constant_wish_is_reached_and_kept(
    wish: tuple[float, float], others: list[tuple[float, float]]
) -> None:
    targets, flags, memory = follow(FILTER, [*others, *[wish] * 200])
    np.testing.assert_allclose(targets[-1], wish, atol=1e-9)
    np.testing.assert_array_equal(targets[-1], targets[-2])
    assert not np.any(list(flags[-1].values()))


def test_a_resting_wish_is_approached_without_overshoot() -> None:
    targets, _, _ = follow(FILTER, [(1.5, 0.9)] * 150)
    assert (targets <= np.array([1.5, 0.9]) + 1e-9).all()
    assert (np.diff(targets, axis=0) >= -1e-12).all()
    steps = np.diff(targets, axis=0, prepend=[[0, 0]])
    assert (np.abs(np.diff(steps, axis=0)) <= FILTER.acceleration * 0.02**2 + 1e-12).all()


def test_a_wish_that_moves_within_the_limits_is_followed_exactly() -> None:
    """Neither a ramp nor the delta policy's last target + step may be slowed by the filter."""
    t = np.arange(1, 90)[:, None] * 0.02
    ramp = np.clip(t - 0.2, 0.0, None) ** 2 * np.array([0.4, 0.1])  # 0.8 and 0.2 rad/s^2
    targets, flags, _ = follow(FILTER, ramp)
    np.testing.assert_allclose(targets, ramp, atol=1e-12)
    assert not any(np.any(list(f.values())) for f in flags)

    memory, steps = FILTER.start(measured((0, 0)), 0.0), []
    for k in range(40):
        now = 0.02 * (k + 1)
        wish = Target(memory.qpos + 0.03, 0.0)
        safe, after, _ = FILTER.step(measured(memory.qpos, now, k), wish, now, memory)
        steps.append(safe.qpos - memory.qpos)
        memory = after
        if k == 20:
            np.testing.assert_allclose(steps[-1], 0.03)  # not slowed once it is up to speed


def test_a_wish_that_leaves_the_range_is_braked_before_its_end() -> None:
    wish = np.arange(1, 120)[:, None] * 0.02 * np.array([1.7, 1.0])
    targets, flags, _ = follow(FILTER, wish)
    steps = np.diff(targets, axis=0, prepend=[[0, 0]])
    assert (np.abs(np.diff(steps, axis=0)) <= FILTER.acceleration * 0.02**2 + 1e-12).all()
    np.testing.assert_allclose(targets[-1], FILTER.position[:, 1])
    assert flags[-1]["range"].all() and not flags[10]["range"].any()


def test_a_soft_arm_is_not_frozen() -> None:
    """The measured lesson: change between targets is limited, not distance to the joint."""
    targets, _, _ = follow(FILTER, [(1.5, 0.9)] * 300, gain=0.05)
    np.testing.assert_allclose(targets[-1], (1.5, 0.9))


def test_a_blocked_joint_is_not_leaned_on_harder_than_the_lag_window() -> None:
    targets, flags, _ = follow(FILTER, [(1.5, 0.9)] * 100, gain=0.0)
    assert (targets <= 0.5 + 1e-9).all() and flags[-1]["lag"].all()
    assert flags[-1]["limited_long"].any() is np.False_  # 100 periods are exactly 2 s
    _, flags, _ = follow(FILTER, [(1.5, 0.9)] * 110, gain=0.0)
    assert flags[-1]["limited_long"].all()


@pytest.mark.parametrize(
    ("state", "wish", "fault", "match"),
    [
        (measured((0, 0), t=-1.0), (0, 0), Fault.STALE, "1.020 s old, allowed is 0.1 s"),
        (measured((0, 0), t=9.0), (0, 0), Fault.STALE, "s old"),
        (measured((0, 0), seq=-1), (0, 0), Fault.STALE, "measurement -1 came after number 0"),
        (measured((0, math.nan)), (0, 0), Fault.NONFINITE, "measured position of b is nan"),
        (measured((0, 0, 0)), (0, 0), Fault.CONFIG, r"shape \(2,\) for a, b; got \(3,\)"),
        (measured((0, 0)), (math.nan, 0), Fault.NONFINITE, "target of a is nan"),
        (measured((0, 0)), (0, -math.inf), Fault.NONFINITE, "target of b is -inf"),
        (measured((0, 0)), (0,), Fault.CONFIG, "target must have shape"),
        (measured((0, 0)), ("x", 0), Fault.NONFINITE, "not numbers"),
        (measured((0.7, 0)), (0, 0), Fault.TRACKING, "a is at 0.700 rad, its target at 0.000"),
    ],
)
def test_each_reason_to_stop_names_itself(
    state: RobotState, wish: tuple, fault: Fault, match: str
) -> None:
    memory = FILTER.start(measured((0, 0)), 0.0)
    with pytest.raises(SafetyStop, match=match) as stop:
        FILTER.step(state, Target(np.array(wish, object), 0.0), 0.02, memory)
    assert stop.value.fault is fault


def test_the_gripper_is_checked_and_slowed() -> None:
    memory = FILTER.start(measured((0, 0)), 0.0)
    with pytest.raises(SafetyStop, match="gripper is nan"):
        FILTER.step(measured((0, 0)), Target(np.zeros(2), math.nan), 0.02, memory)
    safe, _, _ = FILTER.step(measured((0, 0)), Target(np.zeros(2), 7.0), 0.02, memory)
    assert safe.gripper == pytest.approx(0.1)


def test_a_run_does_not_begin_far_outside_the_range() -> None:
    low = FILTER.start(measured((-2.0, 0)), 0.0)  # at the hard stop: inside the slack
    assert low.qpos[0] == pytest.approx(-1.95)
    with pytest.raises(SafetyStop, match="b stands at 1.200 rad.*move it inside by hand"):
        FILTER.start(measured((0, 1.2)), 0.0)


def test_a_policy_s_limits_only_narrow() -> None:
    narrow = SafetyFilter.build(ROBOT, Limits(velocity=(1.0, 9.0), lag=(0.1, 9.0)), lag=0.5)
    np.testing.assert_array_equal(narrow.velocity, [1.0, 4.0])
    np.testing.assert_array_equal(narrow.acceleration, ROBOT.acceleration)
    np.testing.assert_array_equal(narrow.lag, [0.1, 0.5])


@pytest.mark.parametrize(
    "changes",
    [
        {"velocity": np.array([1.0, math.nan])},
        {"acceleration": np.array([1.0, 0.0])},
        {"lag": np.array([1.0])},
        {"position": np.array([[1.0, -1.0], [0, 1]])},
        {"period": math.inf},
        {"max_age": -1.0},
    ],
)
def test_limits_that_limit_nothing_are_refused(changes: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(changes))} must"):
        dataclasses.replace(FILTER, **changes)
