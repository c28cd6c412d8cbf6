"""SuccessJudge: records what a goal speaks of at each step, and says of each row whether it is
done."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Task
from sims.tasks.scene.tabletop import Tabletop
from sims.truth import locomotion, tabletop
from sims.truth.predicate import EpisodeClock, TruthPredicate
from sims.truth.reachability import out_of_reach
from sims.truth.temporal import (
    OPERATORS,
    CompletionTimes,
    EpisodeRecord,
    Node,
    completion_times,
    first_step,
    outermost_sequence,
)
from sims.truth.world import CHOICES, World, select_candidate

Array = np.ndarray


class SuccessJudge:
    """The truth of one goal in every row of a batch, over whole episodes.

    ``goal`` is ``[name, [arguments], {numbers}]`` with every number there
    (docs/reference/goal-language.md). Call ``begin(ids)`` when rows have been reset and ``step``
    after each step; a row whose episode is over records no more until it begins again.

    ValueError where the goal names what the task does not have.
    """

    def __init__(self, goal: Node, task: Task[Any], batch: Batch, views: Any):
        self.goal, self._n = goal, batch.nsim
        self._world = World(task.unwrapped, batch, views)
        self._clock = EpisodeClock(task.control_dt, task.episode_s)
        self._words = judged_predicates(task.unwrapped)
        self._capacity = round(task.episode_s / task.control_dt) + 1
        self._step = np.zeros(self._n, np.int64)
        self._cut, self._over = np.zeros((2, self._n), bool)
        self._records: dict[str, Array] = {}
        self._recorded: dict[str, tuple[str, Sequence[str], Mapping[str, float]]] = {}
        self._starts: dict[str, Array] = {}  # {entity: (N, 3)} at the first step, of choices
        self._enter(goal)
        self.begin(np.arange(self._n))

    def _enter(self, node: Node) -> None:
        """Notes what has to be recorded for a formula."""
        name, arguments, numbers = node
        if name in OPERATORS:
            for part in arguments:
                self._enter(part)
            return
        if name not in self._words:
            raise ValueError(
                f"{name!r} cannot be judged in task {self._world.task.name}; available: "
                f"{', '.join(self._words)}"
            )
        for names in itertools.product(*map(_candidates, arguments)):
            for entity in names:
                self._world.point(entity)  # says which are known
            self._recorded[_key(name, names, numbers)] = name, names, numbers
        for choice in (argument for argument in arguments if not isinstance(argument, str)):
            for entity in choice[1]:
                self._starts[entity] = np.zeros((self._n, 3))

    def begin(self, ids: Array) -> None:
        """Rows ``ids`` (n,) are at the first step of an episode."""
        self._step[ids], self._cut[ids], self._over[ids] = 0, False, False
        for entity, start in self._starts.items():
            start[ids] = self._world.point(entity)[ids]
        self._sample(ids)

    def step(self, terminated: Array, active: Array | None = None) -> None:
        """Rows that are ``active`` (N,) bool, by default all, have made a step; ``terminated`` (N,)
        bool: the task ended the episode with it."""
        ids = np.flatnonzero(~self._over if active is None else active & ~self._over)
        self._step[ids] += 1
        self._sample(ids)
        ended = self._step[ids] >= self._capacity - 1
        self._cut[ids] = terminated[ids] & ~ended
        self._over[ids] = terminated[ids] | ended

    def settled(self, ids: Array) -> Array:
        """(n,) bool: an episode of rows ``ids`` that began now would be decided already: the goal
        done or failed, or its end out of reach. Rows ``ids`` are left at such a first step."""
        self.begin(ids)
        found = self.course()
        decided = self.at_last(found.done) | self.at_last(found.failed)
        return decided[ids] | out_of_reach(self.goal, self._world, ids)

    def _sample(self, ids: Array) -> None:
        if not len(ids):
            return
        for key, (name, names, numbers) in self._recorded.items():
            now = self._words[name].record_step(self._world, *names, **numbers)
            if key not in self._records:
                self._records[key] = np.zeros((self._capacity, *now.shape))
            self._records[key][self._step[ids], ids] = now[ids]

    def success(self) -> Array:
        """Returns whether the goal is done at each environment's last step so far, (N,) bool."""
        return self.at_last(self.course().done)

    def failed(self) -> Array:
        """Returns whether the goal cannot be done any more, whatever follows, (N,) bool."""
        return self.at_last(self.course().failed)

    def course(self, part: Node | None = None) -> CompletionTimes:
        """When the goal (or a formula of its words) was done and had failed, (S, N) each, where
        ``S`` counts the steps of the row that has most; a row's own end at its last."""
        begin = np.zeros(self._n, np.int64)
        return completion_times(self.goal if part is None else part, begin, self._episode())

    def at_last(self, when: Array) -> Array:
        """Returns ``when`` (S, N) at each environment's last step, (N,)."""
        return when[self._step, np.arange(self._n)]

    def _episode(self) -> EpisodeRecord:
        return EpisodeRecord(self._predicate_held, self._step, self._cut, self._clock.dt)

    def _predicate_held(self, node: Node) -> Array:
        """(S, N) bool: the steps at which a predicate held, for the entities that rows chose."""
        name, arguments, numbers = node
        steps = int(self._step.max()) + 1
        held = np.zeros((steps, self._n), bool)
        for picks in itertools.product(*(enumerate(_candidates(a)) for a in arguments)):
            key = _key(name, [entity for _, entity in picks], numbers)
            record = self._records[key][:steps]
            mine = np.ones(self._n, bool)
            for argument, (index, _) in zip(arguments, picks, strict=True):
                if not isinstance(argument, str):
                    mine &= self._choice(argument) == index
            held |= self._compared(name, record, numbers) & mine
        return held

    def _compared(self, name: str, record: Array, numbers: Mapping[str, float]) -> Array:
        """(S, N) bool: where it held by its record (S, N, k); a part that comes ``after`` others
        is compared with the step in which the last of these was done, and not with the first."""
        after = int(numbers.get("after", 0))
        own = {key: value for key, value in numbers.items() if key != "after"}
        holds_at = self._words[name].holds_at
        if not after:
            return holds_at(record, self._clock, **own)
        then = outermost_sequence(self.goal)
        assert then is not None
        begin = np.zeros(self._n, np.int64)
        done = first_step(
            completion_times(["then", then[1][:after], {}], begin, self._episode()).done
        )
        start = record[np.minimum(done, len(record) - 1), np.arange(self._n)]
        since = holds_at(np.concatenate([start[None], record]), self._clock, **own)[1:]
        return since & (np.arange(len(record))[:, None] >= done)

    def _choice(self, choice: Node) -> Array:
        """(N,) which candidate it was at the first step."""
        rule, names, _ = choice
        return select_candidate(rule, [self._starts[name] for name in names])

    def state_dict(self) -> dict[str, Array]:
        """Returns the records so far, arrays by name; those of each step are (S, N, k)."""
        return {name: array.copy() for name, array in self._state().items()}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays of ``state_dict``; those of each step are (S, N, k)."""
        for name, array in self._state().items():
            array[:] = saved[name]

    def _state(self) -> dict[str, Array]:
        return {
            "step": self._step,
            "cut": self._cut,
            "over": self._over,
            **{f"start/{name}": start for name, start in self._starts.items()},
            **{f"record/{i}": record for i, record in enumerate(self._records.values())},
        }


def judged_predicates(task: Task[Any]) -> dict[str, TruthPredicate]:
    """The predicates that can be judged in a task."""
    return (
        tabletop.PREDICATES
        if isinstance(task, Tabletop)
        else locomotion.locomotion_predicates(task.name)
    )


def _candidates(argument: Any) -> tuple[str, ...]:
    """The entities that an argument may stand for."""
    if isinstance(argument, str):
        return (argument,)
    rule, names, _ = argument
    if rule not in CHOICES:
        raise ValueError(f"unknown choice {rule!r}; available: {', '.join(CHOICES)}")
    return tuple(names[1:] if rule in ("nearest", "farthest") else names)


def _key(name: str, names: Sequence[str], numbers: Mapping[str, float]) -> str:
    return json.dumps([name, list(names), dict(sorted(numbers.items()))])
