"""A task with any formula for its goal: the same scene, and beside it an account of the goal.

The formula's automaton runs with the rows and is part of their state. What it remembers, how far
what counts now is from holding and which way that is, are columns of the observation; a reward
program reads the same as signals. Success is the judge's alone (``sims/truth``).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from mujoco.batch import Batch

from reward_models.base import from_dict
from reward_models.goals.automaton import FAILED, Automaton
from reward_models.goals.duration import episode_seconds
from reward_models.goals.formula import (
    Atom,
    Formula,
    Joined,
    atoms,
    fill,
    formula_kind,
    from_data,
    parts_of,
    to_data,
)
from reward_models.goals.margins import (
    FormulaMargins,
    MarginEvaluator,
    StoredSignal,
    formula_margins,
)
from sims.core.rng import RowRng
from sims.core.task import Array, ObsPart, Signal, Task
from sims.core.task_wrapper import TaskWrapper

SCALE, MOST = 10.0, 3.0  # of columns in m, and what they reach: 30 cm
FINE = 0.005  # m, of a place that means anything
ACCOUNT = "goal"  # the observation's columns about it
PRACTICE = 0.3  # of the episodes one trains on

# Rewards that look at frames, by their names (a test holds the registry against it).
FRAME_REWARDS = {
    "clip",
    "goal-image",
    "film",
    "success",
    "progress",
    "critic",
    "value",
    "preferences",
}


@dataclass(frozen=True, kw_only=True)
class GoalTask(TaskWrapper):
    """``inner``, whose goal is a formula, with an account of it.

    ``practice`` is the share of episodes that begin in the middle of a sequence, as if the parts
    before were done: what comes late is else hardly ever tried. ``ends``: an episode ends where the
    formula has failed. Both are for training.
    """

    practice: float = 0.0
    ends: bool = False

    def __post_init__(self) -> None:
        if self.inner.formula is None:
            raise ValueError(f"the goal must be a formula, got {self.inner.goal!r}")
        super().__post_init__()
        object.__setattr__(self, "goal", self.inner.goal)

    @cached_property
    def goal_formula(self) -> Formula:
        """The goal as a formula."""
        return from_data(self.inner.formula)

    def spread_of(self, part: str) -> float | Array:
        """Returns the observation scale of a part.

        Positions matter at small distances, and the parts done are exact.

        Args:
            part: The observation's part.

        Returns:
            One number, or (k,) one for each goal-progress column.
        """
        if part != ACCOUNT:
            return self.inner.spread_of(part)
        places = math.prod(self._shape[:2])
        return np.repeat([0.0, SCALE * FINE], [self._width - places, places])

    @property
    def has_expert(self) -> bool:  # type: ignore[override]
        """False: the inner task's expert solves only its own goals."""
        return False

    @cached_property
    def measured(self) -> FormulaMargins:
        """The quantities that the formula's predicates measure."""
        return formula_margins(self.goal_formula, from_dict(self.inner.card()))

    @cached_property
    def automaton(self) -> Automaton:
        """The account of the formula."""
        return Automaton(self.measured.formula, self.control_dt)

    @cached_property
    def measures(self) -> MarginEvaluator:
        return MarginEvaluator(self.measured)

    @cached_property
    def parts(self) -> tuple[tuple[Atom, ...], ...]:
        """What columns are about, for each part of the outermost sequence: its predicates, and
        those that are to hold or not to hold all along."""
        along = [p for p in parts_of(self.goal_formula, "and") if formula_kind(p) == "constraint"]
        sequence = self.automaton.sequence
        if sequence is None:
            return (tuple(dict.fromkeys(atoms(self.goal_formula))),)
        then = next(
            p
            for p in parts_of(self.goal_formula, "and")
            if isinstance(p, Joined) and p.operator == "then"
        )
        every = [a for p in along for a in atoms(p)]
        return tuple(tuple(dict.fromkeys([*atoms(p), *every])) for p in then.parts)

    def bind(self, batch: Batch) -> Any:
        v, n = self.inner.bind(batch), batch.nsim
        signals = self.inner.signals(v)
        remembered = self.measured.begun(signals)
        before = {name: np.zeros_like(signals[name], float) for name in self.measures.before}
        account = {
            "goal_memory": self.automaton.begin(n),
            "goal_chosen": np.zeros((n, len(self.measured.choices))),
            "goal_begin": np.zeros((n, 2)),
            **{f"goal_{name}": np.zeros_like(array, float) for name, array in remembered.items()},
            **{f"goal_before_{name}": array for name, array in before.items()},
        }
        return self.with_own(v, account, goal_columns=np.zeros((n, self._width)))

    def reset(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Resets the inner task and samples (n, 2) where in a sequence the environments ``ids``
        (n,) begin."""
        self.inner.reset(v, ids, rng)
        v.goal_begin[ids] = rng.uniform(0.0, 1.0, (2,))

    def scatter(self, v: Any, ids: Array, rng: RowRng) -> None:
        """Samples states from the workspace for the environments ``ids`` (n,); no part is done
        there."""
        self.inner.scatter(v, ids, rng)
        v.goal_begin[ids] = 1.0

    def after_reset(self, v: Any, ids: Array) -> None:
        """Sets the memory and the goal-progress columns of the environments ``ids`` (n,) to their
        start."""
        self.inner.after_reset(v, ids)
        signals = self.inner.signals(v)
        for name, value in self.measured.begun(signals).items():
            getattr(v, f"goal_{name}")[ids] = value[ids]
        for name in self.measures.before:
            getattr(v, f"goal_before_{name}")[ids] = signals[name][ids]
        v.goal_chosen[ids] = self.measured.chosen(signals)[ids]
        v.goal_memory[ids] = 0.0
        if self.practice and self.automaton.sequence is not None:
            slot, parts = self.automaton.sequence
            practised = v.goal_begin[ids, 0] < self.practice
            part = np.minimum(np.floor(v.goal_begin[ids, 1] * parts), parts - 1)
            self.automaton.column(v.goal_memory, slot)[ids] = np.where(practised, part, 0.0)
        self._enter(v, ids, signals)

    def after_step(self, v: Any, ids: Array) -> None:
        """Updates the memory and the goal-progress columns of the environments ``ids`` (n,)."""
        self.inner.after_step(v, ids)
        signals = self.inner.signals(v)
        self._keep(v, ids, signals)
        self._enter(v, ids, signals)
        for name in self.measures.before:
            getattr(v, f"goal_before_{name}")[ids] = signals[name][ids]

    def _keep(self, v: Any, ids: Array, signals: Mapping[str, Array]) -> None:
        """What is kept from when a part was done is as now until then."""
        if not self._later:
            return
        done = self.automaton.parts_done(v.goal_memory)[ids]
        for signal in self._later:
            rows = ids[done < signal.after]
            getattr(v, f"goal_{signal.name}")[rows] = signals[signal.signal][rows]

    def _enter(self, v: Any, ids: Array, signals: Mapping[str, Array]) -> None:
        """Enters the state of rows ``ids`` as it is now into the account and the columns."""
        before = {name: getattr(v, f"goal_before_{name}") for name in self.measures.before}
        margins, aims = self.measures({**signals, **self._remembered(v)}, before)
        live = np.zeros(len(v.goal_memory), bool)
        live[ids] = True
        holds = {atom: (m >= 0.0).all(axis=1) for atom, m in margins.items()}
        self.automaton.update(v.goal_memory, holds, live)
        v.goal_columns[:] = self._columns(v.goal_memory, margins, aims)

    @cached_property
    def _later(self) -> tuple[StoredSignal, ...]:
        """What is kept from later than the first step."""
        return tuple(signal for signal in self.measured.kept if signal.after)

    def _remembered(self, v: Any) -> dict[str, Array]:
        arrays = {one.name: getattr(v, f"goal_{one.name}") for one in self.measured.kept}
        return self.measured.remembered(arrays, v.goal_chosen)

    @cached_property
    def _shape(self) -> tuple[int, int, int]:
        """(predicates at once, numbers of each, one-hot columns of the sequence)."""
        slots = max(len(part) for part in self.parts)
        widest = max(len(conditions) for conditions in self.measured.conditions.values())
        return slots, 3 + widest, len(self.parts) if len(self.parts) > 1 else 0

    @property
    def _width(self) -> int:
        slots, numbers, parts = self._shape
        return len(self.automaton.slots) + parts + slots * numbers

    def _columns(
        self, memory: Array, margins: Mapping[Atom, Array], aims: Mapping[Atom, Array]
    ) -> Array:
        """Columns (N, k): the account, and what counts now."""
        slots, numbers, parts = self._shape
        n = len(memory)
        now = np.zeros((n, slots, numbers))
        at = np.zeros(n)
        if self.automaton.sequence is not None:
            at = np.minimum(self.automaton.column(memory, self.automaton.sequence[0]), parts - 1)
        for i, part in enumerate(self.parts):
            turn = at == i
            for slot, atom in enumerate(part):
                margin = margins[atom][turn]
                now[turn, slot, 3 : 3 + margin.shape[1]] = margin
                if atom in aims:
                    now[turn, slot, :3] = aims[atom][turn]
        most = np.array([slot.most for slot in self.automaton.slots])
        where = at[:, None] == np.arange(parts) if parts else np.zeros((n, 0))
        near = np.clip(SCALE * now.reshape(n, -1), -MOST, MOST)
        return np.concatenate([memory / most, where, near], axis=1)

    def obs(self, v: Any) -> dict[str, Array]:
        """Returns the inner task's columns and those of goal progress, {name: (N, k)}."""
        return {**self.inner.obs(v), ACCOUNT: v.goal_columns}

    def obs_parts(self) -> Mapping[str, tuple[ObsPart, ...]]:
        """Of the inner task's columns: the account's are remembered."""
        return self.inner.obs_parts()

    def sensed(self, v: Any) -> Mapping[str, Array]:
        """Returns what the inner task's columns are made of, {name: (N, k)}."""
        return self.inner.sensed(v)

    def sensed_docs(self) -> tuple[Signal, ...]:
        return self.inner.sensed_docs()

    def signals(self, v: Any) -> dict[str, Array]:
        """Returns the inner task's signals, remembered quantities and the memory's slots, {name:
        (N, ...)}."""
        memory = {s.name: v.goal_memory[:, i : i + 1] for i, s in enumerate(self.automaton.slots)}
        return {**self.inner.signals(v), **self._remembered(v), **memory}

    def signal_docs(self) -> tuple[Signal, ...]:
        own = len(self.measured.task_card.signals)
        remembered = self.measured.card.signals[own:]
        slots = tuple(slot.signal for slot in self.automaton.slots)
        extra = (Signal(**vars(s)) for s in (*remembered, *slots))
        return (*self.inner.signal_docs(), *extra)

    def expert(self, v: Any, rng: np.random.Generator) -> Array:
        """Raises ValueError: a formula has no expert that could return an action (N, act_dim)."""
        raise ValueError(
            f"no scripted expert for {self.goal_formula}; train a policy: robo-rl train --formula"
        )

    def terminated(self, v: Any) -> Array | bool:
        """(N,) bool: the inner task ends the episode or, with ``ends``, the formula has failed."""
        over = self.inner.terminated(v)
        return over | (self.automaton.column(v.goal_memory, FAILED) > 0) if self.ends else over

    def card(self) -> dict[str, Any]:
        signals = [dataclasses.asdict(s) for s in self.signal_docs()]
        return {**self.inner.card(), "signals": signals}


def with_formula_goal(inner: Task[Any], sentence: Formula) -> Task[Any]:
    """``inner`` with a formula for its goal; its episodes are as long as the parts ask for.
    FormulaError where it means nothing here."""
    card = from_dict(inner.card())
    formula = fill(sentence, card)
    steps = math.ceil(episode_seconds(formula, card) / inner.control_dt - 1e-6)
    whole = round(max(1, steps) * inner.control_dt, 9)
    return dataclasses.replace(inner, goal=json.dumps(to_data(formula)), episode_s=whole)


def make_goal_task(inner: Task[Any], sentence: Formula) -> GoalTask:
    """``with_formula_goal``, with the account of it; NoMargin where it cannot be measured."""
    made = GoalTask(inner=with_formula_goal(inner, sentence))
    formula_margins(made.goal_formula, from_dict(inner.card()))
    return made


def training_task(task: GoalTask, practice: float = PRACTICE) -> GoalTask:
    """The task as one trains on it."""
    return dataclasses.replace(task, practice=practice, ends=True)


def observes_automaton(config: Mapping[str, Any]) -> bool:
    """Returns whether the policy of a run's config observes goal progress. A frame reward for a
    goal outside the task's list does not track it, so its policy has the task's usual observation,
    unless the goal was given as a formula."""
    return bool(config["formula"]) or config["reward"].partition(":")[0] not in FRAME_REWARDS
