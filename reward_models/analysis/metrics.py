"""How good a score is: ranking statistics against ground truth."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def ranks(x: Array) -> Array:
    """Returns the ranks of values.

    Args:
        x: (n,) values.

    Returns:
        (n,) ranks from 1; equal values share their mean rank.
    """
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2.0)[inverse]


def spearman(a: Array, b: Array) -> float:
    """Returns Spearman's rank correlation.

    Args:
        a: (n,) values.
        b: (n,) values of the same things.

    Returns:
        The correlation in [-1, 1]; NaN where one side is constant.
    """
    ra, rb = ranks(a), ranks(b)
    ra, rb = ra - ra.mean(), rb - rb.mean()
    norm = np.sqrt((ra @ ra) * (rb @ rb))
    return float(ra @ rb / norm) if norm > 0 else float("nan")


def or_none(figure: float) -> float | None:
    """Returns a figure as JSON can hold it: None in place of NaN and infinity."""
    return float(figure) if np.isfinite(figure) else None


def auc(score: Array, positive: Array) -> float:
    """Returns the area under the ROC curve.

    Args:
        score: (n,) scores.
        positive: (n,) bool, which of them are positives.

    Returns:
        The chance in [0, 1] that a positive outscores a negative, where a tie counts half; NaN
        where one of the two is missing.
    """
    positive = np.asarray(positive, bool)
    p, n = int(positive.sum()), int((~positive).sum())
    if not p or not n:
        return float("nan")
    return float((ranks(score)[positive].sum() - p * (p + 1) / 2) / (p * n))


def average_precision(score: Array, positive: Array) -> float:
    """Returns the area under the precision-recall curve.

    Args:
        score: (n,) scores.
        positive: (n,) bool, which of them are positives.

    Returns:
        The mean precision in [0, 1] at each positive, where tied scores are one step; NaN without
        positives.
    """
    order = np.argsort(-score, kind="stable")
    score, positive = score[order], np.asarray(positive, bool)[order]
    if not positive.any():
        return float("nan")
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))  # of each tie
    hits = np.cumsum(positive)[last]
    return float((np.diff(hits, prepend=0) * hits / (last + 1)).sum() / positive.sum())


def paired_gain(a: Array, b: Array, draws: int = 4000) -> tuple[float, float, float]:
    """Returns the mean gain of one method over another, with a bootstrap interval.

    The bootstrap keeps pairs together: it samples trainings with replacement, and episodes within
    them.

    Args:
        a: (S, E) successes of S trainings on E episodes.
        b: (S, E) successes of the other method on the same episodes.
        draws: The number of bootstrap samples.

    Returns:
        (mean of a - b, low, high), a 95 % interval.

    Raises:
        ValueError: The successes are not of shape (S, E), or there are none.
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
    """Returns Wilson's interval of a rate.

    Args:
        successes: The number of successes.
        n: The number of trials.
        z: The quantile of the normal distribution; 1.96 gives 95 %.

    Returns:
        (low, high) in [0, 1].

    Raises:
        ValueError: There are no trials.
    """
    if n < 1:
        raise ValueError(f"an interval needs at least one trial, got {n}")
    rate, z2 = successes / n, z * z
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * np.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def threshold_within_bound(score: Array, positive: Array, bound: float) -> float:
    """Returns the lowest threshold that keeps the share of false positives within a bound.

    Args:
        score: (n,) scores.
        positive: (n,) bool, which of them are positives.
        bound: The most that the upper end of Wilson's interval of the share of negatives at or
            above the threshold may be.

    Returns:
        The threshold; just above every negative where they are too few to show the bound, and 0.5
        without negatives.
    """
    wrong = np.sort(score[~positive])[::-1]
    allowed = 0
    while allowed < len(wrong) and wilson(allowed + 1, len(wrong))[1] <= bound:
        allowed += 1
    return float(np.nextafter(wrong[allowed], np.inf)) if allowed < len(wrong) else 0.5


def kendall(score: Array, order: Array) -> float:
    """Returns Kendall's tau over the pairs that differ in order (Somers' D of score given order).

    Args:
        score: (n,) scores; a tie counts as neither agreement nor disagreement.
        order: (n,) the order that the scores should have.

    Returns:
        The figure in [-1, 1]: 1 where every higher order scores higher; NaN where no pair
        differs.
    """
    differ = np.sign(order[:, None] - order[None])
    if not differ.any():
        return float("nan")
    return float((np.sign(score[:, None] - score[None]) * differ).sum() / np.abs(differ).sum())


def brier(chance: Array, positive: Array) -> float:
    """Returns the mean squared error of probabilities.

    Args:
        chance: (n,) probabilities.
        positive: (n,) bool, what was so.

    Returns:
        The error in [0, 1]: 0 is perfect, and 0.25 is what a constant 0.5 scores.
    """
    return float(np.mean((chance - positive) ** 2))


def reliability(chance: Array, positive: Array, bins: int = 10) -> list[tuple[float, float, int]]:
    """Returns how often what was given each probability was so.

    Args:
        chance: (n,) probabilities.
        positive: (n,) bool, what was so.
        bins: The number of equal ranges of probability.

    Returns:
        (mean probability, share that was so, count) of each range that holds any.
    """
    at = np.minimum((np.asarray(chance) * bins).astype(int), bins - 1)
    return [
        (float(chance[at == i].mean()), float(positive[at == i].mean()), int((at == i).sum()))
        for i in np.unique(at)
    ]


def calibration_error(chance: Array, positive: Array, bins: int = 10) -> float:
    """Returns the expected calibration error.

    Args:
        chance: (n,) probabilities.
        positive: (n,) bool, what was so.
        bins: The number of equal ranges of probability.

    Returns:
        The mean distance in [0, 1] of probability and share that was so, each range weighted by
        its count.
    """
    cells = reliability(chance, positive, bins)
    return sum(abs(said - so) * n for said, so, n in cells) / len(chance)
