"""The safety filter: whatever is asked of it, what comes out may be sent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hostile import Hostile
from hypothesis import given, settings
from hypothesis import strategies as st

import sims
from real_robot import Clearance, Fault, Limits, RobotState, SafetyFilter, SafetyStop, Target
from real_robot.core.driver import Description
from real_robot.safety.filter import FilterMemory, TargetRequest, TargetSource
from real_robot.safety.stages.braking import brake
from real_robot.safety.stages.stage import FilterContext, JointTrajectoryPoint
from real_robot.sim.null_driver import NullDriver

ROBOT = Description(
    name="two",
    joints=("a", "b"),
    position=np.array([[-2.0, 2.0], [-0.5, 1.0]]),
    velocity=np.array([2.0, 4.0]),
    acceleration=np.array([10.0, 40.0]),
    jerk=np.array([200.0, 1600.0]),
    effort=np.array([5.0, 5.0]),
    period=0.02,
)
FILTER = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5)
LIMITS = {"range", "clearance", "tool_speed", "velocity", "acceleration", "jerk", "lag"}
FLAGS = LIMITS | {"handover", "smoothing", "dial", "stop_time", "limited_long"}
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
    filter: SafetyFilter,
    wishes: object,
    *,
    gain: float = 1.0,
    start: object = (0.0, 0.0),
    **how: Any,
) -> tuple[np.ndarray, list[dict[str, np.ndarray]], FilterMemory]:
    """Targets (T, n) of an arm that closes ``gain`` of the distance to its target each period."""
    joint = np.array(start, float)
    memory, targets, flags = filter.start(measured(joint), 0.0), [], []
    for k, wish in enumerate(wishes):
        t = filter.period * (k + 1)
        wish = (
            wish
            if isinstance(wish, TargetRequest)
            else TargetRequest(np.asarray(wish, float), 0.0, **how)
        )
        safe, memory, flag = filter.step(measured(joint, t, k), wish, t, memory)
        joint = joint + gain * (safe.qpos - joint)
        targets.append(safe.qpos)
        flags.append(flag)
    return np.array(targets), flags, memory


def moving(wishes: np.ndarray, period: float) -> list[TargetRequest]:
    """Wishes (T, n) that say how fast they move."""
    speeds = np.diff(wishes, axis=0, prepend=np.zeros((1, wishes.shape[1]))) / period
    return [TargetRequest(w, 0.0, qvel=v) for w, v in zip(wishes, speeds, strict=True)]


def assert_within(filter: SafetyFilter, targets: np.ndarray, start: object = None) -> None:
    """Position, velocity, acceleration and jerk of targets (T, n) that begin at rest.

    The rest is at ``start``; None: at the first target.
    """
    shaping, dt = filter.shaping, filter.period
    assert np.isfinite(targets).all()
    assert (targets >= filter.position[:, 0] - 1e-9).all()
    assert (targets <= filter.position[:, 1] + 1e-9).all()
    rest = targets[:1] if start is None else np.array([start], float)
    targets = np.concatenate([np.repeat(rest, 3, axis=0), targets])
    limits = (shaping.velocity, shaping.acceleration, shaping.jerk)
    for order, limit in enumerate(limits, 1):
        worst = np.abs(np.diff(targets, order, axis=0)).max(axis=0)
        assert (worst <= limit * dt**order * (1 + 1e-6) + 1e-9).all(), (order, worst)


# Limits.
@pytest.mark.fault(18, 19, 21, 23)
@settings(max_examples=60, deadline=None)
@given(
    wishes=st.lists(st.lists(HOSTILE, min_size=1, max_size=3), min_size=1, max_size=40),
    gain=st.floats(0.0, 1.0),
    pushes=st.lists(st.floats(-0.4, 0.4), min_size=40, max_size=40),
)
def test_limits_hold_or_the_filter_stops(
    wishes: list[list[float]], gain: float, pushes: list[float]
) -> None:
    """Hostile wishes to an arm that follows badly and is pushed about."""
    joint = np.zeros(2)
    memory = FILTER.start(measured(joint), 0.0)
    sent = [memory.qpos]
    for k, (wish, push) in enumerate(zip(wishes, pushes, strict=False)):
        t = 0.02 * (k + 1)
        kept = (*(np.array(x) for x in memory.command), np.array(memory.pressed))
        bad = len(wish) != 2 or not np.isfinite(wish).all()
        try:
            safe, after, flags = FILTER.step(
                measured(joint, t, k), Target(np.array(wish), 0.5), t, memory
            )
        except SafetyStop as stop:
            assert bad or stop.fault is Fault.TRACKING
            safe, after = FILTER.brake(memory)
        else:
            assert not bad
            assert (np.abs(safe.qpos - joint) <= 1.5 * 0.5 + 1e-9).all()
            assert set(flags) == FLAGS
            joint = joint + gain * (safe.qpos - joint) + push * 0.1
        for before, now in zip(kept, (*memory.command, memory.pressed), strict=True):
            np.testing.assert_array_equal(before, now)  # pure: memory is never written to
        sent.append(safe.qpos)
        memory = after
    while memory.moving:
        safe, memory = FILTER.brake(memory)
        sent.append(safe.qpos)
    assert_within(FILTER, np.array(sent))


TOOL_SPEED = 1.0  # m/s


def soak(robot_name: str, actions: int, seed: int) -> np.ndarray:
    """Targets of the arm's whole filter, clearance included, under hostile wishes."""
    robot = sims.ROBOTS[robot_name]
    clearance = Clearance.of(sims.make_task("reach", robot=robot_name))
    arm = NullDriver(robot).describe()
    filter = SafetyFilter.build(arm, clearance=clearance, patience=1e9, tool_speed=TOOL_SPEED)
    tool = clearance.near(robot.home, 0.0).tool
    joint, sent, stops, hostile = robot.home.copy(), [robot.home], 0, Hostile(robot, seed)
    memory = filter.start(measured(joint), 0.0)
    for k in range(actions):
        t = filter.period * (k + 1)
        asked = hostile(k, memory.qpos)
        try:
            safe, memory, _ = filter.step(measured(joint, t, k), asked, t, memory)
            assert not hostile.bad(k)
        except SafetyStop as stop:
            assert hostile.bad(k), stop
            stops += 1
            safe, memory = filter.brake(memory)
        assert 0.0 <= safe.gripper <= 1.0
        near = clearance.near(safe.qpos, safe.gripper)
        assert near.room > -0.005
        assert math.dist(near.tool, tool) < 1.3 * TOOL_SPEED * filter.period
        tool = near.tool
        joint = joint + 0.7 * (safe.qpos - joint)
        sent.append(safe.qpos)
    assert stops == len(range(3, actions, 7))
    assert_within(filter, np.array(sent))
    return np.array(sent)


