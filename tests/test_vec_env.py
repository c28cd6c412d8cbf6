"""The SB3 adapter resets only after the true successor was recorded."""

from __future__ import annotations

import numpy as np
import pytest
from point_mass import Nearness, PointMass, Window
from stable_baselines3 import PPO, SAC

import sims
from robo_rl.rollout.vec_env import SB3VecEnv, SimulationDiverged
from robo_rl.rollout.vec_sim import HasStates, Resumable, episode_steps


def rollout(env: SB3VecEnv, steps: int, seed: int = 0) -> list[tuple]:
    rng = np.random.default_rng(seed)
    return [env.step(rng.uniform(-1, 1, (env.num_envs, 2))) for _ in range(steps)]


def test_point_mass_implements_the_full_protocol():
    sim = PointMass(2)
    assert isinstance(sim, HasStates) and isinstance(sim, Resumable)
    assert episode_steps(sim) == 16


def test_finished_envs_report_terminal_obs_and_reset():
    sim, bare = (PointMass(3, steps=4, ragged=0.3, seed=2) for _ in range(2))
    env = SB3VecEnv(sim)
    np.testing.assert_array_equal(env.reset(), bare.reset())
    rng, ended = np.random.default_rng(0), 0
    for _ in range(20):
        action = rng.uniform(-1, 1, (3, 2))
        obs, reward, done, infos = env.step(action)
        truth = bare.step(action)
        np.testing.assert_allclose(reward, truth.reward, rtol=1e-6)
        np.testing.assert_array_equal(done, truth.terminated | truth.truncated)
        for i in range(3):
            if not done[i]:
                assert infos[i] == {}
                np.testing.assert_array_equal(obs[i], truth.obs[i])
                continue
            ended += 1
            np.testing.assert_array_equal(infos[i]["terminal_observation"], truth.obs[i])
            only_truncated = truth.truncated[i] and not truth.terminated[i]
            assert infos[i]["TimeLimit.truncated"] == only_truncated
        if done.any():
            np.testing.assert_array_equal(obs, bare.reset(done))
    assert ended > 5


def test_transitions_separate_terminal_and_reset_obs():
    env = SB3VecEnv(PointMass(2, steps=3), Nearness())
    env.reset()
    steps = []
    for _ in range(7):
        env.step(np.ones((2, 2)))
        steps.append(env.last_step())
    assert [bool(s.first.all()) for s in steps] == [True, False, False] * 2 + [True]
    for a, b in zip(steps, steps[1:], strict=False):
        same = (a.after["goal"] == b.before["goal"]).all()
        assert same == (not b.first.any())
        if same:
            np.testing.assert_array_equal(a.after["pos"], b.before["pos"])


@pytest.mark.parametrize("context", [1, 3])
def test_vec_env_rewards_come_from_the_model_unless_deferred(context):
    """Not zeros, and not the task's: any algorithm learns from the model."""
    sim = PointMass(3, steps=5, ragged=0.2, seed=3)
    env, later = SB3VecEnv(sim, Window(context)), SB3VecEnv(PointMass(3), Window(context))
    env.reset()
    kept: list[list[float]] = [[], [], []]  # x along each row's episode
    for _ in range(30):
        _, reward, _, _ = env.step(np.full((3, 2), 0.3))
        look = env.last_step()
        for i in range(3):
            if look.first[i]:
                kept[i] = [look.before["pos"][i, 0]]
            kept[i].append(look.after["pos"][i, 0])
            assert reward[i] == pytest.approx(np.mean(kept[i][-context:]), abs=1e-6)
    later.reset()
    later.scored_later = True
    assert not later.step(np.ones((3, 2)))[1].any()


