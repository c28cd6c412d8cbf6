"""Learners learn from a reward model, and go on from a checkpoint as if nothing had happened."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from point_mass import Nearness, PointMass, Window
from rich.console import Console

import sims
from reward_models.base import RewardOutput
from reward_models.goals.formula import parse
from robo_rl.config.presets import preset
from robo_rl.goals.goal_task import GoalTask, with_formula_goal
from robo_rl.learners import (
    LEARNERS,
    CrossQConfig,
    EnsembleConfig,
    LearnerConfig,
    PPOConfig,
    SACConfig,
    TD3Config,
    TQCConfig,
)
from robo_rl.learners.fit import fit
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.obs_normalization import FAR, ObsNormaliser, ObsOutlier
from robo_rl.learners.training_loop import learn
from robo_rl.rollout.reward_scale import RewardScale
from robo_rl.rollout.vec_env import SimulationDiverged
from robo_rl.rollout.vec_sim import VecSim
from robo_rl.runs.run_dir import CheckpointError, RunDir
from robo_rl.runtime.threads import cores, lend_threads_to_torch, seed_everything, set_threads
from sims.randomization.domain_randomization import SENSED, Randomize, RandomizedEnv

# A rate that falls would fall with the total, and these runs are cut into halves of one.
SMALL = {"num_envs": 8, "net": (16, 16), "final_rate": 1.0}
PPO_SMALL = PPOConfig(**SMALL)
OFF = {"learning_starts": 64, "buffer_size": 1024, "batch_size": 32, "gradient_steps": 2}
CONFIGS: list[LearnerConfig] = [
    PPO_SMALL,
    SACConfig(**SMALL, **OFF),
    TD3Config(**SMALL, **OFF),
    TQCConfig(**SMALL, **OFF),
    CrossQConfig(**SMALL, **OFF),
    EnsembleConfig(**SMALL, **OFF),
]


def new(config: LearnerConfig = PPO_SMALL, seed: int = 0, model=None, **sim) -> Learner:
    point = PointMass(config.num_envs, seed=seed, **sim)
    return make_learner(config, point, model or Nearness(), seed=seed)


def success(learner: Learner, sim: VecSim) -> float:
    """True success of the deterministic policy on new episodes."""
    obs = sim.reset()
    for _ in range(sim.steps):
        result = sim.step(learner.act(obs))
        obs = result.obs
    return float(result.info["success"].mean())


def assert_same(one: Learner, two: Learner) -> None:
    a, b = one.checkpoint(), two.checkpoint()
    assert a.step == b.step and a.meta["counters"] == b.meta["counters"]
    for mine, theirs in ((a.weights, b.weights), (a.state, b.state)):
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


# Quick to learn with: a point reaches its goal after 6,000 steps.
PPO_QUICK = PPOConfig(num_envs=32, net=(32, 32), log_std_init=-0.5, learning_rate=3e-3)


def test_ppo_learns_from_a_reward_model_alone(tmp_path, training_seed, outcome):
    # Observations in odd units: the policy scales them itself.
    odd = {"offset": 3.0, "scale": 20.0}
    run = RunDir.create(tmp_path / "run", PPO_QUICK)
    learner = new(PPO_QUICK, seed=training_seed, **odd)
    outcome("untrained", success(learner, PointMass(300, seed=99, **odd)), below=0.2)
    rows = learn(learner, 6_000, run=run)
    outcome("trained", success(learner, PointMass(300, seed=99, **odd)), above=0.6)
    outcome("success while training", rows[-1]["success"], above=0.35)
    outcome("rise of the reward", rows[-1]["reward"] - rows[0]["reward"], above=0.2)
    found = run.metrics()
    np.testing.assert_array_equal(found["env_steps"], [row["env_steps"] for row in rows])
    assert {"steps_per_s", "episodes", "reward/gap", "score_s", "train/loss"} <= set(found)
    assert run.latest_checkpoint().step == learner.env_steps


# One of Stable-Baselines3's and our own; the others, whose updates are theirs, in `make check`.
LEARNING = [
    pytest.param(
        config,
        id=type(config).__name__,
        marks=[] if type(config) in (SACConfig, EnsembleConfig) else [pytest.mark.slow],
    )
    for config in CONFIGS[1:]
]


@pytest.mark.parametrize("config", LEARNING)
def test_off_policy_learners_learn(config, training_seed, outcome):
    config = dataclasses.replace(
        config,
        num_envs=16,
        net=(32, 32),
        learning_starts=400,
        batch_size=96,
        gradient_steps=6,
        buffer_size=10_000,
        learning_rate=3e-3,
    )
    if isinstance(config, TQCConfig):
        config = dataclasses.replace(config, quantiles=5, drop_quantiles=1)
    learner = new(config, seed=training_seed)
    outcome("untrained", success(learner, PointMass(300, seed=99)), below=0.1)
    learn(learner, 1_600)
    outcome("trained", success(learner, PointMass(300, seed=99)), above=0.25)
    # The scale goes on being measured while it learns.
    assert float(learner.normaliser.count) == 1_600


SEEN = [
    pytest.param(name, marks=[] if name in ("lift", "drawer_then_place") else [pytest.mark.slow])
    for name in ("push", "lift", "stack", "drawer", "button", "drawer_then_place")
]


@pytest.mark.parametrize("name", SEEN)
def test_off_policy_obs_scale_covers_expert_states(name):
    """The scale they begin with tells an expert's states apart, which random play never meets."""
    wide = sims.make(name, 64)
    learner = make_learner(SACConfig(num_envs=64, net=(8,), buffer_size=64), wide)
    begun = sims.make(name, 64).reset()
    np.testing.assert_array_equal(wide.reset(), begun)  # looking round leaves no trace
    sim, rng, seen = sims.make(name, 8), np.random.default_rng(0), []
    sim.reset()
    for _ in range(sim.max_steps):
        seen.append(sim.step(sim.task.expert(sim.views, rng)).obs)
    with torch.no_grad():
        scaled = learner.normaliser(torch.from_numpy(np.concatenate(seen))).abs().numpy()
    far = dict(zip(sim.obs_names, (scaled >= FAR).mean(axis=0), strict=True))
    # A joint that leans on something is left far behind its target; that too is still told apart.
    far = {column: share for column, share in far.items() if not column.startswith("lag")}
    assert max(far.values()) <= 0.01, far
    assert scaled.max() < FAR + np.log1p(30)


