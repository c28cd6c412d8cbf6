"""Predicate: what the judge records at each step, and at which steps it held by that record."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Clock(NamedTuple):
    """The time of an episode, s."""

    dt: float  # from step to step
    length: float  # of a whole episode


class Predicate(NamedTuple):
    """One word of the goal language."""

    record: Callable[..., Array]  # (world, *entities, **numbers) -> (N, k), at every step
    held: Callable[..., Array]  # (record (S, N, k), clock, **numbers) -> (S, N) bool


def now(holds: Callable[..., Array]) -> Predicate:
    """A predicate of one state: ``holds(world, *entities, **numbers)`` -> (N,) bool."""
    return Predicate(
        lambda world, *names, **numbers: holds(world, *names, **numbers)[:, None],
        lambda record, clock, **numbers: record[:, :, 0] > 0.5,
    )


def over_time(record: Callable[..., Array], held: Callable[..., Array]) -> Predicate:
    """A predicate that compares steps with each other."""
    return Predicate(record, held)
