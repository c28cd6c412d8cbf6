"""The reward of a film: paid once, at an episode's end, and the same by whoever asks for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from point_mass import Nearness, PointMass
from test_buffers import replay_buffer, rollout_buffer
from test_robot_logs import GOAL, recorded
from test_scoring import Live

import sims
from robo_rl.cli import main
from robo_rl.evaluation.evaluate import VALIDATION_SEED
from robo_rl.evaluation.overoptimization import OveroptimizationMonitor
from robo_rl.evaluation.recording import record
from robo_rl.evaluation.rollout_video import recording_reward
from robo_rl.goals.reading import read_goal
from robo_rl.learners import PPOConfig, SACConfig
from robo_rl.learners.buffers import ScoredReplayBuffer
from robo_rl.learners.learner import make_learner
from robo_rl.reward_analysis.coverage import play_actor
from robo_rl.reward_analysis.scores import by_model, whole_episodes
from robo_rl.rewards import clip, make_reward, reward_type
from robo_rl.rewards.video_similarity import (
    VideoSimilarityConfig,
    VideoSimilarityReward,
    evenly_spaced_frames,
)
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Trace
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.runs.video import write_webm
from sims import BatchEnv
from sims.envs.demonstrations import DemoConfig, write_demos

Array = np.ndarray
SENTENCE = "the gripper touches the red cube"
STEPS = 9


class Pixels:
    """An encoder: a unit row of the mean of each colour, and of the first pixel."""

    name, size, dtype_name = "pixels", (8, 8), "float32"

    def __init__(self, camera: str = "top"):
        self.camera, self.asked = camera, 0

    def encode(self, frames: Array) -> Array:
        self.asked += len(frames)
        x = frames.reshape(len(frames), -1, 3).astype(np.float32)
        x = np.concatenate([x.mean(axis=1), x[:, 0]], axis=1) + 1.0
        return x / np.linalg.norm(x, axis=1, keepdims=True)


def film(
    formula: str = "ordered", steps: int = STEPS, camera: str = "top"
) -> VideoSimilarityReward:
    """Likeness to a film of three frames, of which none looks like another."""
    shown = np.eye(6, dtype=np.float32)[:3]
    return VideoSimilarityReward(Pixels(camera), shown, steps, 3, formula)


def by_hand(model: VideoSimilarityReward, frames: Array) -> float:
    """The likeness of an episode's frames (L+1, H, W, 3), one after the other."""
    rows = model.encoder.encode(frames[[0, round((len(frames) - 1) / 2), len(frames) - 1]])
    if model.formula == "ordered":
        return float(np.mean([row @ shown for row, shown in zip(rows, np.eye(6), strict=False)]))
    mean = rows.mean(axis=0)
    return float(mean @ np.eye(6)[:3].sum(axis=0) / np.sqrt(3) / np.linalg.norm(mean))


def test_video_frames_are_evenly_spaced() -> None:
    assert evenly_spaced_frames(np.array([2, 51]), 3).tolist() == [[0, 0, 1], [0, 25, 50]]


