"""Whether a goal can be reached at all, looked at before anything is trained on it.

A goal with numbers may ask for what no arm reaches (50 cm above the cube) or for what excludes
itself (left of the ball and right of it at once). Every state that it asks for is looked for among
thousands of scattered ones, a centimetre less exactly; what is found in none of them is refused,
with how far its numbers go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from reward_models.goals.formula import Atom, EntityChoice, Formula, Joined, atoms, formula_kind
from reward_models.goals.margins import MarginEvaluator, formula_margins
from reward_models.goals.predicates import GRIPPER, PREDICATES, role
from reward_models.goals.text import to_sentence
from robo_rl.goals.goal_task import GoalTask
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

ROWS, SCATTERED = 256, 16  # of states: so many rows, so many times
SLACK = 0.01  # m, by which a state may miss what is asked and still counts as found
HELD = 0.5  # share of starts; a goal that holds in more of them asks for nothing
HALVINGS = 12  # of the way from what is asked to what is found


class Unreachable(ValueError):
    """A goal that nothing could reach."""


class DecidedAtStart(ValueError):
    """A goal that is reached, or missed for good, before anything is done, or ends out of reach."""


def check_feasible(task: GoalTask, *, seed: int = 0, num_threads: int = 0) -> None:
    """Decided where that is so in more than half of the starts, Unreachable where a state that the
    goal asks for is in none of four thousand."""
    with closing(BatchEnv(task, ROWS, seed=seed, num_threads=num_threads)) as env:
        env.reset()
        if (held := env.held.mean()) > HELD:
            raise DecidedAtStart(
                f"in {100 * held:.0f} % of its episodes the goal is decided before the first "
                f"action, or out of reach, even after resampling: {task.goal_formula}; "
                "choose another goal"
            )
        states = _States(task, env)
        while missing := states.first_missing(task.goal_formula):
            if len(states) >= ROWS * SCATTERED:
                raise Unreachable(_unreachable_text(missing, states))
            states.scatter(len(states) // ROWS)


class _States:
    """Signals of states, and what a formula remembers in them: from all of the workspace, each
    beside the start of some episode.

    Few at first: most goals are found among them, and what is found in some is found in more.
    """

    def __init__(self, task: GoalTask, env: BatchEnv):
        self.task, self._env = task, env
        self._begun = task.measured.begun(env.signals())
        self.signals: dict[str, Array] = {}  # (M, k)
        self.scatter(1)

    def scatter(self, times: int) -> None:
        """Adds the environment's rows, so many times."""
        drawn = [self.signals] if self.signals else []
        for _ in range(times):
            self._env.scatter()
            drawn.append({**self._env.signals(), **self._begun})
        self.signals = {name: np.concatenate([d[name] for d in drawn]) for name in drawn[0]}

    def first_missing(self, formula: Formula) -> Formula | None:
        """The first state that a formula asks for and that is nowhere; of parts that stand
        together, all of them."""
        if formula_kind(formula) == "state":
            return None if self.share(formula) else formula
        if isinstance(formula, Atom):
            return None
        if formula.operator == "or":
            found = [self.first_missing(part) for part in formula.parts]
            return found[0] if all(found) else None
        if formula.operator == "and":
            last = [*_at_last(formula)]
            joint = last[0] if len(last) == 1 else Joined("and", tuple(last)) if last else None
            parts = [p for p in formula.parts if formula_kind(p) == "event"]
            return (joint and self.first_missing(joint)) or self._any(parts)
        if formula.operator == "until":
            return self.first_missing(formula.parts[1])
        if formula.operator in ("never", "always"):
            return None if formula.operator == "never" else self.first_missing(formula.parts[0])
        whole = formula.operator == "then"
        return self._any(formula.parts if whole else formula.parts[:1])

    def _any(self, parts: Iterable[Formula]) -> Formula | None:
        return next((found for part in parts if (found := self.first_missing(part))), None)

    def share(self, state: Formula) -> float:
        """The share of the states in which one holds within SLACK."""
        return float(self._holds(state, SLACK).mean())

    def _holds(self, state: Formula, slack: float) -> Array:
        if isinstance(state, Atom):
            if not _of_place(state, self.task):
                return np.full(len(self), slack > 0)  # they do not tell: it may be so
            return (self._margins(state) >= -slack).all(axis=1)  # pyright: ignore[reportReturnType]  # numpy: a scalar too
        if state.operator == "not":
            return ~self._holds(state.parts[0], -slack)
        parts = [self._holds(part, slack) for part in state.parts]
        every = state.operator == "and"
        return np.logical_and.reduce(parts) if every else np.logical_or.reduce(parts)

    def _margins(self, atom: Atom) -> Array:
        of = formula_margins(atom, self.task.measured.task_card)
        signals = {**self.signals, **of.remembered(self.signals, of.chosen(self.signals))}
        return MarginEvaluator(of)(signals, self.signals)[0][atom]  # as if nothing moved

    def __len__(self) -> int:
        return len(next(iter(self.signals.values())))


def _at_last(formula: Joined) -> Iterator[Formula]:
    """Yields what must hold at the last step: states of an ``and``, and what holds throughout."""
    for part in formula.parts:
        if formula_kind(part) == "state":
            yield part
        elif isinstance(part, Joined) and part.operator in ("and", "always"):
            yield from _at_last(part)
        elif isinstance(part, Joined) and part.operator == "never":
            yield Joined("not", part.parts)


def _of_place(atom: Atom, task: GoalTask) -> bool:
    """Whether scattered states show it: they have the hand anywhere, things anywhere on the table,
    and nothing in motion, held or piled up."""
    first = atom.terms[0].among[0] if isinstance(atom.terms[0], EntityChoice) else atom.terms[0]
    who = role(task.measured.task_card.entity(first))
    if who == GRIPPER:
        return atom.predicate != "faster"
    return who == "object" and PREDICATES[atom.predicate].level


def _unreachable_text(state: Formula, states: _States) -> str:
    """Returns which state was never found, and the limits of its numbers."""
    card = states.task.measured.task_card
    far = [
        text for atom in dict.fromkeys(atoms(state)) for text in _number_hints(atom, state, states)
    ]
    known = f"; found: {', '.join(far)}" if far else ""
    return (
        f"in none of {len(states):,} states of {card.task} that were looked at does it hold that "
        f"{to_sentence(state, card)}{known}"
    )


def _number_hints(atom: Atom, state: Formula, states: _States) -> Iterator[str]:
    """Yields, for each number of an atom that makes it unreachable, the nearest value found."""
    for number in PREDICATES[atom.predicate].numbers:
        value, usual = atom[number.name], number.default
        if not isinstance(usual, float) or value == usual:
            continue

        if not states.share(_with(state, atom, number.name, usual)):
            continue
        found, missing = usual, value
        for _ in range(HALVINGS):
            middle = (found + missing) / 2
            if states.share(_with(state, atom, number.name, middle)):
                found = middle
            else:
                missing = middle
        yield f"{number.name} {found:.2g} {number.unit}"


def _with(state: Formula, atom: Atom, name: str, value: float) -> Formula:
    """The state with another number in one of its atoms."""
    return _replaced(
        state,
        atom,
        Atom(atom.predicate, atom.terms, tuple((dict(atom.numbers) | {name: value}).items())),
    )


def _replaced(formula: Formula, old: Atom, new: Atom) -> Formula:
    if isinstance(formula, Atom):
        return new if formula == old else formula
    return replace(formula, parts=tuple(_replaced(part, old, new) for part in formula.parts))