@pytest.mark.parametrize(
    ("config", "env_steps"),
    [(PPO_SMALL, 400), (replace(PPO_SMALL, obs_still=0.05), 400), (SACConfig(**SMALL, **OFF), 160)],
)
def test_obs_scale_of_constant_columns_has_a_minimum(config, env_steps):
    """A column that has not moved is scaled by its floor, any other by its own deviation, which is
    above the share ``still`` of the floor. So an error is bounded whatever else was measured."""
    task, nothing = sims.make_task("reach", robot="so101"), dict.fromkeys(SENSED, 0.0)
    late = {"action_delay": 0.0, "obs_delay": 0.0}
    biased = Randomize(**nothing | late | {"pose_bias": 0.003}, told=("pose_bias",))
    env = sims.BatchEnv(task, 8)
    scale = fit(env, None, config, env_steps=env_steps).learner.normaliser
    exact = sims.BatchEnv(task, 64, seed=3).reset()
    seen = RandomizedEnv(task, 64, seed=3, randomize=biased).reset()
    off = np.abs(seen - exact).max(axis=0)
    assert 0.02 < off.max() < 0.2
    exact, seen = (scale(torch.from_numpy(obs)) for obs in (exact, seen))
    scaled = (seen - exact).abs().numpy().max(axis=0)
    spread, floor = (scale.m2 / scale.count).sqrt().numpy(), scale.least_std.numpy()
    still = spread < scale.still * floor
    assert still[env.obs_names.index("thing[2]")]  # a cube's height: it stands on the table
    np.testing.assert_allclose(scaled[still], (off / floor)[still], rtol=1e-3, atol=1e-5)
    assert 0 < scaled[still].max() < 3.0
    assert (scaled <= off / (scale.still * floor) + 1e-5).all()


