"""Processes that commands start: nothing that lies where somebody works is run, no key is handed
on, and their own folder goes with them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import reach_bundle

import sims
from benchmarks.peers import Peer
from real_robot import Bus, BusConfig, PolicyBundle, PolicyProcess
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.cli import main
from robo_rl.search.executor import TrainingLimits, TrainingPool
from sims.external.gymnasium_env import GymnasiumEnv
from sims.utils import plugins, process

REWARD = 'def reward(tip):\n    return {"near": near(norm(tip), 0.1)}\n'
HOSTILE = (
    "json",
    "numpy",
    "torch",
    "mujoco",
    "gymnasium",
    "onnxruntime",
    "pickle",
    "runpy",
    "sims",
    "robo_rl",
    "reward_models",
    "real_robot",
)


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files beside which somebody works would leave a mark if they were run."""
    folder, marks = tmp_path / "work", tmp_path / "marks"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(
            f"open({str(marks)!r}, 'a').write({name!r} + '\\n')\nraise SystemExit({name!r})\n"
        )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    return marks


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What every process was started with."""
    seen: list[dict[str, Any]] = []
    begin = subprocess.Popen.__init__

    def noted(self: Any, command: Any, *args: Any, **options: Any) -> None:
        seen.append(options)
        begin(self, command, *args, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    return seen


def check_reward(folder: Path) -> None:
    (folder / "good.py").write_text(REWARD)
    assert main(["reward", "check", str(folder / "good.py"), "--task", "reach"]) == 0


def ask_policy(folder: Path) -> None:
    reach_bundle.write(folder, "so101")
    bundle = PolicyBundle.load(folder)
    with PolicyProcess(bundle, os.path.relpath(folder), budget=30.0) as policy:
        assert policy.alive


def own_port(folder: Path) -> None:
    bus = Bus(BusConfig(robot="so101", where="/dev/null"))
    assert bus.describe().name == "so101" and bus.pid
    bus.close()


def emulate(folder: Path) -> None:
    EmulatedStage(sims.make_task("reach", robot="ur5e")).close()


def search(folder: Path) -> None:
    # Too little memory for torch, enough for what comes before it.
    [(_, answer)] = TrainingPool(folder, limits=TrainingLimits(memory_bytes=300 << 20)).run(
        [{"name": "a"}]
    )
    assert answer["kind"] == "crashed" and (folder / "a.pulse").exists()


OURS = (check_reward, ask_policy, own_port, emulate, search)


def train_elsewhere(folder: Path) -> None:
    env = GymnasiumEnv("gym:Reacher-v5", 1, python=sys.executable)
    assert env.reset().shape == (1, 10)
    env.close()


def bench_beside(folder: Path) -> None:
    peer = Peer(sys.executable, "import json, numpy; print('ready'); print(len(input()))")
    assert peer() == 2
    peer.close()


def work_together(folder: Path) -> None:
    with ProcessPoolExecutor(1, process.spawn_context()) as pool:
        assert pool.submit(len, "abc").result() == 3


THEIRS = (train_elsewhere, bench_beside, work_together)


@pytest.mark.parametrize("begin", [*OURS, *THEIRS], ids=lambda f: f.__name__)
def test_subprocess_runs_no_code_of_the_working_directory(
    begin: Callable[[Path], None], marks: Path, started: list[dict[str, Any]], tmp_path: Path
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    try:
        begin(folder)
    finally:
        assert not marks.exists(), f"these were run: {marks.read_text().split()}"
    if begin not in OURS:
        return
    gc.collect(1)
    for options in started:
        assert not {"OPENAI_API_KEY", "PYTHONHOME", "PYTEST_CURRENT_TEST"} & options["env"].keys()
        assert not Path(options["cwd"]).exists(), "its folder goes with it"
    assert started


def test_killed_bridge_leaves_no_temporary_folder(tmp_path: Path) -> None:
    """Nor its bus and its policy, killed at the same moment."""
    temp, bundle = tmp_path / "temp", tmp_path / "bundle"
    temp.mkdir()
    bundle.mkdir()
    reach_bundle.write(bundle, "so101")
    code = f"""
from real_robot import Bus, BusConfig, PolicyBundle, PolicyProcess
bundle = PolicyBundle.load({str(bundle)!r})
policy = PolicyProcess(bundle, {str(bundle)!r}, budget=30.0)
bus = Bus(BusConfig(robot="so101", where="/dev/null"))
bus.describe()
print(policy.pid, bus.pid, flush=True)
input()
"""
    bridge = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temp)},
    )
    for pid in (*map(int, bridge.stdout.readline().split()), bridge.pid):
        os.kill(pid, signal.SIGKILL)
    bridge.communicate()
    assert [*temp.glob("robo-rl-*")] == []


def test_plugins_are_imported_in_subprocesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where their module is found on a path that only this program has."""
    package, noted = tmp_path / "mine_alone", tmp_path / "noted"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text(
        f"with open({str(noted)!r}, 'a') as file:\n    file.write('imported ')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, "")
    plugins.import_plugin("mine_alone.tasks")
    child = process.start_module(
        "robo_rl.cli", "list", "robots", keep=[plugins.VARIABLE], stdout=subprocess.DEVNULL
    )
    assert child.wait() == 0 and noted.read_text().split() == ["imported", "imported"]


def test_subprocess_limits_respect_the_parents_limits() -> None:
    code = (
        "import resource, json; from sims.utils.process import _begin\n"
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
        "_begin(json.dumps({'AS': 16 << 30}), 'platform', [])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
