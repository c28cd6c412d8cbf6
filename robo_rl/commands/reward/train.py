"""`robo-rl reward train`: an embedded CLIP for a scene."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

import sims
from reward_models.config import FitConfig
from robo_rl.progress import stages
from robo_rl.runs import versions

SHIPPED = ("reach", "so101")  # task and arm of the weights inside the package


@dataclass(frozen=True, kw_only=True)
class TrainClipCommand:
    """Trains a small CLIP for one scene: draws scattered and random states, has every caption
    graded by what they measure, fits, and judges what came of it. The captions are those that the
    table of predicates writes for the task's things, or your own."""

    task: str = "reach"  # whose scene: any task with things; with --captions any task, and gym:ID
    captions: Path | None = None  # TOML file of your own captions and what makes each of them true
    goals: tuple[str, ...] = ()  # sentences with numbers of their own, taught beside the usual
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own
    out: Path | None = None  # .safetensors file to write
    ship: bool = False  # write over the weights inside the package instead
    frames: int = 60_000  # drawn for training
    steps: int = 4_100  # gradient steps; 0: as many as fit into the minutes
    batch: int = 128  # frames of a gradient step
    minutes: float = 15.0  # of fitting, with --steps 0
    seed: int = 11  # of states and weights
    device: str = "cpu"  # cpu or cuda
    check: bool = True  # judge it afterwards and write the figures into its card


def main(argv: Sequence[str]) -> int:
    """Writes the weights, their card, and where they ship the state rows that guard the look."""
    command = tyro.cli(TrainClipCommand, args=list(argv), prog="robo-rl reward train")
    out = _out(command)
    import torch  # takes seconds, which --help shall not

    from reward_models.visual import tiny_clip
    from reward_models.visual.encoders import EmbeddedClip
    from reward_models.visual.train import fit, lessons
    from robo_rl.threads import set_threads
    from robo_rl.visual.gate import gate, own_cells, summary, told
    from robo_rl.visual.look_guard import write_guard
    from robo_rl.visual.taught import graded_frames, held_out

    torch.set_num_threads(set_threads())
    console, start = Console(stderr=True), time.monotonic()
    config = FitConfig(
        minutes=command.minutes, steps=command.steps, batch=command.batch, seed=command.seed,
        device=command.device,
    )  # fmt: skip
    with stages(console) as progress:

        def drawn(share: float) -> None:
            progress("frames", share)

        def fitted(share: float, losses: dict[str, float]) -> None:
            text = " ".join(f"{k} {v:.3f}" for k, v in losses.items() if k != "step")
            progress("fit", share, text)

        seen = graded_frames(
            command.task, command.robot, command.captions, command.frames, command.seed,
            command.goals, drawn,
        )  # fmt: skip
        model = fit(seen.frames, lessons(seen.seen), config, fitted).cpu()
    model.home = seen.home
    card = _card(command, model.home, config, time.monotonic() - start)
    if command.captions is not None:
        bodies = seen.seen[0].captions.bodies
        card["captions"] = dict(zip(model.captions, bodies, strict=True))
    tiny_clip.save(model, out, card)
    if command.check:
        encoder = EmbeddedClip(out)
        if command.captions is not None:
            held = held_out(
                command.task, command.robot, command.captions, command.frames, command.seed
            )
            found = own_cells(encoder, held)
            card |= {"cells": [vars(cell) for cell in found], "summary": summary(found)}
        else:
            task = sims.make_task(command.task, robot=command.robot or None)
            figures = gate(encoder, task, command.goals)
            card |= {"cells": figures["plain"], "summary": figures["plain summary"]}
            card |= {"moved": figures["moved summary"], "swapped": figures["swapped"]}
            card["frames_per_s"] = figures["frames_per_s"]
        console.print(told(card["cells"]), highlight=False)
        console.print(card["summary"], card.get("moved", ""))
        tiny_clip.save(model, out, card)
    if command.ship:
        with contextlib.closing(sims.make(*SHIPPED[:1], 64, robot=SHIPPED[1])) as env:
            write_guard(env, seen.states, out.with_suffix(".guard.npz"))
    print(out)
    return 0


def _out(command: TrainClipCommand) -> Path:
    """The file to write; ValueError unless one was named, or the shipped one was meant."""
    if command.ship == (command.out is not None):
        raise ValueError(
            "say where the weights shall go: --out FILE, or --ship to write over those inside the "
            "package"
        )
    if command.out is None:
        task, robot = SHIPPED
        if (command.task, command.robot or robot) != SHIPPED or command.captions is not None:
            raise ValueError(
                f"the package's weights are those of {task} with the {robot}, not of "
                f"{command.task}{f' with the {command.robot}' if command.robot else ''}, and of no "
                "captions of your own: give --out FILE"
            )
        from reward_models.visual.tiny_clip import DEFAULT

        return DEFAULT
    if command.out.suffix != ".safetensors":
        raise ValueError(f"--out must be a .safetensors file, got {command.out}")
    return command.out


def _card(command: TrainClipCommand, home: Any, config: FitConfig, seconds: float) -> dict:
    """What the weights say of themselves."""
    where = f"--out {command.out}" if command.out else "--ship"
    of = f"--robot {home.robot} " if home.robot else ""
    of += f"--captions {command.captions.name} " if command.captions else ""
    of += f"--goals {' '.join(map(shlex.quote, command.goals))} " if command.goals else ""
    work = f"--steps {command.steps}" if command.steps else f"--steps 0 --minutes {command.minutes}"
    return {
        "model": "open_clip CLIP, keypoint image tower, word vocabulary",
        "what": "a small CLIP trained on captions that "
        + ("somebody graded" if command.captions else "the simulator's positions graded"),
        **dataclasses.asdict(home),
        "states": "scattered over the workspace, and of random moves; none of an expert",
        "licence": "Apache-2.0",
        "frames": command.frames,
        "fit": dataclasses.asdict(config),
        "seconds": round(seconds),
        "versions": versions(),
        "command": f"robo-rl reward train --task {home.task} {of}--frames {command.frames} {work} "
        f"--batch {command.batch} --seed {command.seed} --device {command.device} {where}",
    }
