"""`robo-rl list`: the tables of tasks, robots, rewards, learners and signals."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table

import sims
from robo_rl.commands.options import Json


@dataclass(frozen=True, kw_only=True)
class ListCommand:
    """Lists tasks, robots, rewards and learners, or the signals of a task."""

    what: tyro.conf.Positional[
        Literal["all", "tasks", "robots", "rewards", "learners", "signals"]
    ] = "all"  # what to list
    task: tyro.conf.Positional[str] = "reach"  # task whose signals are listed
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints tables, or one JSON object {family: {name: description}}."""
    command = tyro.cli(ListCommand, args=list(argv), prog="robo-rl list")
    families = [command.what]
    if command.what == "all":
        families = ["tasks", "robots", "rewards", "learners"]
    listing = {family: _entries(family, command.task) for family in families}
    if command.as_json:
        print(json.dumps(listing, indent=1))
        return 0
    console = Console()
    for family, entries in listing.items():
        table = Table(title=family, title_justify="left", box=None, show_header=False)
        table.add_column(style="bold")
        table.add_column(style="dim")
        for name, text in entries.items():
            table.add_row(name, text)
        console.print(table)
    return 0


def _entries(family: str, task: str) -> dict[str, str]:
    from robo_rl.learners import LEARNERS
    from robo_rl.rewards import reward_names

    if family == "tasks":
        return {
            name: "; ".join(g.sentence for g in sims.make_task(name).goals().values())
            for name in sims.TASKS
        }
    if family == "robots":
        return {name: f"{len(robot.joints)} joints" for name, robot in sims.ROBOTS.items()}
    if family == "rewards":
        return reward_names()
    if family == "learners":
        return {name: _first(kind.config.__doc__) for name, kind in LEARNERS.items()}
    return {
        s.name: f"{s.shape} {s.unit}, {s.frame}: {s.doc}"
        for s in sims.make_task(task).signal_docs()
    }


def _first(doc: str | None) -> str:
    """Its first sentence, on one line."""
    return re.split(r"(?<=\.) ", " ".join((doc or "").split()))[0]
