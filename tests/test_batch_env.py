"""BatchEnv: rows are independent, faults stay in their row, and a state is all there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sims
from sims import BatchEnv
from sims.core.step_result import StepResult

Array = np.ndarray
TASKS = pytest.mark.parametrize("name", sims.TASKS)


def short(name: str, n: int, steps: int, **options: Any) -> BatchEnv:
    """Environments of ``name`` whose episodes last ``steps`` steps."""
    return sims.make(name, n, episode_s=steps * sims.make_task(name).control_dt, **options)


def actions(env: BatchEnv, steps: int, n: int = 16, seed: int = 0) -> Array:
    """Actions (steps, n, act_dim)."""
    return np.random.default_rng(seed).uniform(-1, 1, (steps, n, env.act_dim))


def play(env: BatchEnv, chosen: Array) -> tuple[Array, Array, list[StepResult]]:
    """States (T, N, k), obs (T, N, k) and results of playing ``chosen``; rows reset when done."""
    states, obs, results = [], [], []
    for action in chosen:
        result = env.step(action)
        states.append(env.state())
        obs.append(result.obs)
        results.append(result)
        done = result.terminated | result.truncated
        if done.any():
            env.reset(done)
    return np.stack(states), np.stack(obs), results


@TASKS
def test_rollout_is_independent_of_num_threads(name: str) -> None:
    runs = []
    for threads in (1, 3):
        env = short(name, 8, 7, seed=3, num_threads=threads)
        first = env.reset()
        runs.append((first, *play(env, actions(env, 16, n=8))[:2]))
    for one, other in zip(*runs, strict=True):
        assert (one == other).all()
    env = sims.make(name, 8, seed=4)
    assert (env.reset() != runs[0][0]).any(axis=1).all()


@TASKS
def test_env_alone_equals_the_same_env_in_a_batch(name: str) -> None:
    wide, alone = short(name, 8, 8, seed=3), short(name, 1, 8, seed=3, rows=[5])
    chosen = actions(wide, 18, n=8)
    assert (wide.reset()[5] == alone.reset()[0]).all()
    states, obs, results = play(wide, chosen)
    states1, obs1, results1 = play(alone, chosen[:, 5:6])
    assert (states[:, 5] == states1[:, 0]).all() and (obs[:, 5] == obs1[:, 0]).all()
    for many, one in zip(results, results1, strict=True):
        assert many.reward[5] == one.reward[0]
        assert all(many.info[key][5] == one.info[key][0] for key in many.info)


@TASKS
def test_reset_changes_only_masked_envs(name: str) -> None:
    env = sims.make(name, 16, seed=3)
    env.reset()
    for action in actions(env, 5):
        before = env.step(action).obs
    state, signals = env.state(), env.signals()
    mask = np.arange(16) % 3 == 0
    obs = env.reset(mask)
    assert (env.state()[~mask] == state[~mask]).all() and (obs[~mask] == before[~mask]).all()
    assert (env.state()[mask] != state[mask]).any(axis=1).all()
    assert all((env.signals()[key][~mask] == signals[key][~mask]).all() for key in signals)
    assert (env.reset(np.zeros(16, bool)) == obs).all()


@TASKS
def test_returned_arrays_are_copies(name: str) -> None:
    env = sims.make(name, 4, seed=3)
    obs, signals, state = env.reset(), env.signals(), env.state()
    kept = obs.copy(), {key: s.copy() for key, s in signals.items()}, state.copy()
    result = env.step(np.ones((4, env.act_dim)))
    info = {key: value.copy() for key, value in result.info.items()}
    env.step(-np.ones((4, env.act_dim)))
    assert (obs == kept[0]).all() and (state == kept[2]).all()
    assert all((signals[key] == kept[1][key]).all() for key in signals)
    assert all((result.info[key] == info[key]).all() for key in info)
    before = env.state()
    for array in (*signals.values(), obs, state, result.obs, *result.info.values()):
        array[:] = 1
    assert (env.state() == before).all()


@TASKS
def test_step_never_resets(name: str) -> None:
    env = short(name, 2, 12, seed=3)
    env.reset()
    flags = [env.step(np.zeros((2, env.act_dim))).truncated for _ in range(14)]
    assert env.max_steps == 12 and not np.any(flags[:11]) and np.all(flags[11:])
    assert env.env_steps == 2 * 14


def test_step_clips_actions_without_changing_the_callers_array() -> None:
    envs = [sims.make("reach", 4, seed=3) for _ in range(2)]
    wild = np.full((4, 3), 9.0)
    for env, action in zip(envs, (wild, np.ones((4, 3))), strict=True):
        env.reset()
        env.step(action)
    assert (wild == 9.0).all()
    assert (envs[0].state() == envs[1].state()).all()


# Faults.
@TASKS
def test_divergence_stays_in_its_env(name: str) -> None:
    """A NaN in an action, then a speed that is finite before the step but not after it."""
    sound, faulty = (sims.make(name, 4, seed=3) for _ in range(2))
    others = np.array([0, 1, 3])
    sound.reset()
    faulty.reset()
    for t, action in enumerate(actions(sound, 9, n=4)):
        theirs = sound.step(action)
        ours = action.copy()
        if t == 3:
            ours[2, 0] = np.nan
        if t == 6:
            faulty.batch.qvel[2] = 1e9
        before = faulty.state()
        result = faulty.step(ours)
        assert (faulty.state()[others] == sound.state()[others]).all()
        assert (result.obs[others] == theirs.obs[others]).all()
        assert (result.reward[others] == theirs.reward[others]).all()
        if t in (3, 6):
            assert result.info["diverged"].tolist() == [False, False, True, False]
            assert result.truncated.tolist() == [False, False, True, False]
            assert not result.terminated[2] and result.reward[2] == 0.0
            assert (faulty.state()[2] == before[2]).all()  # its last state, kept
            assert np.isfinite(result.obs).all() and faulty.num_diverged == t // 3
            assert all(np.isfinite(value).all() for value in faulty.signals().values())
            assert (faulty.reset(result.truncated)[others] == theirs.obs[others]).all()
        else:
            assert not result.info["diverged"].any()
    assert sound.num_diverged == 0


# States.
@TASKS
def test_state_alone_restores_an_env(name: str) -> None:
    env = sims.make(name, 8, seed=3)
    env.reset()
    chosen = actions(env, 12, n=8)
    play(env, chosen[:6])
    state, signals = env.state(), env.signals()
    other = sims.make(name, 8, seed=99)
    other.set_state(state)
    assert (other.state() == state).all()
    assert all((other.signals()[key] == signals[key]).all() for key in signals)
    for action in chosen[6:]:
        env.step(action)
        other.step(action)
        assert (env.state() == other.state()).all()
    assert (env.state(np.array([3, 1])) == env.state()[[3, 1]]).all()


@TASKS
def test_batch_state_dict_resumes_bit_for_bit(name: str) -> None:
    env = short(name, 8, 10, seed=3, rows=list(range(4, 12)))
    env.reset()
    chosen = actions(env, 20, n=8)
    play(env, chosen[:6])
    saved = env.state_dict()
    first = play(env, chosen[6:])
    other = short(name, 8, 10, seed=99)
    other.load_state_dict(saved)
    again = play(other, chosen[6:])  # past the end of an episode: the streams go on too
    for one, two in zip(first[:2], again[:2], strict=True):
        assert (one == two).all()
    assert other.env_steps == env.env_steps
    assert all(isinstance(value, np.ndarray) for value in saved.values())


# Starts.
def test_reset_resamples_starts_that_already_meet_the_goal() -> None:
    goal = "left_of_red_cube"  # holds in a quarter of first draws
    env = sims.make("reach", 64, seed=3, goal=goal)
    other = BatchEnv(sims.make_task("reach", goal=goal), 64, seed=3, judged=False)
    first, obs = other.reset(), env.reset()
    holds = env.task.goals()[goal].success
    held = holds(other.views)
    assert 0.1 < held.mean() < 0.5 and not holds(env.views).any() and not env.held.any()
    assert (obs[~held] == first[~held]).all()  # these are as they always were
    assert (obs[held] != first[held]).any(axis=1).all()
    row = int(np.flatnonzero(held)[0])
    alone = sims.make("reach", 1, seed=3, rows=[row], goal=goal)
    for _ in range(3):
        assert (alone.reset()[0] == obs[row]).all()
        obs = env.reset()


def test_goal_met_at_every_start_is_kept_and_flagged() -> None:
    task = sims.make_task("reach")
    goal = task.goals()[task.goal]._replace(success=lambda v: np.arange(len(v.tip)) % 2 == 0)

    class Met(type(task)):
        def goals(self) -> Any:
            return {"touch_red_cube": goal}

    env = BatchEnv(Met(), 4, seed=3)
    env.reset()
    assert env.held.tolist() == [True, False, True, False]


def test_unjudged_env_has_no_success_or_reward() -> None:
    env = BatchEnv(sims.make_task("reach"), 2, judged=False)
    env.reset()
    result = env.step(np.zeros((2, 3)))
    assert set(result.info) == {"diverged"} and np.isnan(result.reward).all()
    with pytest.raises(ValueError, match="made with judged=False"):
        env.distance()


@pytest.mark.parametrize("name", ["hopper", "ant", "humanoid", "reach"])
def test_inactive_envs_are_not_simulated(name: str) -> None:
    whole, part = (sims.make(name, 6, seed=3) for _ in range(2))
    whole.reset(), part.reset()
    active = np.ones(6, bool)
    for t, action in enumerate(actions(whole, 12, n=6)):
        if t == 4:
            active[[1, 2, 5]] = False
        theirs, ours = whole.step(action), part.step(action, active)
        assert (part.state()[active] == whole.state()[active]).all()
        assert (ours.obs[active] == theirs.obs[active]).all()
        for key in ours.info:
            assert (ours.info[key][active] == theirs.info[key][active]).all()
    assert part.env_steps == 4 * 6 + 8 * 3
    with pytest.raises(RuntimeError, match="some envs have no episode yet"):
        part.step(action)
    part.reset(~active)
    part.step(action)


def test_batch_can_be_reseeded() -> None:
    env = sims.make("reach", 3, seed=3)
    first = env.reset()
    assert (env.reset() != first).any(axis=1).all()
    env.reseed(3)
    assert (env.reset() == first).all()


def test_load_state_dict_refuses_another_batch() -> None:
    saved = sims.make("reach", 2).state_dict()
    with pytest.raises(ValueError, match=r"state_dict\['state'\] must have shape \(3, .*\(2, "):
        sims.make("reach", 3).load_state_dict(saved)
    with pytest.raises(ValueError, match="got nothing"):
        sims.make("reach", 3).load_state_dict({})


# Errors.
def test_batch_env_refuses_wrong_call_order_and_shapes() -> None:
    env = sims.make("reach", 3)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step(np.zeros((3, 3)))
    env.reset(np.array([True, False, True]))
    with pytest.raises(RuntimeError, match="some envs have no episode yet"):
        env.step(np.zeros((3, 3)))
    env.reset(np.array([False, True, False]))
    env.step(np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"action must have shape \(3, 3\), got \(3,\)"):
        env.step(np.zeros(3))
    for mask in (np.ones(2, bool), np.ones(3)):
        with pytest.raises(ValueError, match=r"mask must be \(3,\) bool, got"):
            env.reset(mask)
    with pytest.raises(ValueError, match=r"states must have shape \(3, \d+\), got"):
        env.set_state(env.state()[:1])
    with pytest.raises(ValueError, match="unknown camera 'rear'; available: front, top"):
        env.render(camera="rear")
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        sims.make("reach", 0)
    with pytest.raises(ValueError, match="one entry per env: expected 3, got 2"):
        sims.make("reach", 3, rows=[0, 1])
