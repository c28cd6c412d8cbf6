"""`robo-rl runs`: list, compare and remove runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.prompt import Confirm
from rich.table import Table

from robo_rl.commands.options import Json
from robo_rl.runs.overview import (
    UNFINISHED,
    RunSummary,
    compare,
    prunable,
    remove,
    run_paths,
    summary,
)
from robo_rl.runs.run_dir import jsonable


@dataclass(frozen=True, kw_only=True)
class ListRunsCommand:
    """Lists the runs in a folder, oldest first."""

    runs: tyro.conf.Positional[Path] = Path("runs")  # folder of runs
    as_json: Json = False  # print JSON


@dataclass(frozen=True, kw_only=True)
class CompareRunsCommand:
    """Shows in what settings, versions and figures runs differ."""

    run: tyro.conf.Positional[tuple[Path, ...]]  # two or more run folders
    as_json: Json = False  # print JSON


@dataclass(frozen=True, kw_only=True)
class PruneRunsCommand:
    """Removes runs, or only their checkpoints, after you have confirmed it."""

    run: tyro.conf.Positional[tuple[Path, ...]] = ()  # run folders
    unfinished: bool = False  # also all unfinished runs of --runs that no process is training
    # Remove only checkpoints of finished runs: policy, bundle and report stay, but the run cannot
    # be extended.
    checkpoints: bool = False
    runs: Path = Path("runs")  # folder of runs; with --checkpoints and no RUN, all of them
    yes: bool = False  # do not ask for confirmation


ACTIONS = ("list", "compare", "prune")


def main(argv: Sequence[str]) -> int:
    """Runs one action; without one it lists."""
    args = list(argv)
    if not args or args[0] not in (*ACTIONS, "-h", "--help"):
        args = ["list", *args]
    return int(
        tyro.extras.subcommand_cli_from_dict(
            {"list": _list, "compare": _compare, "prune": _prune},
            args=args,
            prog="robo-rl runs",
            description="Lists (the default), compares and removes runs.",
        )
    )


def _list(command: tyro.conf.OmitArgPrefixes[ListRunsCommand]) -> int:
    """Lists the runs in a folder, oldest first."""
    found = [summary(path) for path in run_paths(command.runs)]
    if command.as_json:
        print(json.dumps([jsonable(one) for one in found], indent=1))
        return 0
    heads = ("run", "goal", "reward", "learner", "env steps", "result", "state", "size", "started")
    rows = [
        (
            one.path,
            f"{one.task}: {one.goal}",
            one.reward,
            one.learner,
            f"{one.env_steps:,}",
            _result(one),
            one.state,
            _megabytes(one.size),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started)),
        )
        for one in found
    ]
    _print(heads, rows)
    return 0


def _compare(command: tyro.conf.OmitArgPrefixes[CompareRunsCommand]) -> int:
    """Shows in what settings, versions and figures runs differ."""
    found = compare(command.run)
    if command.as_json:
        print(json.dumps(jsonable(found), indent=1))
        return 0
    for title in ("config", "versions", "figures"):
        rows = [(name, *map(_cell, row)) for name, row in getattr(found, title).items()]
        if rows:
            _print((title, *found.runs), rows)
        else:
            print(f"{title}: no differences")
    return 0


def _prune(command: tyro.conf.OmitArgPrefixes[PruneRunsCommand]) -> int:
    """Removes runs, or only their checkpoints, after you have confirmed it."""
    paths = list(command.run)
    if command.unfinished:
        every = map(summary, run_paths(command.runs))
        paths += [one.path for one in every if one.state == UNFINISHED]
    elif command.checkpoints and not paths:
        paths = run_paths(command.runs)
    elif not paths:
        raise ValueError("nothing to remove: name a RUN, or give --unfinished or --checkpoints")
    found = prunable(list(dict.fromkeys(paths)), checkpoints=command.checkpoints)
    if not found:
        print("nothing to remove")
        return 0
    for folder, size in found.items():
        print(f"{folder} {_megabytes(size)}")
    question = f"remove these {len(found)} folders, {_megabytes(sum(found.values()))}?"
    if not command.yes:
        if not sys.stdin.isatty():
            raise ValueError("nothing was removed: this is no terminal to confirm it; give --yes")
        if not Confirm.ask(question, default=False):
            return 1
    remove(list(found))
    return 0


def _result(run: RunSummary) -> str:
    if run.success is not None:
        value, low, high = (100 * share for share in run.success)
        return f"{value:.1f} % ({low:.1f}-{high:.1f})"
    return "" if run.mean_return is None else f"return {run.mean_return:,.1f}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _print(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> None:
    table = Table(*(escape(str(head)) for head in heads), box=None, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else 250).print(table)