@pytest.mark.fault(18, 19, 21, 23, 24)
@pytest.mark.parametrize("robot", sims.ROBOTS)
def test_hostile_actions_keep_every_arm_within_its_limits(robot: str) -> None:
    targets = soak(robot, 500, 0)
    assert np.ptp(targets, axis=0).max() > 0.5  # it was not just frozen


@pytest.mark.slow
@pytest.mark.fault(18, 19, 21, 23, 24)
@pytest.mark.parametrize("robot", sims.ROBOTS)
def test_100_000_hostile_actions_keep_every_arm_within_its_limits(robot: str) -> None:
    soak(robot, 100_000, 1)


@settings(max_examples=15, deadline=None)
@given(
    wish=st.tuples(st.floats(-1.9, 1.9), st.floats(-0.44, 0.94)),
    others=st.lists(st.tuples(st.floats(-1.9, 1.9), st.floats(-0.44, 0.94)), max_size=20),
)
def test_feasible_constant_target_is_reached(
    wish: tuple[float, float], others: list[tuple[float, float]]
) -> None:
    targets, flags, _memory = follow(FILTER, [*others, *[wish] * 150])
    np.testing.assert_allclose(targets[-1], wish, atol=1e-9)
    assert not np.any(list(flags[-1].values()))


@pytest.mark.parametrize("looks", ("all the way", "at its end"))
def test_braking_path_stays_clear(looks: str) -> None:
    """Joint b is faster and stops sooner, so while both brake it gets further ahead of a."""
    ahead = 0.2  # rad, by which b may be ahead of a before something is in the way

    def admit(way: list[np.ndarray], gripper: float, last: JointTrajectoryPoint) -> bool:
        return all(b - a <= ahead for a, b in (way if looks == "all the way" else way[-1:]))

    shaping = dataclasses.replace(FILTER.shaping, admit=admit)
    rest, wish = np.zeros(2), np.array([1.5, 0.9])
    motion, furthest = JointTrajectoryPoint(rest, rest, rest, 0.0, rest), 0.0
    for _ in range(100):
        motion = shaping.towards(
            JointTrajectoryPoint(wish, rest, rest, 0.0, wish),
            FilterContext(measured(rest), TargetRequest(wish, 0.0), 0.0, motion, None),
        )
        furthest = max(furthest, float(motion.qpos[1] - motion.qpos[0]))
    # To what lies between two places that are looked at.
    assert 0.1 < furthest and (furthest <= ahead + 0.02) == (looks == "all the way"), furthest


