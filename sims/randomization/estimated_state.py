"""What a task remembers of an episode, kept as an arm keeps it: of what it takes to be so.

What was done of a formula, and how far what counts now is from holding, is no sum of what is
sensed, and no error can be added to it. So there is a second batch, whose joints and things are
where they were last seen, as the bridge's twin has them (``real_robot/policy/twin.py``), and the
task keeps its account there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Task, owned_arrays
from sims.randomization.sensor_model import SensorModel

Array = np.ndarray


class EstimatedState:
    """The rows of a batch as they are seen, and ``names``, columns of the observation, of those."""

    def __init__(
        self, task: Task[Any], true: Any, batch: Batch, sensing: SensorModel, names: Sequence[str]
    ):
        self._task, self._sensing, self._names = task, sensing, tuple(names)
        self._batch = Batch(batch.model, batch.nsim, nthread=batch.nthread)
        self._views = task.bind(self._batch)
        self._own, self._true = owned_arrays(self._views), owned_arrays(true)

    def track(self, ids: Array) -> None:
        """Copies what the task owns of rows ``ids`` (n,) from the true state to the estimated."""
        for name, array in self._true.items():
            self._own[name][ids] = array[ids]

    def update(self, ids: Array, *, begun: bool) -> None:
        """Sets rows to where the newest measurement has them, and updates what the task remembers.

        Args:
            ids: (n,) the rows.
            begun: whether their episode has begun; if not, this is its first measurement.
        """
        if not begun:
            self.track(ids)
        self._sensing.estimate(self._views, self._batch, ids)
        self._batch.forward(ids, stage=self._task.stage)
        (self._task.after_step if begun else self._task.after_reset)(self._views, ids)

    def columns(self) -> Array:
        """Returns the observation (N, k) computed from the estimated state."""
        made = self._task.obs(self._views)
        return np.concatenate([made[name] for name in self._names], axis=1)

    def state_dict(self) -> dict[str, Array]:
        """Returns what the task remembers of the estimated rows, arrays (N, ...) by name."""
        return {name: array.copy() for name, array in self._own.items()}

    def load_state_dict(self, saved: dict[str, Array]) -> None:
        """Continues from what ``state_dict`` returned, arrays (N, ...) by name."""
        for name, array in self._own.items():
            array[:] = saved[name]
