"""Sweeps: every combination with every seed, each made once, and what they come to."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from robo_rl import TrainConfig, sweep
from robo_rl.cli import main
from robo_rl.commands.sweep import settings_of
from robo_rl.learners import PPOConfig, SACConfig
from robo_rl.runs.run_dir import RunDir
from robo_rl.training.sweep import SweepResult, interquartile, table_of

SMALL = [
    "reach",
    "--reward",
    "task",
    "--env-steps",
    "512",
    "--episodes",
    "8",
    "--eval-points",
    "1",
    "--eval-episodes",
    "4",
]
FEW = {"reward": "offline", "env_steps": 64, "episodes": 4, "eval_points": 0}


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without their videos and reports, which take longer than so little training."""
    for name in ("write_rollout_video", "write_report"):
        monkeypatch.setattr(f"robo_rl.training.train.{name}", lambda *_: None)


def test_sweep_combinations_equal_train_configs() -> None:
    over = [
        "learner=ppo,sac",
        "--random-starts=0,0.5",
        "goal=touch the ball, then the cube|touch it",
    ]
    found = settings_of(["push", "--reward", "sparse"], over)
    assert len(found) == 8
    name = "learner=sac, random-starts=0.5, goal=touch the ball, then the cube"
    one = found[name]
    assert (one.task, one.learner, one.random_starts) == ("push", "sac", 0.5)
    assert one.goal == "touch the ball, then the cube" and isinstance(one.tuning, SACConfig)
    rates = settings_of([], ["tuning.learning-rate=1e-3,1e-4", "task=reach,push"])
    assert [type(c.tuning) for c in rates.values()] == [PPOConfig] * 4
    assert {(c.task, c.tuning.learning_rate) for c in rates.values() if c.tuning} == {
        ("reach", 1e-3),
        ("push", 1e-3),
        ("reach", 1e-4),
        ("push", 1e-4),
    }
    assert [
        c.rate_limited for c in settings_of(["reach"], ["rate-limited=true,false"]).values()
    ] == [True, False]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--over", "learner"], "expected OPTION=VALUE"),
        (["--over", "learner=ppo,ppo"], "expected OPTION=VALUE"),
        (["--over", "learner=ppo,"], "expected OPTION=VALUE"),
        (["--over", "seed=1,2"], "this is an option of sweep itself"),
        (["--over", "robot=so101,ur5e", "--over", "robot=fr3"], "--over is given twice"),
        (["--over", "learner=ppo,nobody"], "unknown learner 'nobody'"),
        (["--seeds", "1,x"], "whole numbers"),
        (["--jobs", "0"], "at least 1"),
        (["--resume", "runs/x"], "a sweep does not take --resume"),
    ],
)
def test_sweep_errors_are_one_line_and_start_nothing(
    args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *SMALL, "--runs", str(tmp_path), *args]) == 1
    assert said in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_sweep_in_an_unwritable_folder_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["sweep", *SMALL, "--runs", str(tmp_path / "file")]) == 1
    assert "is not a writable folder" in capsys.readouterr().err


def test_seeds_are_summarised_by_interquartile_mean() -> None:
    middle, low, high = interquartile([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 1.0])
    assert middle == pytest.approx(np.mean([0.6, 0.7, 0.8, 0.9])) and low < middle < high
    assert interquartile([0.4])[0] == 0.4 and math.isnan(interquartile([0.4])[1])
    assert interquartile([0.25] * 3) == (0.25, 0.25, 0.25)


def test_sweep_skips_finished_runs_and_adds_new_ones(
    unseen: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", *SMALL, "--over", "random-starts=0.5", "--runs", str(tmp_path), "--name", "it"]
    assert main([*line, "--seeds", "0"]) == 0
    first = capsys.readouterr()
    assert "| random-starts=0.5 |" in first.out and "doing nothing" in first.out
    run = tmp_path / "it" / "random-starts=0.5-seed-0"
    made = (run / "result.json").stat().st_mtime_ns
    assert main([*line, "--seeds", "0,3"]) == 0
    said = capsys.readouterr().err
    assert "1 of 2 runs are in" in said and "1/1 done: random-starts=0.5, seed 3" in said
    assert (run / "result.json").stat().st_mtime_ns == made
    rows = [*csv.DictReader((tmp_path / "it" / "runs.csv").open())]
    assert [(row["setting"], row["seed"]) for row in rows] == [
        ("random-starts=0.5", "0"),
        ("random-starts=0.5", "3"),
    ]
    for row in rows:
        known = RunDir.open(tmp_path / "it" / row["run"])
        assert float(row["success"]) == known.result["evaluation"]["success"]
        assert known.config["seed"] == int(row["seed"]) and known.config["random_starts"] == 0.5
    seen = [*csv.DictReader((tmp_path / "it" / "curves.csv").open())]
    assert {row["seed"] for row in seen} == {"0", "3"}
    page = (tmp_path / "it" / "sweep.html").read_text()
    assert "random-starts=0.5-seed-3/report.html" in page and "data:image/png" in page
    assert main([*line, "--seeds", "0", "--learner", "sac"]) == 1
    assert "was started with --learner 'ppo', got 'sac'" in capsys.readouterr().err


@pytest.mark.slow
def test_sweep_runs_train_in_subprocesses(tmp_path: Path) -> None:
    found = sweep(
        {"small": TrainConfig(**FEW, formula="touch(gripper, red_cube)")}, tmp_path, [0, 1], jobs=2
    )
    assert [one.seed for one in found] == [0, 1] and all(one.env_steps == 64 for one in found)


def test_parallel_sweep_trains_only_missing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In processes that train nothing: each only says what it was given."""
    monkeypatch.setattr("robo_rl.training.sweep._train_run", repr)
    line = [
        "sweep",
        *SMALL,
        "--over",
        "random-starts=0,0.5",
        "--runs",
        str(tmp_path),
        "--seeds",
        "3",
    ]
    assert main([*line, "--jobs", "2"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "0 of 2 runs are in" in said and "2 of 2 runs failed" in said
    for value in ("0", "0.5"):
        assert f"started: random-starts={value}, seed 3" in said
        assert f"failed: random-starts={value}, seed 3" in said
    assert "SettledConfig" in said or "TrainConfig(" in said


def test_sweep_of_three_seeds_reports_the_mean() -> None:
    def heads(seeds: int) -> str:
        found = [
            SweepResult("a", k, f"a-{k}", "success", 0.5, {}, 10, 1.0, 1.0, ())
            for k in range(seeds)
        ]
        return table_of(found)[0][1]

    assert heads(3) == "mean of the seeds (95 %)"
    assert heads(4) == "middle half of the seeds (95 %)"


def test_failed_sweep_run_does_not_affect_others(unseen: None, tmp_path: Path) -> None:
    above = "above(gripper, red_cube, height={})"
    settings = {
        "too high": TrainConfig(formula=above.format("1.5m"), **FEW),
        "somebody else's": TrainConfig(task="gym:CartPole-v1", **FEW | {"reward": "task"}),
    }
    with pytest.raises(ValueError, match="1 of 2 runs failed.*too-high-seed-5: .*1.5"):
        sweep(settings, tmp_path, [5])
    rows = [*csv.DictReader((tmp_path / "runs.csv").open())]
    assert [row["setting"] for row in rows] == ["somebody else's"] and float(rows[0]["return"]) > 1
