"""Locomotion tasks are Gymnasium's v5 environments: same observation, reward, end; to 1e-8."""

from __future__ import annotations

import gymnasium
import mujoco
import numpy as np
import pytest

import sims
from sims import BatchEnv

Array = np.ndarray

MIRRORS = [name for name, task in sims.TASKS.items() if task.mirrors]
ROWS, STEPS = 4, 250  # 1,000 steps of each task
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def expected(env: gymnasium.Env, action: Array) -> tuple[Array, float, bool]:
    """What Gymnasium's environment says of a step."""
    obs, reward, terminated, _, _ = env.step(action)
    return obs, float(reward), bool(terminated)


@pytest.mark.parametrize("name", MIRRORS)
def test_parity_of_random_steps_with_gymnasium(name: str) -> None:
    theirs = [gymnasium.make(sims.TASKS[name].mirrors).unwrapped for _ in range(ROWS)]
    env = sims.make(name, ROWS, num_threads=1)
    task, v = env.task, env.views
    reward_of = task.goals()[task.goal].reward
    low, high = env.model.actuator_ctrlrange.T
    states = np.empty((ROWS, env.nstate))

    def restart(rows: Array) -> None:
        """Gymnasium's own starting states, also in our rows."""
        for row in rows:
            theirs[row].reset(seed=None if rows.size < ROWS else int(row))
            mujoco.mj_getState(theirs[row].model, theirs[row].data, states[row], STATE)
        # Only the rows that begin anew are written: the others go on as their last step left them.
        env.batch.state[rows] = states[rows]
        env.batch.forward(rows)
        task.after_reset(v, rows)

    env.reset()
    restart(np.arange(ROWS))
    rng = np.random.default_rng(0)
    seen_end = False
    for step in range(STEPS):
        action = rng.uniform(-1, 1, (ROWS, env.act_dim))
        result = env.step(action)
        obs = np.concatenate(list(task.obs(v).values()), axis=1)
        reward = sum(reward_of(v, action).values())
        ctrl = 0.5 * (low + high) + 0.5 * (high - low) * action
        done = np.zeros(ROWS, bool)
        for row, other in enumerate(theirs):
            want, worth, done[row] = expected(other, ctrl[row])
            assert obs.dtype == np.float64 and want.shape == obs[row].shape
            np.testing.assert_allclose(obs[row], want, rtol=0, atol=1e-8)
            assert abs(reward[row] - worth) < 1e-8, step
            assert result.terminated[row] == done[row]
        seen_end |= done.any()
        if done.any():
            restart(np.flatnonzero(done))
    if name in ("hopper", "walker2d", "humanoid"):
        assert seen_end  # random play falls, so the end of an episode was compared, too
    for other in theirs:
        other.close()


@pytest.mark.parametrize("name", MIRRORS)
def test_parity_of_time_limits_and_action_spaces(name: str) -> None:
    env, spec = sims.make(name, 1), gymnasium.spec(sims.TASKS[name].mirrors)
    theirs = gymnasium.make(spec).unwrapped
    assert env.control_dt == pytest.approx(theirs.dt) and env.max_steps == spec.max_episode_steps
    assert theirs.action_space.shape == (env.act_dim,)
    assert theirs.observation_space.shape == (env.obs_dim,)
    for field in ("body_mass", "geom_size", "jnt_range", "dof_damping", "actuator_gear"):
        assert (getattr(env.model, field) == getattr(theirs.model, field)).all()
    theirs.close()


@pytest.mark.parametrize("name", MIRRORS)
def test_parity_of_initial_state_distributions(name: str) -> None:
    env, theirs = sims.make(name, 400, seed=1), gymnasium.make(sims.TASKS[name].mirrors).unwrapped
    env.reset()
    drawn = []
    for seed in range(400):
        theirs.reset(seed=seed)
        drawn.append(np.concatenate([theirs.data.qpos, theirs.data.qvel]))
    ours = np.concatenate([env.batch.qpos, env.batch.qvel], axis=1)
    other = np.stack(drawn)
    wide = other.std(axis=0) + 1e-12
    assert (np.abs(ours.mean(axis=0) - other.mean(axis=0)) < 0.35 * wide + 1e-12).all()
    assert (np.abs(ours.std(axis=0) / wide - 1.0)[other.std(axis=0) > 0] < 0.25).all()
    assert (ours.std(axis=0)[other.std(axis=0) == 0] == 0).all()
    theirs.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", MIRRORS)
def test_parity_does_not_depend_on_batch_size(name: str) -> None:
    """Row k of many is the same as row k of few: parity does not depend on the batch's width."""
    few, many = sims.make(name, ROWS, seed=3), sims.make(name, 64, seed=3)
    assert isinstance(few, BatchEnv)
    few.reset()
    many.reset()
    rng = np.random.default_rng(1)
    for _ in range(160):
        action = rng.uniform(-1, 1, (64, few.act_dim))
        mine, all_rows = few.step(action[:ROWS]), many.step(action)
        assert (mine.obs == all_rows.obs[:ROWS]).all()
        assert (mine.reward == all_rows.reward[:ROWS]).all()
        done = all_rows.terminated | all_rows.truncated
        few.reset(done[:ROWS])
        many.reset(done)
