"""Gymnasium's views of a batch."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sims
from sims.envs.gym_env import GymVectorEnv

IDS = {name: f"robo/{name.title().replace('_', '')}-v0" for name in sims.TASKS}


def vector(name: str = "reach", n: int = 3, **options: Any) -> GymVectorEnv:
    env = gymnasium.make_vec(IDS[name], n, **options)
    assert isinstance(env, GymVectorEnv)
    return env


@pytest.mark.filterwarnings("ignore:.*A Box observation space (min|max)imum value is:UserWarning")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", sims.TASKS)
def test_gymnasium_checker_passes(name: str) -> None:
    check_env(gymnasium.make(IDS[name]).unwrapped)


@pytest.mark.parametrize("name", sims.TASKS)
def test_single_env_is_env_0_of_the_vector_env(name: str) -> None:
    length = {"episode_s": 30 * sims.make_task(name).control_dt}
    single, many = gymnasium.make(IDS[name], **length), vector(name, **length)
    obs, info = single.reset(seed=7)
    all_obs, _ = many.reset(seed=7)
    assert obs in single.observation_space and all_obs in many.observation_space
    assert (obs == all_obs[0]).all() and info == {}
    rng = np.random.default_rng(0)
    for _ in range(many.sim.max_steps):
        action = rng.uniform(-1, 1, many.action_space.shape).astype(np.float32)
        obs, reward, terminated, truncated, info = single.step(action[0])
        all_obs, rewards, terminations, truncations, infos = many.step(action)
        assert reward == rewards[0]
        assert (terminated, truncated) == (terminations[0], truncations[0])
        if terminated or truncated:
            break
        assert (obs == all_obs[0]).all()
        assert all(infos[key][0] == value for key, value in info.items())
    assert (terminated or truncated) and isinstance(info["success"], bool)
    assert (infos["final_obs"][0] == obs).all()
    assert all(infos["final_info"][key][0] == value for key, value in info.items())
    assert (all_obs[0] == single.reset()[0]).all()  # the next episode is the same, too


def test_without_a_seed_episodes_differ_from_run_to_run() -> None:
    first, second = (vector().reset()[0] for _ in range(2))
    assert (first != second).any(axis=1).all()


def test_same_step_autoreset_keeps_final_obs() -> None:
    env = vector()
    twin = sims.make("reach", 3, seed=5)
    env.reset(seed=5)
    twin.reset()
    # Row 1 diverges early, so that rows end at different steps.
    for t in range(twin.max_steps):
        action = np.full((3, 3), 0.3, np.float32)
        if t == 10:
            action[1] = np.nan
        obs, _, _, truncated, info = env.step(action)
        true = twin.step(action)
        if t == 10:
            done = np.array([False, True, False])
            assert (truncated == done).all() and (info["_final_obs"] == done).all()
            assert info["final_obs"][0] is None
            assert (info["final_obs"][1] == true.obs[1]).all()
            assert info["final_info"]["diverged"].tolist() == [False, True, False]
            assert info["_success"].tolist() == [True, False, True]
            assert (obs == twin.reset(done)).all()
        elif t < twin.max_steps - 1:
            assert "final_obs" not in info and (obs == true.obs).all()
    assert truncated.tolist() == [True, False, True]


def test_disabled_autoreset_leaves_reset_to_the_caller() -> None:
    env = vector(autoreset_mode="Disabled")
    assert env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    env.reset(seed=5)
    for _ in range(env.sim.max_steps):
        obs, _, _, truncated, info = env.step(np.zeros((3, 3), np.float32))
    assert truncated.all() and "final_obs" not in info
    mask = np.array([True, False, True])
    new, _ = env.reset(options={"reset_mask": mask})
    assert (new[1] == obs[1]).all() and (new[mask] != obs[mask]).any(axis=1).all()


def test_gymnasiums_wrappers_and_other_vector_envs_work() -> None:
    env = RecordEpisodeStatistics(vector())
    env.reset(seed=0)
    for _ in range(env.unwrapped.sim.max_steps):
        *_, info = env.step(env.action_space.sample())
    assert (info["episode"]["l"] == env.unwrapped.sim.max_steps).all()
    sync = gymnasium.make_vec("robo/Reach-v0", 2, vectorization_mode="sync")
    obs, _ = sync.reset(seed=[4, 9])
    assert obs.shape == (2, env.unwrapped.sim.obs_dim)
    sync.close()


def test_gym_env_renders_the_chosen_camera() -> None:
    goal = "touch_blue_ball"
    single = gymnasium.make(IDS["reach"], goal=goal, render_mode="rgb_array", camera="top")
    many = vector(goal=goal, render_mode="rgb_array", camera="top")
    single.reset(seed=1)
    many.reset(seed=1)
    frames = many.render()
    assert isinstance(frames, tuple) and len(frames) == 3
    assert (frames[0] == single.render()).all()
    assert single.unwrapped.sim.task.goal == many.sim.task.goal == goal
    assert single.metadata["render_fps"] == 20
    many.close()
    single.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"camera": "rear"}, "unknown camera 'rear'"),
        ({"goal": "fly"}, "no goal 'fly'"),
        ({"render_mode": "human"}, "render_mode must be 'rgb_array' or None, got 'human'"),
        ({"autoreset_mode": "NextStep"}, "must be SameStep or Disabled, got NextStep"),
    ],
)
def test_gym_env_refuses_invalid_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vector(**options)


def test_unknown_reset_options_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown reset options start; available: reset_mask"):
        vector().reset(options={"start": 1})
    with pytest.raises(ValueError, match="available: none"):
        gymnasium.make(IDS["reach"]).reset(options={"reset_mask": 1})


def test_gym_tasks_take_parameters_and_time_limit() -> None:
    assert sims.make("reach", 2, tip_step=0.01, num_threads=1).task.tip_step == 0.01
    with pytest.raises(
        ValueError, match="task 'reach' has no parameter 'tip_stop'; available: .*tip"
    ):
        sims.make("reach", 2, tip_stop=0.01)
    plain = gymnasium.make("robo/Reach-v0")
    assert plain.spec.max_episode_steps == plain.unwrapped.sim.max_steps == 50
    short = gymnasium.make("robo/Reach-v0", tip_step=0.01, episode_s=1.0)
    assert short.unwrapped.sim.task.tip_step == 0.01
    assert short.spec.max_episode_steps == 20
    short.reset(seed=0)
    ended = [short.step(np.zeros(short.action_space.shape))[3] for _ in range(20)]
    assert ended == [False] * 19 + [True]
    assert gymnasium.make(short.spec).spec.max_episode_steps == 20
    rows = gymnasium.make_vec("robo/Reach-v0", 2, tip_step=0.01)
    assert (rows.spec.max_episode_steps, rows.unwrapped.sim.task.tip_step) == (50, 0.01)


def test_success_has_the_name_that_sb3_looks_for() -> None:
    one, many = gymnasium.make("robo/Reach-v0"), gymnasium.make_vec("robo/Reach-v0", 3)
    one.reset(seed=0)
    info = one.step(one.action_space.sample())[4]
    assert info["is_success"] == info["success"]
    many.reset(seed=0)
    for _ in range(one.spec.max_episode_steps):
        infos = many.step(many.action_space.sample())[4]
    assert (infos["final_info"]["is_success"] == infos["final_info"]["success"]).all()
    one.close(), many.close()


def test_a_goals_own_sentence_stands_for_its_key() -> None:
    made = gymnasium.make("robo/Reach-v0", goal="The gripper touches the blue ball.")
    assert made.unwrapped.sim.task.goal == "touch_blue_ball"
    with pytest.raises(ValueError, match=r"has no goal 'blue_ball'\. Did you mean .*word for word"):
        gymnasium.make("robo/Reach-v0", goal="blue_ball")


def test_packages_list_what_they_load_when_it_is_used() -> None:
    import real_robot
    import robo_rl

    for package in (robo_rl, sims, real_robot):
        assert set(package.__all__) <= set(dir(package))
