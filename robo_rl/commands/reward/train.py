"""`robo-rl reward train`: the embedded CLIP, anew."""

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


@dataclass(frozen=True, kw_only=True)
class TrainClipCommand:
    """Trains the embedded CLIP: renders frames, writes captions from the state, fits, judges."""

    task: str = "reach"  # whose scene
    frames: int = 80_000  # rendered for training
    steps: int = 4_100  # gradient steps; 0: as many as fit into the minutes
    minutes: float = 15.0  # of fitting, with --steps 0
    seed: int = 11  # of states and weights
    device: str = "cpu"  # cpu or cuda
    out: Path | None = None  # safetensors file; default: the weights inside the package
    check: bool = True  # judge it afterwards and write the figures into its card


def main(argv: Sequence[str]) -> int:
    """Writes the weights, their card, and the state rows that guard the look."""
    command = tyro.cli(TrainClipCommand, args=list(argv), prog="robo-rl reward train")
    import torch  # takes seconds, which --help shall not

    from reward_models.visual import tiny_clip
    from reward_models.visual.encoders import EmbeddedClip
    from reward_models.visual.train import fit
    from robo_rl.threads import set_threads
    from robo_rl.visual.data import dataset
    from robo_rl.visual.gate import gate
    from robo_rl.visual.look_guard import write_guard

    torch.set_num_threads(set_threads())
    console = Console(stderr=True)
    start = time.monotonic()
    env = sims.make(command.task, 256, seed=command.seed)
    config = FitConfig(
        minutes=command.minutes, steps=command.steps, seed=command.seed, device=command.device
    )
    with stages(console) as progress:

        def drawn(share: float) -> None:
            progress("frames", share)

        def fitted(share: float, losses: dict[str, float]) -> None:
            text = " ".join(f"{k} {v:.3f}" for k, v in losses.items() if k != "step")
            progress("fit", share, text)

        frames, facts, states = dataset(env, command.frames, command.seed, progress=drawn)
        model = fit(frames, facts, config, fitted).cpu()
    out = command.out or tiny_clip.DEFAULT
    card = _card(command, config, time.monotonic() - start)
    tiny_clip.save(model, out, card)
    write_guard(env, states, out.with_suffix(".guard.npz"))
    if command.check:
        figures = gate(EmbeddedClip(out))
        card["gate"] = {"worst": figures["worst"], "frames_per_s": figures["frames_per_s"]}
        tiny_clip.save(model, out, card)
        console.print(card["gate"])
    env.close()
    print(out)
    return 0


def _card(command: TrainClipCommand, config: FitConfig, seconds: float) -> dict[str, Any]:
    """What the weights say of themselves."""
    return {
        "model": "open_clip CLIP, keypoint image tower, word vocabulary",
        "task": command.task,
        "licence": "Apache-2.0",
        "frames": command.frames,
        "fit": dataclasses.asdict(config),
        "seconds": round(seconds),
        "versions": versions(),
        "command": f"robo-rl reward train --frames {command.frames} --steps {command.steps} "
        f"--seed {command.seed}",
    }