def test_obs_scale_of_hardly_moving_columns_has_a_minimum():
    seen = np.random.default_rng(0).normal(0.0, [1e-5, 1e-3, 0.1], (1_000, 3))
    for still, least in ((1.0, [0.02, 0.02, 0.1]), (0.04, [0.02, 1e-3, 0.1])):
        scale = ObsNormaliser(3, 0.02, still)
        scale.update(seen)
        np.testing.assert_allclose(1.0 / scale.scale, least, rtol=0.1)


def test_goal_progress_columns_have_their_own_scale():
    inner = sims.make_task("reach", robot="so101")
    said = parse("then(touch(gripper, red_cube), touch(gripper, blue_ball))")
    sim = sims.BatchEnv(GoalTask(inner=with_formula_goal(inner, said)), 2)
    least = dict(zip(sim.obs_names, sim.least_spread, strict=True))
    assert least["tip[0]"] == inner.least_spread == 0.2
    assert [*least.values()].count(0.0) > 0 and 0.05 in least.values()


class OneWrongReading(PointMass):
    """Reports 1e6 in one column once, inside an episode."""

    def __init__(self, *args, at: int, **kwargs):
        super().__init__(*args, **kwargs)
        self.at, self.steps_made = at, 0

    def step(self, action):
        result = super().step(action)
        self.steps_made += 1
        if self.steps_made == self.at:
            result.obs[3, 2] = 1e6
        return result


@pytest.mark.parametrize("config", [PPO_SMALL, SACConfig(**SMALL, **OFF)])
@pytest.mark.parametrize("at", [5, 69])
def test_one_wrong_reading_ruins_no_scale_and_is_named(config: LearnerConfig, at: int) -> None:
    """In the first update or later; the scale is what it is without it."""
    scales = []
    for when in (at, -1):
        learner = make_learner(config, OneWrongReading(8, at=when), seed=0)
        expected = r"environment 3 observed to_goal\[0\] = 1e\+06, more than 1,000 standard"
        with pytest.warns(ObsOutlier, match=expected) if when > 0 else contextlib.nullcontext():
            learn(learner, 8 * 160)
        scales.append(learner.normaliser.scale)
    np.testing.assert_allclose(scales[0], scales[1], rtol=0.3)


def test_what_is_far_is_told_from_what_begins_to_move() -> None:
    rng = np.random.default_rng(0)
    seen = rng.normal(0.0, [1e-3, 1.0], (1_000, 2))
    for first in (0, 500):  # of the first rows, or of later ones
        scale, rows = ObsNormaliser(2), seen.copy()
        rows[700, 1] = -1e6
        known = [scale.update(part) for part in np.split(rows, [first] if first else [])]
        assert np.argwhere(np.concatenate(known)).tolist() == [[700, 1]]
        np.testing.assert_allclose(scale.scale, 1.0 / seen.std(axis=0), rtol=0.1)
    for _ in range(60):  # a thing that lay still is carried 10 m: its scale follows
        scale.update(rng.normal(0.0, [10.0, 1.0], (16, 2)))
    assert 1.0 / float(scale.scale[0]) > 1.0
    flag = np.zeros((1_000, 1))
    flag[300] = 1.0
    assert not ObsNormaliser(1).update(flag).any()


def test_one_wrong_reward_ruins_no_scale() -> None:
    rng, scale = np.random.default_rng(0), RewardScale(8, 0.9)
    ended = np.zeros(8, bool)
    for t in range(200):
        reward = rng.normal(size=8)
        if t == 50:
            reward[2] = 1e7
        last = scale(reward, ended)
    assert 0.5 < np.abs(last / reward).mean() * np.sqrt(1.0 / (1.0 - 0.81)) < 2.0


