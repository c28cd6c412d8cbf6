"""Rows that are policies: trained, judged on a thousand unseen episodes, beside their floors.

What is quoted is trained on seeds that no development has used and judged on the test seed;
``--develop`` trains on the small seeds and evaluates on validation episodes, never quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.table import percent
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.goals.reading import ReadGoal
from robo_rl.rewards import reward_type
from robo_rl.rewards.code import template_program
from robo_rl.runs.markdown import table
from robo_rl.runs.run_dir import RunDir
from robo_rl.training.trained import Trained, load

FRESH = 1_000  # of quoted trainings, the first seed; development stays below
VISUAL = ("robo_rl.vision", "reward_models.vision", "reward_models.vision.distillation")
WRITTEN = ("reward_models.programs",)
# What a reward that has no part of these does not hang on; a bundle is only written.
WITHOUT = {"clip": WRITTEN, "offline": VISUAL, "task": VISUAL + WRITTEN}


@dataclass(frozen=True)
class PolicyCase:
    """A policy: how it is made, and how its goal and its reward are understood today."""

    config: TrainConfig
    kind: Literal["train", "expert"]
    judged_as: str  # key of the ground truth
    formula: str  # that is trained
    program: str  # of a reward that is written from the sentence


def policy(
    name: str,
    config: TrainConfig,
    options: Options,
    seed: int = 0,
    *,
    kind: Literal["train", "expert"] = "train",
    judged_as: str = "",
) -> BenchmarkRow:
    """The row of a policy of ``config``, with the experiment's ``seed``, counted from 0.

    ``judged_as`` is the ground truth where it is not the trained goal's.
    """
    config = with_presets(config)
    config = replace(
        config,
        seed=seed if options.develop else FRESH + seed,
        env_steps=options.scaled(config.env_steps),
        checkpoint_every=options.scaled(config.checkpoint_every),
        episodes=options.scaled(config.episodes, least=8),
        eval_seeds="validation" if options.develop else "test",
    )
    task, goal = _understood(config.task, config.robot, config.goal, config.formula, config.reward)
    program = template_program(task, goal) if config.reward == "offline" else ""
    of = PolicyCase(config, kind, judged_as or goal.key, str(goal.formula), program)
    without = WITHOUT.get(config.reward, WITHOUT["task"])
    made_by = (type(config.tuning).__module__, reward_type(config.reward).build.__module__)
    return BenchmarkRow(
        name, of, (*task_code(task.unwrapped), *TRAINER, *made_by), (*without, "real_robot")
    )


@cache
def _understood(
    task: str, robot: str, sentence: str, formula: str, reward: str
) -> tuple[sims.Task[Any], ReadGoal]:
    from robo_rl.config.resolve import resolve

    config = TrainConfig(task=task, robot=robot, goal=sentence, formula=formula, reward=reward)
    resolved = resolve(config)
    return resolved.task, resolved.goal


TRAINER = ("robo_rl.training.train", "robo_rl.evaluation.evaluate")


def task_code(task: sims.Task[Any]) -> tuple[str, ...]:
    """The modules of a task and of its arm."""
    kinds = [k.__module__ for k in type(task).__mro__ if k.__module__.startswith("sims.")]
    robot = getattr(task, "robot", None)
    arms = (f"sims.robots.{robot}",) if robot else ()
    return (*dict.fromkeys(kinds), *arms)


def trained(config: TrainConfig, place: RowFolder) -> Trained:
    """The run of ``config``, begun, gone on with or only opened in its place."""
    from robo_rl.training.train import train

    if RunDir(place.folder).finished:
        return load(place.folder)
    config = replace(config, runs=place.folder.parent, name=place.folder.name)
    begun = (place.folder / "config.json").exists()
    return train(config, resume=place.folder if begun else None, console=place.console)


def measure(of: PolicyCase, place: RowFolder) -> dict[str, Any]:
    """Success of the policy with its floors; what training took."""
    from robo_rl.evaluation.evaluate import EVAL_SEEDS, evaluate, evaluate_expert

    config = of.config
    task = sims.make_task(config.task, robot=config.robot or None, goal=of.judged_as)
    sample = {"episodes": config.episodes, "seed": EVAL_SEEDS[config.eval_seeds]}
    if of.kind == "expert":
        return {"evaluation": evaluate_expert(task, **sample).as_dict()}
    done = trained(config, place)
    result = done.run.result
    if of.judged_as != result["truth"]:
        judged = evaluate(task, done.policy.act, **sample)
        result["evaluation"] = judged.as_dict()
    spent = done.run.spent()  # these clocks go on where an interrupted run goes on
    clocks = {"train": "wall_s", "processor": "processor_s"}
    learning = {name: spent[clock] for name, clock in clocks.items() if clock in spent}
    stored_keys = ("evaluation", "env_steps", "frames", "sees", "audit")
    return {k: result[k] for k in stored_keys if k in result} | {
        "seconds": result["seconds"] | learning
    }


def table_text(rows: Sequence[Measured]) -> str:
    """Success with its floors; what the reward saw, what making it and training cost."""
    heads = (
        "run",
        "success (95 % interval, n)",
        FLOORS,
        "the reward sees",
        "steps",
        "new frames",
        "reward s",
        "training s",
        "processor min",
    )
    lines = [
        (
            row["name"],
            percent(row["evaluation"]),
            baselines_text(row["evaluation"]),
            row.get("sees", ""),
            *_cost(row),
        )
        for row in rows
    ]
    return table(heads, lines)


FLOORS = "doing nothing, untrained"


def baselines_text(known: Measured) -> str:
    """``0.0 %, 0.3 %``: what learned nothing, in the same episodes; rows of older journals have
    none."""
    known = known.get("floors") or {}
    return ", ".join(f"{100 * rate['success']:.1f} %" for rate in known.values())


def _cost(row: Measured) -> tuple[str, ...]:
    if "env_steps" not in row:
        return ("",) * 5
    seconds = row["seconds"]
    # Rows of older journals were not timed by the processor's clock.
    processor = f"{seconds['processor'] / 60:.1f}" if "processor" in seconds else ""
    return (
        f"{row['env_steps']:,}",
        f"{sum(row['frames'].values()):,}",
        f"{seconds['reward']:.0f}",
        f"{seconds['train']:.0f}",
        processor,
    )


def seeded(
    options: Options, seeds: Sequence[int], cases: Mapping[str, TrainConfig]
) -> list[BenchmarkRow]:
    """Every case with one of the experiment's ``seeds`` before any with the next."""
    return [
        policy(f"{name}, seed {seed}", config, options, seed)
        for seed in options.seeds or seeds
        for name, config in cases.items()
    ]


def policies(rows: Callable[[Options], Sequence[BenchmarkRow]]) -> Experiment:
    """An experiment whose rows are policies, and whose table is theirs."""
    return Experiment(rows, measure, table_text)
