"""Rows within the bridge's limits: against its own filter, and as reproducible as any others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sims
from real_robot.core.driver import Description, RobotState
from real_robot.safety.filter import SafetyFilter, TargetRequest, TargetSource
from real_robot.safety.stages.braking import brake
from sims import BatchEnv, robots
from sims.randomization.domain_randomization import Randomize, RandomizedEnv
from sims.robots.rate_limits import JointCommand, RateLimiter
from sims.robots.robot import PUSH, TARGET_DT

Array = np.ndarray

ARMS = pytest.mark.parametrize("arm", ("so101", "ur5e"))
TICKS = 5  # per action


def made(arm: str = "ur5e", n: int = 6, **options: object) -> BatchEnv:
    task = sims.make_task("push", robot=arm)
    return BatchEnv(task, n, **{"seed": 3, "shaped": True} | options)


def actions(env: BatchEnv, steps: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, (steps, env.num_envs, env.act_dim))


@ARMS
def test_rate_limits_equal_the_safety_filters(arm: str) -> None:
    robot = robots.get(arm)
    mine, bridge = (
        RateLimiter.of(robot),
        SafetyFilter.build(Description.of(robot, TARGET_DT)).shaping,
    )
    for name in ("velocity", "acceleration", "jerk", "period"):
        assert np.all(getattr(mine, name) == getattr(bridge, name))


@ARMS
def test_rate_limited_stop_ends_where_the_filters_does(arm: str) -> None:
    shaper, rng = RateLimiter.of(robots.get(arm)), np.random.default_rng(0)
    n = len(shaper.velocity)
    qpos, qvel = rng.normal(size=n), 0.3 * rng.normal(size=n)
    qacc = rng.uniform(-1, 1, n) * shaper.acceleration
    stop = brake(qpos, qvel, qacc, shaper.acceleration, shaper.jerk, shaper.period)
    np.testing.assert_allclose(shaper.rest(qpos, qvel, qacc), stop.end, atol=1e-9)


@ARMS
@pytest.mark.parametrize("turns", (1, 4))  # actions between two changes of mind
def test_rate_limited_targets_match_the_safety_filter(arm: str, turns: int) -> None:
    """20 actions of 5 targets, each up to 50 mrad from the goal: from the filter's own command, its
    next one is met to 0.15 mrad, 0.05 mrad as a rule.

    Left alone the two drift apart where wishes turn about faster than the arm can follow: both
    switch between full accelerations, and one that switches within a tick is early or late by it.
    """
    robot, rng = robots.get(arm), np.random.default_rng(turns)
    safety, shaper = SafetyFilter.build(Description.of(robot, TARGET_DT)), RateLimiter.of(robot)
    n = len(robot.joints)
    # Away from the ends of the range, where the filter has more to say.
    start = np.clip(robot.home, *(robot.joint_range + (0.8, -0.8)).T)

    def seen(tick: int, qpos: Array) -> RobotState:
        zero = np.zeros(n)
        return RobotState(tick * TARGET_DT, tick * TARGET_DT, tick, qpos, zero, zero, 0.0)

    memory, tick = safety.start(seen(0, start), 0.0), 0
    alone = JointCommand(start, np.zeros(n), np.zeros(n))
    off, apart, held = [], [], []
    for action in range(20):
        if action % turns == 0:
            step = rng.uniform(-1, 1, n) * rng.uniform(0.002, 0.05)
        origin = memory.goal
        for part in range(1, TICKS + 1):
            tick += 1
            wish = TargetRequest(
                origin + part / TICKS * step,
                0.0,
                qvel=step / (TICKS * TARGET_DT),
                source=TargetSource.POLICY,
                origin=origin,
            )
            near = shaper.towards(JointCommand(*memory.command[:3]), wish.qpos, wish.qvel)
            alone = shaper.towards(alone, wish.qpos, wish.qvel)
            state = seen(tick, memory.qpos)
            target, memory, _ = safety.step(state, wish, tick * TARGET_DT, memory)
            off.append(near.qpos - target.qpos)
            apart.append(alone.qpos - target.qpos)
            held.append(wish.qpos - target.qpos)
    assert np.abs(off).max() < 1.5e-4 and rms(off) < 5e-5
    assert rms(apart) < (0.3 if turns > 1 else 0.6) * rms(held)


def rms(values: list[Array]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@ARMS
def test_rate_limited_commands_keep_limits_and_settle(arm: str) -> None:
    shaper, rng = RateLimiter.of(robots.get(arm)), np.random.default_rng(0)
    rows, dt = (16, len(shaper.velocity)), shaper.period
    last = JointCommand(*np.zeros((3, *rows)))
    for tick in range(400):
        if tick % 80 == 0:
            goal = rng.uniform(-0.5, 0.5, rows)
        now = shaper.towards(last, goal, np.zeros(rows))
        assert (np.abs(now.qvel) <= shaper.velocity + 1e-9).all()
        assert (np.abs(now.qacc) <= shaper.acceleration + 1e-9).all()
        assert (np.abs(now.qacc - last.qacc) <= shaper.jerk * dt + 1e-9).all()
        np.testing.assert_allclose(
            now.qpos,
            last.qpos + dt * last.qvel,
            atol=shaper.jerk[0] * dt**3 + shaper.acceleration[0] * dt**2,
        )
        last = now
    for _ in range(200):
        last = shaper.towards(last, goal, np.zeros(rows))
    np.testing.assert_allclose(last.qpos, goal, atol=1e-3)


def test_rate_limited_env_lags_and_observes_its_target() -> None:
    env, plain = made(), made(shaped=False)
    assert (env.reset() == plain.reset()).all()
    start = plain.views.qpos.copy()
    action = np.zeros((6, 3))
    action[:, 0] = 1.0
    for _ in range(3):
        env.step(action)
        plain.step(action)
    moved = [np.abs(e.views.qpos - start).max(axis=1) for e in (env, plain)]
    assert (moved[0] < 0.6 * moved[1]).all() and (moved[0] > 0).all()
    # Between steps the goal stands where the task writes and observes it.
    assert (env.views.ctrl != env._commands.reshape(6, 3, -1)[:, 0]).any()


def test_rate_limited_action_delay_matches_its_sample() -> None:
    ranges = {f.name for f in dataclasses.fields(Randomize)} - {"width", "told"}
    nothing = dict.fromkeys(ranges, 0.0)
    task = sims.make_task("push", robot="ur5e")
    late = Randomize(**(nothing | {"action_delay": 1.0}))
    env = RandomizedEnv(task, 48, randomize=late, seed=3, shaped=True)
    env.reset()
    assert env._shaped is not None
    ticks = env._shaped.late.copy()
    assert set(ticks) == {0, 1, 2, 3, 4, 5}
    prompt = BatchEnv(task, 48, seed=3, shaped=True)
    prompt.reset()
    still = prompt.views.qpos.copy()
    given = actions(env, 4)
    env.step(given[0])
    prompt.step(given[0])
    moved = np.abs(env.views.qpos - still).max(axis=1)
    assert (env.views.qpos == prompt.views.qpos)[ticks == 0].all()
    assert moved[ticks == 5].max() < 1e-4 < moved[ticks < 3].min()
    for action in given[1:]:
        env.step(action)
    rows = np.arange(48)
    behind = np.abs(env._shaped.command[:, 0] - env._shaped.sent[ticks, rows]).max(axis=1)
    assert (behind[ticks == 0] == 0).all() and (behind[ticks > 0] > 0).all()
    other = RandomizedEnv(task, 48, randomize=late, seed=8, shaped=True)
    other.reset()
    other.load_state_dict(env.state_dict())
    for action in actions(env, 6, seed=1):
        assert (other.step(action).obs == env.step(action).obs).all()


def test_rate_limited_env_terminates_on_collision_effort() -> None:
    """It presses on the table until a joint bears half of what it can do."""
    for robot, feels in (("ur5e", True), ("so101", False)):
        task = sims.make_task("reach", robot=robot)
        env, plain = BatchEnv(task, 4, seed=3, shaped=True), BatchEnv(task, 4, seed=3)
        dofs = [int(env.model.joint(name).dofadr[0]) for name in task.arm.joints]
        for one in (env, plain):
            one.reset()
        push = env.batch.qfrc_constraint
        down = np.zeros((4, env.act_dim))
        down[:2, 2] = -1.0
        ended = np.zeros(4, bool)
        for _ in range(30):
            step = env.step(down)
            share = (np.abs(push[:, dofs]) / task.arm.effort_limit).max(axis=1)
            assert (step.terminated >= (share > PUSH) & feels).all()
            assert not plain.step(down).terminated.any()
            ended |= step.terminated
            env.reset(step.terminated)
        assert ended.tolist() == [feels, feels, False, False]


@pytest.mark.parametrize("randomised", (False, True))
def test_rate_limited_env_alone_equals_the_env_in_a_batch(randomised: bool) -> None:
    task = sims.make_task("push", robot="ur5e", episode_s=0.5)

    def batch(n: int, **options: object) -> BatchEnv:
        if not randomised:
            return BatchEnv(task, n, seed=3, shaped=True, **options)
        return RandomizedEnv(task, n, randomize=Randomize(), seed=3, shaped=True, **options)

    wide, alone = batch(6), batch(1, rows=[4])
    assert (wide.reset()[4] == alone.reset()[0]).all()
    for action in actions(wide, 24):
        many, one = wide.step(action), alone.step(action[4:5])
        assert (many.obs[4] == one.obs[0]).all() and many.reward[4] == one.reward[0]
        assert (wide.state()[4] == alone.state()[0]).all()
        done = many.terminated | many.truncated
        wide.reset(done)
        alone.reset(done[4:5])


def test_rate_limited_states_resume_bit_for_bit() -> None:
    env, saved, restored = made(), made(seed=9), made(seed=9)
    env.reset()
    for other in (saved, restored):
        other.reset()
    for action in actions(env, 15):
        env.step(action)
    saved.load_state_dict(env.state_dict())
    restored.set_state(env.state())
    for action in actions(env, 20, seed=1):
        step = env.step(action)
        for other in (saved, restored):
            assert (other.step(action).obs == step.obs).all()
            assert (other.state() == env.state()).all()
    assert env.render_states(env.state()[:1], size=(32, 32)).shape == (1, 32, 32, 3)
    with pytest.raises(ValueError, match="saved with another task"):
        env.load_state_dict(made(shaped=False).state_dict())


def test_nonfinite_action_keeps_the_rate_limited_command() -> None:
    env = made()
    env.reset()
    env.step(actions(env, 1)[0])
    before, action = env.state(), actions(env, 1)[0]
    action[2] = np.nan
    assert env.step(action).info["diverged"].tolist() == [row == 2 for row in range(6)]
    assert (env.state()[2] == before[2]).all()


def test_rate_limits_need_an_arm_and_whole_periods() -> None:
    with pytest.raises(ValueError, match="'hopper' has no arm with known limits"):
        BatchEnv(sims.make_task("hopper"), 2, shaped=True)
    task = dataclasses.replace(sims.make_task("reach"), control_dt=0.125)
    with pytest.raises(ValueError, match=r"must be a multiple of 0.01 s"):
        BatchEnv(task, 2, shaped=True)