def test_resting_target_is_approached_without_overshoot() -> None:
    targets, flags, _ = follow(FILTER, [(1.5, 0.9)] * 150)
    assert (targets <= np.array([1.5, 0.9]) + 1e-9).all()
    assert (np.diff(targets, axis=0) >= -1e-12).all()
    assert_within(FILTER, targets, (0, 0))
    assert flags[0]["velocity"].all() and flags[3]["velocity"].all()


def test_moving_target_within_limits_is_followed_exactly() -> None:
    """Neither a ramp nor the delta policy's last target + step may be slowed by the filter."""
    t = np.arange(1, 90)[:, None] * 0.02
    ramp = t**3 / 6 * np.array([1.0, 0.4])
    targets, flags, _ = follow(FILTER, moving(ramp, 0.02))
    np.testing.assert_allclose(targets, ramp, atol=5e-4)

    memory = FILTER.start(measured((0, 0)), 0.0)
    for k in range(40):
        now = 0.02 * (k + 1)
        wish = TargetRequest(memory.qpos + 0.02, 0.0, qvel=np.full(2, 1.0))
        before = memory.qpos
        _, memory, flags = FILTER.step(measured(memory.qpos, now, k), wish, now, memory)
    np.testing.assert_allclose(memory.qpos - before, 0.02)  # not slowed once it is up to speed
    assert not np.any(list(flags.values()))


def test_target_beyond_the_range_is_braked_in_time() -> None:
    wish = np.arange(1, 140)[:, None] * 0.02 * np.array([1.7, 1.0])
    targets, flags, _ = follow(FILTER, moving(wish, 0.02))
    assert_within(FILTER, targets, (0, 0))
    np.testing.assert_allclose(targets[-1], FILTER.position[:, 1])
    assert flags[-1]["range"].all() and not flags[10]["range"].any()


def test_stop_is_time_optimal() -> None:
    """Against Ruckig's own, which the bridge does not rest its stops on."""
    import ruckig

    rng, n = np.random.default_rng(0), 300
    v, a = rng.uniform(-4.7, 4.7, n), rng.uniform(-20, 20, n)
    v[:30], a[30:60] = 0, 0
    v[60:90] = -a[60:90] * np.abs(a[60:90]) / 2000  # ends just when the acceleration does
    stop = brake(np.zeros(n), v, a, np.full(n, 20.0), np.full(n, 1000.0), 0.01)
    otg = ruckig.Ruckig(1, 0.01)
    for k in range(n):
        task, out = ruckig.InputParameter(1), ruckig.OutputParameter(1)
        task.control_interface = ruckig.ControlInterface.Velocity
        task.current_velocity, task.current_acceleration = [v[k]], [a[k]]
        task.max_velocity, task.max_acceleration, task.max_jerk = [5.0], [20.0], [1000.0]
        otg.update(task, out)
        span = out.trajectory.position_extrema[0]
        end = out.trajectory.at_time(out.trajectory.duration)[0][0]
        theirs = span.min, span.max, end, out.new_position[0], out.new_velocity[0]
        ours = stop.low[k], stop.high[k], stop.end[k], stop.qpos[k], stop.qvel[k]
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_soft_arm_can_move() -> None:
    """The measured lesson: change between targets is limited, not distance to the joint."""
    targets, _, _ = follow(FILTER, [(1.5, 0.9)] * 300, gain=0.05)
    np.testing.assert_allclose(targets[-1], (1.5, 0.9))


