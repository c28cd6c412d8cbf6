"""`robo-rl evaluate`: ground-truth success of a run on unseen seeds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from robo_rl.commands.options import Json
from robo_rl.config import TrainConfig, from_json
from robo_rl.runs import RunDir


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """Ground-truth success of a run's exported policy on unseen seeds."""

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 1000  # judged
    expert: bool = False  # judge the task's expert instead
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Evaluates the policy of a run: the very graph that goes to the robot, where there is one."""
    command = tyro.cli(EvaluateCommand, args=list(argv), prog="robo-rl evaluate")
    from robo_rl.evaluate import evaluate, evaluate_expert, make_task
    from robo_rl.policies import load_policy

    run = RunDir.open(command.run)
    truth = run.result["truth"]
    if run.config["task"].startswith("gym:"):
        if command.expert:
            raise ValueError(f"{run.config['task']} has no expert of ours")
        from robo_rl.foreign import evaluate_foreign

        config = from_json(TrainConfig, run.config)
        foreign = evaluate_foreign(config, load_policy(run.path).act, command.episodes)
        print(json.dumps(dataclasses.asdict(foreign)) if command.as_json else foreign.line())
        return 0
    task = make_task(run.config, truth)
    if command.expert:
        evaluation = evaluate_expert(task, episodes=command.episodes)
    else:
        policy = load_policy(run.path).act
        evaluation = evaluate(task, policy, judged=bool(truth), episodes=command.episodes)
    print(json.dumps(evaluation.as_dict(), indent=1) if command.as_json else evaluation.line())
    return 0