@given(
    ragged=st.sampled_from([0.0, 0.2, 0.6]),
    formula=st.sampled_from(["mean", "ordered"]),
    every=st.integers(1, 12),
    batch=st.sampled_from([1, 7, 1000]),
    seed=st.integers(0, 50),
)
@settings(deadline=None, max_examples=20)
def test_all_buffers_pay_the_video_reward_at_episode_end(
    ragged, formula, every, batch, seed
) -> None:
    """Step by step, rollout by rollout (PPO), by pieces of a replay (SAC) and relabelled; and a
    simulator that keeps no states."""
    rows, steps = 3, 36
    envs = [
        SB3VecEnv(kind(rows, ragged=ragged, steps=STEPS, diverge=0.02, seed=seed), film(formula))
        for kind in (PointMass, PointMass, PointMass, Live)
    ]
    stepwise, on, off, live = envs
    rollouts = rollout_buffer(on, on.reward_model, every)
    replay = replay_buffer(off, off.reward_model, steps)
    live.scored_later, lived = True, Trace(steps)
    for env in envs:
        env.reset()
    expected, seen = np.zeros((steps, rows)), [[] for _ in range(rows)]
    found = {name: np.zeros((steps, rows)) for name in ("step", "rollout", "replay")}
    rng = np.random.default_rng(seed)
    for t in range(steps):
        action = rng.uniform(-1, 1, (rows, 2))
        made = [env.step(action) for env in envs]
        found["step"][t] = made[0][1]
        obs, _, done, infos = made[1]
        rollouts.add(obs, action, made[1][1], done, torch.zeros(rows), torch.zeros(rows))
        replay.add(obs, obs, action, made[2][1], done, infos)
        lived.add(live.last_step())
        step = stepwise.last_step()
        for n in range(rows):
            if step.first[n]:
                seen[n] = [step.before["#frames"][n]]
            seen[n].append(step.after["#frames"][n])
            if step.last[n] and not step.diverged[n]:
                frames = stepwise.observer.frames(np.stack(seen[n]), "top")
                expected[t, n] = by_hand(stepwise.reward_model, frames)
        if (t + 1) % every == 0:
            rollouts.compute_returns_and_advantage(torch.zeros(rows), done)
            found["rollout"][t + 1 - every : t + 1] = rollouts.rewards
            rollouts.reset()
            replay.score_pending()
    replay.score_pending()
    found["replay"] = replay.rewards.copy()
    replay.relabel(film(formula))
    found["relabelled"] = replay.rewards
    found["frames kept"] = (
        Scorer(film(formula), live.observer, batch=batch).score(lived, 0, steps).reward
    )
    done = steps // every * every
    assert (expected != 0).any()
    for name, reward in found.items():
        upto = done if name == "rollout" else steps
        np.testing.assert_allclose(reward[:upto], expected[:upto], atol=1e-6, err_msg=name)


def test_video_reward_has_no_bootstrap_at_the_time_limit() -> None:
    """SB3 adds what is to come behind a time limit; of a film that is over that is nothing."""
    for model, told in ((film(steps=3), False), (Nearness(), True)):
        env = SB3VecEnv(PointMass(2, steps=3), model)
        env.reset()
        infos = [env.step(np.zeros((2, 2)))[3] for _ in range(3)][-1]
        assert [info["TimeLimit.truncated"] for info in infos] == [told, told]


def test_video_reward_skips_episodes_with_lost_frames() -> None:
    model = film(steps=6)
    env = SB3VecEnv(PointMass(2, steps=6, seed=1), model)
    env.scored_later, trace = True, Trace(20)
    env.reset()
    for _ in range(20):
        env.step(np.full((2, 2), 0.1))
        trace.add(env.last_step())
    scorer = Scorer(model, env.observer)
    whole_ = scorer.score(trace, 0, 20)
    assert np.flatnonzero(whole_.reward[:, 0]).tolist() == [5, 11, 17] and whole_.scored.all()
    assert model.encoder.asked == 3 * 2 * 3 == env.observer.frames_rendered
    short = Trace(10)
    short.load_state_dict(trace.state_dict(10))  # from step 10 on: the second episode's last two
    lost = scorer.score(short, 10, 20)
    assert np.flatnonzero(~lost.scored[:, 0]).tolist() == [1] and not lost.reward[1].any()
    np.testing.assert_array_equal(lost.reward[2:], whole_.reward[12:])


def test_video_reward_of_episodes_matches_step_rewards() -> None:
    """What is filmed, reported and looked at of a policy, beside what training pays."""
    task = sims.make_task("reach", goal="touch_red_cube")
    env = BatchEnv(task, 3, seed=VALIDATION_SEED)
    width = env.act_dim
    model = film("mean", env.max_steps, "front")

    def move(obs: Array) -> Array:
        return np.sin(40.0 * obs[:, :width])

    trained = SB3VecEnv(env, model)
    obs = trained.reset()
    paid = np.zeros((env.max_steps, 3))
    for t in range(env.max_steps):
        obs, paid[t], _, _ = trained.step(move(obs))
    assert paid[-1].all() and not paid[:-1].any()
    shown = record(task, move, episodes=3, seed=VALIDATION_SEED)
    drawn = BatchEnv(task, 1)
    np.testing.assert_allclose(recording_reward(model, drawn, shown), paid, atol=1e-6)
    cover = play_actor(task, "mover", lambda env, obs: move(obs), 3, VALIDATION_SEED)
    np.testing.assert_allclose(
        by_model(model)(cover, whole_episodes(cover)).reward, paid, atol=1e-6
    )
    judged = OveroptimizationMonitor(BatchEnv(task, 3, seed=1), model)(move)
    assert judged["proxy"] == pytest.approx(paid.sum(axis=0).mean() / env.max_steps, rel=1e-5)


