"""The twin sees what training saw: the same observation and the same targets, bit for bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sims
from real_robot import Pose, RobotState, SafetyStop, Sent, Twin
from real_robot.core.arm_layout import ArmLayout
from real_robot.sim.scene import SimScene
from reward_models.goals import parse
from robo_rl.goals.goal_task import make_goal_task
from sims.envs.batch_env import BatchEnv
from sims.randomization.domain_randomization import Randomize, RandomizedEnv
from sims.robots import SO101
from sims.tasks import TASKS


def measured(env: BatchEnv, row: int) -> tuple[RobotState, dict[str, Pose], Sent]:
    """What perfect sensors say about a row, and the targets it was last given."""
    arm = ArmLayout(env.model, SO101)
    qpos, qvel, ctrl = env.batch.qpos[row], env.batch.qvel[row], env.batch.ctrl[row]
    state = RobotState(
        0.0, 0.0, 0, qpos[arm.qpos], qvel[arm.qvel], np.zeros(5), arm.opening(qpos[arm.jaw])
    )
    poses = {}
    for entity in env.task.entities()[1:]:
        at = env.model.joint(entity.body).qposadr[0]
        poses[entity.name] = Pose(qpos[at : at + 3].copy(), qpos[at + 3 : at + 7].copy(), 0.0)
    return state, poses, Sent(ctrl[arm.ctrl], arm.opening(ctrl[arm.jaw_ctrl]), 0.0)


def test_twin_observes_and_acts_like_the_simulation() -> None:
    task = sims.make_task("reach", robot="so101")
    env, twin, rng = BatchEnv(task, 4, seed=3), Twin(task), np.random.default_rng(0)
    arm = ArmLayout(env.model, SO101)
    assert sum(twin.columns.values()) == env.obs_dim
    obs = env.reset()
    for _ in range(12):
        action = rng.uniform(-1, 1, (4, env.act_dim)).astype(np.float32)
        aims = []
        for row in range(4):
            state, poses, sent = measured(env, row)
            twin.commit(sent.qpos, sent.gripper)
            np.testing.assert_array_equal(twin.observe(state, poses), obs[row])
            aims.append(twin.target(action[row]))
        obs = env.step(action).obs
        for row, aim in enumerate(aims):
            np.testing.assert_array_equal(aim.qpos, env.batch.ctrl[row, arm.ctrl])
            assert aim.gripper == pytest.approx(0.0)


def test_twin_tracks_formula_progress() -> None:
    """Order, holding, where a thing was at the start and where a part ended: as in training."""
    text = (
        "then(displaced(gripper, least=2cm), hold(far(gripper, red_cube, least=5cm), seconds=0.1), "
        "moved(gripper, left=1cm, tolerance=5cm), moved(gripper, front=1cm, after=2))"
    )
    task = make_goal_task(sims.make_task("reach", robot="so101"), parse(text))
    env, rng = BatchEnv(task, 4, seed=3), np.random.default_rng(0)
    twins, memory = [Twin(task) for _ in range(4)], []
    obs = env.reset()
    for _ in range(25):
        action = rng.uniform(-1, 1, (4, env.act_dim)).astype(np.float32) + [0.5, 0.5, 0.5]
        for row, twin in enumerate(twins):
            state, poses, sent = measured(env, row)
            twin.commit(sent.qpos, sent.gripper)
            np.testing.assert_array_equal(twin.observe(state, poses), obs[row])
        obs = env.step(np.clip(action, -1, 1)).obs
        memory.append(env.views.goal_memory.copy())
    assert (np.diff(memory, axis=0) != 0).any(axis=(0, 1)).sum() >= 2  # parts were done on the way


def test_twin_and_randomized_envs_track_progress_alike() -> None:
    """Of where things are seen, not of where they are."""
    text = (
        "then(displaced(gripper, least=2cm), moved(gripper, front=2cm, tolerance=4cm, after=1), "
        "near(gripper, red_cube), far(gripper, red_cube))"
    )
    task = make_goal_task(sims.make_task("reach", robot="so101"), parse(text))
    seeing = Randomize(
        mass=0,
        friction=0,
        damping=0,
        gain=0,
        soft=0,
        action_delay=0,
        obs_delay=0,
        pose_bias=0.01,
        turn_noise=0,
    )
    env, rng = RandomizedEnv(task, 4, randomize=seeing, seed=3), np.random.default_rng(0)
    twins, at = [Twin(task) for _ in range(4)], {}
    for column, width in twins[0].columns.items():
        start = sum(w.stop - w.start for w in at.values())
        at[column] = slice(start, start + width)
    obs, off = env.reset(), 0.0
    for _ in range(40):
        action = rng.uniform(-1, 1, (4, env.act_dim)).astype(np.float32) + [0.5, 0.5, 0.5]
        true = task.obs(env.views)["goal"]
        for row, twin in enumerate(twins):
            state, poses, sent = measured(env, row)
            twin.commit(sent.qpos, sent.gripper)
            seen = obs[row].astype(float)
            state = dataclasses.replace(state, qpos=seen[at["qpos"]], qvel=10.0 * seen[at["qvel"]])
            things = 0.25 * seen[at["thing"]].reshape(-1, 3)
            poses = {
                name: pose._replace(pos=pos)
                for (name, pose), pos in zip(poses.items(), things, strict=True)
            }
            kept = twin.observe(state, poses)[at["goal"]]
            np.testing.assert_allclose(kept, obs[row, at["goal"]], atol=1e-4)
            off = max(off, np.abs(kept - true[row]).max())
        obs = env.step(np.clip(action, -1, 1)).obs
    assert off > 0.1  # 1 cm, and more where a part was taken for done


def test_twin_targets_start_from_the_sent_command() -> None:
    task = sims.make_task("reach", robot="so101")
    env, twin = BatchEnv(task, 1), Twin(task)
    env.reset()
    state, poses, sent = measured(env, 0)
    up = np.array([0.0, 0.0, 0.1])
    twin.commit(sent.qpos, sent.gripper)
    twin.observe(state, poses)
    wanted = twin.target(up).qpos
    for back in (sent.qpos, sent.qpos + 0.01):  # the filter let something else through
        twin.commit(back, 0.0)
        obs = twin.observe(state, poses)
        np.testing.assert_allclose(twin.target(up).qpos - back, wanted - sent.qpos, atol=1e-9)
        lag = obs[twin.columns["qpos"] + twin.columns["qvel"] :][: twin.columns["lag"]]
        np.testing.assert_allclose(lag, 5.0 * (back - state.qpos), atol=1e-6)


@pytest.mark.parametrize(
    ("value", "what"), [(np.nan, "measured"), (np.inf, "measured"), (1e12, "values out of bounds")]
)
def test_twin_refuses_nonfinite_measurements(value: float, what: str) -> None:
    """MuJoCo would quietly reset the row and the policy would see a world of defaults."""
    task = sims.make_task("reach", robot="so101")
    env, twin = BatchEnv(task, 1), Twin(task)
    env.reset()
    state, poses, _ = measured(env, 0)
    twin.observe(state, poses)
    lost = Pose(np.array([value, 0.0, 0.0]), poses["red_cube"].quat, 0.0)
    with pytest.raises(SafetyStop, match=f"nonfinite: {what}.*red_cube"):
        twin.observe(state, poses | {"red_cube": lost})
    with pytest.raises(SafetyStop, match=f"nonfinite: {what}.*joints"):
        twin.observe(dataclasses.replace(state, qpos=state.qpos * value), poses)
    twin.observe(state, poses)


@pytest.mark.parametrize("name", [n for n, kind in TASKS.items() if hasattr(kind, "robot")])
def test_every_task_with_an_arm_has_a_twin(name: str) -> None:
    """Loose things, furniture and what slides in it stand in the twin where they were perceived."""
    task = sims.make_task(name)
    env, twin, scene = BatchEnv(task, 1, seed=5), Twin(task), SimScene(task, seed=5)
    arm = scene.arm
    assert twin.joints == sims.ROBOTS[task.robot].joints
    assert set(twin.entities) == set(scene.poses())
    state = RobotState(
        0.0,
        0.0,
        0,
        scene.qpos[arm.qpos],
        scene.qvel[arm.qvel],
        np.zeros(len(arm.qpos)),
        arm.opening(scene.qpos[arm.jaw]),
    )
    poses = {k: Pose(*pose, 0.0) for k, pose in scene.poses().items()}
    twin.commit(scene.ctrl[arm.ctrl], arm.opening(scene.ctrl[arm.jaw_ctrl]))
    np.testing.assert_allclose(twin.observe(state, poses), env.reset()[0], atol=1e-5)


def test_twin_refuses_a_task_without_an_arm() -> None:
    class Loose(TASKS["reach"]):
        name = "loose"

    task = Loose()
    object.__setattr__(task, "robot", "")
    with pytest.raises(ValueError, match="'loose' has no field 'robot'"):
        Twin(task)
