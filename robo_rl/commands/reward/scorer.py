"""`robo-rl reward train KIND`: a scorer on embeddings of one frozen encoder, from episodes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro
from rich.console import Console

from reward_models.config import HeadConfig
from reward_models.visual.episodes import Episodes
from robo_rl.commands.options import Json, Table
from robo_rl.goals import read_goal, task_of
from robo_rl.progress import stages
from robo_rl.rewards.clip import at_home
from robo_rl.runs import jsonable, versions
from robo_rl.visual.episodes import EpisodesConfig, watch

if TYPE_CHECKING:
    from reward_models.visual.heads import Head

Array = np.ndarray
Progress = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class TrainScorer(Table):
    """What all kinds are told."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # a sentence or key that the task has a ground truth for; empty: the first one
    out: Path  # .safetensors file to write
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    watch: EpisodesConfig = field(default_factory=EpisodesConfig)  # whose episodes
    head: HeadConfig = field(default_factory=HeadConfig)  # of the network
    as_json: Json = False  # print the card as JSON


@dataclass(frozen=True, kw_only=True)
class TrainSuccess(TrainScorer):
    """Trains a success classifier: the simulator says in which frames the goal is met."""

    bound: float = 0.01  # share of failing frames that it may call a success
    consecutive: int = 2  # frames in which it must be sure, one after the other

    def teach(self, seen: Episodes, progress: Progress) -> tuple[list[Head], dict[str, Any]]:
        from reward_models.visual.success import fit_success

        head, figures = fit_success(
            seen, self.head, bound=self.bound, consecutive=self.consecutive, progress=progress
        )
        return [head], figures


@dataclass(frozen=True, kw_only=True)
class TrainProgress(TrainScorer):
    """Trains a model of progress: demonstrations, the same rewound, and episodes that fail."""

    rewinds: int = 2  # of each demonstration

    def teach(self, seen: Episodes, progress: Progress) -> tuple[list[Head], dict[str, Any]]:
        from reward_models.visual.progress import fit_progress

        head, figures = fit_progress(seen, self.head, rewinds=self.rewinds, progress=progress)
        return [head], figures


KINDS: dict[str, type[TrainScorer]] = {"success": TrainSuccess, "progress": TrainProgress}


def main(argv: Sequence[str]) -> int:
    """Writes a scorer with its card; ``argv`` begins with the kind."""
    kind, *rest = argv
    command = tyro.cli(KINDS[kind], args=rest, prog=f"robo-rl reward train {kind}")
    if command.out.suffix != ".safetensors":
        raise ValueError(f"--out must be a .safetensors file, got {command.out}")
    task = task_of(vars(command))
    goal = read_goal(task, command.goal or next(iter(task.goals())))
    if not goal.key:
        raise ValueError(goal.refusal or goal.truth)
    task = task_of(vars(command), goal=goal.key)
    from reward_models.visual.encoders import make_encoder  # torch: seconds, not for --help
    from reward_models.visual.heads import save_scorer
    from robo_rl.threads import set_threads, simulation_waits

    set_threads()
    encoder, console, start = make_encoder(command.encoder), Console(stderr=True), time.monotonic()
    at_home(encoder, task, "--encoder")
    with stages(console) as progress:
        with simulation_waits():  # networks as small as heads learn fastest on one thread
            watched = watch(task, encoder, command.watch, lambda share: progress("episodes", share))
        seen = watched.seen
        heads, figures = command.teach(seen, lambda share: progress("fit", share))
    scene = {"task": task.name, "robot": getattr(task, "robot", ""), "camera": encoder.camera,
             "goal": goal.text, "truth": goal.key}  # fmt: skip
    card = {
        "kind": kind,
        "scene": scene,
        "encoder": encoder.name,
        "dtype": encoder.dtype_name,
        "learned_from": learned_from(seen),
        "figures": figures,
        "heads": len(heads),
        "dim": seen.rows.shape[1],
        "frames": heads[0].frames,
        "hidden": command.head.hidden,
        "config": jsonable(asdict(command)),
        "seconds": round(time.monotonic() - start),
        "versions": versions(),
        "command": " ".join(["robo-rl reward train", *argv]),
    }
    save_scorer(command.out, heads, card)
    if command.as_json:
        print(json.dumps(card, indent=1))
    else:
        console.print(figures, highlight=False)
        print(command.out)
    return 0


def learned_from(seen: Episodes) -> str:
    """Whose episodes, and how many of them met the goal: for the card and for reports."""
    met = seen.met()
    return "; ".join(
        f"{count} episodes of {who} ({int(met[np.array(seen.by) == who].sum())} meet the goal)"
        for who, count in Counter(seen.by).items()
    )
