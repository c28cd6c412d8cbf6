"""Programs written from sentences beside the hand-written dense rewards, at equal steps.

A task counts only where its dense reward itself reaches ``COUNTS``; there the program must reach
``SHARE`` of that, by the interval over seeds and episodes and not by the point alone. Budgets of
steps are those of ``robo_rl/config/presets.py``, the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks import BenchmarkRow, Experiment, Measured, Options
from benchmarks.table import percent
from benchmarks.training import measure, seeded, table_text
from reward_models.analysis.metrics import wilson
from robo_rl.config.presets import preset
from robo_rl.runs.markdown import table

SEEDS = (0, 1, 2)
LEARNER = "ppo"
COUNTS = 0.80  # success of the dense reward
SHARE = 0.90  # of it that the program must reach
REWARDS = ("offline", "task")
QUANTILES = (0.025, 0.975)


class Written(NamedTuple):
    """A goal of which a program is written from its sentence."""

    task: str
    goal: str
    robot: str = ""  # empty: the task's own


WRITTEN = (
    Written("reach", "touch_red_cube"),
    Written("push", "red_cube_next_to_blue_ball"),
    Written("lift", "lift_cube", "ur5e"),  # its jaws are wide enough to learn it
    Written("drawer", "open"),
    Written("drawer", "close"),
    Written("button", "press"),
    Written("hopper", "forward"),
    Written("hopper", "front_flip"),
    Written("ant", "forward"),
    Written("ant", "lie_down"),
)


def rows(options: Options) -> list[BenchmarkRow]:
    """All goals once, before any has its second seed."""
    cases = {
        case(one, reward): replace(
            preset(one.task, LEARNER, goal=one.goal), robot=one.robot, reward=reward
        )
        for one in WRITTEN
        for reward in REWARDS
    }
    return seeded(options, SEEDS, cases)


def case(one: Written, reward: str) -> str:
    """What the rows of a goal and a reward are called but for the seed."""
    return f"{one.task} {one.goal}, {reward}"


def verdicts(rows: Sequence[Measured]) -> list[dict[str, Any]]:
    """One entry per goal with what is known of it: success over all seeds that both have done.

    Intervals, of both and of the ``share``, the program's success over the dense reward's, are over
    seeds and episodes (95 %; bootstrap of the seeds, binomial draws of the episodes). ``counts``
    says whether the dense reward reaches ``COUNTS``; ``verdict``, where it does, that the program
    reaches ``SHARE`` if the whole interval of its share does, missed if none of it, open if a part.
    """
    done: dict[str, dict[str, Measured]] = {}
    for row in rows:
        name, _, seed = row["name"].rpartition(", seed ")
        done.setdefault(name, {})[seed] = row
    found = []
    for one in WRITTEN:
        program, dense = (done.get(case(one, reward), {}) for reward in REWARDS)
        both = sorted(program.keys() & dense.keys())
        entry: dict[str, Any] = {"goal": f"{one.task} {one.goal}", "seeds": len(both)}
        found.append(entry)
        if not both:
            continue
        pairs = [[side[seed]["evaluation"] for side in (program, dense)] for seed in both]
        won = np.array([[e["successes"] for e in pair] for pair in pairs])
        tried = np.array([[e["episodes"] for e in pair] for pair in pairs])
        for k, reward in enumerate(REWARDS):
            total = int(tried[:, k].sum())
            least, most = wilson(int(won[:, k].sum()), total)  # where no seed missed, or all did
            low, high = np.quantile(redrawn(won[:, [k]], tried[:, [k]]), QUANTILES)
            each = (won[:, k] / tried[:, k]).tolist()
            entry[reward] = {
                "success": won[:, k].sum() / total,
                "low": min(float(low), least),
                "high": max(float(high), most),
                "episodes": total,
                "each": each,
            }
        steps = [side[seed].get("env_steps", 0) for seed in both for side in (program, dense)]
        entry["env_steps"] = max(steps)
        share, low, high = share_interval(won, tried)
        entry["share"] = {"value": share, "low": low, "high": high}
        entry["counts"] = bool(entry["task"]["success"] >= COUNTS)
        reached = "reached" if low >= SHARE else "missed" if high < SHARE else "open"
        entry["verdict"] = reached if entry["counts"] else "-"
    return found


def redrawn(won: np.ndarray, tried: np.ndarray) -> np.ndarray:
    """(4000, k) success over all seeds, seeds and their episodes drawn again; arrays (seeds, k)."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(won), size=(4000, len(won)))
    again = rng.binomial(tried[drawn], won[drawn] / tried[drawn])
    return again.sum(axis=1) / tried[drawn].sum(axis=1)


def share_interval(won: np.ndarray, tried: np.ndarray) -> tuple[float, float, float]:
    """(share, low, high) of column 0's success over column 1's; arrays (seeds, 2)."""
    rates = redrawn(won, tried)
    shares = rates[:, 0] / np.maximum(rates[:, 1], 1e-9)
    low, high = np.quantile(shares, QUANTILES)
    total = won.sum(axis=0) / tried.sum(axis=0)
    return float(total[0] / max(total[1], 1e-9)), float(low), float(high)


def compared(rows: Sequence[Measured]) -> str:
    """The table of ``verdicts``, then every row."""
    heads = (
        "sentence of",
        "program: success (95 %); each seed",
        "dense: success (95 %); each seed",
        "share (95 %)",
        "steps",
        "counts",
        "verdict",
    )
    lines = []
    for entry in verdicts(rows):
        if not entry["seeds"]:
            lines.append((entry["goal"], "", "", "", "", "", "not run"))
            continue
        low, high = (_share(entry["share"][k]) for k in ("low", "high"))
        some = "" if entry["seeds"] >= len(SEEDS) else f" ({entry['seeds']} of {len(SEEDS)} seeds)"
        lines.append(
            (
                entry["goal"],
                *(_success(entry[reward]) for reward in REWARDS),
                f"{_share(entry['share']['value'])} ({low}-{high})",
                f"{entry['env_steps']:,}",
                "yes" if entry["counts"] else "no",
                entry["verdict"] + some,
            )
        )
    return f"{table(heads, lines)}\n{table_text(rows)}"


def _share(share: float) -> str:
    return f"{share:.2f}" if share < 100 else "∞"  # of a dense reward that never succeeded


def _success(rate: Mapping[str, Any]) -> str:
    return f"{percent(rate)}; {', '.join(f'{100 * r:.1f}' for r in rate['each'])}"


EXPERIMENT = Experiment(rows, measure, compared)
