"""`robo-rl clone`: behaviour cloning from demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import tyro

from robo_rl.commands.options import Json
from robo_rl.datasets.demonstrations import CloneConfig
from robo_rl.runtime.progress_bars import stderr_console


@dataclass(frozen=True, kw_only=True)
class CloneCommand(CloneConfig):
    """Clones demonstrations into a run with a bundle, by regression: a base for --learner
    residual-*, seldom more."""

    dataset: tyro.conf.Positional[Path]  # folder of a Minari dataset (robo-rl demos writes one)
    as_json: Json = False  # print the result as JSON


def main(argv: Sequence[str]) -> int:
    """Clones, evaluates, reports and exports."""
    command = tyro.cli(CloneCommand, args=list(argv), prog="robo-rl clone")
    config = CloneConfig(**{f.name: getattr(command, f.name) for f in fields(CloneConfig)})
    from robo_rl.training.clone import clone

    console = stderr_console()
    made = clone(command.dataset, config, console=console)
    if command.as_json:
        print((made.run.path / "result.json").read_text())
        return 0
    console.print(
        f"{made.run.path / 'report.html'}; improve it: robo-rl train {made.run.config['task']} "
        f"--reward task --learner residual-sac --base {made.run.path}",
        soft_wrap=True,
    )
    assert made.evaluation is not None
    print(made.evaluation.line())
    return 0
