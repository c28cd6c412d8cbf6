"""Many runs at once: what a folder holds, how runs differ, what of them can be removed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.runs.run_dir import RESULT, VERSIONS, RunDir, read_json

TRAINING, UNFINISHED, FINISHED = "training", "unfinished", "finished"
# Figures of result.json that `compare` shows: its path in the file and what it is called.
FIGURES = {
    "evaluation.success": "success",
    "evaluation.low": "success, lower bound",
    "evaluation.high": "success, upper bound",
    "evaluation.episodes": "evaluation episodes",
    "evaluation.return_mean": "return",
    "evaluation.floors.still.success": "success, zero action",
    "evaluation.floors.untrained.success": "success, untrained policy",
    "env_steps": "env steps",
    "seconds.train": "training, s",
    "seconds.processor": "training, processor s",
    "peak_memory_gb": "peak memory, GB",
}


@dataclass(frozen=True)
class RunSummary:
    """What a list says of one run."""

    path: Path
    state: str  # training, unfinished or finished
    task: str
    goal: str
    reward: str
    learner: str
    seed: int
    env_steps: int  # of training, made or asked for
    success: tuple[float, float, float] | None  # with its 95 % interval; None: not judged
    mean_return: float | None  # of evaluation episodes, where they have a return
    size: int  # bytes on disk
    started: float  # s since the epoch


def run_paths(folder: Path) -> list[Path]:
    """The run folders in ``folder`` and in the folders of sweeps in it, oldest first.

    Args:
        folder: a folder of runs, or one run.

    Raises:
        ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"no folder {folder}: give the folder of your runs with --runs")
    found = {
        path.parent for depth in ("", "*/", "*/*/") for path in folder.glob(f"{depth}config.json")
    }
    return sorted(found, key=lambda path: ((path / "config.json").stat().st_mtime, path))


def summary(path: Path) -> RunSummary:
    """Returns the figures and settings of the run in ``path``."""
    run = RunDir.open(path)
    config, result = run.config, run.result if run.finished else {}
    judged = result.get("evaluation") or {}
    found = tuple(judged.get(name) for name in ("success", "low", "high"))
    state = FINISHED if run.finished else UNFINISHED
    return RunSummary(
        path=path,
        state=TRAINING if run.in_use else state,
        task=config.get("task", ""),
        goal=config.get("goal") or config.get("formula") or result.get("goal", ""),
        reward=config.get("reward", ""),
        learner=config.get("learner", ""),
        seed=config.get("seed", 0),
        env_steps=result.get("env_steps") or config.get("env_steps") or 0,
        success=None if None in found else found,
        mean_return=judged.get("return_mean"),
        size=size_of(path),
        started=(path / "config.json").stat().st_mtime,
    )


def size_of(path: Path) -> int:
    """Returns the bytes of all files under ``path``; 0 where it is gone."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


@dataclass(frozen=True)
class Comparison:
    """How runs differ; each entry has one value per run, None where a run has none."""

    runs: tuple[Path, ...]
    config: dict[str, list[Any]]  # settings that are not the same in all
    versions: dict[str, list[Any]]  # versions and machines that are not the same in all
    figures: dict[str, list[Any]]  # what the runs came to


def compare(paths: Sequence[Path]) -> Comparison:
    """Two or more runs side by side.

    Raises:
        ValueError: fewer than two runs are given, or a folder holds none.
    """
    if len(paths) < 2:
        raise ValueError(f"compare needs two runs or more, got {len(paths)}")
    runs = [RunDir.open(path) for path in paths]
    configs = [dict(_flat(run.config)) for run in runs]
    versions = [_json(run.path / VERSIONS) for run in runs]
    results = [dict(_flat(_json(run.path / RESULT))) for run in runs]
    figures = {text: [one.get(name) for one in results] for name, text in FIGURES.items()}
    return Comparison(
        runs=tuple(paths),
        config=_differing(configs),
        versions=_differing(versions),
        figures={name: row for name, row in figures.items() if any(v is not None for v in row)},
    )


def _json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of nested settings."""
    for name, entry in value.items():
        if isinstance(entry, Mapping):
            yield from _flat(entry, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", entry


def _differing(tables: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for one in tables for name in one)
    rows = {name: [one.get(name) for one in tables] for name in names}
    return {name: row for name, row in rows.items() if any(v != row[0] for v in row)}


def prunable(paths: Sequence[Path], *, checkpoints: bool) -> dict[Path, int]:
    """Returns {folder that can be removed: its bytes} of runs that no process is training in.

    Args:
        paths: run folders.
        checkpoints: the checkpoints of finished runs only, and not the runs.

    Raises:
        ValueError: a folder holds no run, or a process is training in it.
    """
    found = {}
    for path in paths:
        run = RunDir.open(path)
        if run.in_use:
            raise ValueError(f"{path} is being trained by another process: stop that one first")
        if not checkpoints:
            found[path] = size_of(path)
        elif run.finished and run.checkpoints_path.exists():
            found[run.checkpoints_path] = size_of(run.checkpoints_path)
    return found


def remove(folders: Sequence[Path]) -> None:
    """Removes what ``prunable`` found."""
    for folder in folders:
        shutil.rmtree(folder)
