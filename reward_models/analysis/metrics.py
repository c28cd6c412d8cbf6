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


def threshold_within_bound(score: Array, positive: Array, bound: float) -> float:
    """The lowest threshold that the share of negatives at or above it, upper end of Wilson's
    interval, keeps within ``bound``; just above every negative where they are too few to say so."""
    wrong = np.sort(score[~positive])[::-1]
    allowed = 0
    while allowed < len(wrong) and wilson(allowed + 1, len(wrong))[1] <= bound:
        allowed += 1
    return float(np.nextafter(wrong[allowed], np.inf)) if allowed < len(wrong) else 0.5


def kendall(score: Array, order: Array) -> float:
    """Kendall's tau in [-1, 1] over the pairs that differ in ``order``, ties in ``score`` counting
    as neither (Somers' D of score given order): 1 where every higher order scores higher."""
    differ = np.sign(order[:, None] - order[None])
    if not differ.any():
        return float("nan")
    return float((np.sign(score[:, None] - score[None]) * differ).sum() / np.abs(differ).sum())


def brier(chance: Array, positive: Array) -> float:
    """Mean squared error of probabilities (n,): 0 is perfect, .25 what saying .5 comes to."""
    return float(np.mean((chance - positive) ** 2))


def reliability(chance: Array, positive: Array, bins: int = 10) -> list[tuple[float, float, int]]:
    """(mean probability said, share that was so, how many) of each of ``bins`` equal ranges of
    probability (n,) that holds any."""
    at = np.minimum((np.asarray(chance) * bins).astype(int), bins - 1)
    return [
        (float(chance[at == i].mean()), float(positive[at == i].mean()), int((at == i).sum()))
        for i in np.unique(at)
    ]


def calibration_error(chance: Array, positive: Array, bins: int = 10) -> float:
    """Expected calibration error: how far said and so are apart, each range by its size."""
    cells = reliability(chance, positive, bins)
    return sum(abs(said - so) * n for said, so, n in cells) / len(chance)
