"""Who may import whom, and what must stay light to import."""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from benchmarks import codebase

ROOT = Path(__file__).parents[1]
OURS = ("reward_models", "sims", "real_robot", "robo_rl")
MAY = {
    "reward_models": {"reward_models"},
    "sims": {"sims"},
    "real_robot": {"real_robot", "sims"},
    "robo_rl": set(OURS),
    "benchmarks": {*OURS, "benchmarks"},
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
    *(f"reward_models/{part}" for part in ("base.py", "goals", "programs", "remote", "writers")),
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


@pytest.mark.parametrize("package", MAY)
def test_packages_import_only_what_the_design_allows(package: str) -> None:
    assert sources(package)
    for source in sources(package):
        foreign = (imported(source) & set(MAY)) - MAY[package]
        assert not foreign, f"{source} imports {foreign}; {package} may import {MAY[package]}"


STARTS = {
    "Popen",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "system",
    "popen",
    "fork",
    "posix_spawn",
    "get_context",
    "Process",
    "Pool",
    "create_subprocess_exec",
    "create_subprocess_shell",
}


@pytest.mark.parametrize("package", MAY)
def test_only_one_file_starts_processes(package: str) -> None:
    for source in sources(package):
        if source == ROOT / "sims" / "utils" / "process.py":
            continue
        for node in nodes(source):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                owner, name = called.value.id, called.attr
                if owner == "os" and name.startswith(("exec", "spawn")):
                    name = "posix_spawn"
                starts = owner in ("subprocess", "multiprocessing", "asyncio", "os", "pty")
                assert not (starts and name in STARTS), (
                    f"{source}:{node.lineno} calls {owner}.{called.attr}; use sims.utils.process"
                )
            if isinstance(node, ast.ImportFrom):
                found = {alias.name for alias in node.names} & STARTS
                module = (node.module or "").split(".")[0]
                assert not found or module not in ("subprocess", "multiprocessing", "os"), (
                    f"{source}:{node.lineno} imports {found}; use sims.utils.process"
                )


@pytest.mark.parametrize("part", LIGHT)
def test_light_packages_never_name_torch(part: str) -> None:
    for source in sources(part):
        heavy = imported(source) & TORCH
        assert not heavy, f"{source} imports {heavy}"


def test_light_packages_load_no_torch_and_load_fast() -> None:
    modules = (
        "sims, sims.envs.gym_env, real_robot, reward_models.base, reward_models.goals, "
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
        capture_output=True,
        text=True,
        check=True,
    )
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
        "import real_robot.session.replay, robo_rl.commands.teleop, robo_rl.arm.noop_policy\n"
        f"{RATIO}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loops, loaded = json.loads(done.stdout)
    assert not {name.split(".")[0] for name in loaded} & TORCH
    assert loops < 20.0


# Folders.
def edges(package: str) -> dict[str, dict[str, str]]:
    """{folder: {folder of the same package that it imports: where}}, wherever in a file."""
    files = {str(file.relative_to(ROOT)): file.read_text() for file in sources(package)}
    return codebase.folder_imports(files, package)


def cycles(graph: dict[str, dict[str, str]]) -> list[list[str]]:
    """Each group of folders that import each other, as the path of a cycle."""
    return [path_around(graph, component) for component in codebase.components(graph)]


def path_around(graph: dict[str, dict[str, str]], component: list[str]) -> list[str]:
    """The shortest way from the first node of a component back to it."""
    first = component[0]
    waiting, came = [first], {}
    while waiting:
        node = waiting.pop(0)
        for other in graph[node]:
            if other == first:
                path = [first]
                while node != first:
                    path.insert(0, node)
                    node = came[node]
                return [first, *path]
            if other in component and other not in came:
                came[other] = node
                waiting.append(other)
    raise AssertionError(component)


@pytest.mark.parametrize("package", [*OURS, "benchmarks"])
def test_no_folders_of_a_package_import_each_other_in_a_cycle(package: str) -> None:
    graph = edges(package)
    lines = [
        "; ".join(f"{a} -> {b} ({graph[a][b]})" for a, b in itertools.pairwise(path))
        for path in cycles(graph)
    ]
    assert not lines, "import cycles between folders:\n" + "\n".join(lines)


def test_folder_cycle_detection_finds_cycles() -> None:
    graph = {"a": {"b": "1"}, "b": {"c": "2", "d": "3"}, "c": {"a": "4"}, "d": {}}
    assert cycles(graph) == [["a", "b", "c", "a"]]
    assert cycles({"a": {"b": "1"}, "b": {"c": "2"}, "c": {}}) == []


@pytest.mark.parametrize("package", OURS)
def test_a_folder_imports_what_its_docstring_says(package: str) -> None:
    """Each folder's ``__init__`` ends its docstring with the folders that its files may import."""
    for folder, imports in edges(package).items():
        if folder == package:
            continue
        said = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
        named = re.search(r"May import: ([\w/, \n]+)\.$", said)
        assert named, f"{folder}/__init__.py does not say what its files may import"
        allowed = set(re.split(r",\s+", named[1])) | {"nothing"}
        for other, place in imports.items():
            short = other.removeprefix(f"{package}/")
            assert short in allowed or other == package, (
                f"{place} imports {other}; {folder}/__init__.py allows {named[1]}"
            )


def test_every_data_file_is_in_the_wheel() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = declared["package-data"]
    packed = {
        path
        for package, globs in patterns.items()
        for name in (OURS if package == "*" else (package,))
        for glob in globs
        for path in (ROOT / name).glob(glob)
    }
    for package in OURS:
        files = {path for path in (ROOT / package).rglob("*") if path.is_file()}
        data = {path for path in files if path.suffix not in (".py", ".pyc")}
        assert data <= packed, f"in no pattern of package-data: {data - packed}"


def test_rewards_that_look_at_frames_are_listed_where_goals_are_read() -> None:
    from robo_rl.goals.goal_task import FRAME_REWARDS
    from robo_rl.rewards import REWARDS

    assert {name for name, kind in REWARDS.items() if kind.frames} == FRAME_REWARDS


def test_sims_utils_load_no_simulation() -> None:
    code = (
        "import sys, sims.utils.process, sims.utils.plugins, real_robot.core.child_process\n"
        "print([n for n in ('mujoco', 'gymnasium', 'numpy', 'cv2') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("first", ["sims", "gymnasium"])
def test_tasks_are_registered_with_gymnasium_whichever_is_imported_first(first: str) -> None:
    second = {"sims": "gymnasium", "gymnasium": "sims"}[first]
    code = f"import {first}, {second}, gymnasium; gymnasium.spec('robo/Reach-v0')"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
