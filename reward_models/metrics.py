"""How good a score is: ranking statistics against ground truth."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def ranks(x: Array) -> Array:
    """Ranks (n,) from 1, ties sharing their mean rank."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2.0)[inverse]


def spearman(a: Array, b: Array) -> float:
    """Rank correlation in [-1, 1]; NaN where one side is constant."""
    ra, rb = ranks(a), ranks(b)
    ra, rb = ra - ra.mean(), rb - rb.mean()
    norm = np.sqrt((ra @ ra) * (rb @ rb))
    return float(ra @ rb / norm) if norm > 0 else float("nan")


def or_none(figure: float) -> float | None:
    """A figure as JSON has it: None where there is none (nan)."""
    return float(figure) if np.isfinite(figure) else None


def auc(score: Array, positive: Array) -> float:
    """Area under the ROC curve: chance that a positive outscores a negative, ties half."""
    positive = np.asarray(positive, bool)
    p, n = int(positive.sum()), int((~positive).sum())
    if not p or not n:
        return float("nan")
    return float((ranks(score)[positive].sum() - p * (p + 1) / 2) / (p * n))


def average_precision(score: Array, positive: Array) -> float:
    """Area under the precision-recall curve: mean precision at each positive; ties as one step."""
    order = np.argsort(-score, kind="stable")
    score, positive = score[order], np.asarray(positive, bool)[order]
    if not positive.any():
        return float("nan")
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))  # of each tie
    hits = np.cumsum(positive)[last]
    return float((np.diff(hits, prepend=0) * hits / (last + 1)).sum() / positive.sum())


def paired_gain(a: Array, b: Array, draws: int = 4000) -> tuple[float, float, float]:
    """(mean of a - b, low, high): a 95 % bootstrap interval that keeps pairs together.

    ``a``, ``b`` (S, E) are successes of S trainings on the same E episodes; trainings are drawn
    with replacement, and episodes within them.
    """
    difference = np.asarray(a, float) - np.asarray(b, float)
    if difference.ndim != 2 or not difference.size:
        raise ValueError(f"expected (trainings, episodes), got {difference.shape}")
    rng = np.random.default_rng(0)
    trainings, episodes = difference.shape
    means = np.empty(draws)
    for i in range(draws):
        rows = rng.integers(trainings, size=trainings)
        means[i] = difference[rows][:, rng.integers(episodes, size=episodes)].mean()
    low, high = np.quantile(means, (0.025, 0.975))
    return float(difference.mean()), float(low), float(high)


def wilson(successes: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate, (low, high) in [0, 1]."""
    if n < 1:
        raise ValueError(f"an interval needs at least one trial, got {n}")
    rate, z2 = successes / n, z * z
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * np.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))