@pytest.mark.fault(22)
def test_limit_active_too_long_is_reported_then_stops(took: Callable) -> None:
    """A blocked joint is not leaned on harder than the lag window, and not for ever."""
    targets, flags, _ = follow(FILTER, [(1.5, 0.9)] * 120, gain=0.0)
    assert (targets <= 0.5 + 1e-9).all() and flags[-1]["lag"].all()
    assert_within(FILTER, targets, (0, 0))
    assert not flags[-1]["limited_long"].any()
    _, flags, _ = follow(FILTER, [(1.5, 0.9)] * 150, gain=0.0)
    assert flags[-1]["limited_long"].all()
    with pytest.raises(SafetyStop, match="was limited by shaping for 5.0 s") as stop:
        follow(FILTER, [(1.5, 0.9)] * 300, gain=0.0)
    assert stop.value.fault is Fault.LIMIT
    took(5.0, "stopped")


def test_target_at_the_joint_limit_is_allowed_beyond_it_stops() -> None:
    """What is learned in simulation leans on the very ends, which the bridge keeps a little off."""
    ends = ROBOT.position[:, 1]
    kept = SafetyFilter.build(ROBOT, margin=0.02, simulated=ROBOT.position)
    targets, flags, _ = follow(kept, [tuple(ends)] * 400)
    np.testing.assert_allclose(targets[-1], ends - 0.02)
    assert flags[-1]["range"].all() and not flags[-1]["limited_long"].any()
    wider = ROBOT.position + np.array([-0.5, 0.5])  # this arm's joints end before the policy's do
    for simulated, wish in ((ROBOT.position, ends + 0.01), (wider, ends), (None, ends)):
        strict = SafetyFilter.build(ROBOT, margin=0.02, simulated=simulated)
        with pytest.raises(SafetyStop, match="was limited by range for 5.0 s"):
            follow(strict, [tuple(wish)] * 400)


# Each stage.
@pytest.mark.fault(20, 46)
@pytest.mark.parametrize(
    ("state", "wish", "fault", "match"),
    [
        (measured((0, 0), t=-1.0), (0, 0), Fault.STALE, "1.020 s old, at most 0.1 s is allowed"),
        (measured((0, 0), t=9.0), (0, 0), Fault.STALE, "is stamped 8.980 s in the future"),
        (measured((0, 0), t=math.nan), (0, 0), Fault.STALE, "is nan s old"),
        (
            measured((0, 0), seq=-1),
            (0, 0),
            Fault.STALE,
            "measurement number -1 came after number 0",
        ),
        (measured((0, math.nan)), (0, 0), Fault.NONFINITE, "measured position of b is nan"),
        (measured((0, 0), qvel=np.array([0, math.nan])), (0, 0), Fault.NONFINITE, "speed of b is"),
        (measured((0, 0), effort=np.array([math.inf, 0])), (0, 0), Fault.NONFINITE, "effort of a"),
        (measured((0, 0), outside=np.array([math.nan, 0])), (0, 0), Fault.NONFINITE, "push from"),
        (measured((0, 0, 0)), (0, 0), Fault.CONFIG, r"shape \(2,\) for a, b; got \(3,\)"),
        (measured((0, 0)), (math.nan, 0), Fault.NONFINITE, "target of a is nan"),
        (measured((0, 0)), (0, -math.inf), Fault.NONFINITE, "target of b is -inf"),
        (measured((0, 0)), (0,), Fault.CONFIG, "target must have shape"),
        (measured((0, 0)), ("x", 0), Fault.NONFINITE, "does not hold numbers"),
        (measured((0.8, 0)), (0, 0), Fault.TRACKING, "a is at 0.800 rad, its target at 0.00"),
    ],
)
def test_each_safety_stop_names_its_reason(
    state: RobotState, wish: tuple, fault: Fault, match: str
) -> None:
    memory = FILTER.start(measured((0, 0)), 0.0)
    with pytest.raises(SafetyStop, match=match) as stop:
        FILTER.step(state, Target(np.array(wish, object), 0.0), 0.02, memory)
    assert stop.value.fault is fault


