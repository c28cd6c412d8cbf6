"""`robo-rl reward check`: whether reward programs are safe and sound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from reward_models.base import TaskCard, from_dict
from reward_models.programs import Diagnostic, Program, Refused, errors, explain, load
from robo_rl.commands.options import Json, SceneOptions
from robo_rl.goals.reading import known_goal, task_of_config
from robo_rl.reward_analysis.screening import screen_program
from robo_rl.runtime.sandbox import Job, preflight
from sims.core.task import Task


@dataclass(frozen=True, kw_only=True)
class CheckCommand(SceneOptions):
    """Checks reward programs: language, units and shapes, then probes in a subprocess; with --goal
    also their rewards on episodes of known policies (preference order, reward hacking, reward
    farming, reward for staying alive, order of stages)."""

    files: tyro.conf.Positional[tuple[Path, ...]]  # programs
    task: str  # task whose signals they read
    goal: str = ""  # sentence or key with a success judge; empty: skip the screens
    explain: bool = False  # also say in plain language what each component rewards
    as_json: Json = False  # print a list with one object per file


@dataclass
class _CheckedFile:
    """A file, its program unless it was refused, and what was found."""

    path: Path
    program: Program | None
    found: list[Diagnostic]

    @property
    def fine(self) -> bool:
        return not errors(self.found)


def main(argv: Sequence[str]) -> int:
    """Prints the findings of each reward program and returns the exit code.

    Args:
        argv: The words after ``robo-rl reward check``.

    Returns:
        0 only if no file has an error, else 1.

    Raises:
        ValueError: no file is given.
    """
    command = tyro.cli(CheckCommand, args=list(argv), prog="robo-rl reward check")
    if not command.files:
        raise ValueError("give the files to check: robo-rl reward check FILE... --task TASK")
    task = _task(command)
    card = from_dict(task.card())
    files = [_read(path, card) for path in command.files]
    sound = [(file, file.program) for file in files if file.program is not None]
    probed = preflight([Job(program.text) for _, program in sound], card)
    for (file, program), diagnostics in zip(sound, probed, strict=True):
        file.found += diagnostics
        if command.goal and not errors(diagnostics):
            file.found += screen_program(program, task).diagnostics
    if command.as_json:
        entries = [
            {"file": str(f.path), "ok": f.fine, "diagnostics": [d.as_dict() for d in f.found]}
            for f in files
        ]
        print(json.dumps(entries, indent=1))
    else:
        for file in files:
            _print(file, command.explain)
    return 0 if all(file.fine for file in files) else 1


def _task(command: CheckCommand) -> Task[Any]:
    """The task, with the ground truth of the goal if one is given; ValueError if it has none."""
    if not command.goal:
        return task_of_config(vars(command))
    return known_goal(vars(command), command.goal)[0]


def _read(path: Path, card: TaskCard) -> _CheckedFile:
    try:
        program = load(path.read_bytes().decode("utf-8"), card)
    except UnicodeDecodeError:
        return _CheckedFile(path, None, [Diagnostic("source", "the file is not UTF-8 text")])
    except Refused as refused:
        return _CheckedFile(path, None, list(refused.diagnostics))
    return _CheckedFile(path, program, list(program.warnings))


def _print(file: _CheckedFile, explained: bool) -> None:
    print(f"{file.path}: {'ok' if file.fine else 'refused'}")
    for d in file.found:
        print(f"  {'' if d.severity == 'error' else 'warning: '}{d}")
    if file.fine and explained and file.program is not None:
        print("  " + explain(file.program).replace("\n", "\n  "))
