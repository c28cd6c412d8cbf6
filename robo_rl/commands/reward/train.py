"""`robo-rl reward train`: an embedded CLIP for a scene, or for several."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.console import Console

from reward_models.vision.config import ANY_THINGS, FitConfig, NumberFormat, at_least
from robo_rl.evaluation.reward_tables import figures_text
from robo_rl.runs.run_dir import versions
from robo_rl.runtime.progress_bars import stage_progress, stderr_console
from robo_rl.runtime.workers import run_in_workers

if TYPE_CHECKING:
    from robo_rl.vision.caption_data import SceneView

RATE = FitConfig.learning_rate
# Tasks, arms and cameras of the weights inside the package.
SHIPPED_TASKS = (
    "reach",
    "lift",
    "pick_place",
    "stack",
    "drawer",
    "button",
    "peg",
    "drawer_then_place",
    "push",
)
SHIPPED_ARMS = ("so101", "ur5e", "fr3")
SHIPPED_CAMERAS = ("front", "top")


@dataclass(frozen=True, kw_only=True)
class TrainClipCommand:
    """Trains a small CLIP for one scene or several: renders random states, grades each caption from
    the simulator state, fits, and evaluates the result. The captions are generated from the
    predicates for the objects of the tasks, or are your own."""

    # Tasks to render: any tasks with objects; with --captions, one task of any kind or gym:ID.
    task: tuple[str, ...] = ("reach",)
    # Objects of --task tabletop: "yellow ball, two red cubes, white plate", or "any": every colour
    # and shape.
    things: str = ""
    scene: str = ""  # your scene for task tabletop: FILE.xml, with FILE.toml beside it
    captions: Path | None = None  # TOML file of your own captions and when each is true
    goals: tuple[str, ...] = ()  # additional sentences (with their own numbers) to train on
    robot: tuple[str, ...] = ()  # robots to render; none: the task's own
    camera: tuple[str, ...] = ()  # cameras to render; none: the scene's first
    without: tuple[str, ...] = ()  # held-out objects ("red ball"), evaluated separately
    out: Path | None = None  # .safetensors file to write
    ship: bool = False  # overwrite the weights inside the package (all scenes) instead
    frames: int = 60_000  # training frames; scenes with more recolourings get more
    steps: int = 4_100  # gradient steps; 0: as many as fit into --minutes
    large: bool = False  # wider towers, as the weights inside the package have
    batch: int = 128  # frames per gradient step
    minutes: float = 15.0  # training time, with --steps 0
    start: Path | None = None  # initial weights (same vocabulary)
    learning_rate: float = RATE  # peak of the image tower; the text tower has half
    seed: int = 11  # seed of states and weights
    device: str = "cpu"  # cpu or cuda
    # Number format of the towers: bfloat16 is faster only on processors and GPUs with bf16
    # instructions, and changes the numbers.
    dtype: NumberFormat = "float32"
    jobs: int = 1  # scenes rendered and evaluated in parallel
    check: bool = True  # evaluate afterwards and store the figures in its card
    check_states: int = 4_000  # evaluation states per scene

    def __post_init__(self) -> None:
        at_least(self, 1, "frames", "batch", "jobs", "check_states")
        at_least(self, 0, "steps", "minutes", "learning_rate", "seed")

    @property
    def views(self) -> list[SceneView]:
        """Everything that it is taught."""
        from robo_rl.vision.caption_data import TABLES

        return self._views(TABLES, self.seed)

    @property
    def judged(self) -> list[SceneView]:
        """Everything that it is judged by: of any things, tables that it was not taught."""
        from robo_rl.vision.caption_data import JUDGED_TABLES, OTHER

        return self._views(JUDGED_TABLES, self.seed + OTHER)

    def _views(self, tables: int, seed: int) -> list[SceneView]:
        from robo_rl.vision.caption_data import (  # with torch, which takes seconds
            SceneView,
            any_tables,
        )

        things = any_tables(tables, seed) if self.things == ANY_THINGS else [self.things]
        if self.ship:
            combinations = itertools.product(SHIPPED_TASKS, SHIPPED_ARMS, SHIPPED_CAMERAS)
        else:
            combinations = itertools.product(self.task, self.robot or ("",), self.camera or ("",))
        return [SceneView(*one, table, self.scene) for one in combinations for table in things]


def main(argv: Sequence[str]) -> int:
    """Writes the weights, their card, and where they ship the state rows that guard the look."""
    command = tyro.cli(TrainClipCommand, args=list(argv), prog="robo-rl reward train")
    out = _out(command)
    import torch  # takes seconds, which --help shall not

    from reward_models.vision import tiny_clip
    from reward_models.vision.encoders import EmbeddedClip
    from reward_models.vision.train import caption_targets, fit
    from robo_rl.runtime.threads import set_threads
    from robo_rl.vision.caption_data import (
        FrameOptions,
        check_shown,
        graded_frames_of_scenes,
        held_out,
        names_of,
    )
    from robo_rl.vision.caption_gate import caption_lines, own_caption_cells, summary
    from robo_rl.vision.render_guard import write_guard

    check_shown(command.views, command.without)
    begun = tiny_clip.load(command.start) if command.start else None
    torch.set_num_threads(set_threads())
    console, start = stderr_console(), time.monotonic()
    unfinished = out.with_suffix(".under_way")
    if unfinished.exists():
        console.print(f"resuming from {unfinished}")
    config = FitConfig(
        minutes=command.minutes,
        steps=command.steps,
        batch=command.batch,
        seed=command.seed,
        device=command.device,
        large=command.large or command.ship,
        dtype=command.dtype,
        learning_rate=command.learning_rate,
        text_learning_rate=command.learning_rate / 2,
    )
    with stage_progress(console) as progress:

        def drawn(share: float) -> None:
            progress("frames", share)

        def fitted(share: float, losses: dict[str, float]) -> None:
            text = " ".join(f"{k} {v:.3f}" for k, v in losses.items() if k != "step")
            progress("fit", share, text)

        any_things = command.things == ANY_THINGS
        frame_options = FrameOptions(command.captions, command.goals, command.without, any_things)
        graded = graded_frames_of_scenes(
            command.views, frame_options, command.frames, command.seed, drawn, command.jobs
        )
        model = fit(
            graded.frames, caption_targets(graded.seen), config, fitted, unfinished, begun
        ).cpu()
    model.homes = graded.homes
    if any_things:
        homes = (dataclasses.replace(home, things=ANY_THINGS) for home in graded.homes)
        model.homes = tuple(dict.fromkeys(homes))
        model.taught = dataclasses.replace(model.taught, names=names_of(command.views))
    card = _card(command, model.homes, config, time.monotonic() - start)
    if command.captions is not None:
        card["captions"] = tomllib.loads(command.captions.read_text("utf-8"))["captions"]
    tiny_clip.save(model, out, card)
    unfinished.unlink(missing_ok=True)
    if command.check:
        if command.captions is not None:
            encoder = EmbeddedClip(out)
            [view] = command.views
            held = held_out(view, command.captions, command.frames, command.seed)
            found = own_caption_cells(encoder, held)
            card |= {"cells": [vars(cell) for cell in found], "summary": summary(found)}
            console.print(caption_lines(card["cells"]), highlight=False)
        else:
            card |= _judged(out, command, console)
        for label in ("summary", "moved"):
            if label in card:
                console.print(f"{label}: {figures_text(card[label])}", highlight=False)
        tiny_clip.save(model, out, card)
    if command.ship:
        write_guard(model.homes, out.with_suffix(".guard.npz"))
    print(out)
    return 0


def _judged(out: Path, command: TrainClipCommand, console: Console) -> dict[str, Any]:
    """Returns the card's figures of how well captions are recognised: per scene and over all."""
    from robo_rl.vision.caption_gate import caption_lines, evaluate_clip_file, summarize_scenes

    options = {"goals": command.goals, "hidden": command.without, "count": command.check_states}
    given = {view.home(): (out, view, command.device, options) for view in command.judged}
    found = {}
    for home, figures in run_in_workers(evaluate_clip_file, given, command.jobs):
        console.print(f"{home}: {figures_text(figures['plain summary'])}", highlight=False)
        console.print(caption_lines(figures["plain"]), highlight=False)
        found[home] = figures
    return summarize_scenes({home: found[home] for home in given})


