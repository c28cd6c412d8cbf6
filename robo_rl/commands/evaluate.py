"""`robo-rl evaluate`: ground-truth success of a run on unseen seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from reward_models.vision.config import at_least
from robo_rl.commands.options import Json
from robo_rl.runs.run_dir import RunDir
from sims.core.multi_goal import ANY


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """Ground-truth success of a run's exported policy, with baselines, on the test seeds."""

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 1000  # evaluation episodes
    eval_seeds: Literal["test", "validation"] = "test"  # training uses those of validation
    goal: str = ""  # for a run with --goal any: evaluate this goal only (sentence or key)
    expert: bool = False  # evaluate the task's scripted expert instead
    randomize: float = 0.0  # domain randomisation scale, as in `train`; 0: none
    # Arm latency (s) and servo stiffness (N m/rad), as in `train`; None: the run's own.
    latency: float | None = None
    stiffness: float | None = None
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Evaluates the policy of a run, prints the figures and returns the exit code 0.

    The evaluated policy is the exported graph that also runs on the robot, where there is one.

    Args:
        argv: The words after ``robo-rl evaluate``.

    Raises:
        ValueError: an option is out of its range, does not apply to the expert or an external
            environment, or names a goal for a run that was trained for one goal only.
    """
    command = tyro.cli(EvaluateCommand, args=list(argv), prog="robo-rl evaluate")
    if command.episodes < 1:
        raise ValueError(f"--episodes must be at least 1, got {command.episodes}")
    from robo_rl.evaluation.evaluate import (
        EVAL_SEEDS,
        NOT_JUDGED,
        conditions_of,
        evaluate,
        evaluate_expert,
        summary_line,
        task_of_run,
    )
    from robo_rl.goals.external_task import ExternalTask
    from robo_rl.goals.reading import single_goal
    from robo_rl.runs.policy import load_policy
    from robo_rl.runtime.progress_bars import stage_progress, stderr_console

    run = RunDir.open(command.run)
    if command.goal and run.config["goal"] != ANY:
        raise ValueError(
            f"{command.run} was trained for one goal: leave out --goal, or train with --goal {ANY}"
        )
    truth, seed = run.judged["truth"], EVAL_SEEDS[command.eval_seeds]
    arm = {name: getattr(command, name) for name in ("latency", "stiffness")}
    arm = {name: value for name, value in arm.items() if value is not None}
    at_least(command, 0, *arm)
    given = [*(["randomize"] if command.randomize else []), *arm]
    if command.expert and given:
        raise ValueError(
            f"--{given[0]} applies to policies: the expert always reads the true state"
        )
    task, sample = task_of_run(run.config, truth), {"episodes": command.episodes, "seed": seed}
    if isinstance(task, ExternalTask):
        if command.expert:
            raise ValueError(f"{task.name} has no scripted expert: leave out --expert")
        if given:
            raise ValueError(f"{task.name} is an external environment: leave out --{given[0]}")
    elif not truth:
        print(json.dumps({"goal": ""}) if command.as_json else NOT_JUDGED)
        return 0
    if command.goal:
        task = single_goal(task, command.goal)
    with stage_progress(stderr_console()) as progress:
        if command.expert:
            limited = bool(run.config.get("rate_limited"))
            evaluation = evaluate_expert(task, **sample, shaped=limited, progress=progress)
        else:
            act = load_policy(run.path).act
            under = conditions_of(run.config | arm, task, command.randomize)
            evaluation = evaluate(task, act, **sample, **under, progress=progress)
    print(
        json.dumps(evaluation.as_dict(), indent=1) if command.as_json else summary_line(evaluation)
    )
    return 0
