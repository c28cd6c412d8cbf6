"""start(): states that episodes begin in, drawn anew where the goal holds already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Task, owned_arrays

Array = np.ndarray

TRIES = 16  # draws of one start: a goal that holds in 30 % of them is left in one of 2e8


def write_initial_states(
    task: Task[Any],
    v: Any,
    batch: Batch,
    ids: Array,
    rng: RowRng,
    write: Callable[[Any, Array, RowRng], None] | None = None,
    holds: Callable[[Array], Array] | None = None,
) -> Array:
    """Writes starting states into rows ``ids`` (n,); (n,) bool, where the goal holds all the same.

    ``write`` is the task's ``reset``, or another that draws; where ``holds`` (rows (k,) -> (k,)
    bool) says that the goal is met before anybody has moved, a row is drawn anew, up to ``TRIES``
    times in all. A row goes on in its own stream, and every draw takes as much of it, so that its
    start stays a function of (seed, row, episode) alone.
    """
    write = write or task.reset
    held = np.zeros(len(ids), bool)
    left = np.arange(len(ids))
    for _ in range(TRIES):
        some = ids[left]
        batch.reset(some, stage=mujoco.mjtStage.mjSTAGE_NONE)
        for array in owned_arrays(v).values():
            array[some] = 0
        write(v, some, rng)
        batch.forward(some)
        task.after_reset(v, some)
        if holds is None:
            break
        again = np.asarray(holds(some), bool)
        held[left] = again
        if not again.any():
            break
        left, rng = left[again], rng.part(again)
    return held
