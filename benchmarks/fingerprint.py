"""What a row's figures hang on, as one hash: its settings and the code that makes them.

The code is what the row names and, through its imports, every module of ours that this reaches, as
Python's syntax tree has it: comments, docstrings, layout and the version of Python do not count.
Neither does what only shows, keeps or tells, nor a registry with all that it lists: a row names the
entries that it needs. Data files that lie beside a module (weights, prompts) count with it,
but for what a card says of weights.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import BenchmarkRow
from robo_rl.runs.run_dir import jsonable

ROOT = Path(__file__).parents[1]
OURS = ("reward_models", "sims", "real_robot", "robo_rl")
REGISTRIES = ("sims.tasks", "sims.robots", "robo_rl.learners", "robo_rl.rewards")
BESIDE = (
    "benchmarks",
    "robo_rl.cli",
    "robo_rl.commands",
    "robo_rl.runs.run_dir",
    "robo_rl.runs.html_page",
    "robo_rl.runs.markdown",
    "robo_rl.runs.video",
    "robo_rl.runtime.progress_bars",
    "robo_rl.runtime.checkout",
    "robo_rl.runs.errors",
    "robo_rl.runtime.argv",
    "robo_rl.training.report",
    "robo_rl.evaluation.rollout_video",
    "robo_rl.learners.tensorboard",
    "robo_rl.bundles.export",
    # What they made is in the settings.
    "robo_rl.config.presets",
    "reward_models.goals.grammar",
    "reward_models.writers",
    "reward_models.remote",
    "robo_rl.runtime.remote_models",
)
NOT_DATA = (".py", ".pyc", ".md")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(row: BenchmarkRow, machine: str = "") -> str:
    """sha256 of a row; of a rate also of the ``machine`` that it is of."""
    code = [(name, digest(path_of(name))) for name in modules(row.code, row.without)]
    facts = {"of": jsonable(row.of), "code": code, "machine": machine}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def modules(roots: tuple[str, ...], without: tuple[str, ...] = ()) -> list[str]:
    """Names of all modules of ours that ``roots`` reach; ValueError where a root is not one."""
    for root in roots:
        if path_of(root) is None:
            raise ValueError(f"a row depends on the module {root!r}, which does not exist")
    kept_out = (*BESIDE, *without)
    found, waiting = set(roots), list(roots)
    while waiting:
        name = waiting.pop()
        new = {*imports(name)}.difference(found, REGISTRIES)
        new = {n for n in new if _in(n, roots) or not _in(n, kept_out)}
        found |= new
        waiting += new
    return sorted(found)


def _in(name: str, packages: Iterable[str]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


@cache
def path_of(name: str) -> Path | None:
    """The file of a module of ours."""
    path = ROOT / name.replace(".", "/")
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in files if file.is_file()), None)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@cache
def imports(name: str) -> tuple[str, ...]:
    """Modules of ours that a module imports or names, wherever in it."""
    path = path_of(name)
    assert path is not None
    return tuple(dict.fromkeys(_named_modules(_parsed(path))))


def _named_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = [node.value]  # a registry's, imported when it is asked for
        for name in named:
            first, *rest = name.split(".")
            if first in OURS and all(part.isidentifier() for part in rest) and path_of(name):
                yield name


@cache
def digest(path: Path) -> str:
    """sha256 of what a module does, and of the data beside it."""
    found = hashlib.sha256(repr(_meaning(_parsed(path))).encode())
    folders = [path.parent, *(d for d in sorted(path.parent.iterdir()) if d.is_dir())]
    for folder in folders:
        if folder != path.parent and (folder / "__init__.py").exists():
            continue
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.suffix not in NOT_DATA and not _card(file):
                found.update(file.read_bytes())
    return found.hexdigest()


def _card(file: Path) -> bool:
    """Whether a file only says what was measured of the weights beside it."""
    return file.suffix == ".json" and file.with_suffix(".safetensors").exists()


def _meaning(node: Any) -> Any:
    """A syntax tree as tuples, alike in every version of Python: what is empty is left out, since
    versions differ in the fields that a node has; so are docstrings."""
    if isinstance(node, list):
        return [_meaning(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: getattr(node, name, None) for name in node._fields}
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:] or [ast.Pass()]
    there = ((name, value) for name, value in fields.items() if value not in (None, []))
    return type(node).__name__, *((name, _meaning(value)) for name, value in there)
