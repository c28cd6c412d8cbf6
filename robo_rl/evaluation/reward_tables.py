"""A reward report as tables of words, for terminals, pages and docs; loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

Array = np.ndarray
Row = list[str]
REPORT, FAILURES = "reward_report.json", "paid_failures.webm"  # of a run
TRUTHS = {"task": "dense", "sparse": "sparse"}


def tables(report: Mapping[str, Any]) -> list[tuple[str, Row, list[Row]]]:
    """(title, head, rows) of each table."""
    everyone = {**report["rewards"], **report["controls"]}
    judged = set(report["judged"])

    def named(name: str) -> str:
        if name in judged:
            return short_name(name)
        return f"{name} (truth)" if name in report["rewards"] else f"{name} (control)"

    found = []
    for part, on in (("free", "random and scattered episodes"), ("all", "all episodes")):
        heads = [
            f"{kind} to {TRUTHS[truth]}" for kind in ("STARC", "EPIC") for truth in report["truths"]
        ]
        rows = [
            [named(name)]
            + [
                interval(row[part][kind][truth])
                for kind in ("starc", "epic")
                for truth in report["truths"]
            ]
            for name, row in everyone.items()
        ]
        found.append((f"distance, {on}", ["reward", *heads], rows))
    rows = []
    for name, row in everyone.items():
        along, threshold = row["order in time"], row["threshold"]
        rows.append(
            [
                named(name),
                *(figure(row[f"auc {part}"] and row[f"auc {part}"][0]) for part in ("free", "all")),
                figure(row["average precision all"]),
                figure(row["order"]),
                figure(row["nearness"]),
                *(figure(along[part]) for part in ("success", "reversed", "failure")),
                percent_text(threshold["false positives"]),
                percent_text(threshold["found"]),
            ]
        )
    head = [
        "reward",
        "AUC free",
        "AUC all",
        "AP",
        "tau",
        "nearness",
        "VOC",
        "reversed",
        "failures",
        "false pos.",
        "found",
    ]
    return [*found, ("ranking, order in time, threshold", head, rows)]


def extra_lines(report: Mapping[str, Any]) -> list[str]:
    """Returns lines on actors, words and calibration, which the tables leave out."""
    acted = (
        f"{c['episodes']} of {who} ({c['success']} succeed, {c['near']} end near)"
        for who, c in report["coverage"].items()
    )
    found = [f"episodes: {'; '.join(acted)}"]
    if not any(c["success"] for c in report["coverage"].values()):
        found.append("nobody succeeds in these: success ranks, finds and calibrates nothing here")
    for name in report["judged"]:
        row = report["rewards"][name]
        if words := row.get("language"):
            found.append(f"{short_name(name)}: {sentence_line(words)}")
        if sure := row.get("calibration"):
            base = sure["brier of the base rate"]
            found.append(
                f"{short_name(name)}: AUC of its probability {interval(sure['auc'])}, Brier "
                f"{sure['brier']:.3f} (base rate {base:.3f}), expected calibration error "
                f"{sure['expected error']:.3f}"
            )
    return found


def sentence_line(words: Mapping[str, Any]) -> str:
    """A line about a reward's sentences."""
    like = words["paraphrases"]
    parts = [
        f"of {words['ends']} ends of {len(words['goals'])} goals, {words['accuracy']:.0%} are paid "
        f"most by a sentence that is true of them (chance {words['chance']:.0%}); AUC by sentence "
        f"median {figure(words['auc_median'])}, least {figure(words['auc_least'])}",
        f"{like['understood']} of {like['said']} paraphrases read the same, spread "
        f"{like['spread']:.3f}",
    ]
    if contrary := words["opposite"]:
        parts.append(
            f"where it holds, paid above {contrary['text']!r} in {contrary['share']:.0%}, by "
            f"{contrary['margin']:.2f} deviations"
        )
    return "; ".join(parts)


def short_name(name: str) -> str:
    """A reward's name with its file's, without the folders."""
    kind, colon, path = name.partition(":")
    return f"{kind}{colon}{PurePath(path).name}"


def interval(value: Sequence[float] | None) -> str:
    """``.123 (.098-.150)``."""
    if value is None or value[0] != value[0]:
        return "-"
    middle, low, high = (figure(x) for x in value)
    return f"{middle} ({low}-{high})"


def figures_text(figures: Mapping[str, Any]) -> str:
    """Figures on a line for people: ``cells: 12; auc_median: 0.981; asked: first 3, second 2``."""
    return "; ".join(f"{name}: {_worded(value)}" for name, value in figures.items())


def _worded(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_worded(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_worded, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


def figure(value: float | None) -> str:
    """Three digits; two of a correlation's would hide what is told apart here."""
    if value is None or value != value:
        return "-"
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def percent_text(cell: Mapping[str, Any] | None) -> str:
    """``1.2 %``."""
    return "-" if cell is None else f"{100 * cell['share']:.1f} %"


def overoptimised(evaluations: Mapping[str, Array]) -> list[int]:
    """Returns the env steps of the evaluations that found a run's policy over-optimised.

    Args:
        evaluations: {column: (n,)} the table of the run's periodic evaluations.
    """
    if "overoptimised" not in evaluations:
        return []
    return [int(step) for step in evaluations["env_steps"][evaluations["overoptimised"] == 1.0]]
