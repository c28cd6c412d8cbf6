"""One page on what was learned on an arm: success, takeovers and trust over the arm's time."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.analysis.metrics import wilson
from robo_rl.on_robot_learning.config import PAGE, VERDICT, LearnerStatus, OnRobotConfig
from robo_rl.runs.html_page import head, image, section
from robo_rl.runs.run_dir import CsvTable, RunDir, atomic_write

Array = np.ndarray

WINDOW = 25  # episodes of a mean


def write_page(run: RunDir, config: OnRobotConfig, status: LearnerStatus, left_out: str) -> Path:
    """Writes the page of the run as it is now."""
    rows = CsvTable(run.path / "episodes.csv").read()
    path = run.path / PAGE
    body = [
        head(f"Learned on the arm: {run.config['goal'] or run.config['task']}"),
        f"<p class=lead>{html.escape(run.config['where'])}, reward "
        f"<b>{html.escape(config.reward)}</b>, {status.arm_s / 60:.1f} minutes of arm time, "
        f"{status.episodes} episodes, {status.updates:,} updates</p>",
        section("Success", _curve(rows)),
        section("In numbers", _numbers(rows, config, status, left_out)),
        "</main></html>",
    ]
    atomic_write(path, "".join(body).encode())
    return path


def episodes_by_driver(rows: dict[str, Array]) -> dict[str, Array]:
    """Returns {who was in control: (n,) bool, which episodes with a verdict}.

    Args:
        rows: {column: (n,)} the table of the episodes.
    """
    judged = np.isfinite(rows["success"])
    hand = rows["by_hand"] > 0.5
    plain = (rows["explore"] == 0) & ~hand
    return {
        "the policy": judged & plain,
        "the policy, exploring": judged & ~plain & ~hand,
        "a person": judged & hand,
    }


def _curve(rows: dict[str, Array]) -> str:
    if "success" not in rows or len(rows["success"]) < 2:
        return ""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.4, 3.0), layout="constrained")
    axis: Any = figure.subplots()
    minutes = rows["arm_s"] / 60
    colours = ("#c2185b", "#5d6670", "#2a7de1")
    for (who, which), colour in zip(episodes_by_driver(rows).items(), colours, strict=True):
        t, success = minutes[which], 100 * rows["success"][which]
        axis.plot(t, success + 0 * t, "|", color=colour, alpha=0.35, ms=5)
        if len(t) >= 5 and who != "a person":
            width = min(WINDOW, len(t))
            mean = np.convolve(success, np.ones(width) / width, "valid")
            axis.plot(t[width - 1 :], mean, color=colour, lw=1.8, label=f"{who}, mean of {width}")
        elif len(t):
            axis.plot([], [], "|", color=colour, label=who)
    if "auc" in rows:
        axis.plot(
            minutes, 100 * rows["auc"], color="#d9a400", lw=1.2, ls="--", label="reward's AUC"
        )
    axis.set_xlabel("minutes of arm time", fontsize=8)
    axis.set_ylabel("%", fontsize=8)
    axis.set_ylim(-4, 104)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="lower right")
    return image(figure, "success over arm time")


def _numbers(
    rows: dict[str, Array], config: OnRobotConfig, status: LearnerStatus, left_out: str
) -> str:
    cells = []
    for who, which in episodes_by_driver(rows).items():
        success = rows["success"][which]
        if not len(success):
            continue
        for name, part in (("first", success[:WINDOW]), ("last", success[-WINDOW:])):
            low, high = wilson(int(part.sum()), len(part))
            cells.append(
                (
                    f"{who}, {name} {len(part)} episodes",
                    f"{100 * part.mean():.0f} % ({100 * low:.0f}-{100 * high:.0f})",
                )
            )
    cells.append(("stopped by the safety filter", f"{int(np.nansum(rows['stopped']))} episodes"))
    if config.reward != VERDICT:
        cells.append(
            (f"AUC of {config.reward} against the last {config.verdicts} verdicts", status.trust)
        )
    if left_out:
        cells.append(("not learned from", left_out))
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in cells
    )
    return f"<table>{body}</table>"