def test_obs_squashing_is_strictly_monotonic():
    scale = ObsNormaliser(1)
    scale.update(np.random.default_rng(0).normal(size=(100, 1)))
    far = torch.linspace(-2_000, 2_000, 4001)[:, None]
    scaled = scale(far)[:, 0]
    assert (scaled.diff() > 0).all() and scaled.abs().max() < 20
    close = torch.linspace(-5, 5, 11)[:, None]
    np.testing.assert_allclose(scale(close), (close - scale.shift) * scale.scale, rtol=1e-6)


def test_horizon_s_sets_the_discount_of_every_learner():
    assert PPOConfig().gamma(0.05) == pytest.approx(0.97)
    assert SACConfig(horizon_s=2.0).gamma(0.008) == pytest.approx(0.996)
    assert SACConfig().gamma(1.0) > 0.96  # an env that does not say how long its steps are
    for learner, kind in LEARNERS.items():
        hopper = preset("hopper", learner, goal="forward").tuning
        assert type(hopper) is kind.config and hopper.horizon_s == 1.6
    steps = {learner: preset("lift", learner).env_steps for learner in LEARNERS}
    assert steps["sac"] == steps["td3"] == steps["tqc"] < steps["ppo"] == steps["ensemble"]
    made = make_learner(SACConfig(num_envs=2, horizon_s=0.8, buffer_size=64), PointMass(2))
    assert made.algorithm.gamma == pytest.approx(1 - 1 / 33)
    assert made.algorithm.gamma == made.config.gamma(PointMass.control_dt)


def test_task_reward_is_used_without_a_reward_model(training_seed, outcome):
    learner = make_learner(PPO_QUICK, PointMass(32, seed=training_seed), None, seed=training_seed)
    rows = learn(learner, 6_000)
    outcome("trained", success(learner, PointMass(300, seed=99)), above=0.4)
    returns = [row["episode_return"] for row in rows]
    outcome("rise of the return", returns[-1] - returns[0], above=2.0)
    assert "reward" not in rows[-1]


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, of the largest value."""
    return float(np.abs(one - other).max() / np.abs(one).max())


@pytest.mark.parametrize("scored", [True, False])
def test_normalised_reward_is_scale_invariant(scored, training_seed, outcome):
    def returns(factor: float) -> np.ndarray:
        """Of the last rollout, (T, N)."""
        config = dataclasses.replace(PPO_SMALL, normalise_reward=True)
        point = PointMass(8, seed=training_seed, ragged=0.1, reward_scale=1.0 if scored else factor)
        model = Nearness(factor=factor) if scored else None
        learner = make_learner(config, point, model, seed=training_seed)
        learn(learner, 8 * 16 * 4)
        return learner.buffer.returns

    one, other = returns(1.0), returns(4096.0)
    outcome("difference of returns", apart(one, other), below=0.003)
    assert 0.3 < np.abs(one).mean() < 10


def test_model_and_task_rewards_are_normalised_alike(training_seed, outcome):
    """The same reward from a reward model and from the task teaches the same, step by step."""

    class Own(Nearness):
        def score(self, segment):
            gap = np.linalg.norm(segment.signals["goal"] - segment.signals["pos"], axis=-1)
            return RewardOutput(-gap[1:], segment.valid)

    config = dataclasses.replace(PPO_SMALL, normalise_reward=True)
    scored, own = (
        make_learner(config, PointMass(8, seed=training_seed, ragged=0.1), m, seed=training_seed)
        for m in (Own(), None)
    )
    for learner in (scored, own):
        seed_everything(training_seed)
        learn(learner, 8 * 16 * 3)
    difference = apart(scored.buffer.returns, own.buffer.returns)
    outcome("difference of returns", difference, below=1e-4)
    mine, theirs = (x.env.scale.state_dict()["stats"] for x in (scored, own))
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)


RESUMED = [*CONFIGS, dataclasses.replace(PPO_SMALL, normalise_reward=True)]


@pytest.mark.parametrize("config", RESUMED, ids=lambda config: type(config).__name__)
def test_a_resumed_run_equals_an_uninterrupted_one(config, tmp_path):
    def model() -> Window:
        return Window(3)  # reaches back over the end of a rollout

    straight = new(config, model=model(), ragged=0.1)
    learn(straight, 384)
    run = RunDir.create(tmp_path / "run", config)
    first = new(config, model=model(), ragged=0.1)
    learn(first, 256, run=run, checkpoint_every=128)
    again = new(config, model=model(), seed=5, ragged=0.1)  # its own seed is overwritten
    learn(again, 384, run=RunDir.open(run.path), resume=True)
    assert_same(straight, again)


def test_first_row_after_resuming_has_the_figures_of_the_update_before(tmp_path, monkeypatch):
    monkeypatch.setattr("robo_rl.learners.training_loop._ROW_EVERY", 1)
    whole = learn(new(), 8 * 64 * 3)
    run = RunDir.create(tmp_path / "run", PPO_SMALL)
    learn(new(), 8 * 64 * 2, run=run)
    later = learn(new(seed=5), 8 * 64 * 3, run=RunDir.open(run.path), resume=True)
    told, again = (
        [{name: row[name] for name in row if name.startswith("train/")} for row in rows]
        for rows in (whole[-len(later) :], later)
    )
    assert again == told and all(again)


class OnRow(Hook):
    """Calls ``row`` with each metrics row."""

    def __init__(self, row):
        self.row = row


class Tip(Nearness):
    """Distance between gripper and cube, from the tabletop's signals."""

    def score(self, segment):
        gap = np.linalg.norm(segment.signals["tip"] - segment.signals["red_cube_pos"], axis=-1)
        return RewardOutput(-gap[1:], segment.valid)


