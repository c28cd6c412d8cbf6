"""`robo-rl report`: report.html of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from robo_rl.runs.run_dir import RunDir
from robo_rl.training.report import write_report


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Writes report.html of a finished run."""

    run: tyro.conf.Positional[Path]  # the run's folder


def main(argv: Sequence[str]) -> int:
    """Writes the report and prints its path."""
    command = tyro.cli(ReportCommand, args=list(argv), prog="robo-rl report")
    print(write_report(RunDir.open(command.run)))
    return 0