@pytest.mark.parametrize(
    "config",
    [
        PPOConfig(num_envs=2, n_steps=16, minibatches=2),
        SACConfig(
            num_envs=2, buffer_size=400, learning_starts=8, batch_size=8, net=(8,), gradient_steps=1
        ),
    ],
)
def test_video_reward_covers_the_whole_episode_after_resume(config, coarse_obs_scale: None) -> None:
    """A checkpoint in the middle of an episode has what the film of it needs."""

    def learner():
        sim = sims.make("reach", 2, seed=0, goal="touch_red_cube", episode_s=1.0)
        return make_learner(config, sim, film(steps=sim.max_steps, camera="front"))

    def learned(one, steps: int) -> None:
        one.algorithm.learn(steps, reset_num_timesteps=False)

    one, other = learner(), learner()
    learned(one, 32)  # 16 of 20 steps
    saved = one.checkpoint()
    learned(one, 32)
    other.restore(saved)
    learned(other, 32)
    for each in (one, other):
        if isinstance(each.buffer, ScoredReplayBuffer):
            each.buffer.score_pending()
    assert one.buffer.rewards.any()
    np.testing.assert_array_equal(one.buffer.rewards, other.buffer.rewards)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One episode of the expert."""
    to = tmp_path_factory.mktemp("film") / "set"
    task = sims.make_task("reach", goal="touch_red_cube")
    write_demos(task, to, DemoConfig(episodes=1, num_envs=1, seed=3))
    return to


def test_demonstration_video_may_be_any_episode_source(
    demonstration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robo_rl.datasets.sources import SourceOptions, read_episodes

    monkeypatch.setattr(clip, "SCALED_ON", 64)
    [seen] = read_episodes([demonstration], SourceOptions())
    write_webm(tmp_path / "film.webm", seen.frames, 20.0)
    log = recorded(
        tmp_path / "log.mcap", sims.make_task("reach", robot="so101", goal=GOAL), film=("wrist",)
    )
    env = sims.make("reach", 2, seed=3, goal="touch_red_cube")
    goal = read_goal(env.task, "touch_red_cube")
    made = {
        name: make_reward(name, goal, env)
        for name in (f"film:{demonstration}", f"film:{tmp_path / 'film.webm'}", f"film:{log}")
    }
    own, webm, taken = made.values()
    assert "by the scripted expert" in own.sees and "who acted in it is not said" in webm.sees
    assert own.camera == "front" and own.frames == 64 and own.model.context == env.max_steps
    assert own.model.goal @ webm.model.goal > 0.97 > own.model.goal @ taken.model.goal
    said = make_reward("film", goal, env)
    assert said.text == SENTENCE and SENTENCE in said.sees
    # The demonstration is the film most like itself, and like what it shows.
    rows = own.model.encoder.encode(
        seen.frames[evenly_spaced_frames(np.array(len(seen.frames)), 8)]
    )
    for model in (own.model, said.model):
        assert model.raw(rows[None])[0] > model.scale[0]
    assert own.model.raw(rows[None])[0] == pytest.approx(1.0, abs=1e-4)


def test_invalid_demonstration_video_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.mp4").write_text("no film")
    (tmp_path / "empty").mkdir()
    for reward, more, says in (
        ("film:nowhere.webm", [], "video nowhere.webm does not exist; make one of the"),
        (f"film:{tmp_path / 'text.mp4'}", [], "cannot read a video"),
        (f"film:{tmp_path / 'empty'}", [], "no frames that can be read"),
        ("film", ["--film.formula", "ordered"], "a sentence has no temporal order"),
        ("film", ["--robot", "koch"], "then give --film.encoder embedded:FILE.safetensors"),
    ):
        asked = ["train", "reach", "--reward", reward, *more, "--runs", str(tmp_path / "runs")]
        assert main(asked) == 1
        err = capsys.readouterr().err.replace("\n", " ")
        assert err.count("robo-rl: ") == 1 and says in err, err
    assert reward_type("film") is reward_type("film:FILE")
    for name in ("film:", "clip:film"):
        with pytest.raises(ValueError, match=r"unknown reward .*film\[:FILE\]"):
            reward_type(name)
    with pytest.raises(ValueError, match="at least 2"):
        VideoSimilarityConfig(frames=1)
    with pytest.raises(ValueError, match=r"must have shape \(3, D\)"):
        VideoSimilarityReward(Pixels(), np.eye(6), 5, 3, "ordered")