def test_resumed_run_equals_uninterrupted_on_the_simulator(tmp_path):
    config = PPOConfig(
        num_envs=4, net=(16, 16), n_steps=15, final_rate=1.0
    )  # episodes outlast a rollout

    def arm(seed: int = 0) -> Learner:
        return make_learner(config, sims.make("reach", 4, seed=seed), Tip(), seed=seed)

    run = RunDir.create(tmp_path / "run", config)
    straight = arm()
    learn(straight, 240)
    learn(arm(), 120, run=run, checkpoint_every=60)
    again = arm(seed=1)
    learn(again, 240, run=run, resume=True)
    assert_same(straight, again)


KILL_CONFIG = PPOConfig(num_envs=32, net=(16, 16), n_steps=32, epochs=2)
ROLLOUT = 32 * 32
KILL_EVERY, KILL_AT, KILL_TOTAL = 2 * ROLLOUT, 5 * ROLLOUT, 8 * ROLLOUT
KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from point_mass import Nearness, PointMass
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import make_learner
from robo_rl.learners.training_loop import learn
from robo_rl.learners.ppo import PPOConfig
from robo_rl.runs.run_dir import RunDir

class Wait(Hook):  # at the step where it is killed
    def row(self, row):
        time.sleep(600 * (row["env_steps"] >= {at}))

