"""A run's files survive crashes, and reading them never runs code."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from real_robot import BundleError, PolicyBundle
from robo_rl.cli import main
from robo_rl.runs.run_dir import (
    META,
    STATE,
    WEIGHTS,
    Checkpoint,
    CheckpointError,
    RunDir,
    atomic_write,
    jsonable,
    load_checkpoint,
    run_folder,
    slug,
)


@dataclass(frozen=True)
class Inner:
    net: tuple[int, ...] = (2, 3)


@dataclass(frozen=True)
class Config:
    path: Path = Path("a/b")
    inner: Inner = Inner()
    rate: float = 0.1


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path / "runs" / "one", Config())


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(
        step=step,
        weights={"policy/w": np.full((2, 3), step, np.float32), "scalar": np.array(1.0)},
        state={"env/rows": np.arange(step), "words": np.array(["a", "b"])},
        meta={"counters": {"big": 2**100}},
    )


def test_new_run_has_config_and_versions(run):
    assert run.config == {"path": "a/b", "inner": {"net": [2, 3]}, "rate": 0.1}
    assert {"python", "numpy", "mujoco"} <= json.loads(
        (run.path / "versions.json").read_text()
    ).keys()
    assert RunDir.open(run.path).config == run.config
    with pytest.raises(ValueError, match="already holds a run; continue it with --resume"):
        RunDir.create(run.path, Config())
    with pytest.raises(ValueError, match="no run in .*nowhere"):
        RunDir.open(run.path / "nowhere")
    with pytest.raises(ValueError, match="config.json is not a writable folder"):
        RunDir.check_free(run.path / "config.json" / "new")
    bundle = run.path / "bundle"
    bundle.mkdir()
    (bundle / "manifest.json").touch()
    with pytest.raises(ValueError, match="is a policy bundle, not a run folder"):
        RunDir.open(bundle)
    with pytest.raises(
        BundleError, match=f"is a training run, not a bundle; its bundle is {bundle}"
    ):
        PolicyBundle.load(run.path)


def test_jsonable_returns_plain_json():
    value = {"a": np.float32(0.5), "b": np.arange(2), "c": frozenset({"y", "x"}), 3: None}
    assert jsonable(value) == {"a": 0.5, "b": [0, 1], "c": ["x", "y"], "3": None}


def test_only_one_process_trains_in_a_run(tmp_path):
    path = tmp_path / "run"
    with RunDir.under_way(path, {"seed": 1}) as run:
        run.append({"env_steps": 1.0})
        other = f"""
from pathlib import Path
from robo_rl.runs.run_dir import RunDir
with RunDir.under_way(Path({str(path)!r}), {{"seed": 2}}, resume=True):
    pass
