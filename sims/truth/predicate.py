"""TruthPredicate: what the judge records at each step, and at which steps it held by that
record."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class EpisodeClock(NamedTuple):
    """The time of an episode, s."""

    dt: float  # from step to step
    length: float  # of a whole episode


class TruthPredicate(NamedTuple):
    """One word of the goal language."""

    record_step: Callable[..., Array]  # (world, *entities, **numbers) -> (N, k), at every step
    holds_at: Callable[..., Array]  # (record (S, N, k), clock, **numbers) -> (S, N) bool


def state_predicate(holds: Callable[..., Array]) -> TruthPredicate:
    """Returns a predicate of one state; ``holds(world, *names, **numbers)`` is (N,) bool."""
    return TruthPredicate(
        lambda world, *names, **numbers: holds(world, *names, **numbers)[:, None],
        lambda record, clock, **numbers: record[:, :, 0] > 0.5,
    )


def history_predicate(
    record_step: Callable[..., Array], holds_at: Callable[..., Array]
) -> TruthPredicate:
    """Returns a predicate that compares steps with each other.

    Args:
        record_step: ``(world, *entities, **numbers)`` -> (N, k), what is stored at every step.
        holds_at: ``(record (S, N, k), clock, **numbers)`` -> (S, N) bool, of every step stored.
    """
    return TruthPredicate(record_step, holds_at)