learner = make_learner({config}, PointMass(32), Nearness())
learn(learner, {total}, run=RunDir.open({run!r}), checkpoint_every={every}, hooks=[Wait()])
"""


def test_killed_run_loses_at_most_one_checkpoint_interval(tmp_path):
    run = RunDir.create(tmp_path / "run", KILL_CONFIG)
    script = KILLED.format(
        tests=str(Path(__file__).parent),
        run=str(run.path),
        config=KILL_CONFIG,
        at=KILL_AT,
        every=KILL_EVERY,
        total=KILL_TOTAL,
    )
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", script], env=env)
    try:
        deadline = time.monotonic() + 300
        while len(run.metrics().get("env_steps", ())) < 5:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    reached = run.metrics()["env_steps"][-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the last checkpoint is whole
        saved = run.latest_checkpoint().step
    assert reached == KILL_AT and 0 < reached - saved <= KILL_EVERY < KILL_TOTAL - saved
    resumed = new(KILL_CONFIG, seed=3)
    rows = learn(resumed, KILL_TOTAL, run=run, resume=True, checkpoint_every=KILL_EVERY)
    straight = new(KILL_CONFIG)
    learn(straight, KILL_TOTAL)
    assert_same(resumed, straight)
    # Rows past the checkpoint were made again, once.
    steps = run.metrics()["env_steps"]
    np.testing.assert_array_equal(steps, np.arange(ROLLOUT, KILL_TOTAL + 1, ROLLOUT))
    for clock in ("wall_s", "processor_s"):
        assert (np.diff(run.metrics()[clock]) > 0).all()
    assert rows[0]["env_steps"] == saved + ROLLOUT


def test_resume_before_the_first_checkpoint_starts_over(tmp_path):
    run = RunDir.create(tmp_path / "run", PPO_SMALL)
    run.append({"env_steps": 1024, "wall_s": 1.0})
    learner = new(PPOConfig(**SMALL, n_steps=128))
    learn(learner, 1024, run=run, resume=True)
    assert len(run.metrics()["env_steps"]) == 1
    assert learn(learner, 1024, run=run, resume=True) == []  # nothing is left to do


def test_stateful_reward_model_is_checkpointed(tmp_path):
    class Counting(Nearness):
        calls = 0

        def score(self, segment):
            self.calls += 1
            return super().score(segment)

        def state_dict(self):
            return {"calls": np.array(self.calls)}

        def load_state_dict(self, saved):
            self.calls = int(saved["calls"])

    run = RunDir.create(tmp_path / "run", PPO_SMALL)
    learn(new(model=Counting()), 1024, run=run)
    model = Counting()
    learn(new(model=model), 1024, run=run, resume=True)
    assert model.calls == 8


def test_resume_without_simulator_state_starts_new_episodes(tmp_path):
    class Forgetful(PointMass):
        state_dict = load_state_dict = None

    def learner() -> Learner:
        return make_learner(PPO_SMALL, Forgetful(8), Window(3))

    run = RunDir.create(tmp_path / "run", PPO_SMALL)
    learn(learner(), 512, run=run)
    again = learner()
    with pytest.warns(UserWarning, match="cannot restore its state"):
        learn(again, 1024, run=run, resume=True)
    assert again.env_steps == 1024


def test_hook_can_end_training_with_a_checkpoint(tmp_path):
    run = RunDir.create(tmp_path / "run", PPO_SMALL)
    config = PPOConfig(**SMALL, n_steps=128, epochs=2)
    rows = learn(new(config), 10_000, run=run, hooks=[OnRow(lambda row: row["env_steps"] < 2_000)])
    assert [row["env_steps"] for row in rows] == [1024, 2048]
    assert run.latest_checkpoint().step == 2048
    straight = new(config)
    learn(straight, 3072)
    again = new(config)
    learn(again, 3072, run=run, resume=True)
    assert_same(straight, again)


def test_checkpoint_of_another_learner_or_size_is_refused(tmp_path):
    run = RunDir.create(tmp_path / "run", PPO_SMALL)
    learn(new(), 256, run=run)
    checkpoint = run.latest_checkpoint()
    with pytest.raises(CheckpointError, match=r"must have shape \(24, 4\).* network sizes"):
        new(PPOConfig(num_envs=8, net=(24, 16))).restore(checkpoint)
    with pytest.raises(CheckpointError, match="saved by another learner .* than SAC with Nearness"):
        new(CONFIGS[1]).restore(checkpoint)


def test_divergence_ends_training_with_a_reason():
    learner = make_learner(PPO_SMALL, PointMass(8, diverge=0.05), Nearness())
    with pytest.raises(SimulationDiverged, match="check the task's timestep"):
        learn(learner, 10_000)


def test_invalid_sizes_error_suggests_a_value():
    with pytest.raises(ValueError, match="does not divide into 3 minibatches.* fits is 4"):
        new(PPOConfig(**SMALL, minibatches=3))
    with pytest.raises(ValueError, match="num_envs=8, the simulator has 4 environments"):
        make_learner(PPO_SMALL, PointMass(4), Nearness())
    with pytest.raises(ValueError, match="horizon_s must be above 0, got -1"):
        PPOConfig(horizon_s=-1)
    with pytest.raises(ValueError, match="needs a run to resume"):
        learn(new(), 10, resume=True)
    with pytest.raises(ValueError, match="simulation >= 0 and learning >= 1"):
        set_threads(-1)


def test_learner_table_lists_every_learner():
    assert list(LEARNERS)[:6] == ["ppo", "sac", "td3", "tqc", "crossq", "ensemble"]
    residual = [f"residual-{of}" for of in ("ppo", "sac", "ensemble", "td3")]
    others = ["iql", *residual]  # test_demo_replay.py, test_residual.py
    assert list(LEARNERS)[6:] == others
    assert [type(config) for config in CONFIGS] == [
        kind.config for name, kind in LEARNERS.items() if name not in others
    ]


def test_progress_bar_shows_speed_success_and_reward():
    console = Console(file=open(os.devnull, "w"), record=True, width=120, force_terminal=True)
    learn(new(PPOConfig(**SMALL, n_steps=128)), 2048, console=console)
    text = console.export_text()
    assert "2,048/2,048 steps" in text and "success" in text and "reward" in text


def test_set_threads_sets_all_libraries(monkeypatch):
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LP_NUM_THREADS")
    for name in names:
        monkeypatch.setenv(name, "7")  # put back after the test
    assert set_threads(3) == 3
    assert [os.environ[name] for name in names] == ["1", "1", "1", "0"]
    assert torch.get_num_threads() == 1
    with pytest.raises(KeyError), lend_threads_to_torch():
        assert torch.get_num_threads() == 3
        raise KeyError
    assert torch.get_num_threads() == 1
    assert set_threads() == cores()


def test_training_is_deterministic_given_the_seed():
    seed_everything(3)
    a = torch.rand(2), np.random.rand(2)  # noqa: NPY002 - what SB3 draws from
    seed_everything(3)
    b = torch.rand(2), np.random.rand(2)  # noqa: NPY002
    assert (a[0] == b[0]).all() and (a[1] == b[1]).all()
    one = new()
    learn(one, 256)
    two = new()
    learn(two, 256)
    assert_same(one, two)


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        (PPOConfig, {"minibatches": 0}, "minibatches must be at least 1, got 0"),
        (PPOConfig, {"epochs": 0}, "epochs must be at least 1"),
        (PPOConfig, {"n_steps": -1}, "n_steps must be at least 0"),
        (PPOConfig, {"gae_lambda": 1.5}, "gae_lambda must be in"),
        (SACConfig, {"batch_size": 0}, "batch_size must be at least 1"),
        (SACConfig, {"gradient_steps": 0}, "gradient_steps must be at least 1"),
        (SACConfig, {"entropy_init": 0.0}, "entropy_init must be above 0"),
        (SACConfig, {"tau": 5.0}, "tau must be above 0 and at most 1, got 5"),
        (PPOConfig, {"learning_rate": float("nan")}, "learning_rate must be above 0, got nan"),
        (PPOConfig, {"net": (64, 0)}, "net must be layers of at least 1 unit"),
        (TD3Config, {"noise": -0.1}, "noise must be at least 0"),
        (TQCConfig, {"drop_quantiles": 25}, "drop_quantiles must be from 0 to 24, one less than"),
        (EnsembleConfig, {"demos": "set", "hindsight": 1.0}, "leaves no room for --demos in a"),
    ],
)
def test_invalid_learner_settings_are_one_line(
    kind: type, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        kind(**wrong)


@pytest.mark.parametrize("kind", [PPOConfig, SACConfig])
def test_obs_statistics_use_env_steps(kind: type) -> None:
    """And not on the look round at the beginning, which counts for little."""
    counts, task = [], sims.make_task("reach")
    for most in (0, 200):
        config = kind(num_envs=64, net=(8,), obs_stats_steps=most)
        learner = make_learner(config, sims.BatchEnv(replace(task, episode_s=0.25), 64))
        begun = float(learner.normaliser.count)
        learn(learner, 640)
        counts.append(float(learner.normaliser.count) - begun)
    assert 200 <= counts[1] < counts[0]
