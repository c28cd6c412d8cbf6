"""What is made says what it was made with, and who reads it is told of another physics engine."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reach_bundle
from test_robot_logs import three_logs

import sims
from real_robot.core.manifest import Manifest
from real_robot.policy.bundle import MANIFEST, PolicyBundle, write_manifest
from reward_models.vision import tiny_clip
from robo_rl.cli import formatted, main
from robo_rl.datasets.demonstrations import read_demonstrations
from robo_rl.datasets.lerobot import VERSIONS
from robo_rl.datasets.sources import SourceOptions, read_episodes
from robo_rl.runs.policy import load_policy
from robo_rl.runs.run_dir import Checkpoint, RunDir, versions, write_json
from robo_rl.runtime import threads
from sims.envs.demonstrations import DemoConfig, write_demos
from sims.utils.versions import LIBRARIES, OtherEngine, warn_of_engine
from sims.utils.versions import versions as environment

OTHER = "3.1.0"  # no version that may be installed


def warned(read: Callable[[], Any]) -> list[str]:
    """What reading says of another engine."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    return [str(one.message) for one in caught if one.category is OtherEngine]


def of_another(path: Path, *keys: str, engine: str | None = OTHER) -> None:
    """The JSON file at ``path`` says another engine; None: it is of before there was a record."""
    told = json.loads(path.read_text())
    place = told
    for key in keys:
        place = place[key]
    place.pop("mujoco")
    if engine:
        place["mujoco"] = engine
    path.write_text(json.dumps(told))


def test_version_record_is_complete_flat_text() -> None:
    import torch

    found = versions()
    assert all(isinstance(text, str) and text for text in found.values())
    assert set(LIBRARIES) - {"ruckig"} <= found.keys()
    assert found["simulation_threads"] == str(threads.simulation_threads())
    assert found["torch_threads"] == str(torch.get_num_threads())
    assert found["torch_cpu_capability"] == torch.backends.cpu.get_cpu_capability()
    assert {"python", "platform", "processor"} <= found.keys()
    env = sims.make("reach", 1)
    env.render_states(env.state(), "front")
    assert "opengl" in environment()
    env.close()


