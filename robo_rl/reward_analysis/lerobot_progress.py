"""Scores of a LeRobotDataset's frames as progress, by which LeRobot weighs samples.

Two bounds are progress 0 and 1; beyond them it is cut off. It falls where the score falls: who
weighs steps by progress (SARM, arXiv:2509.25358) leaves out those that undo something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.datasets.lerobot import require_packages, write_progress
from robo_rl.datasets.sources import SOURCES, source_kind

Array = np.ndarray
Bounds = tuple[float, float]


def check_progress(path: Path, sources: Sequence[Path], whole: bool) -> None:
    """ValueError where the progress of ``sources`` cannot be written; ``whole``: all of their
    episodes are scored, and more of these than the end."""
    require_packages("--progress")
    if path.suffix != ".parquet" or path.exists():
        raise ValueError(f"--progress must be a new .parquet file, got {path}")
    kinds = [source_kind(source) for source in sources]
    if kinds != ["lerobot"] or not whole:
        raise ValueError(
            "--progress needs all frames of one LeRobotDataset, without --episodes and --ask "
            f"rating; got {', '.join(SOURCES[kind].says for kind in kinds)}. Convert logs "
            "with robo-rl demos DIR --from LOGS --format lerobot"
        )


def bounds_of(scored: Sequence[Mapping[str, Any]]) -> Bounds:
    """Returns the quantiles of all scores that become progress 0 and 1, like phi of a scene.

    Args:
        scored: The figures of each episode, with its ``score``.

    Raises:
        ValueError: all scores are the same.
    """
    from reward_models.vision.clip_score import QUANTILES

    low, high = np.quantile(np.concatenate([one["score"] for one in scored]), QUANTILES)
    if not low < high:
        raise ValueError(
            f"all scores are {low:g}, so progress has no range: give --bounds LOW HIGH"
        )
    return float(low), float(high)


def write_scores(
    path: Path, scored: Sequence[Mapping[str, Any]], lengths: Sequence[int], bounds: Bounds
) -> None:
    """Writes the scores of all episodes, which have ``lengths``, to ``path``."""
    of = [_of(one["score"], one["at"], n, bounds) for one, n in zip(scored, lengths, strict=True)]
    write_progress(path, lengths, np.concatenate(of))


def _of(score: Sequence[float], at: Sequence[int], length: int, bounds: Bounds) -> Array:
    """(length,) of an episode whose frames ``at`` (n,) have ``score`` (n,): a straight line between
    those; nan where there is no score."""
    if not score:
        return np.full(length, np.nan)
    known = (np.array(score) - bounds[0]) / (bounds[1] - bounds[0])
    return np.interp(np.arange(length), at, np.clip(known, 0.0, 1.0))