@pytest.mark.fault(29)
def test_target_from_an_old_measurement_is_dropped() -> None:
    memory = FILTER.start(measured((0, 0)), 0.0)
    old = TargetRequest(np.zeros(2), 0.0, source=TargetSource.POLICY, t=-0.4)
    with pytest.raises(SafetyStop, match="the measurement behind the policy's target is 0.4"):
        FILTER.step(measured((0, 0)), old, 0.02, memory)


@pytest.mark.fault(52)
@pytest.mark.parametrize("to", [TargetSource.HUMAN, TargetSource.POLICY])
def test_handover_has_no_jump(to: TargetSource) -> None:
    """The new hand wants a pose far away: its first target is the last command."""
    memory = FILTER.start(measured((0.3, 0.2)), 0.0)
    t, targets = 0.0, [memory.qpos]
    for k in range(150):
        t = 0.02 * (k + 1)
        source, wish = (TargetSource.BRIDGE, (0.3, 0.2)) if k < 5 else (to, (0.3, 0.6))
        _, memory, flags = FILTER.step(
            measured(memory.qpos, t, k),
            TargetRequest(np.array(wish), 0.0, source=source),
            t,
            memory,
        )
        targets.append(memory.qpos)
        if k == 5:
            np.testing.assert_allclose(memory.qpos, (0.3, 0.2), atol=1e-12)
            assert flags["handover"].tolist() == [False, True]
    steps = np.abs(np.diff(targets, axis=0))
    assert steps.max() < 0.5 * 0.02  # 0.4 rad fade in over a second, never faster than 0.5 rad/s
    np.testing.assert_allclose(targets[-1], (0.3, 0.6))


def test_bundle_low_pass_matches_training() -> None:
    smooth = SafetyFilter.build(ROBOT, margin=0.05, lag=0.5, smoothing=0.1, handover=1e-9)
    targets, _, _ = follow(
        smooth, [(0.1, 0.1)] * 100, source=TargetSource.POLICY, origin=np.zeros(2)
    )
    expected = 0.1 * (1 - np.exp(-0.02 / 0.1 * np.arange(1, 101)))
    np.testing.assert_allclose(targets[20:, 1], expected[20:], atol=1e-3)
    plain, _, _ = follow(smooth, [(0.1, 0.1)] * 20)  # the bridge's own targets are not smoothed
    assert plain[-1, 1] == pytest.approx(0.1)


@pytest.mark.fault(14)
def test_dial_and_derating_shorten_steps() -> None:
    """At a quarter of full speed a policy takes the same way in four times the time."""
    for dial, derate in ((0.25, 1.0), (0.5, 0.5)):
        memory = FILTER.start(measured((0, 0)), 0.0)
        for k in range(100):
            t = 0.02 * (k + 1)
            wish = TargetRequest(
                memory.goal + 0.02,
                0.0,
                qvel=np.full(2, 1.0),
                origin=memory.goal,
                dial=dial,
                source=TargetSource.POLICY,
            )
            state = measured(memory.qpos, t, k, derate=derate)
            _, memory, flags = FILTER.step(state, wish, t, memory)
        np.testing.assert_allclose(memory.qpos, 0.25 * 100 * 0.02, atol=0.01)
        assert flags["dial"].all()
    with pytest.raises(SafetyStop, match=r"share of full speed must be in \(0, 1\], got 0"):
        FILTER.step(state, dataclasses.replace(wish, dial=0.0), t, memory)


@pytest.mark.fault(24)
def test_clearance_blocks_table_arm_and_workspace_bounds() -> None:
    robot = sims.ROBOTS["so101"]
    task = sims.make_task("reach", robot="so101")
    clearance = Clearance.of(task, workspace=((-0.5, 0.5), (-0.12, 0.12), (-0.1, 0.5)))
    filter = SafetyFilter.build(NullDriver(robot).describe(), clearance=clearance, patience=1e9)
    home = robot.home
    for goal, what in [
        (home + [0, 0.9, 0, 0, 0], "table"),
        (home + [0, 0, 0.9, 0, 0], ""),
        (home + [1.2, 0, 0, 0, 0], "workspace"),
        (np.array([0, -1.7, 1.6, 1.6, 0]), ""),
    ]:
        targets, flags, _ = follow(filter, [goal] * 100, start=home)
        rooms = [clearance.near(q, 0.0) for q in targets]
        assert min(r.room for r in rooms) >= 0.0, what
        assert_within(filter, targets, home)
        if what:
            assert flags[-1]["clearance"].any() and clearance.near(goal, 0.0).room < 0.005
            assert what in clearance.near(goal, 0.0).what


