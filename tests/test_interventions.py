"""Somebody who takes over in early episodes: what is done, what is kept of it, who may."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_learners import assert_same

import sims
from robo_rl.commands.train import parse_train
from robo_rl.learners import EnsembleConfig, SACConfig
from robo_rl.learners.learner import Learner, make_learner
from robo_rl.learners.training_loop import learn
from robo_rl.rollout.interventions import LATEST, Interventions
from robo_rl.runs.run_dir import RunDir

ROWS = 16
# A rate that falls would fall with the total, and these runs are cut into halves of one.
SMALL = {
    "final_rate": 1.0,
    "num_envs": ROWS,
    "net": (16, 16),
    "learning_starts": 64,
    "buffer_size": 8192,
    "batch_size": 32,
    "gradient_steps": 1,
    "normalise_obs": False,
}


def new(share: float, task: str = "lift", **more) -> Learner:
    config = EnsembleConfig(**SMALL | more, interventions=share, interventions_until=10**6)
    return make_learner(config, sims.make(task, ROWS, seed=5), seed=5)


def test_expert_takes_over_the_given_share_of_early_episodes() -> None:
    """Nothing is done by anybody else, so success can only be the expert's."""
    sim = sims.make("lift", 64, seed=1)
    teach = Interventions(sim, 0.25, until=64 * sim.max_steps)
    for early in (True, False):
        sim.reset()
        taken = np.zeros((sim.max_steps, 64), bool)
        for t in range(sim.max_steps):
            still = np.full((64, sim.act_dim), np.nan)  # where the policy acts, it says so
            done = teach(still, np.full(64, t == 0), sim.env_steps)
            taken[t] = np.isfinite(done).all(axis=1)
            last = sim.step(np.nan_to_num(done))
        mine = taken.any(axis=0)
        if not early:
            assert not mine.any()
            continue
        assert 8 <= mine.sum() <= 24  # of 64, 16 expected
        first = taken.argmax(axis=0)[mine]
        assert first.max() < LATEST * sim.max_steps and len(set(first)) > 4
        for row in np.flatnonzero(mine):
            assert taken[taken[:, row].argmax() :, row].all()  # to the end
        assert last.info["success"][mine].mean() > 0.5
        assert not last.info["success"][~mine].any()
    assert 0.02 < teach.pop_share() < 0.2 and teach.pop_share() == 0.0


def test_interventions_train_on_the_executed_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = new(0.5, learning_starts=10**6)
    sim, kept = learner.env.sim, learner.buffer
    always = np.linspace(-2.0, 0.9, sim.act_dim)
    monkeypatch.setattr(type(sim.task), "expert", lambda self, v, rng: np.tile(always, (ROWS, 1)))
    learn(learner, ROWS * sim.max_steps)
    done = kept.actions[: sim.max_steps]
    theirs = (done == np.clip(always, -1, 1).astype(np.float32)).all(axis=2)
    assert 3 <= theirs[-1].sum() <= 13  # of 16, 8 expected
    assert (theirs[:-1] <= theirs[1:]).all() and not theirs[0].all()  # to the end, once begun


def test_interventions_resume_identically(tmp_path: Path) -> None:
    run, whole = RunDir.create(tmp_path / "run", {}), new(0.5)
    learn(whole, 1440)  # the first episodes end at 1,280
    learn(new(0.5), 960, run=run)
    again = new(0.5)
    learn(again, 1440, run=run, resume=True)
    assert_same(whole, again)
    assert 0 < run.metrics()["taken_over"].max() < 1


def test_interventions_without_expert_are_refused() -> None:
    with pytest.raises(ValueError, match="scripted expert"):
        new(0.2, task="hopper")
    with pytest.raises(ValueError, match="interventions must be in"):
        SACConfig(interventions=1.5)
    with pytest.raises(ValueError, match="--interventions is an option of --learner sac"):
        parse_train(["push", "--interventions", "0.2"])  # PPO learns from its own actions alone
    assert new(0.0).env.interventions is None
