"""`robo-rl demos`: demonstrations of a task's expert, for other people's learners."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import Progress

from robo_rl.commands.options import Json, Table
from sims.demos import DemoConfig


@dataclass(frozen=True, kw_only=True)
class DemosCommand(DemoConfig, Table):
    """Writes episodes of a task's expert as a Minari data set."""

    task: tyro.conf.Positional[str]  # as `robo-rl list tasks` shows
    to: tyro.conf.Positional[Path]  # a folder that does not exist yet
    goal: str = ""  # the key of one of the task's goals; empty: the first one
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Writes the data set and says how many of its episodes succeed."""
    command = tyro.cli(DemosCommand, args=list(argv), prog="robo-rl demos")
    from robo_rl.goals import task_of
    from sims.demos import write_demos

    task = task_of(vars(command), goal=command.goal or None)
    config = DemoConfig(
        **{f.name: getattr(command, f.name) for f in dataclasses.fields(DemoConfig)}
    )
    with Progress(console=Console(stderr=True)) as bar:
        line = bar.add_task("episodes", total=1.0)
        made = write_demos(
            task, command.to, config, lambda share: bar.update(line, completed=share)
        )
    if command.as_json:
        print(json.dumps(dataclasses.asdict(made) | {"path": str(made.path)}))
    else:
        print(
            f"{made.path}: {made.episodes:,} episodes, {made.steps:,} steps, "
            f"{made.successes:,} succeed, {made.lost:,} made to fail"
        )
    return 0