@pytest.mark.parametrize("algorithm", [PPO, SAC])
def test_plain_sb3_training_is_seeded(algorithm):
    sizes = {"n_steps": 8, "batch_size": 16} if algorithm is PPO else {"learning_starts": 16}

    def weights(seed: int) -> np.ndarray:
        """After some steps; the simulator's own seed does not matter."""
        env = SB3VecEnv(sims.make("reach", 4, seed=next(seeds), num_threads=1))
        policy = {"net_arch": [8]}
        made = algorithm("MlpPolicy", env, seed=seed, policy_kwargs=policy, **sizes)
        return made.learn(32).policy.parameters_to_vector()

    seeds = iter(range(3))
    one, same, other = weights(0), weights(0), weights(1)
    assert (one == same).all() and not (one == other).all()


def test_episode_statistics_match_hand_values():
    env = SB3VecEnv(PointMass(4, steps=5), Nearness())
    env.reset()
    total, success = np.zeros(4), None
    for _ in range(5):
        env.step(np.zeros((4, 2)))
        gap = env.last_step().after["goal"] - env.last_step().after["pos"]
        gap = np.linalg.norm(gap, axis=1)
        total -= gap
        success = (gap < 0.1).mean()
    figures = env.episodes.pop()
    assert figures["episodes"] == 4 and figures["episode_steps"] == 5
    assert figures["success"] == success
    assert figures["episode_return"] == pytest.approx(total.mean())
    assert env.episodes.pop() == {"episodes": 0}


def test_success_is_omitted_without_a_judge():
    sim = PointMass(2, steps=1)
    step = sim.step

    def without(action):
        result = step(action)
        return result._replace(info={})

    sim.step = without
    env = SB3VecEnv(sim)
    env.reset()
    rollout(env, 1)
    assert "success" not in env.episodes.pop()


def test_training_stops_when_the_simulation_keeps_failing():
    env = SB3VecEnv(PointMass(64, diverge=0.05))
    env.reset()
    with pytest.raises(SimulationDiverged, match=r"failed in \d+ of \d+ steps \(limit 0.1%\)"):
        rollout(env, 20)
    forgiving = SB3VecEnv(PointMass(64, diverge=0.0005, seed=1))
    forgiving.reset()
    rollout(forgiving, 200)
    assert 0 < forgiving.diverged <= 12
    assert forgiving.episodes.pop()["episodes"] < 64 * 200 / 16 + forgiving.diverged


def test_vec_env_state_dict_round_trip():
    one = SB3VecEnv(PointMass(3, ragged=0.2, seed=7), Nearness())
    one.reset()
    rollout(one, 5)
    one.episodes.pop()
    saved = {name: np.copy(array) for name, array in one.state_dict().items()}
    two = SB3VecEnv(PointMass(3, ragged=0.2, seed=99), Nearness())
    assert two.load_state_dict(saved)
    for (a, *_), (b, *_) in zip(rollout(one, 9, 1), rollout(two, 9, 1), strict=True):
        np.testing.assert_array_equal(a, b)
    for side in ("before", "after"):
        a, b = getattr(one.last_step(), side), getattr(two.last_step(), side)
        np.testing.assert_array_equal(a["pos"], b["pos"])
    np.testing.assert_array_equal(one.last_step().first, two.last_step().first)
    assert (one.env_steps, one.episodes.pop()) == (two.env_steps, two.episodes.pop())


def test_score_context_resumes_from_a_checkpoint():
    """What was scored step by step reaches back over a checkpoint, as it would have without."""
    one, two = (SB3VecEnv(PointMass(3, ragged=0.1, seed=s), Window(4)) for s in (7, 99))
    one.reset()
    rollout(one, 5)
    assert two.load_state_dict({name: np.copy(array) for name, array in one.state_dict().items()})
    for (_, a, *_), (_, b, *_) in zip(rollout(one, 9, 1), rollout(two, 9, 1), strict=True):
        np.testing.assert_array_equal(a, b)


def test_unsupported_vec_env_calls_are_refused():
    env = SB3VecEnv(PointMass(2))
    for call in (lambda: env.seed(1), lambda: env.set_attr("pos", 1), lambda: env.env_method("x")):
        with pytest.raises(ValueError, match="simulator"):
            call()
    assert env.get_attr("control_dt") == [0.1, 0.1]
