"""`robo-rl bench`: the documented figures, measured again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from robo_rl.commands.options import Json
from robo_rl.config import TrainConfig
from robo_rl.experiments import BENCHES, markdown, run_bench
from robo_rl.experiments.suites import SUITES, run_suite
from robo_rl.runs import versions, write_json
from robo_rl.threads import set_threads


@dataclass(frozen=True, kw_only=True)
class BenchCommand:
    """Measures; of a suite, what is finished is not done again."""

    what: tyro.conf.Positional[str]  # a name from the list above, or all: every one with a peer
    runs: Path = Path("runs/bench")  # where the runs and tables go
    env_steps: int = TrainConfig.env_steps  # per run of reach, in suites
    seed: int = 0  # of training, in suites
    share: float = 1.0  # of the steps of `search`: below 1 it is only a trial run
    episodes: int = 100  # at least, of each policy on each arm in each way, in arms
    journal: Path | None = None  # of a suite: finished rows, kept from sitting to sitting
    jobs: int = 1  # rows of a suite, trainings of `search`, worked at side by side
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Runs a bench or a suite and prints its table."""
    command = tyro.cli(
        BenchCommand, args=list(argv), prog="robo-rl bench", description=_description()
    )
    console = Console(stderr=True)
    known = ("all", *BENCHES, *MEASURED, *SUITES)
    if command.what not in known:
        raise ValueError(f"unknown bench {command.what!r}; known: {', '.join(known)}")
    command.runs.mkdir(parents=True, exist_ok=True)
    if command.what in SUITES:
        base = TrainConfig(runs=command.runs, env_steps=command.env_steps, seed=command.seed)
        table = run_suite(command.what, base, console, command.journal, command.jobs)
        shown = table.with_suffix(".json") if command.as_json else table
        print(shown.read_text(), end="")
        return 0
    if command.what in MEASURED:
        title, rows, table = MEASURED[command.what][0](command, console)
        path = command.runs / f"{command.what}.json"
        write_json(path, {"title": title, "rows": rows, "versions": versions()})
        print(path.read_text() if command.as_json else table, end="")
        return 0
    names = list(BENCHES) if command.what == "all" else [command.what]
    set_threads()
    for name in names:
        figures = run_bench(name, lambda text: console.print(f"[dim]{text}[/dim]"))
        path = command.runs / f"{name}.json"
        rows = [f.as_dict() for f in figures]
        write_json(path, {"title": BENCHES[name][1], "rows": rows, "versions": versions()})
        print(path.read_text() if command.as_json else markdown(figures), end="")
    return 0


def _screens(command: BenchCommand, console: Console) -> tuple[str, list[dict[str, Any]], str]:
    from robo_rl.experiments import screens

    rows = screens.measure()
    return MEASURED["screens"][1], rows, screens.markdown(rows)


def _arms(command: BenchCommand, console: Console) -> tuple[str, list[dict[str, Any]], str]:
    from robo_rl.experiments import arms

    rows = arms.measure(command.runs / "arms", command.seed, console, command.episodes)
    return MEASURED["arms"][1], rows, arms.markdown(rows)


def _searches(command: BenchCommand, console: Console) -> tuple[str, list[dict[str, Any]], str]:
    from robo_rl.experiments import searches

    rows = searches.measure(command.runs / "searches", command.share, console, command.jobs)
    return MEASURED["search"][1], rows, searches.markdown(rows)


# Without a peer: (function -> (title, rows, table), text).
MEASURED: dict[str, tuple[Callable[..., tuple[str, list[dict[str, Any]], str]], str]] = {
    "arms": (_arms, "reach and push of the dense reward on both emulated arms, over their wires"),
    "screens": (_screens, "archive screens on rewards that must pass and on ones that must not"),
    "search": (_searches, "what three searches gain over a hand-written reward, at equal steps"),
}


def _description() -> str:
    lines = [f"{name}: {text}, beside a peer" for name, (_, text) in BENCHES.items()]
    lines += [
        f"{name}: {text}" for table in (MEASURED, SUITES) for name, (_, text) in table.items()
    ]
    return "Measures the documented figures again.\n\n" + "\n".join(f"{line}\n" for line in lines)