@pytest.mark.parametrize("most", [np.inf, 0.5])
def test_tool_speed_limit_holds_and_target_is_reached(most: float) -> None:
    robot = sims.ROBOTS["ur5e"]
    clearance = Clearance.of(sims.make_task("reach", robot="ur5e"))
    arm = NullDriver(robot).describe()
    filter = SafetyFilter.build(arm, clearance=clearance, tool_speed=most)
    goal = robot.home + [1.5, 0.0, 0.0, 0.0, 0.0, 0.0]  # 0.7 m about the base
    targets, flags, _ = follow(filter, [goal] * 300, start=robot.home)
    tool = np.array([clearance.near(q, 0.0).tool for q in targets])
    speed = np.linalg.norm(np.diff(tool, axis=0), axis=1) / filter.period
    np.testing.assert_allclose(targets[-1], goal, atol=1e-6)
    assert_within(filter, targets, robot.home)
    assert (speed.max() > 1.0) if most > 1 else (0.45 < speed.max() < 0.55)
    assert any(flag["tool_speed"].any() for flag in flags) == (most < 1)


def test_arm_in_contact_may_only_move_away() -> None:
    robot = sims.ROBOTS["so101"]
    clearance = Clearance.of(sims.make_task("reach", robot="so101"))
    filter = SafetyFilter.build(NullDriver(robot).describe(), clearance=clearance)
    down = robot.home + [0, 0.45, 0, 0, 0]
    assert clearance.near(down, 0.0).room < 0
    still, _, _ = follow(filter, [down + [0, 0.05, 0, 0, 0]] * 20, start=down)
    np.testing.assert_allclose(still[-1], down, atol=1e-6)
    up, _, _ = follow(filter, [robot.home] * 80, start=down)
    np.testing.assert_allclose(up[-1], robot.home, atol=1e-6)


def test_arm_in_table_contact_takes_an_escape_path() -> None:
    """With a finger on the table and the wrist turned, the straight way to where it is parked loses
    a hair of the room that is left: it never parked."""
    clearance = Clearance.of(sims.make_task("lift", robot="so101"))
    filter = SafetyFilter.build(NullDriver(sims.ROBOTS["so101"]).describe(), clearance=clearance)
    start, park = (
        np.array([0.73, 1.37, -1.27, 0.55, 2.80]),
        np.array([-0.04, 0.18, 0.1, 1.36, 1.57]),
    )
    stuck, _, _ = follow(filter, [park] * 200, start=start)
    assert np.abs(stuck[-1] - park).max() > 0.5
    legs = filter.escape_path(start, park, 0.0)
    assert len(legs) == 2 and (legs[-1] == park).all()
    assert (np.count_nonzero(legs[0] - start), np.abs(legs[0] - start).max()) == (
        1,
        pytest.approx(0.1),
    )
    wishes = [*[legs[0]] * 60, *[park] * 400]
    targets, _, _ = follow(filter, wishes, start=start)
    np.testing.assert_allclose(targets[-1], park, atol=1e-6)
    assert (
        filter.escape_path(np.array(sims.ROBOTS["so101"].home), park, 0.0)[0] is park
    )  # nothing is near
    at_an_end = np.where(np.arange(5) == 1, filter.position[:, 0], start)
    for pose in filter.escape_path(at_an_end, park, 0.0):
        assert (pose >= filter.position[:, 0]).all() and (pose <= filter.position[:, 1]).all()


