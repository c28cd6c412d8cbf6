"""`robo-rl reward report`: how well an encoder sees every caption of a task."""

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
    """Judges an encoder on held-out states of the simulator, caption by caption."""

    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    task: str = "reach"  # whose captions
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own
    states: int = 6000  # held out
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints the gate's figures for every caption, as the scene is and with camera, light and
    paint changed."""
    command = tyro.cli(ReportCommand, args=list(argv), prog="robo-rl reward report")
    task = sims.make_task(command.task, robot=command.robot or None)
    import torch  # takes seconds, which --help shall not

    from reward_models.visual.encoders import make_encoder
    from robo_rl.rewards.clip import at_home
    from robo_rl.threads import set_threads
    from robo_rl.visual.gate import figure, gate

    torch.set_num_threads(set_threads())
    encoder = make_encoder(command.encoder)
    at_home(encoder, task)
    figures = gate(encoder, task, count=command.states)
    if command.as_json:
        print(json.dumps(figures, indent=1))
        return 0
    console = Console()
    for label in ("plain", "moved"):
        table = Table("caption", "AUC", "rank", "true", title=label, box=None)
        for cell in figures[label]:
            area, rank = (figure(cell[name]) for name in ("auc", "rank"))
            table.add_row(cell["text"], area, rank, str(cell["true"]))
        console.print(table)
    for label in ("plain", "moved"):
        console.print(label, figures[f"{label} summary"])
    if figures["swapped"] is not None:
        console.print(f"told apart by colour, both ways: {figures['swapped']:.1%}")
    console.print(f"frames/s {figures['frames_per_s']:.0f}")
    return 0
