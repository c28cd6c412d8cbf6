"""`robo-rl train`: a policy on a task, with a reward."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from real_robot.bundle import POLICY
from robo_rl.commands.options import Json
from robo_rl.config import TrainConfig, from_json
from robo_rl.presets import PRESETS, preset


@dataclass(frozen=True, kw_only=True)
class TrainCommand(TrainConfig):
    """Trains a policy: TASK --goal "a sentence" --reward clip."""

    task: tyro.conf.Positional[str] = "reach"  # as `robo-rl list tasks` shows, or gym:ID
    resume: Path | None = None  # a run folder to continue; its own settings are used
    as_json: Json = False  # print the result as JSON


def main(argv: Sequence[str]) -> int:
    """Trains, evaluates, reports and exports."""
    command = parse_train(argv)
    console = Console(stderr=True)
    own = {f.name for f in dataclasses.fields(TrainConfig)}
    config = TrainConfig(**{k: v for k, v in vars(command).items() if k in own})
    if command.resume is not None:
        config = from_json(TrainConfig, _config_of(command.resume))
    from robo_rl.training import train

    trained = train(config, resume=command.resume, console=console)
    if command.as_json:
        print((trained.run.path / "result.json").read_text())
        return 0
    kept = f"bundle: {trained.bundle}" if trained.bundle else "no arm, so no bundle for one"
    shown = [trained.run.path / name for name in ("report.html", POLICY)]
    console.print(f"{' and '.join(str(p) for p in shown if p.exists())}; {kept}")
    print(trained.evaluation.line())
    return 0


def parse_train(argv: Sequence[str]) -> TrainCommand:
    """The train command's options; `--learner` decides which `--tuning` there is, and the task may
    have defaults of its own."""
    args = list(argv)
    learner = learner_in(args)
    parsed = _parse(args, TrainCommand.task, learner)
    if all(name.split()[0] != parsed.task for name in PRESETS):
        return parsed  # also a task that is none: whoever trains it says so
    return _parse(args, parsed.task, learner, parsed.goal)


def learner_in(args: Sequence[str]) -> str:
    """The learner that the arguments name, or the default."""
    learner = "ppo"
    for i, arg in enumerate(args):
        if arg.startswith("--learner="):
            learner = arg.partition("=")[2]
        elif arg == "--learner" and i + 1 < len(args):
            learner = args[i + 1]
    return learner


def _parse(args: list[str], task: str, learner: str, goal: str = "") -> TrainCommand:
    default = TrainCommand(**vars(preset(task, learner, goal=goal)))
    return tyro.cli(TrainCommand, args=args, prog="robo-rl train", default=default)


def _config_of(path: Path) -> dict[str, Any]:
    from robo_rl.runs import RunDir

    return RunDir.open(path).config
