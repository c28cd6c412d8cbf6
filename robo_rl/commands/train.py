"""`robo-rl train`, `evaluate`, `report`, `export`, `demo`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from robo_rl.commands.options import Json
from robo_rl.config import TrainConfig, from_json
from robo_rl.presets import PRESETS, preset

SENTENCE = "the gripper touches the red cube"


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
    if config.task.startswith("gym:"):
        from robo_rl.foreign import train_foreign

        foreign = train_foreign(config, resume=command.resume, console=console)
        as_json = (foreign.run.path / "result.json").read_text()
        print(as_json if command.as_json else foreign.evaluation.line())
        return 0
    from robo_rl.train import train

    trained = train(config, resume=command.resume, console=console)
    if command.as_json:
        print((trained.run.path / "result.json").read_text())
        return 0
    kept = f"bundle: {trained.bundle}" if trained.bundle else "no arm, so no bundle for one"
    console.print(f"report: {trained.run.path / 'report.html'}; {kept}")
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


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """Ground-truth success of a run's exported policy on unseen seeds."""

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 1000  # judged
    expert: bool = False  # judge the task's expert instead
    as_json: Json = False  # print JSON


def evaluate_run(argv: Sequence[str]) -> int:
    """Evaluates the policy of a run: the very graph that goes to the robot, where there is one."""
    command = tyro.cli(EvaluateCommand, args=list(argv), prog="robo-rl evaluate")
    from robo_rl.evaluate import evaluate, evaluate_expert, make_task
    from robo_rl.policies import load_policy
    from robo_rl.runs import RunDir

    run = RunDir.open(command.run)
    result = _result(run.path)
    if run.config["task"].startswith("gym:"):
        if command.expert:
            raise ValueError(f"{run.config['task']} has no expert of ours")
        from robo_rl.foreign import evaluate_foreign

        config = from_json(TrainConfig, run.config)
        foreign = evaluate_foreign(config, load_policy(run.path), command.episodes)
        print(json.dumps(dataclasses.asdict(foreign)) if command.as_json else foreign.line())
        return 0
    task = make_task(run.config, result["truth"])
    if command.expert:
        evaluation = evaluate_expert(task, episodes=command.episodes)
    else:
        evaluation = evaluate(
            task,
            load_policy(run.path),
            judged=bool(result["truth"]),
            episodes=command.episodes,
        )
    print(json.dumps(evaluation.as_dict(), indent=1) if command.as_json else evaluation.line())
    return 0


def _result(path: Path) -> dict[str, Any]:
    if not (path / "result.json").exists():
        raise ValueError(f"{path} has not finished; continue it: robo-rl train --resume {path}")
    return json.loads((path / "result.json").read_text())


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Writes report.html of a finished run."""

    run: tyro.conf.Positional[Path]  # the run's folder


def report(argv: Sequence[str]) -> int:
    """Writes the report and prints its path."""
    command = tyro.cli(ReportCommand, args=list(argv), prog="robo-rl report")
    from robo_rl.report import write_report
    from robo_rl.runs import RunDir

    print(write_report(RunDir.open(command.run)))
    return 0


@dataclass(frozen=True, kw_only=True)
class ExportCommand:
    """Copies a run's policy bundle to a folder, verified."""

    run: tyro.conf.Positional[Path]  # the run's folder
    to: tyro.conf.Positional[Path]  # a folder that does not exist yet


def export_run(argv: Sequence[str]) -> int:
    """Verifies the bundle of a run, copies it, verifies the copy."""
    command = tyro.cli(ExportCommand, args=list(argv), prog="robo-rl export")
    import shutil

    from real_robot.bundle import PolicyBundle

    _result(command.run)
    if not (command.run / "bundle").exists():
        raise ValueError(f"{command.run} moved no arm: it has no bundle; its policy is policy.onnx")
    PolicyBundle.load(command.run / "bundle")
    if command.to.exists():
        raise ValueError(f"{command.to} exists already; give a new folder")
    partial = command.to.with_name(f".{command.to.name}.part")
    shutil.copytree(command.run / "bundle", partial)
    partial.rename(command.to)
    PolicyBundle.load(command.to)
    print(command.to)
    return 0


@dataclass(frozen=True, kw_only=True)
class DemoCommand:
    """The whole line on the embedded defaults: sentence, reward, policy, report, simulated arm."""

    goal: str = SENTENCE  # what to learn
    runs: Path = Path("runs")  # folder of all runs
    arm_episodes: int = 20  # on the simulated arm, through the control loop and safety filter


def demo(argv: Sequence[str]) -> int:
    """Trains from the frame reward alone, judges it, runs it on a simulated arm."""
    command = tyro.cli(DemoCommand, args=list(argv), prog="robo-rl demo")
    from robo_rl.arm.episodes import run_emulated
    from robo_rl.train import train

    console = Console(stderr=True)
    name = next(n for n in _names("demo") if not (command.runs / n).exists())
    config = TrainConfig(goal=command.goal, runs=command.runs, name=name)
    trained = train(config, console=console)
    times = ", ".join(f"{what} {s:.0f} s" for what, s in trained.seconds.items())
    console.print(f"time: {times}")
    arm = run_emulated(trained.bundle, episodes=command.arm_episodes, console=console)
    console.print(arm.line())
    console.print(f"report: {trained.run.path / 'report.html'}")
    console.print(f"video:  {trained.run.path / 'video.webm'}")
    console.print(f"bundle: {trained.bundle}")
    print(trained.evaluation.line())
    return 0


def _names(stem: str) -> Any:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1
