"""The archive's screens on rewards that must pass and on rewards that must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import sims
from benchmarks import BenchmarkRow, Experiment, Measured, RowFolder
from benchmarks.training import task_code
from reward_models.analysis.screens import ScreeningResult, screen_reward
from reward_models.base import TaskCard, from_dict
from reward_models.goals.predicates import role
from reward_models.programs import load
from reward_models.programs.diagnostics import errors
from reward_models.writers.template_writer import NoTemplate, write_program
from robo_rl.goals.reading import read_goal
from robo_rl.reward_analysis.screening import archive_episodes, screen_program
from robo_rl.runs.markdown import table

# Rewards that look like work and are not, by what is wrong with them; {hand}, {thing}: places.
BAD = {
    "hovering over the thing": (
        '{{"near": near(norm({hand} - {thing} - vec(0.0, 0.0, 0.12)), 0.05)}}'
    ),
    "large actions": '{{"move": mean(square(action))}}',
    "swinging the hand": '{{"swing": norm({hand} - prev_{hand}) / 0.02}}',
    "time alone": '{{"time": 1.0, "near": 0.00001 * near(norm({hand} - {thing}), 0.05)}}',
    "away from the thing": '{{"far": norm({hand} - {thing}) / 0.1}}',
    "the first stage, then nothing": '{{"far": ramp(norm({hand} - {thing}), 0.05, 0.15)}}',
}


def bad_programs(card: TaskCard) -> dict[str, str]:
    """{what is wrong: program}, about the card's gripper and its first thing."""
    hand = next(e for e in card.entities if role(e) == "gripper").pose_signal
    thing = next(e for e in card.entities if role(e) == "object").pose_signal
    made = {}
    for name, text in BAD.items():
        body = text.format(hand=hand, thing=thing)
        reads = [s for s in (hand, thing, f"prev_{hand}", "action") if s in _words(body)]
        made[name] = f"def reward({', '.join(reads)}):\n    return {body}\n"
    return made


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


# Whose rewards are measured: every task that has sentences, and not all of reach's and push's many
# goals, which are alike.
TASKS = (
    "reach",
    "push",
    "lift",
    "pick_place",
    "stack",
    "drawer",
    "button",
    "peg",
    "drawer_then_place",
    "hopper",
    "ant",
    "humanoid",
    "half_cheetah",
    "walker2d",
)
GOALS = 4  # of a task at most


def task_row(name: str) -> BenchmarkRow:
    """The rewards of a task."""
    code = (__name__, "reward_models.writers", *task_code(sims.make_task(name)))
    return BenchmarkRow(name, name, code)


def measure(name: str, place: RowFolder) -> dict[str, Any]:
    """{rewards: [{reward, task, goal, passes, expected, codes, figures}]} of a task."""
    made, rows = sims.make_task(name), []
    for key in list(made.goals())[:GOALS]:
        task = sims.make_task(name, goal=key)
        card = from_dict(task.card())
        archive, dense = archive_episodes(task)
        rows.append(_row("dense", name, key, True, screen_reward(dense, archive)))
        goal = read_goal(task, key)
        if goal.formula is None:
            continue
        try:
            program = load(write_program(goal.formula, card), card)
        except NoTemplate:
            continue
        rows.append(_row("template", name, key, True, screen_program(program, task)))
        if not task.has_expert or key != next(iter(made.goals())):
            continue
        for what, text in bad_programs(card).items():
            rows.append(_row(what, name, key, False, screen_program(load(text, card), task)))
    return {"rewards": rows}


def _row(what: str, task: str, goal: str, expected: bool, found: ScreeningResult) -> dict[str, Any]:
    wrong = [d.code for d in errors(found.diagnostics)]
    figures = {k: round(float(v), 3) for k, v in found.figures.items()}
    return {
        "reward": what,
        "task": task,
        "goal": goal,
        "expected": expected,
        "passes": not wrong,
        "codes": wrong,
        "figures": figures,
    }


def table_text(rows: Sequence[Measured]) -> str:
    """Rewards by kind: how many pass, which screens caught the others, extremes of the figures."""
    rewards, lines = [r for row in rows for r in row["rewards"]], []
    for what in dict.fromkeys(r["reward"] for r in rewards):
        own = [r for r in rewards if r["reward"] == what]
        codes = [c for r in own for c in r["codes"]]
        caught = ", ".join(f"{c} {codes.count(c)}" for c in dict.fromkeys(codes))
        spans = []
        for name in dict.fromkeys(k for r in own for k in r["figures"]):
            values = [r["figures"][name] for r in own if name in r["figures"]]
            spans.append(f"{name} {np.min(values):.2f} to {np.max(values):.2f}")
        passed = sum(r["passes"] for r in own)
        lines.append((what, len(own), passed, caught or "-", "; ".join(spans)))
    return table(("reward", "goals", "passed", "caught by", "figures, least to most"), lines)


EXPERIMENT = Experiment(lambda _: [task_row(name) for name in TASKS], measure, table_text)
