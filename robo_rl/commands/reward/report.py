"""`robo-rl reward report`: an encoder against the simulator's truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table

import sims
from robo_rl.commands.options import Json


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Judges an encoder on held-out states of the simulator."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    tasks: tuple[str, ...] = ("reach", "push")  # whose goals
    robot: str = ""  # as `robo-rl list robots` shows; empty: each task's own
    states: int = 6000  # held out
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints the gate's figures for every goal."""
    command = tyro.cli(ReportCommand, args=list(argv), prog="robo-rl reward report")
    import torch  # takes seconds, which --help shall not

    from reward_models.visual.encoders import make_encoder
    from robo_rl.threads import set_threads
    from robo_rl.visual.gate import gate

    torch.set_num_threads(set_threads())
    tasks = tuple(sims.make_task(name, robot=command.robot or None) for name in command.tasks)
    figures = gate(make_encoder(command.encoder), tasks, count=command.states)
    if command.as_json:
        print(json.dumps(figures, indent=1))
        return 0
    console = Console()
    for name, rows in figures.items():
        if "/" not in name:
            continue
        table = Table("goal", "AUC", "Spearman < 10 cm", "Spearman", title=name, box=None)
        for row in rows:
            cells = (f"{row[k]:.4f}" for k in ("auc", "spearman", "spearman_all"))
            table.add_row(row["goal"], *cells)
        console.print(table)
    for name, value in figures["worst"].items():
        console.print(f"{name:24} {value:.4f}")
    console.print(f"frames/s {figures['frames_per_s']:.0f}")
    return 0
