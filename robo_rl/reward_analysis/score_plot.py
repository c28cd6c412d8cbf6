"""A picture of scores: each episode's curve, and its lowest and its highest frame beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray

MOST = 20  # episodes that one picture takes
LOW, HIGH = "#1f77b4", "#c2185b"
WIDE = 70  # characters of a title


@dataclass(frozen=True)
class PlotRow:
    """One episode of the plot: its figures, and the frames with the lowest and highest score."""

    figures: Mapping[str, Any]  # source, sentence, at, score; success, judged_by
    lowest: Array  # (H, W, 3) uint8
    highest: Array  # (H, W, 3) uint8


def plot_row(figures: Mapping[str, Any], frames: Array, at: Array) -> PlotRow | None:
    """The row of an episode whose frames (T, H, W, 3) have the numbers ``at`` (T,); None where none
    of them has a score."""
    score = figures["score"]
    if not score:
        return None
    scored_frames = frames[len(at) - len(score) :]
    return PlotRow(
        figures, scored_frames[np.argmin(score)].copy(), scored_frames[np.argmax(score)].copy()
    )


def write_plot(path: Path, rows: Sequence[PlotRow]) -> None:
    """Writes the rows as a PNG, all on one scale; ValueError where there is none."""
    from matplotlib.figure import Figure

    if not rows:
        raise ValueError(f"cannot plot {path}: no frame has a score")
    figure = Figure(figsize=(9.4, 2.1 * len(rows) + 0.2), layout="constrained")
    axes = figure.subplots(len(rows), 3, squeeze=False, width_ratios=(4, 1, 1))
    scores = np.concatenate([row.figures["score"] for row in rows])
    room = 0.05 * max(float(np.ptp(scores)), 1e-3)
    for row, (curve, low, high) in zip(rows, axes, strict=True):
        at, score = (np.array(row.figures[name]) for name in ("at", "score"))
        curve.plot(at, score, color="#5d6670", lw=1.6, marker="." if len(at) < 30 else "")
        curve.set_ylim(scores.min() - room, scores.max() + room)
        curve.set_title(_title(row.figures), fontsize=8, loc="left")
        curve.tick_params(labelsize=7)
        curve.grid(alpha=0.25)
        places = (
            ("lowest", low, LOW, np.argmin(score), row.lowest),
            ("highest", high, HIGH, np.argmax(score), row.highest),
        )
        for name, axis, colour, i, picture in places:
            curve.plot(at[i], score[i], "o", color=colour, ms=6)
            axis.imshow(picture)
            axis.set_title(f"{name}: frame {at[i]}, {score[i]:+.2f}", fontsize=8, color=colour)
            axis.set_xticks([])
            axis.set_yticks([])
            for side in axis.spines.values():
                side.set(color=colour, linewidth=2)
    axes[-1, 0].set_xlabel("frame", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _title(figures: Mapping[str, Any]) -> str:
    """Returns the episode's name, its sentence, and how it ended if that is known."""
    source, sentence = str(figures["source"]), figures["sentence"]
    end = ""
    if "success" in figures:
        end = f", {'success' if figures['success'] else 'failure'} ({figures['judged_by']})"
    if len(source) > WIDE:
        source = f"...{source[3 - WIDE :]}"
    return f"{source}{end}\n{sentence}"