def _out(command: TrainClipCommand) -> Path:
    """The file to write; ValueError unless one was named, or the shipped one was meant."""
    if command.captions is not None and len(command.views) != 1:
        raise ValueError(
            "--captions needs one scene: give one --task, one --robot and one --camera"
        )
    if command.captions is not None and command.without:
        raise ValueError("--without does not apply to --captions: leave one of them out")
    if command.things == ANY_THINGS and (command.captions or command.without or command.scene):
        raise ValueError(
            "--things any covers all colours and shapes: leave out --captions, "
            "--without and --scene"
        )
    if command.ship == (command.out is not None):
        raise ValueError(
            "no output for the weights: give --out FILE, or --ship to overwrite those inside the "
            "package"
        )
    if command.out is None:
        own = ("task", "things", "scene", "robot", "camera", "without", "captions")
        usual = TrainClipCommand()
        if any(getattr(command, name) != getattr(usual, name) for name in own):
            raise ValueError(
                "--ship trains on all scenes of the package and on no captions of "
                f"your own: give --out FILE, or --ship without --{', --'.join(own)}"
            )
        from reward_models.vision.tiny_clip import DEFAULT

        return DEFAULT
    if command.out.suffix != ".safetensors":
        raise ValueError(f"--out must be a .safetensors file, got {command.out}")
    return command.out