@pytest.mark.parametrize("name", ["so101", "ur5e"])
def test_arm_low_over_the_table_leaves_by_a_clear_path(name: str) -> None:
    """Joints that set off alike, each as quick as it can, would lower it first: so it parked not at
    all in 3 of 100 episodes."""
    robot, rng = sims.ROBOTS[name], np.random.default_rng(3)
    clearance = Clearance.of(sims.make_task("reach", robot=name))
    filter = SafetyFilter.build(NullDriver(robot).describe(), clearance=clearance)
    low: list[np.ndarray] = []
    while len(low) < 3:
        down = robot.home + rng.uniform(-0.5, 0.5, len(robot.home))
        down = np.clip(down, *filter.position.T)
        if not 0.003 < clearance.near(down, 0.0).room < clearance.margin:
            continue
        way = np.linspace(down, robot.home, 60)
        room = [clearance.near(pose, 0.0).room for pose in way]
        if (np.diff(room) >= 0).all():
            low.append(down)
    for down in low:
        targets, _, _ = follow(filter, [robot.home] * 200, start=down)
        np.testing.assert_allclose(targets[-1], robot.home, atol=1e-6)
        assert_within(filter, targets, down)


@pytest.mark.parametrize("name", ["so101", "ur5e", "fr3"])
def test_closed_jaws_do_not_block_clearance(name: str) -> None:
    clearance = Clearance.of(sims.make_task("reach", robot=name))
    near = clearance.near(sims.robots.get(name).home, 0.0)
    assert near.what == "" and near.room == clearance.margin


def test_stall_and_collision_stop_the_arm() -> None:
    memory = FILTER.start(measured((0, 0)), 0.0)
    hit = measured((0, 0), outside=np.array([0.0, -2.6]))
    with pytest.raises(
        SafetyStop, match="external torque of -2.6 N m on b.*did it collide"
    ) as stop:
        FILTER.step(hit, Target(np.zeros(2), 0.0), 0.02, memory)
    assert stop.value.fault is Fault.COLLISION
    for k in range(100):
        t = 0.02 * (k + 1)
        blocked = measured((0, 0), t, k, effort=np.array([4.8, 0.0]))
        try:
            _, memory, _ = FILTER.step(blocked, Target(np.array([0.4, 0.0]), 0.0), t, memory)
        except SafetyStop as stop:
            assert stop.fault is Fault.STALL and "a has pushed with 4.8 N m for 0.5 s" in str(stop)
            assert 0.5 < t < 0.8
            return
    raise AssertionError("a blocked joint went on pushing")


@pytest.mark.parametrize(("moves", "stops"), [(0.0, True), (0.06, False)])
def test_alternating_contacts_are_not_a_stall(moves: float, stops: bool) -> None:
    """One that pushes again and again in the same place is, though it was eased meanwhile."""
    robot = dataclasses.replace(ROBOT, overload=np.array([4.0, 4.0]))
    filter = SafetyFilter.build(robot, lag=0.5)
    memory = filter.start(measured((0, 0)), 0.0)
    stopped = False
    for k in range(300):  # six seconds: it pushes for 0.8 s in every second
        t = filter.period * (k + 1)
        place = (moves * (int(t) % 2), 0.0)
        effort = np.array([4.8 * (t % 1.0 < 0.8), 0.0])
        try:
            wish = TargetRequest(np.array([0.4, 0.0]), 0.0)
            _, memory, _ = filter.step(measured(place, t, k, effort=effort), wish, t, memory)
        except SafetyStop as stop:
            assert stop.fault is Fault.STALL
            assert 3.0 < t < 3.5
            stopped = True
            break
    assert stopped == stops


@pytest.mark.parametrize("known", (True, False))
def test_pressing_joint_is_eased_before_overload(known: bool) -> None:
    """Against a wall: the effort is what a servo makes of target minus joint."""
    robot = dataclasses.replace(
        ROBOT, effort=None, overload=np.array([4.0, 4.0]) if known else None
    )
    filter = SafetyFilter.build(robot, lag=0.5)
    still, t, targets, over, longest = np.zeros(2), 0.0, [], 0.0, 0.0
    memory, target = filter.start(measured(still), 0.0), np.zeros(2)
    for k in range(500):
        t = filter.period * (k + 1)
        effort = np.clip(40.0 * (target - still), -5.0, 5.0)
        over = over + filter.period if effort[0] >= 4.0 else 0.0
        longest = max(longest, over)
        state = measured(still, t, k, effort=effort)
        safe, memory, _ = filter.step(state, TargetRequest(np.array([0.3, 0.0]), 0.0), t, memory)
        target = safe.qpos
        targets.append(target)
    assert_within(filter, np.array(targets), still)
    if known:
        assert 0.8 < longest < 1.4  # and then it pushes again
        assert np.max(targets[-100:], axis=0)[0] > 0.1
    else:
        assert longest > 9.0


