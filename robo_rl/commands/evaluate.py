"""`robo-rl evaluate`: ground-truth success of a run on unseen seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console

from robo_rl.commands.options import Json
from robo_rl.config import TrainConfig, from_json
from robo_rl.runs import RunDir
from sims.any_goal import ANY


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """Ground-truth success of a run's exported policy, and its floors, on the test seed."""

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 1000  # judged
    judge: Literal["test", "select"] = "test"  # seed of the episodes; training judges on select's
    goal: str = ""  # of a run with --goal any: this one alone, a sentence or a key
    expert: bool = False  # judge the task's expert instead
    randomize: float = 0.0  # width of the rows it is judged on, as of `train`; 0: all rows the same
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Evaluates the policy of a run: the very graph that goes to the robot, where there is one."""
    command = tyro.cli(EvaluateCommand, args=list(argv), prog="robo-rl evaluate")
    if command.episodes < 1:
        raise ValueError(f"--episodes must be at least 1, got {command.episodes}")
    from robo_rl.evaluate import JUDGED_ON, NOT_JUDGED, evaluate, evaluate_expert, make_task, said
    from robo_rl.goals.reading import one_of
    from robo_rl.policies import load_policy
    from robo_rl.progress import stages

    run = RunDir.open(command.run)
    if command.goal and run.config["goal"] != ANY:
        raise ValueError(
            f"{command.run} knows one goal: leave out --goal, or train with --goal {ANY}"
        )
    truth, seed = run.judged["truth"], JUDGED_ON[command.judge]
    if command.expert and command.randomize:
        raise ValueError("--randomize judges a policy: an expert sees the true state of every row")
    if run.config["task"].startswith("gym:"):
        if command.expert:
            raise ValueError(f"{run.config['task']} has no expert of ours")
        if command.randomize:
            raise ValueError(f"{run.config['task']} cannot be randomised: its physics is its own")
        from robo_rl.foreign import evaluate_foreign

        config = from_json(TrainConfig, run.config)
        act = load_policy(run.path).act
        with stages(Console(stderr=True)) as progress:
            foreign = evaluate_foreign(config, act, command.episodes, seed, progress=progress)
        print(json.dumps(foreign.as_dict()) if command.as_json else foreign.line())
        return 0
    if not truth:
        print(json.dumps({"goal": ""}) if command.as_json else NOT_JUDGED)
        return 0
    task, exam = make_task(run.config, truth), {"episodes": command.episodes, "seed": seed}
    if command.goal:
        task = one_of(task, command.goal)
    with stages(Console(stderr=True)) as progress:
        if command.expert:
            evaluation = evaluate_expert(task, **exam, progress=progress)
        else:
            act, width = load_policy(run.path).act, command.randomize
            evaluation = evaluate(task, act, **exam, randomize=width, progress=progress)
    print(json.dumps(evaluation.as_dict(), indent=1) if command.as_json else said(evaluation))
    return 0
