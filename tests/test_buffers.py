"""Scored rewards meet SB3's advantages and replay without losing anything SB3 put there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from point_mass import InTurn, Nearness, PointMass, Window
from stable_baselines3.common.vec_env import VecNormalize

import sims
from robo_rl.learners.buffers import SavedReplayBuffer, ScoredReplayBuffer, ScoredRolloutBuffer
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.vec_env import SB3VecEnv
from sims.randomization.domain_randomization import Randomize, RandomizedEnv


def rollout_buffer(env: SB3VecEnv, model, steps: int, **kwargs) -> ScoredRolloutBuffer:
    return ScoredRolloutBuffer(
        steps,
        env.observation_space,
        env.action_space,
        "cpu",
        n_envs=env.num_envs,
        env=env,
        scorer=Scorer(model, env.observer),
        **kwargs,
    )


def fill(env: SB3VecEnv, buffer, steps: int, seed: int = 0) -> list:
    """Random steps into a replay buffer as SB3 stores them; every Transition."""
    rng, kept = np.random.default_rng(seed), []
    obs = env.sim._obs() if env.env_steps else env.reset()
    for _ in range(steps):
        action = rng.uniform(-1, 1, (env.num_envs, 2))
        after, reward, done, infos = env.step(action)
        successor = after.copy()
        for i in np.flatnonzero(done):
            successor[i] = infos[i]["terminal_observation"]
        buffer.add(obs, successor, action, reward, done, infos)
        obs = after
        kept.append(env.last_step())
    return kept


def nearness(kept: list, factor: float = 1.0) -> np.ndarray:
    gap = np.stack([np.linalg.norm(s.after["goal"] - s.after["pos"], axis=1) for s in kept])
    diverged = np.stack([s.diverged for s in kept])
    return np.where(diverged, 0.0, factor * np.exp(-4 * gap))


def test_advantages_with_truncation_match_hand_calculation():
    """One row, 3 steps, truncated after the second: SB3 adds gamma V(terminal) to its reward."""
    gamma, lam = 0.5, 0.5
    env = SB3VecEnv(PointMass(1, steps=2), Nearness())
    buffer = rollout_buffer(env, Nearness(), 3, gamma=gamma, gae_lambda=lam)
    env.reset()
    values, v_terminal, v_last = [1.0, 2.0, 3.0], 10.0, 4.0
    starts, scores = [True, False, True], []
    for t in range(3):
        obs, reward, done, infos = env.step(np.zeros((1, 2)))
        assert bool(done[0]) == (t == 1)
        if done[0]:  # what SB3's PPO does
            assert infos[0]["TimeLimit.truncated"]
            reward[0] += gamma * v_terminal
        buffer.add(
            obs,
            np.zeros((1, 2)),
            reward,
            np.array([starts[t]]),
            torch.tensor([values[t]]),
            torch.tensor([0.0]),
        )
        step = env.last_step()
        gap = float(np.linalg.norm(step.after["goal"] - step.after["pos"]))
        scores.append(np.exp(-4 * gap))
    buffer.compute_returns_and_advantage(torch.tensor([v_last]), np.array([False]))
    r0, r1, r2 = scores
    a2 = r2 + gamma * v_last - values[2]
    a1 = r1 + gamma * v_terminal - values[1]  # nothing flows back over the reset
    a0 = r0 + gamma * values[1] - values[0] + gamma * lam * a1
    np.testing.assert_allclose(buffer.advantages[:, 0], [a0, a1, a2], rtol=1e-5)
    np.testing.assert_allclose(buffer.rewards[:, 0], [r0, r1 + gamma * v_terminal, r2], rtol=1e-5)
    np.testing.assert_allclose(buffer.output.reward[:, 0], scores, rtol=1e-6)


def test_score_context_spans_rollouts():
    model = Window(4)
    env = SB3VecEnv(PointMass(3, ragged=0.1, steps=50, seed=2), model)
    env.reset()
    buffer, rng = rollout_buffer(env, model, 5), np.random.default_rng(0)
    found, xs, expected = [], [[] for _ in range(3)], np.zeros((20, 3))
    for t in range(20):
        obs, reward, done, _ = env.step(rng.uniform(-1, 1, (3, 2)))
        buffer.add(obs, np.zeros((3, 2)), reward, done, torch.zeros(3), torch.zeros(3))
        step = env.last_step()
        for n in range(3):
            if step.first[n]:
                xs[n] = [step.before["pos"][n, 0]]
            xs[n].append(step.after["pos"][n, 0])
            expected[t, n] = np.mean(xs[n][-4:])
        if t % 5 == 4:
            buffer.compute_returns_and_advantage(torch.zeros(3), done)
            found.append(buffer.rewards.copy())
            buffer.reset()
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-6)


def replay_buffer(env, model, capacity: int, **more) -> ScoredReplayBuffer:
    return ScoredReplayBuffer(
        capacity * env.num_envs,
        env.observation_space,
        env.action_space,
        "cpu",
        n_envs=env.num_envs,
        env=env,
        scorer=Scorer(model, env.observer),
        **more,
    )


def test_all_buffers_score_sequential_goals_alike():
    """Step by step, in rollouts that are resumed in between, and from a ring that is too short for
    an episode."""

    def sim() -> PointMass:
        return PointMass(3, ragged=0.1, steps=25, seed=2)

    def played(scored_later: bool):
        env = SB3VecEnv(sim(), InTurn())
        env.scored_later = scored_later
        env.reset()
        for t in range(40):
            there = 1.0 if t % 25 < 9 else -1.0
            yield env, *env.step(np.full((3, 2), there))[:3]

    live = np.stack([reward for _, _, reward, _ in played(False)])
    assert live.max() > 1.0  # some row did the first, then something of the second
    found, buffer = [], None
    for t, (env, obs, reward, done) in enumerate(played(True)):
        if t % 8 == 0:
            saved = buffer.state_dict() if buffer is not None else None
            buffer = rollout_buffer(env, InTurn(), 8)
            if saved is not None:
                buffer.load_state_dict(saved)
        buffer.add(obs, np.zeros((3, 2)), reward, done, torch.zeros(3), torch.zeros(3))
        if t % 8 == 7:
            buffer.compute_returns_and_advantage(torch.zeros(3), done)
            found.append(buffer.rewards.copy())
    np.testing.assert_allclose(np.concatenate(found), live, atol=1e-6)
    ring = None
    for t, (env, obs, reward, done) in enumerate(played(True)):
        ring = ring or replay_buffer(env, InTurn(), 10)
        ring.add(obs, obs, np.zeros((3, 2)), reward, done, [{} for _ in done])
        if t % 3 == 0:
            ring.score_pending()
    ring.score_pending()
    kept = ring.rewards.copy()
    ring.relabel()
    np.testing.assert_array_equal(ring.rewards, kept)
    np.testing.assert_allclose(np.roll(kept, -ring.pos, axis=0), live[-10:], atol=1e-6)


@given(
    steps=st.integers(1, 40),
    capacity=st.integers(1, 15),
    every=st.integers(1, 9),
    context=st.integers(1, 3),
    seed=st.integers(0, 50),
)
@settings(deadline=None, max_examples=40)
def test_relabel_rewrites_all_valid_rewards_after_wrapping(steps, capacity, every, context, seed):
    first, model = Nearness(), Nearness(version=3, factor=2.0)
    sim = PointMass(3, steps=7, ragged=0.1, diverge=0.01, seed=seed)
    env = SB3VecEnv(sim, first)
    buffer, kept = replay_buffer(env, first, capacity), []
    for start in range(0, steps, every):
        kept += fill(env, buffer, min(every, steps - start), seed=start)
        buffer.sample(4)
    oldest = max(0, steps - capacity)
    at = np.arange(oldest, steps) % capacity
    np.testing.assert_allclose(buffer.rewards[at], nearness(kept)[oldest:], rtol=1e-5)
    buffer.relabel(model)
    np.testing.assert_allclose(buffer.rewards[at], nearness(kept, 2.0)[oldest:], rtol=1e-5)
    assert (buffer.version[at] == 3).all()
    diverged = np.stack([s.diverged for s in kept])[oldest:]
    np.testing.assert_array_equal(buffer.scored[at], ~diverged)
    # Windows see as much of an episode as the ring still holds.
    buffer.relabel(Window(context))
    for n in range(3):
        xs: list[float] = []
        for t in range(oldest, steps):
            if kept[t].first[n] or t == oldest:
                xs = [kept[t].before["pos"][n, 0]]
            xs.append(kept[t].after["pos"][n, 0])
            expected = 0.0 if kept[t].diverged[n] else np.mean(xs[-context:])
            assert buffer.rewards[t % capacity, n] == pytest.approx(expected, abs=1e-6)


def test_replay_records_reward_model_version():
    model = Nearness(version=1)
    env = SB3VecEnv(PointMass(2, steps=4), model)
    buffer = replay_buffer(env, model, 6)
    kept = fill(env, buffer, 5)
    assert not buffer.scored.any()  # nothing is scored before somebody samples
    samples = buffer.sample(64)
    assert buffer.scored[:5].all() and (buffer.version[:5] == 1).all()
    assert buffer.episode_step[:5, 0].tolist() == [0, 1, 2, 3, 0]
    gap = np.linalg.norm(kept[2].after["goal"] - kept[2].after["pos"], axis=1)
    np.testing.assert_allclose(buffer.components["gap"][2], gap, rtol=1e-6)
    near = nearness(kept)
    assert set(samples.rewards.flatten().numpy()) <= set(near.astype(np.float32).flatten())
    # Truncated episodes go on in the critic's eyes.
    assert not samples.dones.any()


def test_refit_relabels_older_rewards():
    model = Nearness()
    env = SB3VecEnv(PointMass(2), model)
    buffer = replay_buffer(env, model, 8)
    kept = fill(env, buffer, 5)
    buffer.sample(1)
    model.version, model.factor = 1, 3.0
    kept += fill(env, buffer, 5, seed=1)
    buffer.sample(1)
    at = np.arange(2, 10) % 8
    np.testing.assert_allclose(buffer.rewards[at], nearness(kept, 3.0)[2:], rtol=1e-5)
    assert (buffer.version == 1).all()


def test_n_step_returns_stop_at_ends_and_are_rescored():
    """By hand; the ring has wrapped, so its newest steps lie before its oldest."""
    gamma, n, capacity = 0.5, 3, 8
    env = SB3VecEnv(PointMass(2, steps=5, ragged=0.2, seed=1), Nearness())
    buffer = replay_buffer(env, Nearness(), capacity, n_steps=n, gamma=gamma)
    dones = []
    step = env.step
    env.step = lambda action: (made := step(action), dones.append(made[2]))[0]
    kept = fill(env, buffer, 11)
    for factor in (1.0, 3.0):
        buffer.relabel(Nearness(factor=factor))
        paid = nearness(kept, factor)
        batch = buffer.sample(400)
        found = set()
        for k, obs in enumerate(batch.observations.numpy()):
            (t, row), *more = (
                (t, row)
                for t in range(3, 11)
                for row in range(2)
                if np.array_equal(buffer.observations[t % capacity, row], obs)
            )
            assert not more
            last = next((i for i in range(t, t + n) if i == 10 or dones[i][row]), t + n - 1)
            steps = np.arange(t, last + 1)
            expected = paid[steps, row] @ gamma ** np.arange(len(steps))
            assert batch.rewards[k, 0] == pytest.approx(expected, rel=1e-5)
            assert batch.discounts[k, 0] == gamma ** len(steps)
            ended = buffer.next_observations[last % capacity, row]
            np.testing.assert_array_equal(batch.next_observations[k], ended)
            over = buffer.dones[last % capacity, row] and not buffer.timeouts[last % capacity, row]
            assert batch.dones[k, 0] == over
            found.add(len(steps))
        assert found == {1, 2, 3} and 0 < batch.dones.mean() < 1


def test_replay_state_dict_round_trip():
    model = Nearness(version=2)
    env = SB3VecEnv(PointMass(2, steps=4), model)
    one, two = replay_buffer(env, model, 6), replay_buffer(env, model, 6)
    fill(env, one, 8)
    one.sample(4)
    fill(env, one, 1)  # not scored yet
    two.load_state_dict({name: np.copy(a) for name, a in one.state_dict().items()})
    for name, ring in one.rings().items():
        np.testing.assert_array_equal(ring, two.rings()[name])
    assert (one.pos, one.full) == (two.pos, two.full)
    for buffer in (one, two):
        buffer.score_pending()
    np.testing.assert_array_equal(one.rewards, two.rewards)
    with pytest.raises(ValueError, match="has 6 steps of 2 environments, this one 5 steps of 2"):
        replay_buffer(env, model, 5).load_state_dict(one.state_dict())


def test_model_that_changes_while_scoring_is_scored_again():
    class Settling(Nearness):
        calls = 0

        def score(self, segment):
            self.calls += 1
            self.version = int(self.calls > 1)
            self.factor = 1.0 + self.version
            return super().score(segment)

    model = Settling()
    env = SB3VecEnv(PointMass(4), model)
    buffer = replay_buffer(env, model, 20)
    buffer.scorer.batch = 8
    kept = fill(env, buffer, 12)
    buffer.sample(1)
    np.testing.assert_allclose(buffer.rewards[:12], nearness(kept, 2.0), rtol=1e-5)


def test_norm_reward_is_refused():
    model = Nearness()
    env = SB3VecEnv(PointMass(2), model)
    scaled = VecNormalize(env, norm_reward=True)
    with pytest.raises(ValueError, match="norm_reward=False"):
        ScoredRolloutBuffer(
            4,
            env.observation_space,
            env.action_space,
            "cpu",
            n_envs=2,
            env=scaled,
            scorer=Scorer(model, env.observer),
        )
    buffer = replay_buffer(VecNormalize(env, norm_reward=False), model, 4)
    fill(env, buffer, 4)
    with pytest.raises(ValueError, match="norm_reward=False"):
        buffer.sample(1, scaled)


@pytest.mark.parametrize("kind", [SavedReplayBuffer, ScoredReplayBuffer])
def test_replay_and_scorers_get_the_executed_action(kind: type) -> None:
    """Rows that hear late of actions do something else than what the policy asked for."""
    late = Randomize(obs_delay=0, obs_noise=0)
    sim = RandomizedEnv(sims.make_task("reach"), 4, randomize=late)
    env = SB3VecEnv(sim, Nearness())
    scored = {"scorer": Scorer(Nearness(), env.observer)} if kind is ScoredReplayBuffer else {}
    spaces = env.observation_space, env.action_space
    buffer = kind(32, *spaces, n_envs=4, env=env, **scored)
    obs, asked = env.reset(), 2.0 * np.ones((4, 3), np.float32)
    after, reward, done, infos = env.step(asked)
    buffer.add(obs, after, asked, reward, done, infos)
    executed = env.last_step().action
    assert (executed < 1).all() and (executed > 0).all()  # at rest before, for a share of the step
    np.testing.assert_array_equal(buffer.actions[0], executed.astype(np.float32))