def _card(
    command: TrainClipCommand, homes: Sequence[Any], config: FitConfig, seconds: float
) -> dict[str, Any]:
    """Returns the card of the weights."""
    where = f"--out {command.out}" if command.out else "--ship"
    of = ""
    if command.out:
        robots = dict.fromkeys(home.robot for home in homes if home.robot)
        of = f"--task {' '.join(command.task)} "
        of += f"--robot {' '.join(robots)} " if robots else ""
    of += f"--things {shlex.quote(command.things)} " if command.things else ""
    of += f"--scene {Path(command.scene).name} " if command.scene else ""
    of += f"--camera {' '.join(command.camera)} " if command.camera else ""
    of += f"--without {' '.join(map(shlex.quote, command.without))} " if command.without else ""
    of += f"--captions {command.captions.name} " if command.captions else ""
    of += f"--goals {' '.join(map(shlex.quote, command.goals))} " if command.goals else ""
    of += "--large " if command.large else ""
    of += f"--start {command.start} " if command.start else ""
    of += f"--learning-rate {command.learning_rate:g} " if command.learning_rate != RATE else ""
    of += f"--dtype {command.dtype} " if command.dtype != "float32" else ""
    work = f"--steps {command.steps}" if command.steps else f"--steps 0 --minutes {command.minutes}"
    return {
        "model": "open_clip CLIP, keypoint image tower, word vocabulary",
        "what": "a small CLIP trained on captions that "
        + ("somebody graded" if command.captions else "the simulator's positions graded"),
        "scenes": [dataclasses.asdict(home) for home in homes],
        "states": "scattered over the workspace, and of random moves; none of an expert",
        "licence": "Apache-2.0",
        "frames": command.frames,
        "fit": dataclasses.asdict(config),
        "seconds": round(seconds),
        "versions": versions(),
        "command": f"robo-rl reward train {of}"
        f"--frames {command.frames} {work} --batch {command.batch} --seed {command.seed} "
        f"--device {command.device} {where}",
    }
