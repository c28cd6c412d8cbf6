"""`robo-rl runs`: runs are listed, compared, and removed only where that was confirmed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robo_rl.cli import main
from robo_rl.config.train_config import SettledConfig
from robo_rl.learners import PPOConfig
from robo_rl.runs.run_dir import Checkpoint, RunDir

Said = pytest.CaptureFixture[str]


def made(path: Path, *, success: float | None = None, **settings: Any) -> RunDir:
    run = RunDir.create(path, SettledConfig(reward="task", **settings))
    run.save_checkpoint(Checkpoint(step=1, weights={}, state={}, meta={}))
    if success is not None:
        evaluation = {"success": success, "low": success - 0.1, "high": success + 0.1}
        run.finish({"evaluation": evaluation, "env_steps": 2_000, "seconds": {"train": 1.5}})
    return run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made(tmp_path / "runs" / "one", success=0.5)
    made(tmp_path / "runs" / "sweep" / "two", success=0.7, tuning=PPOConfig(n_steps=64))
    made(tmp_path / "runs" / "three", goal="touch the blue ball")
    return tmp_path / "runs"


def test_runs_are_listed_with_results_and_state(runs: Path, capsys: Said) -> None:
    assert main(["runs", "list", str(runs), "--json"]) == 0
    found = {Path(one["path"]).name: one for one in json.loads(capsys.readouterr().out)}
    assert {name: one["state"] for name, one in found.items()} == {
        "one": "finished",
        "two": "finished",
        "three": "unfinished",
    }
    assert found["two"]["success"] == pytest.approx([0.7, 0.6, 0.8])
    assert main(["runs", str(runs)]) == 0  # list is the default
    said = capsys.readouterr().out
    assert "50.0 % (40.0-60.0)" in said and "touch the blue ball" in said


def test_a_run_that_is_being_trained_is_listed_as_such(runs: Path, capsys: Said) -> None:
    run = RunDir.open(runs / "three")
    with RunDir.under_way(run.path, run.config, resume=True):
        main(["runs", "list", str(runs), "--json"])
        states = [one["state"] for one in json.loads(capsys.readouterr().out)]
        assert states.count("training") == 1
        assert main(["runs", "prune", str(run.path), "--yes"]) == 1
        assert main(["runs", "prune", "--unfinished", "--runs", str(runs), "--yes"]) == 0
    assert run.path.exists()


def test_runs_are_compared_in_what_differs(runs: Path, capsys: Said) -> None:
    assert main(["runs", "compare", str(runs / "one"), str(runs / "sweep" / "two"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] == {"tuning.n_steps": [0, 64]} and found["versions"] == {}
    assert found["figures"]["success"] == [0.5, 0.7]
    assert main(["runs", "compare", str(runs / "one"), str(runs / "three")]) == 0
    said = capsys.readouterr().out
    assert "goal" in said and "versions: no differences" in said
    assert main(["runs", "compare", str(runs / "one")]) == 1
    assert "two runs or more, got 1" in capsys.readouterr().err


def test_nothing_is_removed_unconfirmed(runs: Path, capsys: Said) -> None:
    one = runs / "one"
    assert main(["runs", "prune", str(one)]) == 1  # pytest's stdin is no terminal
    assert one.exists() and "give --yes" in capsys.readouterr().err
    assert main(["runs", "prune", str(runs.parent), "--yes"]) == 1
    assert runs.exists() and "no run in" in capsys.readouterr().err
    assert main(["runs", "prune", "--runs", str(runs)]) == 1
    assert "name a RUN" in capsys.readouterr().err


def test_what_is_confirmed_is_removed_and_nothing_else(runs: Path) -> None:
    assert main(["runs", "prune", "--checkpoints", "--runs", str(runs), "--yes"]) == 0
    assert not (runs / "one" / "checkpoints").exists() and RunDir.open(runs / "one").finished
    assert (runs / "three" / "checkpoints").exists(), "an unfinished run is resumed from these"
    assert main(["runs", "prune", "--unfinished", "--runs", str(runs), "--yes"]) == 0
    assert not (runs / "three").exists() and (runs / "sweep" / "two").exists()