@pytest.mark.parametrize("late", [0, 1])
def test_pushed_joint_is_eased_despite_latency(late: int) -> None:
    """Another joint carries it off, ``late`` periods to a measurement and as many to a target: a
    target where it was keeps a stiff servo pushing."""
    robot = dataclasses.replace(ROBOT, effort=None, overload=np.array([4.0, 4.0]))
    filter = SafetyFilter.build(robot, lag=0.5)
    speed, over, longest = -0.4, 0.0, 0.0
    memory, sent = filter.start(measured((0, 0)), 0.0), [np.zeros(2)] * (2 * late + 1)
    for k in range(120):
        t = filter.period * (k + 1)
        then = t - late * filter.period
        place = np.array([speed * then, 0.0])
        effort = np.clip(1000.0 * (sent[-1 - 2 * late] - place), -5.0, 5.0)
        over = over + filter.period if effort[0] >= 4.0 else 0.0
        longest = max(longest, over)
        state = measured(place, then, k, effort=effort, qvel=np.array([speed, 0.0]))
        safe, memory, _ = filter.step(state, TargetRequest(np.array([0.3, 0.0]), 0.0), t, memory)
        sent.append(safe.qpos)
    assert longest < 1.8  # 1 s, and the way back to it
    assert_within(filter, np.array(sent[2 * late + 1 :]), np.zeros(2))


def test_gripper_target_is_checked_and_rate_limited() -> None:
    memory = FILTER.start(measured((0, 0)), 0.0)
    with pytest.raises(SafetyStop, match="gripper is nan"):
        FILTER.step(measured((0, 0)), Target(np.zeros(2), math.nan), 0.02, memory)
    safe, _, _ = FILTER.step(measured((0, 0)), Target(np.zeros(2), 7.0), 0.02, memory)
    assert safe.gripper == pytest.approx(0.1)


@pytest.mark.fault(41)
def test_filter_starts_at_the_measured_pose() -> None:
    memory = FILTER.start(measured((-2.0, 0)), 0.0)  # at the hard stop: inside the slack
    assert memory.qpos[0] == -2.0  # no jump, not even into the range
    targets, _, _ = follow(FILTER, [(-2.0, 0.0)] * 60, start=(-2.0, 0))
    assert (np.diff(targets[:, 0], prepend=-2.0) >= -1e-12).all()
    assert targets[-1, 0] == pytest.approx(-1.95)
    with pytest.raises(SafetyStop, match="b stands at 1.200 rad.*move it inside by hand"):
        FILTER.start(measured((0, 1.2)), 0.0)


def test_policy_limits_only_narrow_the_arms() -> None:
    narrow = SafetyFilter.build(
        ROBOT, Limits(velocity=(1.0, 9.0), jerk=(1.0, 1e9), lag=(0.1, 9.0)), lag=0.5
    )
    np.testing.assert_array_equal(narrow.shaping.velocity, [1.0, 4.0])
    np.testing.assert_array_equal(narrow.shaping.acceleration, ROBOT.acceleration)
    np.testing.assert_array_equal(narrow.shaping.jerk, [1.0, 1600.0])
    np.testing.assert_array_equal(narrow.stages[9].window, [0.1, 0.5])


@pytest.mark.fault(56)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("velocity", (1.0, math.nan)),
        ("acceleration", (1.0, 0.0)),
        ("jerk", (-1.0, 1.0)),
        ("lag", math.inf),
        ("margin", 1.0),
        ("margin", math.nan),
        ("patience", math.inf),
        ("max_age", -1.0),
    ],
)
def test_nonpositive_or_infinite_limits_are_refused(name: str, value: Any) -> None:
    own = {"velocity", "acceleration", "jerk"}
    with pytest.raises(ValueError, match="must"):
        if name in own:
            SafetyFilter.build(dataclasses.replace(ROBOT, **{name: np.array(value)}))
        else:
            SafetyFilter.build(ROBOT, **{name: value})
