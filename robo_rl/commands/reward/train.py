"""`robo-rl reward train`: an embedded CLIP for a scene."""

from __future__ import annotations

import dataclasses
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
    """Trains a small CLIP for one scene: renders frames of scattered and random states, has their
    captions graded by where things are, or as --captions says, fits, and judges what came of it."""

    task: str = "reach"  # whose scene; with --captions any task, and gym:ID
    captions: Path | None = None  # TOML file of your own captions and what makes each of them true
    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own
    out: Path | None = None  # .safetensors file to write
    ship: bool = False  # write over the weights inside the package instead
    frames: int = 80_000  # rendered for training
    steps: int = 4_100  # gradient steps; 0: as many as fit into the minutes
    batch: int = 128  # frames of a gradient step
    minutes: float = 15.0  # of fitting, with --steps 0
    seed: int = 11  # of states and weights
    device: str = "cpu"  # cpu or cuda
    check: bool = True  # judge it afterwards and write the figures into its card


def main(argv: Sequence[str]) -> int:
    """Writes the weights, their card, and the state rows that guard the look."""
    command = tyro.cli(TrainClipCommand, args=list(argv), prog="robo-rl reward train")
    import torch  # takes seconds, which --help shall not

    if command.captions is not None:
        return _own(command)
    from reward_models.visual import tiny_clip
    from reward_models.visual.encoders import EmbeddedClip
    from reward_models.visual.train import fit, tabletop_lessons
    from robo_rl.threads import set_threads
    from robo_rl.visual.data import dataset
    from robo_rl.visual.gate import check_sayable, gate
    from robo_rl.visual.look_guard import write_guard

    task = sims.make_task(command.task, robot=command.robot or None)
    check_sayable(task)
    robot = getattr(task, "robot", "")
    out = _out(command, (task.name, robot), tiny_clip.DEFAULT)
    torch.set_num_threads(set_threads())
    console = Console(stderr=True)
    start = time.monotonic()
    env = sims.BatchEnv(task, 256, seed=command.seed)
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

        frames, facts, states = dataset(env, command.frames, command.seed, progress=drawn)
        model = fit(frames, tabletop_lessons(facts), config, fitted).cpu()
    model.home = tiny_clip.Home(task.name, robot, env.camera().name)
    card = _card(command, model.home, config, time.monotonic() - start)
    tiny_clip.save(model, out, card)
    write_guard(env, states, out.with_suffix(".guard.npz"))
    if command.check:
        figures = gate(EmbeddedClip(out), (task,))
        card["gate"] = {"worst": figures["worst"], "frames_per_s": figures["frames_per_s"]}
        tiny_clip.save(model, out, card)
        console.print(card["gate"])
    env.close()
    print(out)
    return 0


def _own(command: TrainClipCommand) -> int:
    """Teaches somebody's own captions: weights, and a card that says how well each is seen in
    frames of other episodes."""
    import torch

    from reward_models.visual import tiny_clip
    from reward_models.visual.encoders import EmbeddedClip
    from reward_models.visual.train import fit, own_lessons
    from robo_rl.threads import set_threads
    from robo_rl.visual.own_captions import cells, held_out, told, watch

    if command.ship or command.out is None or command.out.suffix != ".safetensors":
        raise ValueError(
            "CLIPs of your own captions go into a file of yours: give --out FILE.safetensors, and "
            f"no --ship; got {'--ship' if command.ship else command.out}"
        )
    torch.set_num_threads(set_threads())
    console, start = Console(stderr=True), time.monotonic()
    config = FitConfig(
        minutes=command.minutes, steps=command.steps, batch=command.batch, seed=command.seed,
        device=command.device, captions=1.0,
    )  # fmt: skip
    with stages(console) as progress:
        seen = watch(
            command.task, command.robot, command.captions, command.frames, command.seed,
            lambda share: progress("frames", share),
        )  # fmt: skip
        held = held_out(command.task, command.robot, command.captions, command.frames, command.seed)

        def fitted(share: float, losses: dict[str, float]) -> None:
            progress("fit", share, " ".join(f"{k} {v:.3f}" for k, v in losses.items()))

        lessons = own_lessons(seen.graded, seen.signals)
        model = fit(seen.frames, lessons, config, fitted).cpu()
    model.home = seen.home
    card = _card(command, model.home, config, time.monotonic() - start)
    card["what"] = "a small CLIP taught captions that somebody graded"
    card["captions"] = dict(zip(model.captions, seen.graded.bodies, strict=True))
    tiny_clip.save(model, command.out, card)
    card["cells"] = cells(EmbeddedClip(command.out), seen.graded, held)
    tiny_clip.save(model, command.out, card)
    console.print(told(card["cells"]), highlight=False)
    print(command.out)
    return 0


def _out(command: TrainClipCommand, scene: tuple[str, str], shipped: Path) -> Path:
    """The file to write; ValueError unless one was named, or the shipped one was meant."""
    if command.ship == (command.out is not None):
        raise ValueError(
            "say where the weights shall go: --out FILE, or --ship to write over those inside the "
            "package"
        )
    if command.out is None:
        if scene != SHIPPED:
            task, robot = SHIPPED
            raise ValueError(
                f"the package's weights are those of {task} with the {robot}, not of {scene[0]} "
                f"with the {scene[1]}: give --out FILE"
            )
        return shipped
    if command.out.suffix != ".safetensors":
        raise ValueError(f"--out must be a .safetensors file, got {command.out}")
    return command.out


def _card(command: TrainClipCommand, home: Any, config: FitConfig, seconds: float) -> dict:
    """What the weights say of themselves."""
    where = f"--out {command.out}" if command.out else "--ship"
    work = f"--steps {command.steps}" if command.steps else f"--steps 0 --minutes {command.minutes}"
    return {
        "model": "open_clip CLIP, keypoint image tower, word vocabulary",
        "what": "a small CLIP trained on captions that the simulator's positions graded",
        **dataclasses.asdict(home),
        "states": "scattered over the workspace, and of random moves; none of an expert",
        "licence": "Apache-2.0",
        "frames": command.frames,
        "fit": dataclasses.asdict(config),
        "seconds": round(seconds),
        "versions": versions(),
        "command": f"robo-rl reward train --task {home.task} --robot {home.robot} --frames "
        f"{command.frames} {work} --batch {command.batch} --seed {command.seed} "
        f"{f'--captions {command.captions.name} ' if command.captions else ''}"
        f"--device {command.device} {where}",
    }
