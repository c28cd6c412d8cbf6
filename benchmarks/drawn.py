"""Goals drawn at random, which nobody had in mind or tuned anything for: trained, and judged.

Three classes: what the gripper's own place brings about, what takes a push, what takes a grasp or a
piece of furniture. A draw that cannot be reached, measured or rewarded is told with its reason and
drawn anew. Development draws other goals than those quoted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.table import percent
from benchmarks.training import FRESH, TRAINER, baselines_text, task_code, trained
from reward_models.base import from_dict
from reward_models.goals.margins import NoMargin
from reward_models.goals.random_formulas import sample_formula
from reward_models.goals.text import to_sentence
from reward_models.writers.staged import write_staged
from reward_models.writers.template_lines import NoTemplate
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.goals.feasibility import DecidedAtStart, Unreachable, check_feasible
from robo_rl.goals.goal_task import GoalTask, make_goal_task
from robo_rl.runs.markdown import table

# Class: the tasks that are drawn from, what brings about what is asked for, and how many of its
# goals are to reach ENOUGH.
CLASSES = {
    "gripper": (("reach", "push", "lift", "drawer", "button"), ("go",), 0.85),
    "push": (("push",), ("push",), 0.50),
    "handle": (
        ("lift", "pick_place", "stack", "drawer", "button", "peg", "drawer_then_place"),
        ("lift", "put", "slide", "press", "insert"),
        0.40,
    ),
}
EACH = 20  # goals of a class
ENOUGH = 0.8  # success of a goal that counts as learned
ROBOTS = ("so101", "ur5e", "fr3")
DEVELOPMENT = 1_000  # added to the seed that quoted goals are drawn with
TRIES = 50
REASONS: dict[type[Exception], str] = {  # why a draw is rejected
    Unreachable: "out of reach",
    DecidedAtStart: "decided at the start",
    NoMargin: "not measured",
    NoTemplate: "no reward",
}


@dataclass(frozen=True)
class Drawn:
    """A place in the order of draws, and how what comes out of it is trained."""

    of: str  # a key of CLASSES
    number: int
    seed: int  # of the draw
    config: TrainConfig  # whose task, robot and formula are drawn


def rows(options: Options) -> list[BenchmarkRow]:
    """EACH of every class, of every seed: classes by turns."""
    return [
        _row(kind, number, seed, options)
        for seed in options.seeds or (0,)
        for number in range(EACH)
        for kind in CLASSES
    ]


def _row(kind: str, number: int, seed: int, options: Options) -> BenchmarkRow:
    config = TrainConfig(
        reward="offline",
        seed=seed if options.develop else FRESH + seed,
        episodes=options.scaled(TrainConfig.episodes, least=8),
        eval_seeds="validation" if options.develop else "test",
        # Of a trial run; else what presets say.
        env_steps=None if options.share >= 1 else options.scaled(96_000),
    )
    drawn = Drawn(kind, number, seed + DEVELOPMENT * options.develop, config)
    tasks = [sims.make_task(name, robot=robot) for name in CLASSES[kind][0] for robot in ROBOTS]
    code = dict.fromkeys(module for task in tasks for module in task_code(task))
    made_by = (
        __name__,
        "reward_models.goals.random_formulas",
        "reward_models.writers.staged",
        "robo_rl.goals.feasibility",
        "robo_rl.config.presets",
    )
    without = (
        "robo_rl.vision",
        "reward_models.vision",
        "reward_models.vision.distillation",
        "real_robot",
    )
    return BenchmarkRow(
        f"{kind} {number + 1}, draw {seed}", drawn, (*code, *TRAINER, *made_by), without
    )


def goal_of(of: Drawn) -> tuple[GoalTask, Counter[str]]:
    """The goal that is drawn there, and how often what was drawn before it was rejected, by
    reason."""
    rng = np.random.default_rng([of.seed, list(CLASSES).index(of.of), of.number])
    names, by, _ = CLASSES[of.of]
    rejected: Counter[str] = Counter()
    for _ in range(TRIES):
        task = sims.make_task(str(rng.choice(names)), robot=str(rng.choice(ROBOTS)))
        try:
            made = make_goal_task(task, sample_formula(from_dict(task.card()), rng, by))
            write_staged(made.measured, made.automaton)
            check_feasible(made)
        except tuple(REASONS) as error:
            rejected[REASONS[type(error)]] += 1
            continue
        return made, rejected
    raise ValueError(f"no feasible goal in {TRIES} samples of {of.of}: {dict(rejected)}")


def measure(of: Drawn, place: RowFolder) -> dict[str, Any]:
    """Success of the policy that learned the drawn goal, with its floors."""
    task, rejected = goal_of(of)
    made = task.inner.unwrapped
    config = replace(of.config, task=made.name, robot=made.robot, formula=str(task.goal_formula))
    done = trained(with_presets(config), place)
    result = done.run.result
    return {
        "class": of.of,
        "task": f"{made.name} {made.robot}",
        "formula": str(task.goal_formula),
        "sentence": to_sentence(task.goal_formula, task.measured.task_card),
        "rejected": dict(rejected),
        **{name: result[name] for name in ("evaluation", "env_steps", "seconds")},
    }


def table_text(rows: Sequence[Measured]) -> str:
    """How many of a class are learned, then every goal, the best first."""
    parts = []
    for kind, (_, _, aim) in CLASSES.items():
        mine = [row for row in rows if row["class"] == kind]
        if not mine:
            continue
        rates = sorted((row["evaluation"]["success"] for row in mine), reverse=True)
        learned = sum(rate >= ENOUGH for rate in rates)
        rejected = sum((Counter(row["rejected"]) for row in mine), Counter())
        reasons = ", ".join(f"{count} {why}" for why, count in rejected.most_common()) or "none"
        parts.append(
            f"{kind}: {learned} of {len(mine)} goals reach {100 * ENOUGH:.0f} % (aim "
            f"{100 * aim:.0f} %), median {100 * float(np.median(rates)):.1f} %; "
            f"rejected: {reasons}.\n"
        )
        lines = [
            (
                f"`{row['formula']}`",
                row["task"],
                percent(row["evaluation"]),
                baselines_text(row["evaluation"]),
                f"{row['env_steps']:,}",
            )
            for row in sorted(mine, key=lambda row: -row["evaluation"]["success"])
        ]
        heads = ("goal", "scene", "success (95 % interval, n)", "doing nothing, untrained", "steps")
        parts.append(table(heads, lines))
    return "\n".join(parts)


EXPERIMENT = Experiment(rows, measure, table_text)
