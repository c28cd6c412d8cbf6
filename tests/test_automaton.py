"""The automaton of a formula against docs/reference/goal-language.md, read off whole episodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models.goals.automaton import DONE, FAILED, Automaton
from reward_models.goals.formula import OPERATORS, Atom, Formula, Joined, formula_kind, join

Array = np.ndarray
DT = 0.1
ATOMS = tuple(Atom.of("far", "gripper", name) for name in ("red", "green", "blue"))
A, B, C = ATOMS


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3, state: bool = False) -> Formula:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(ATOMS))
    states = ["and", "or", "not"]
    name = draw(st.sampled_from(states if state else list(OPERATORS)[:-2]))
    row = OPERATORS[name]
    parts = tuple(
        draw(formulas(depth - 1, state or i in row.state))
        for i in range(draw(st.integers(row.least, min(3, row.most))))
    )
    seconds = draw(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5]))
    return Joined(name, parts, tuple((n.name, seconds) for n in row.numbers))


WHOLE = st.one_of(
    formulas(),
    st.builds(
        lambda goal, guard, operator: join("and", goal, join(operator, guard)),
        formulas(),
        formulas(depth=1, state=True),
        st.sampled_from(["never", "always"]),
    ),
)


def holds(formula: Formula, t: int, table: dict[Atom, Array]) -> bool:
    """Whether a state formula holds at step t."""
    if isinstance(formula, Atom):
        return bool(table[formula][t])
    parts = [holds(p, t, table) for p in formula.parts]
    return {"and": all(parts), "or": any(parts), "not": not parts[0]}[formula.operator]


def done(formula: Formula, a: int, t: int, table: dict[Atom, Array]) -> bool:
    """Whether a formula that begins at step a is done at step t, as the table of the page says."""
    if formula_kind(formula) == "state":
        return holds(formula, t, table)
    assert isinstance(formula, Joined)
    parts, steps = formula.parts, range(a, t + 1)
    match formula.operator:
        case "and":
            return all(done(p, a, t, table) for p in parts)
        case "or":
            return any(done(p, a, t, table) for p in parts)
        case "once":
            return any(holds(parts[0], s, table) for s in steps)
        case "hold":
            k = max(1, math.ceil(formula.seconds / DT - 1e-6))
            runs = (range(s - k + 1, s + 1) for s in steps if s - k + 1 >= a)
            return any(all(holds(parts[0], s, table) for s in run) for run in runs)
        case "then":
            begin = a
            for part in parts:
                at = first(part, begin, t, table)
                if at is None:
                    return False
                begin = at + 1
            return True
        case "within":
            k = math.floor(formula.seconds / DT + 1e-6)
            return any(done(parts[0], a, s, table) for s in range(a, min(t, a + k) + 1))
        case "while":
            at = first(parts[0], a, t, table)
            return at is not None and all(holds(parts[1], s, table) for s in range(a, at + 1))
        case "until":
            at = first(parts[1], a, t, table)
            return at is not None and all(holds(parts[0], s, table) for s in range(a, at))
        case "never":
            return not any(holds(parts[0], s, table) for s in range(t + 1))
    return all(holds(parts[0], s, table) for s in range(t + 1))


def failed(formula: Formula, a: int, t: int, table: dict[Atom, Array]) -> bool:
    if formula_kind(formula) == "state":
        return False
    assert isinstance(formula, Joined)
    parts = formula.parts
    match formula.operator:
        case "and":
            return any(failed(p, a, t, table) for p in parts)
        case "or":
            return all(failed(p, a, t, table) for p in parts)
        case "once" | "hold":
            return False
        case "then":
            begin = a
            for part in parts:
                if begin > t:
                    return False
                at = first(part, begin, t, table)
                if at is None:
                    return failed(part, begin, t, table)
                begin = at + 1
            return False
        case "within":
            k = math.floor(formula.seconds / DT + 1e-6)
            broken = t > a + k or failed(parts[0], a, t, table)
            return broken and not done(formula, a, t, table)
        case "while" | "until":
            if done(formula, a, t, table):
                return False
            which, guard = parts if formula.operator == "while" else parts[::-1]
            at = first(which, a, t, table)
            last = t if at is None else at if formula.operator == "while" else at - 1
            broken = not all(holds(guard, s, table) for s in range(a, last + 1))
            return broken or failed(which, a, t, table)
        case "never":
            return any(holds(parts[0], s, table) for s in range(t + 1))
    return not all(holds(parts[0], s, table) for s in range(t + 1))


def first(formula: Formula, a: int, t: int, table: dict[Atom, Array]) -> int | None:
    return next((s for s in range(a, t + 1) if done(formula, a, s, table)), None)


@settings(deadline=None, max_examples=200)
@given(formula=WHOLE, seed=st.integers(0, 2**32 - 1), often=st.sampled_from([0.2, 0.5, 0.8]))
def test_automaton_matches_the_documented_semantics(
    formula: Formula, seed: int, often: float
) -> None:
    rows, steps = 6, 9
    rng = np.random.default_rng(seed)
    tables = {atom: rng.random((steps, rows)) < often for atom in ATOMS}
    automaton = Automaton(formula, DT)
    memory = automaton.begin(rows)
    most = np.array([slot.most for slot in automaton.slots])
    for t in range(steps):
        automaton.update(memory, {atom: table[t] for atom, table in tables.items()})
        assert (0 <= memory).all() and (memory <= most).all()
        for row in range(rows):
            table = {atom: column[:, row] for atom, column in tables.items()}
            got = memory[row, -2:].tolist()
            lost = failed(formula, 0, t, table)
            assert got == [done(formula, 0, t, table) and not lost, lost], (str(formula), t)


def test_automaton_keeps_the_state_of_inactive_envs() -> None:
    automaton = Automaton(join("then", A, join("hold", B, seconds=0.2)), DT)
    memory = automaton.begin(2)
    now = {A: np.array([True, True]), B: np.array([True, True]), C: np.array([False, False])}
    for _ in range(3):
        automaton.update(memory, now, np.array([True, False]))
    assert memory[0, -2:].tolist() == [1, 0] and not memory[1].any()


def test_automaton_slots_have_names() -> None:
    automaton = Automaton(
        join("and", join("then", A, join("hold", B, seconds=0.2)), join("never", C)), DT
    )
    assert [slot.name for slot in automaton.slots] == [
        "goal_part_2",
        "goal_held_3",
        "goal_broken_4",
        DONE,
        FAILED,
    ]
    assert automaton.sequence == ("goal_part_2", 2)
    assert Automaton(join("and", A, B), DT).sequence is None


@pytest.mark.parametrize(("seconds", "hold", "within"), [(0.0, 1, 0), (0.25, 3, 2), (0.3, 3, 3)])
def test_automaton_converts_seconds_to_steps(seconds: float, hold: int, within: int) -> None:
    automaton = Automaton(join("hold", A, seconds=seconds), DT)
    assert automaton.steps(join("hold", A, seconds=seconds)) == hold
    assert automaton.steps(join("within", A, seconds=seconds)) == within
