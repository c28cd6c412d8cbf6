"""`robo-rl bench`: the documented figures, measured again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from robo_rl.config import TrainConfig
from robo_rl.suites import SUITES, run_suite


@dataclass(frozen=True, kw_only=True)
class BenchCommand:
    """Runs a suite; what is finished is not done again."""

    what: tyro.conf.Positional[str]  # demo-controls, goals or push
    runs: Path = Path("runs/bench")  # where its runs and tables go
    env_steps: int = TrainConfig.env_steps  # per run of reach
    seed: int = 0  # of training


def main(argv: Sequence[str]) -> int:
    """Runs one suite and prints its table."""
    command = tyro.cli(
        BenchCommand, args=list(argv), prog="robo-rl bench", description=_description()
    )
    if command.what not in SUITES:
        raise ValueError(f"unknown bench {command.what!r}; known: {', '.join(SUITES)}")
    values: dict[str, Any] = {k: v for k, v in dataclasses.asdict(command).items() if k != "what"}
    table = run_suite(command.what, TrainConfig(**values), Console(stderr=True))
    print(table.read_text(), end="")
    return 0


def _description() -> str:
    return "Runs a suite of runs; what is finished is not done again.\n\n" + "\n".join(
        f"{name}: {text}" for name, (_, text) in SUITES.items()
    )
