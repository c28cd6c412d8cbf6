"""A run is watched while it learns: looks at the policy, its best, the early end, TensorBoard."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest
from point_mass import Nearness, PointMass
from test_learners import assert_same

from robo_rl.learners import PPOConfig
from robo_rl.learners.fit import FitResult, fit
from robo_rl.learners.tensorboard import TensorBoardWriter
from robo_rl.runs.run_dir import RunDir
from robo_rl.training.artifacts import export_best_policy
from robo_rl.training.periodic_eval import EvalCallback

CONFIG = PPOConfig(num_envs=8, net=(16, 16), n_steps=32, final_rate=1.0)
OBS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


class Judge:
    """Gives marks in order, and keeps what the policy answered each time."""

    def __init__(self, *marks: float, figure: str = "success"):
        self.marks, self.figure, self.answers = list(marks), figure, []

    def __call__(self, act):
        self.answers.append(act(OBS))
        return {self.figure: self.marks.pop(0)}


def trained(run: RunDir, judge: Judge, steps: int = 1024, **options) -> FitResult:
    """Four rollouts of 256 steps, looked at after each."""
    resume = options.pop("resume", False)
    looks = EvalCallback(judge, run, env_steps=steps, eval_points=4, cost=10, **options)
    return fit(
        PointMass(8),
        Nearness(),
        CONFIG,
        env_steps=steps,
        run=run,
        resume=resume,
        checkpoint_every=256,
        hooks=[looks],
    )


def test_best_evaluation_is_stored_and_the_last_is_quoted(tmp_path: Path) -> None:
    run, judge = RunDir.create(tmp_path / "run", CONFIG), Judge(0.25, 0.75, 0.5, 0.75)
    fitted = trained(run, judge)
    looked = run.evaluations.read()
    assert looked["env_steps"].tolist() == [256, 512, 768, 1024]
    assert looked["success"].tolist() == [0.25, 0.75, 0.5, 0.75]
    assert run.best().step == 512
    best = export_best_policy(run, fitted)
    np.testing.assert_allclose(best.act(OBS), judge.answers[1], atol=1e-4)
    np.testing.assert_array_equal(fitted.act(OBS), judge.answers[3])
    # Where the last was best, there is nothing beside it.
    again = RunDir.create(tmp_path / "again", CONFIG)
    (again.path / "best.onnx").touch()  # of a run that has gone on since
    assert export_best_policy(again, trained(again, Judge(0.1, 0.2, 0.3, 0.4))) is None
    assert not (again.path / "best.onnx").exists()


def test_stop_at_ends_training_with_a_checkpoint(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    fitted = trained(run, Judge(0.5, 0.95), stop_at=0.95)
    assert fitted.learner.env_steps == run.latest_checkpoint().step == 512
    with pytest.raises(ValueError, match="no success judge"):
        trained(RunDir.create(tmp_path / "other", CONFIG), Judge(7.0, figure="return"), stop_at=0.9)


def test_periodic_evaluation_does_not_change_training(tmp_path: Path) -> None:
    blind = fit(PointMass(8), Nearness(), CONFIG, env_steps=1024)
    straight, first = (RunDir.create(tmp_path / name, CONFIG) for name in ("straight", "first"))
    seen = trained(straight, Judge(0.1, 0.9, 0.3, 0.4))
    assert_same(blind.learner, seen.learner)
    # Ends with a look and a checkpoint at 512, then goes on for more.
    trained(first, Judge(0.1, 0.9), stop_at=0.9)
    gone_on = trained(first, Judge(0.3, 0.4), resume=True)
    assert_same(blind.learner, gone_on.learner)
    for name, column in straight.evaluations.read().items():
        np.testing.assert_array_equal(first.evaluations.read()[name], column)
    assert first.best().step == straight.best().step == 512


def test_training_ended_by_stop_at_stays_ended_on_resume(tmp_path: Path) -> None:
    """As where it is killed between its end and its result; asked for more, it goes on."""
    run = RunDir.create(tmp_path / "run", CONFIG)
    trained(run, Judge(0.5, 0.95), stop_at=0.95)
    assert trained(run, Judge(), stop_at=0.95, resume=True).learner.env_steps == 512
    assert run.evaluations.read()["env_steps"].tolist() == [256, 512]
    more = trained(run, Judge(0.97, 0.99), stop_at=0.99, resume=True)
    assert more.learner.env_steps == 1024


def test_offline_learner_is_evaluated_eval_points_times(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    looks = EvalCallback(Judge(*[0.1] * 4), run, env_steps=1024, eval_points=4, cost=0)
    fit(PointMass(8), Nearness(), CONFIG, env_steps=1024, hooks=[looks])
    assert run.evaluations.read()["env_steps"].tolist() == [256, 512, 768, 1024]


def test_evaluations_cost_at_most_a_third_of_the_steps(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    looks = EvalCallback(Judge(0.1, 0.2), run, env_steps=1024, eval_points=4, cost=200)
    fit(PointMass(8), Nearness(), CONFIG, env_steps=1024, hooks=[looks])
    assert run.evaluations.read()["env_steps"].tolist() == [768, 1024]


def test_tensorboard_has_metrics_and_evaluations(tmp_path: Path) -> None:
    if importlib.util.find_spec("tensorboard") is None:
        with pytest.warns(UserWarning, match="no TensorBoard files.* pip install"):
            TensorBoardWriter(tmp_path)
        return
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    killed, resumed = [(10, 0.1), (20, 0.2), (30, 0.3)], [(20, 0.4)]  # at 30, from 10
    for rows in (killed, resumed):
        if rows is resumed:
            time.sleep(1.0)  # files are read in the order of the seconds that name them
        board = TensorBoardWriter(tmp_path)
        for step, loss in rows:
            board.row({"env_steps": step, "success": 0.5, "train/loss": loss})
        board.log_evaluation({"env_steps": 20, "success": 0.75})
        board.close()
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    losses = [(e.step, round(e.value, 3)) for e in found.Scalars("train/loss")]
    assert losses == [(10, 0.1), (20, 0.4)]
    assert found.Scalars("look/success")[-1].value == 0.75 and found.Scalars("run/success")
