"""Who may import whom, and what must stay light to import."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("reward_models", "sims", "real_robot", "robo_rl")
MAY = {
    "reward_models": {"reward_models"},
    "sims": {"sims"},
    "real_robot": {"real_robot", "sims"},
    "robo_rl": set(OURS),
}
TORCH = {"torch", "torchvision", "stable_baselines3", "sb3_contrib", "open_clip", "onnxscript"}
# Ends a program that has noted `start`: prints how many empty loops of five million turns its
# imports took, and what is imported.
RATIO = """
seconds, start = time.process_time() - start, time.process_time()
for _ in range(5_000_000):
    pass
print(json.dumps([seconds / (time.process_time() - start), sorted(sys.modules)]))
"""
LIGHT = (
    "sims",
    "real_robot",
    *(f"reward_models/{part}" for part in ("base.py", "goals", "programs", "wire", "writers")),
)


def sources(part: str) -> list[Path]:
    path = ROOT / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


@functools.cache
def nodes(source: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree that import or call something."""
    tree = ast.parse(source.read_text())
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


@functools.cache
def imported(source: Path) -> set[str]:
    """Top-level names of every import in a file, wherever it stands in it."""
    names = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(source.relative_to(ROOT).parts[0] if node.level else (node.module or ""))
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("package", OURS)
def test_packages_import_only_what_the_design_allows(package: str) -> None:
    assert sources(package)
    for source in sources(package):
        foreign = (imported(source) & set(OURS)) - MAY[package]
        assert not foreign, f"{source} imports {foreign}; {package} may import {MAY[package]}"


STARTS = {
    "Popen", "run", "call", "check_call", "check_output", "getoutput", "system", "popen", "fork",
    "posix_spawn", "get_context", "Process", "Pool", "create_subprocess_exec",
    "create_subprocess_shell",
}  # fmt: skip


@pytest.mark.parametrize("package", OURS)
def test_one_file_decides_how_processes_begin(package: str) -> None:
    for source in sources(package):
        if source == ROOT / "sims" / "process.py":
            continue
        for node in nodes(source):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                owner, name = called.value.id, called.attr
                if owner == "os" and name.startswith(("exec", "spawn")):
                    name = "posix_spawn"
                starts = owner in ("subprocess", "multiprocessing", "asyncio", "os", "pty")
                assert not (starts and name in STARTS), (
                    f"{source}:{node.lineno} calls {owner}.{called.attr}; use sims.process"
                )
            if isinstance(node, ast.ImportFrom):
                found = {alias.name for alias in node.names} & STARTS
                module = (node.module or "").split(".")[0]
                assert not found or module not in ("subprocess", "multiprocessing", "os"), (
                    f"{source}:{node.lineno} imports {found}; use sims.process"
                )


@pytest.mark.parametrize("part", LIGHT)
def test_light_packages_never_name_torch(part: str) -> None:
    for source in sources(part):
        heavy = imported(source) & TORCH
        assert not heavy, f"{source} imports {heavy}"


def test_light_packages_load_no_torch_and_load_fast() -> None:
    modules = (
        "sims, sims.gym_env, real_robot, reward_models.base, reward_models.goals, "
        "reward_models.programs"
    )
    code = f"import time, sys, json; start = time.process_time()\nimport {modules}\n{RATIO}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loops, loaded = json.loads(done.stdout)
    assert not {name.split(".")[0] for name in loaded} & TORCH
    assert loops < 10.0


@pytest.mark.slow
def test_the_base_install_deploys_and_emulates_without_torch(tmp_path: Path) -> None:
    """A fresh environment with what `pip install robo-rl` brings, and nothing else."""
    import reach_bundle

    (tmp_path / "bundle").mkdir()
    reach_bundle.write(tmp_path / "bundle", "so101")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", ROOT], check=True)
    told = subprocess.run(
        [python, "-c", "import importlib.util as u; print(u.find_spec('torch'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "None"
    command = [python.with_name("robo-rl"), "deploy", tmp_path / "bundle", "--emulate", "--json"]
    done = subprocess.run(
        [*command, "--episodes", "2"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ended"] == {"done": 2}
    code = (
        "import time; t = time.process_time(); import robo_rl.commands.deploy, "
        "robo_rl.commands.emulate; print(time.process_time() - t)"
    )
    timed = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert timed.returncode == 0, timed.stderr
    assert float(timed.stdout) < 2.0


def test_deploy_and_emulate_load_no_torch_and_load_fast() -> None:
    code = (
        "import time, sys, json; start = time.process_time()\n"
        "import robo_rl.commands.deploy, robo_rl.commands.emulate, robo_rl.commands.replay\n"
        "import real_robot.replay, robo_rl.commands.teleop, robo_rl.arm.nobody\n"
        f"{RATIO}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loops, loaded = json.loads(done.stdout)
    assert not {name.split(".")[0] for name in loaded} & TORCH
    assert loops < 20.0
