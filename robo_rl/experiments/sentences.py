"""Programs written from sentences beside the hand-written dense rewards, at equal steps.

A task counts only where its dense reward itself reaches ``COUNTS``; there the program must reach
``SHARE`` of that. Budgets of steps are those of ``presets.py``, the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reward_models.metrics import wilson

SEEDS = (0, 1, 2)
COUNTS = 0.80  # success of the dense reward
SHARE = 0.90  # of it that the program must reach
REWARDS = ("offline", "task")


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


def row_name(written: Written, reward: str, seed: int) -> str:
    """The name of a run's row, from which ``verdicts`` knows it again."""
    return f"{written.task} {written.goal}, {reward}, seed {seed}"


def verdicts(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry per goal with what is known of it: success over all seeds that both have done.

    ``share`` is the program's success over the dense reward's with its 95 % interval, over seeds
    and episodes (bootstrap of the seeds, binomial draws of the episodes); ``counts`` says whether
    the dense reward reaches ``COUNTS``, ``reached`` whether the program's share reaches ``SHARE``.
    """
    known = {row["name"]: row for row in rows}
    found = []
    for written in WRITTEN:
        pairs = [[known.get(row_name(written, reward, seed)) for reward in REWARDS]
                 for seed in SEEDS]  # fmt: skip
        whole = [[row for row in pair if row] for pair in pairs if all(pair)]
        done = [[row["evaluation"] for row in pair] for pair in whole]
        entry: dict[str, Any] = {"goal": f"{written.task} {written.goal}", "seeds": len(done)}
        if done:
            won = np.array([[e["successes"] for e in pair] for pair in done])
            tried = np.array([[e["episodes"] for e in pair] for pair in done])
            for k, reward in enumerate(REWARDS):
                low, high = wilson(int(won[:, k].sum()), int(tried[:, k].sum()))
                rate = won[:, k].sum() / tried[:, k].sum()
                entry[reward] = {"success": rate, "low": low, "high": high,
                                 "each": (won[:, k] / tried[:, k]).tolist()}  # fmt: skip
            entry["env_steps"] = max(row.get("env_steps", 0) for pair in whole for row in pair)
            share, low, high = share_interval(won, tried)
            entry["share"] = {"value": share, "low": low, "high": high}
            entry["counts"] = bool(entry["task"]["success"] >= COUNTS)
            entry["reached"] = bool(share >= SHARE)
        found.append(entry)
    return found


def share_interval(won: np.ndarray, tried: np.ndarray) -> tuple[float, float, float]:
    """(share, low, high) of column 0's success over column 1's; arrays (seeds, 2)."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(won), size=(4000, len(won)))
    rates = rng.binomial(tried[drawn], won[drawn] / tried[drawn]).sum(axis=1) / tried[drawn].sum(
        axis=1
    )
    shares = rates[:, 0] / np.maximum(rates[:, 1], 1e-9)
    low, high = np.quantile(shares, (0.025, 0.975))
    total = won.sum(axis=0) / tried.sum(axis=0)
    return float(total[0] / max(total[1], 1e-9)), float(low), float(high)


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of ``verdicts``."""
    lines = [
        "| sentence of | program: success (95 %), each seed | dense: success (95 %), each seed | "
        "share (95 %) | steps | counts | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in verdicts(rows):
        if not entry["seeds"]:
            lines.append(f"| {entry['goal']} | | | | | | not run |")
            continue
        s = entry["share"]
        verdict = "-" if not entry["counts"] else "reached" if entry["reached"] else "missed"
        some = "" if entry["seeds"] == len(SEEDS) else f" ({entry['seeds']} of {len(SEEDS)} seeds)"
        lines.append(
            f"| {entry['goal']} | {_success(entry['offline'])} | {_success(entry['task'])} | "
            f"{_share(s['value'])} ({_share(s['low'])}-{_share(s['high'])}) | "
            f"{entry['env_steps']:,} | {'yes' if entry['counts'] else 'no'} | {verdict}{some} |"
        )
    return "\n".join(lines) + "\n"


def _share(share: float) -> str:
    return f"{share:.2f}" if share < 100 else "∞"  # of a dense reward that never succeeded


def _success(rate: Mapping[str, Any]) -> str:
    each = ", ".join(f"{100 * r:.1f}" for r in rate["each"])
    return (
        f"{100 * rate['success']:.1f} % ({100 * rate['low']:.1f}-{100 * rate['high']:.1f}); {each}"
    )