def test_version_record_loads_no_torch() -> None:
    code = (
        "import sys, robo_rl.runs.run_dir; found = robo_rl.runs.run_dir.versions()\n"
        "assert 'torch' not in sys.modules and 'torch_threads' not in found and found['torch']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_another_mujoco_version_warns() -> None:
    assert warned(lambda: warn_of_engine(environment(), "the run a")) == []
    assert warned(lambda: warn_of_engine({}, "the run a")) == []  # of before there was a record
    [said] = warned(lambda: warn_of_engine({"mujoco": OTHER}, "the run a"))
    assert said.startswith("the run a was made with MuJoCo 3.1.0, installed is")
    assert "\n" not in said
    shown = formatted(said, OtherEngine, "runs.py", 1)
    assert shown == f"warning: {said}\n"
    assert "runs.py:1: UserWarning" in formatted("else", UserWarning, "runs.py", 1)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir.create(tmp_path / "run", {"task": "reach"})
    run.append({"env_steps": 1})
    return run


def test_run_and_checkpoints_record_versions(run: RunDir) -> None:
    assert json.loads((run.path / "versions.json").read_text()) == versions()
    folder = run.save_checkpoint(Checkpoint(1, {"w": np.zeros(2)}, {"s": np.zeros(2)}, {}))
    assert json.loads((folder / "meta.json").read_text())["versions"] == versions()
    last = run.latest_checkpoint()
    assert last is not None and last.step == 1


def resumed(run: RunDir) -> None:
    with RunDir.under_way(run.path, run.config, resume=True):
        pass


def test_resume_with_another_mujoco_warns_and_records_both(run: RunDir) -> None:
    path = run.path / "versions.json"
    assert warned(lambda: resumed(run)) == []
    assert "resumed_with" not in json.loads(path.read_text())
    of_another(path)
    [said] = warned(lambda: resumed(run))
    assert said.startswith(f"the run {run.path} was made with MuJoCo 3.1.0")
    kept = json.loads(path.read_text())
    assert kept["mujoco"] == OTHER
    assert kept["resumed_with"] == [{"mujoco": environment()["mujoco"]}]
    resumed(run)
    assert json.loads(path.read_text()) == kept  # with the same as the last time
    path.unlink()
    assert warned(lambda: resumed(run)) == []


def test_policy_of_another_mujoco_warns_once(run: RunDir, tmp_path: Path) -> None:
    """By its bundle's record, or by the run's where its task moves no arm."""
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    reach_bundle.write(bundle, "so101")
    (run.path / "policy.onnx").write_bytes((bundle / "policy.onnx").read_bytes())
    assert warned(lambda: load_policy(run.path)) == []
    of_another(run.path / "versions.json")
    [said] = warned(lambda: load_policy(run.path))
    assert str(run.path) in said
    made_with(bundle, {"mujoco": OTHER})
    bundle.rename(run.path / "bundle")
    [said] = warned(lambda: load_policy(run.path))
    assert said.startswith(f"the bundle {run.path / 'bundle'} was made with MuJoCo 3.1.0")


def made_with(bundle: Path, record: dict[str, str]) -> None:
    manifest = Manifest.from_json((bundle / MANIFEST).read_text())
    write_manifest(bundle, dataclasses.replace(manifest, versions=record))


def test_bundle_of_another_mujoco_loads_with_a_warning(tmp_path: Path) -> None:
    reach_bundle.write(tmp_path, "so101")
    for record, count in (({}, 0), (versions(), 0), ({"mujoco": OTHER}, 1)):
        made_with(tmp_path, record)
        assert len(warned(lambda: PolicyBundle.load(tmp_path))) == count
        assert PolicyBundle.load(tmp_path).manifest.versions == record


def test_loading_a_bundle_loads_neither_robo_rl_nor_torch(tmp_path: Path) -> None:
    reach_bundle.write(tmp_path, "so101")
    made_with(tmp_path, {"mujoco": OTHER})
    code = (
        "import sys; from real_robot.policy.bundle import PolicyBundle; "
        "PolicyBundle.load(sys.argv[1])\n"
        "assert not {'torch', 'robo_rl'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert "was made with MuJoCo 3.1.0" in done.stderr


def test_version_warning_is_one_line_in_the_shell(run: RunDir) -> None:
    of_another(run.path / "versions.json")
    write_json(run.path / "config.json", {"task": "gym:CartPole-v1"})
    code = (
        "import sys; from robo_rl import cli; from robo_rl.runs import policy as policies\n"
        "cli.run = lambda args: policies.warn_of_run(sys.argv[1]) or 0\n"
        "from pathlib import Path; sys.argv[1] = Path(sys.argv[1]); raise SystemExit(cli.main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run.path)], check=True, capture_output=True, text=True
    )
    [line] = done.stderr.splitlines()
    assert line.startswith(f"warning: the run {run.path} was made with MuJoCo 3.1.0")


def test_demonstrations_record_versions(tmp_path: Path) -> None:
    task, folder = sims.make_task("reach", goal="touch_red_cube"), tmp_path / "set"
    write_demos(task, folder, DemoConfig(episodes=1, num_envs=1, noise=0.0))
    metadata = folder / "data" / "metadata.json"
    told = json.loads(metadata.read_text())["versions"]
    assert told["mujoco"] == environment()["mujoco"] and int(told["simulation_threads"]) >= 1

    def read() -> None:
        read_demonstrations(folder, failures=True)

    assert warned(read) == []
    of_another(metadata, "versions")
    [said] = warned(read)
    assert said.startswith(f"the dataset {folder} was made with MuJoCo 3.1.0")
    of_another(metadata, "versions", engine=None)
    assert warned(read) == []


def test_lerobot_dataset_records_versions(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    to = tmp_path / "set"
    paths = map(str, three_logs(tmp_path))
    assert main(["demos", str(to), "--format", "lerobot", "--from", *paths]) == 0
    assert json.loads((to / VERSIONS).read_text())["mujoco"] == environment()["mujoco"]

    def read() -> None:
        assert len(list(read_episodes([to], SourceOptions(episodes=1)))) == 1

    assert warned(read) == []
    of_another(to / VERSIONS)
    [said] = warned(read)
    assert said.startswith(f"the dataset {to} was made with MuJoCo 3.1.0")
    (to / VERSIONS).unlink()
    assert warned(read) == []


def test_clip_weights_record_versions(tmp_path: Path) -> None:
    """Beside its card, which may be left behind."""
    from safetensors import safe_open

    path = tmp_path / "own.safetensors"
    tiny_clip.save(tiny_clip.load(), path, {"versions": versions()})
    with safe_open(path, "pt") as file:
        assert json.loads(file.metadata()["versions"]) == versions()
    assert tiny_clip.load(path).homes == tiny_clip.load().homes
