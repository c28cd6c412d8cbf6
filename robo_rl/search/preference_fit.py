"""Numbers of a template fitted to preferences, before anything is trained.

The archive's episodes are compared two by two: one that succeeds is better than one that does not.
A reward prefers an episode by its mean reward per step, over the spread of all rewards; the loss
is Bradley and Terry's, -log sigmoid of the difference, and the numbers are changed by (1+1)
evolution, for programs have no gradient here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reward_models.analysis.screens import ArchiveEpisodes, per_episode
from reward_models.programs import Program, ProgramReward
from reward_models.writers.template_lines import TemplateNumbers

SHARP = 10.0  # a difference of a tenth of the spread is a clear preference
SMALLEST = 0.02  # deviation at which the numbers have settled


@dataclass(frozen=True)
class FittedNumbers:
    """Numbers, and the loss before and after."""

    numbers: TemplateNumbers
    before: float
    after: float


def fit_numbers(
    made: Callable[[TemplateNumbers], Program],
    start: TemplateNumbers,
    trials: ArchiveEpisodes,
    rng: np.random.Generator,
    tries: int = 40,
) -> FittedNumbers | None:
    """The best numbers of ``tries``; None where the archive prefers nothing."""
    won = trials.succeeded
    if won.all() or not won.any():
        return None
    best = before = preference_loss(made(start), trials)
    numbers, spread = start, 0.35
    for _ in range(tries):
        other = numbers.mutated(rng, spread)
        loss = preference_loss(made(other), trials)
        if loss < best:
            numbers, best, spread = other, loss, min(0.5, 1.5 * spread)
        else:
            spread = max(SMALLEST, 0.93 * spread)
    return FittedNumbers(numbers, before, best)


def preference_loss(program: Program, trials: ArchiveEpisodes) -> float:
    """Mean -log sigmoid of (success's pay - failure's) over all pairs of the archive."""
    model = ProgramReward(program, episode_steps=len(trials.success))
    reward = model.score(trials.segment).reward.astype(float)
    low, high = np.quantile(reward[trials.segment.valid], (0.01, 0.99))
    returns = SHARP * per_episode(reward, trials) / max(high - low, 1e-9)
    won = trials.succeeded
    difference = returns[won][:, None] - returns[~won][None]
    return float(np.logaddexp(0.0, -difference).mean())
