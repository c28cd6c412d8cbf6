"""A task with all its goals: each episode is of one of them, and the observation says which.

So one policy learns all of them (universal value functions, Schaul et al., ICML 2015). Which of the
goals hold is told after each step, whichever was asked for, to those who learn from what was
reached by chance (hindsight experience replay, arXiv:1707.01495).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, ObsPart, Signal, Task, TaskGoal
from sims.core.task_wrapper import TaskWrapper

ANY = "any"  # the key of this goal
ALL = "any of its goals, as it is told which"
ASKED = "goal_asked"  # the observation's columns: 1 at the goal that is meant, else 0


@dataclass(frozen=True, kw_only=True)
class MultiGoalTask(TaskWrapper):
    """``inner`` with each of its own goals, as often; with ``only``, the key of one, with that one
    alone."""

    only: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "goal", self.only or ANY)
        if len(self.keys) < 2:
            raise ValueError(
                f"task {self.inner.name!r} has only one goal, {', '.join(self.keys)}: "
                f"remove {ANY!r}"
            )
        if self.only and self.only not in self.keys:
            raise ValueError(
                f"task {self.inner.name!r} has no goal {self.only!r}; "
                f"available: {', '.join(self.keys)}"
            )

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """(G,) the goals, in the order of the observation's columns."""
        return tuple(self.inner.goals())

    @cached_property
    def tasks(self) -> tuple[Task[Any], ...]:
        """(G,) the task with each goal: where episodes begin and end hangs on it."""
        return tuple(dataclasses.replace(self.inner, goal=key) for key in self.keys)

    @cached_property
    def each(self) -> tuple[TaskGoal[Any], ...]:
        """(G,) what they ask for."""
        return tuple(self.inner.goals().values())

    @property
    def has_expert(self) -> bool:  # type: ignore[override]
        return self.inner.has_expert

    def requested(self, v: Any) -> list[str]:
        """The sentence of the goal of each row."""
        return [self.each[k].sentence for k in v.goal_asked]

    def request(self, v: Any, goals: Array) -> None:
        """Asks for ``goals`` (N,) int, places in ``keys``; of rows that are at their start."""
        v.goal_asked[:] = goals

    def bind(self, batch: Batch) -> Any:
        first = self.keys.index(self.only) if self.only else 0
        asked = np.full(batch.nsim, first, np.int64)
        return self.with_own(self.inner.bind(batch), {"goal_asked": asked})

    def reset(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Samples a goal for each of environments ``ids`` (n,) and writes a starting state for it.

        With ``only`` that goal is always taken.
        """
        self._begin("reset", v, ids, rng)

    def scatter(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Samples a goal for each of environments ``ids`` (n,) and writes a random state for it.

        With ``only`` that goal is always taken.
        """
        self._begin("scatter", v, ids, rng)

    def _begin(self, how: str, v: Any, ids: Array, rng: RowRng) -> None:
        # The same in every draw of a start: or goals that often hold there would be asked less.
        drawn = np.floor(rng.constant() * len(self.keys)).astype(np.int64)
        v.goal_asked[ids] = self.keys.index(self.only) if self.only else drawn
        for task, where in self._groups(v, ids):
            getattr(task, how)(v, ids[where], rng.part(where))
        rng.leave()

    def _groups(self, v: Any, ids: Array) -> Iterator[tuple[Task[Any], Array]]:
        """Each task that is asked for in rows ``ids`` (n,), with where (n,) bool."""
        for k, task in enumerate(self.tasks):
            if (where := v.goal_asked[ids] == k).any():
                yield task, where

    def after_reset(self, v: Any, ids: Array) -> None:
        """Updates owned arrays of environments ``ids`` (n,), each by the task with its goal."""
        for task, where in self._groups(v, ids):
            task.after_reset(v, ids[where])

    def after_step(self, v: Any, ids: Array) -> None:
        """Updates owned arrays of environments ``ids`` (n,), each by the task with its goal."""
        for task, where in self._groups(v, ids):
            task.after_step(v, ids[where])

    def terminated(self, v: Any) -> Array | bool:
        """Returns whether the task with each one's goal ends its episode early, (N,) bool."""
        over = [np.zeros(len(v.goal_asked), bool) | task.terminated(v) for task in self.tasks]
        return self._own(v, over)

    @staticmethod
    def _own(v: Any, of_each: Sequence[Array]) -> Array:
        """(N, ...) of what is said for each goal (N, ...), that of the goal of each row."""
        return np.stack(of_each)[v.goal_asked, np.arange(len(v.goal_asked))]

    def obs(self, v: Any) -> dict[str, Array]:
        """Returns the inner observation with ``goal_asked`` (N, G), 1 at the goal asked for."""
        return {**self.inner.obs(v), ASKED: self._goal_columns(v)}

    def _goal_columns(self, v: Any) -> Array:
        """(N, G), 1 at the goal that is asked for."""
        return (v.goal_asked[:, None] == np.arange(len(self.keys))).astype(float)

    def obs_parts(self) -> Mapping[str, tuple[ObsPart, ...]]:
        """Where it is always the same one, the goal's columns are numbers of their own."""
        if not (made_of := self.inner.obs_parts()):
            return {}
        told = (ObsPart(ASKED, len(self.keys)),)
        if self.only:
            told = tuple(ObsPart("", 1, offset=float(key == self.only)) for key in self.keys)
        return {**made_of, ASKED: told}

    def signals(self, v: Any) -> dict[str, Array]:
        """Returns the inner signals with ``goal_asked`` (N, G), 1 at the goal asked for."""
        return {**self.inner.signals(v), ASKED: self._goal_columns(v)}

    def signal_docs(self) -> tuple[Signal, ...]:
        return (*self.inner.signal_docs(), self._asked_doc)

    def sensed(self, v: Any) -> Mapping[str, Array]:
        """Returns the inner ``sensed`` with ``goal_asked`` (N, G), 1 at the goal asked for."""
        return {**self.inner.sensed(v), ASKED: self._goal_columns(v)}

    def sensed_docs(self) -> tuple[Signal, ...]:
        return (*self.inner.sensed_docs(), self._asked_doc)

    @cached_property
    def _asked_doc(self) -> Signal:
        doc = f"1 at the goal that is asked for, of {', '.join(self.keys)}"
        return Signal(ASKED, (len(self.keys),), "1", "goal", (0.0, 1.0), doc, True)

    def reached(self, v: Any) -> Array:
        """Returns which goals hold now, (N, G) bool, in the order of ``keys``."""
        return np.stack([np.asarray(goal.success(v), bool) for goal in self.each], axis=1)

    def goals(self) -> Mapping[str, TaskGoal[Any]]:
        return self.inner.goals() if self.only else {ANY: self._goal}

    @cached_property
    def _goal(self) -> TaskGoal[Any]:
        def own(v: Any, ask: Callable[[TaskGoal[Any]], Array]) -> Array:
            return self._own(v, [ask(goal) for goal in self.each])

        def reward(v: Any, action: Array) -> dict[str, Array]:
            return {"asked": own(v, lambda goal: sum(goal.reward(v, action).values()))}

        units = {goal.unit for goal in self.each}
        return TaskGoal(
            ALL,
            lambda v: own(v, lambda goal: np.asarray(goal.success(v), bool)),
            reward,
            lambda v: own(v, lambda goal: goal.distance(v)),
            units.pop() if len(units) == 1 else "",
        )

    def expert(self, v: Any, rng: np.random.Generator) -> Array:
        """Returns the action (N, act_dim) of the expert for each environment's goal."""
        return self._own(v, [task.expert(v, rng) for task in self.tasks])

    def card(self) -> dict[str, Any]:
        signals = [dataclasses.asdict(doc) for doc in self.signal_docs()]
        return {**self.inner.card(), "goal": self.goal, "signals": signals}