"""
        told = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True)
        assert told.returncode == 1 and "is being trained by another process" in told.stderr
        assert run.config == {"seed": 1}
    with RunDir.under_way(path, {"seed": 2}, resume=True) as again:
        assert again.config == {"seed": 2}


def test_failed_run_removes_only_its_own_folder(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with RunDir.under_way(tmp_path / "runs" / "a", {"task": "reach"}):
            with RunDir.under_way(tmp_path / "runs" / "b", {"task": "reach"}) as other:
                other.finish({"env_steps": 1})
            raise KeyboardInterrupt
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["b"]
    with pytest.raises(KeyboardInterrupt), RunDir.under_way(tmp_path / "alone" / "a", {}):
        raise KeyboardInterrupt
    assert not (tmp_path / "alone").exists()


def test_clone_run_cannot_be_resumed(tmp_path):
    RunDir.create(tmp_path / "a", {"learner": "clone"})
    with pytest.raises(ValueError, match="a behaviour-cloning run, which cannot be resumed; give"):
        RunDir.check_free(tmp_path / "a")


def test_non_resumable_run_is_removed_on_failure(tmp_path):
    with pytest.raises(ValueError), RunDir.under_way(tmp_path / "a", {}, goes_on=False) as run:
        run.append({"updates": 100})
        raise ValueError
    assert not (tmp_path / "a").exists()


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    atomic_write(tmp_path / "f", b"old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        atomic_write(tmp_path / "f", b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_written_files_respect_the_umask(tmp_path):
    (tmp_path / "opened").touch()
    atomic_write(tmp_path / "f", b"new")
    assert (tmp_path / "f").stat().st_mode == (tmp_path / "opened").stat().st_mode


def test_metrics_append_add_columns_and_survive_truncation(run):
    run.append({"env_steps": 10, "reward": 0.5})
    run.append({"env_steps": 20, "reward": 0.25, "train/loss": 1.0})
    with run.metrics_path.open("a") as file:
        file.write("30,0.1")  # killed in the middle of a line
    expected = {"env_steps": [10, 20], "reward": [0.5, 0.25], "train/loss": [np.nan, 1.0]}
    again = RunDir.open(run.path)
    for name, values in expected.items():
        np.testing.assert_array_equal(again.metrics()[name], values)
    again.append({"env_steps": 30, "reward": 0.75})
    np.testing.assert_array_equal(again.metrics()["env_steps"], [10, 20, 30])
    again.drop_metrics_after(15)
    assert run.metrics_path.read_bytes() == b"env_steps,reward,train/loss\n10,0.5,\n"


def test_metrics_of_a_new_run_are_empty(run):
    run.drop_metrics_after(0)
    assert run.metrics() == {}


def test_last_two_checkpoints_are_kept(run):
    assert run.latest_checkpoint() is None
    for step in (100, 200, 300):
        run.save_checkpoint(checkpoint(step))
    assert [p.name for p in run.checkpoint_paths()] == ["step_00000200", "step_00000300"]
    found, made = run.latest_checkpoint(), checkpoint(300)
    assert (found.step, found.meta) == (300, made.meta)
    for mine, theirs in ((made.weights, found.weights), (made.state, found.state)):
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name])
            assert mine[name].dtype == theirs[name].dtype
    run.save_checkpoint(checkpoint(300))  # the same step again
    assert run.latest_checkpoint().step == 300


def test_best_checkpoint_is_kept_beside_the_last(run):
    assert run.best() is None
    for step in (100, 200):
        run.save_best(checkpoint(step))
        run.save_checkpoint(checkpoint(step + 5))
    assert run.best().step == 200 and run.latest_checkpoint().step == 205
    assert len(run.checkpoint_paths()) == 2
    run.finish({})
    assert run.best().step == 200 and [p.name for p in run.checkpoint_paths()] == ["step_00000205"]


def test_partial_checkpoint_is_invisible(run):
    run.save_checkpoint(checkpoint(100))
    # What a process killed while it wrote step 200 leaves behind.
    shutil.copytree(run.checkpoints_path / "step_00000100", run.checkpoints_path / ".step_00000200")
    assert run.latest_checkpoint().step == 100
    run.save_checkpoint(checkpoint(300))
    assert not list(run.checkpoints_path.glob(".step*"))


@pytest.mark.parametrize("name", [WEIGHTS, STATE, META])
@pytest.mark.parametrize("damage", ["truncated", "missing", "flipped"])
def test_damaged_checkpoint_is_skipped_with_a_warning(run, name, damage):
    run.save_checkpoint(checkpoint(100))
    bad = run.save_checkpoint(checkpoint(200)) / name
    data = bytearray(bad.read_bytes())
    if damage == "missing":
        bad.unlink()
    else:
        data[len(data) // 2] ^= 0xFF
        bad.write_bytes(data if damage == "flipped" else data[: len(data) // 2])
    if name == META and damage == "flipped":
        data[:] = b"{}"
        bad.write_bytes(data)
    with pytest.warns(UserWarning, match=f"an unreadable checkpoint: .*step_00000200/{name}"):
        assert run.latest_checkpoint().step == 100


def test_run_without_valid_checkpoint_is_an_error(run):
    path = run.save_checkpoint(checkpoint(100))
    (path / STATE).write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="skipping"),
        pytest.raises(CheckpointError, match=r"none of the 1 checkpoints .*state\.npz is damaged"),
    ):
        run.latest_checkpoint()


class Bomb:
    """Unpickling one creates a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def object_npz(value: object) -> bytes:
    data = io.BytesIO()
    array = np.empty(1, object)
    array[0] = value
    np.savez(data, array=array, allow_pickle=True)
    return data.getvalue()


def single_npy() -> bytes:
    data = io.BytesIO()
    np.save(data, np.arange(3))
    return data.getvalue()


@pytest.mark.parametrize("name", [WEIGHTS, STATE])
@pytest.mark.parametrize("kind", ["pickle", "object array", "single array", "text"])
def test_hostile_checkpoint_is_refused_without_running(run, tmp_path, name, kind):
    trap = tmp_path / "trap"
    payload = {
        "pickle": pickle.dumps(Bomb(trap)),
        "object array": object_npz(Bomb(trap)),
        "single array": single_npy(),
        "text": b"import os",
    }[kind]
    path = run.save_checkpoint(checkpoint(100))
    (path / name).write_bytes(payload)
    meta = json.loads((path / META).read_text())
    meta["sha256"][name] = sha256(payload).hexdigest()  # the attacker fixes the checksum too
    (path / META).write_text(json.dumps(meta))
    with pytest.raises(CheckpointError, match=f"{name} is not a"):
        load_checkpoint(path)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Bomb(trap)))
    assert trap.exists()  # the trap works


@pytest.mark.parametrize("name", ["../../esc", "..", ".", "/tmp/esc", "a/../../esc"])
def test_no_name_leads_out_of_the_folder_of_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever makes a run; a folder below it is one."""
    runs = ["--runs", str(tmp_path / "runs"), "--name", name]
    for command in (
        ["train", "reach", "--reward", "task", "--env-steps", "1600"],
        ["train", "gym:CartPole-v1", "--reward", "task"],
        ["sweep", "reach", "--reward", "task", "--over", "learner=ppo"],
        ["search", "reach", "--goal", "touch_red_cube"],
    ):
        assert main([*command, *runs]) == 1
        assert f"expected a name below {tmp_path / 'runs'}, got {name!r}" in capsys.readouterr().err
    assert run_folder(tmp_path, "a/b") == tmp_path / "a" / "b"


def test_names_of_long_goals_differ_where_the_goals_do() -> None:
    long = "push the red cube next to the blue ball and then hold still for 2 s within {} seconds"
    names = {slug(long.format(k)) for k in (6, 7)}
    assert len(names) == 2 and all(len(name) <= 60 for name in names)
    assert slug("the gripper touches the red cube") == "the-gripper-touches-the-red-cube"
