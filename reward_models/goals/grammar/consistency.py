"""Formulas beside each other: what contradicts, what only leads to the next, what says it again;
and what is to be always, or never."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from reward_models.goals.formula import (
    Atom,
    Formula,
    FormulaError,
    Joined,
    atoms,
    formula_kind,
    join,
    parts_of,
)
from reward_models.goals.predicates import PREDICATES

# Predicates that say the same the other way round: "never closer than" is "always at least".
_CONVERSE = {"near": "far", "far": "near", "slower": "faster", "faster": "slower"}
# What one thing cannot be at once, or two things to each other.
_OPPOSED = tuple(
    set(pair.split("/"))
    for pair in (
        "left_of/right_of in_front_of/behind above/touch far/touch far/above far/next_to "
        "open/closed upright/toppled on/lifted inside/lifted inserted/lifted grasped/released "
        "lifted/released still/faster kneel/raise_arms kneel/stand_up lie_down/forward "
        "kneel/forward lie_down/stand_up forward/backward front_flip/back_flip lie_down/wave "
        "still/forward"
    ).split()
)
_ONE_WAY = frozenset("on inside inserted above left_of right_of in_front_of behind".split())
# What is not so yet when an episode begins.
_BROUGHT = frozenset("touch on inside inserted grasped lifted pressed moved toppled".split())


def join_parts(operator: str, parts: Sequence[Formula]) -> Formula:
    """Returns the parts joined by an operator; a single part as it is."""
    return parts[0] if len(parts) == 1 else join(operator, *parts)


def without_operator(formula: Formula, operator: str) -> Formula:
    """Returns the formula under an operator; the formula itself without that operator."""
    wrapped = isinstance(formula, Joined) and formula.operator == operator
    return formula.parts[0] if wrapped else formula


# --------------------------------------------------------------------------------- constraints


def always_formula(made: Formula) -> Formula:
    """Returns the formula that must hold all the time.

    Raises:
        FormulaError: It cannot be kept up, or does not hold at the start.
    """
    if formula_kind(made) != "state":
        raise FormulaError("only a state can be required all the time, not an event")
    if any(a.predicate in _BROUGHT and not a.numbers for a in atoms(made)):
        raise FormulaError("the state cannot hold from the start: say when it shall hold")
    return join("always", made)


def never_formulas(made: Formula) -> list[Formula]:
    """Returns a constraint for each thing that must never be so."""
    each = [(part, _negated_bound(part)) for part in _for_each_thing(made)]
    return [join("always", kept) if kept else join("never", part) for part, kept in each]


def negations(made: Formula) -> list[Formula]:
    """Returns, for each thing, the formula that it is not so."""
    return [_negated_bound(part) or join("not", part) for part in _for_each_thing(made)]


def with_contact(made: Formula) -> Formula:
    """Returns the formula with contact in place of "next to"."""
    if isinstance(made, Atom):
        return Atom.of("touch", *made.terms) if made.predicate == "next_to" else made
    return join(made.operator, *map(with_contact, made.parts), **dict(made.numbers))


def _for_each_thing(made: Formula) -> list[Formula]:
    if formula_kind(made) == "state":
        return [p for part in parts_of(made, "or") for p in parts_of(part, "and")]
    inner = [without_operator(part, "once") for part in parts_of(made, "and")]
    if any(formula_kind(part) != "state" for part in inner):
        raise FormulaError("only a state can be forbidden, not an event")
    return inner


def _negated_bound(made: Formula) -> Formula | None:
    """What holds where a bound does not: "closer than 5 cm" -> at least 5 cm."""
    said = dict(made.numbers) if isinstance(made, Atom) else {}
    if not isinstance(made, Atom) or len(said) != 1:
        return None
    [(name, value)] = said.items()
    if other := _CONVERSE.get(made.predicate):
        return Atom.of(other, *made.terms, **{PREDICATES[other].numbers[0].name: value})
    if made.predicate == "at_height":
        return Atom.of("at_height", *made.terms, **{"most" if name == "least" else "least": value})
    return None


# ------------------------------------------------------------------------------ several at once


def contradicts(found: Sequence[Formula]) -> bool:
    """Returns whether two of the formulas cannot hold at once."""
    pairs = itertools.combinations([f for f in found if isinstance(f, Atom)], 2)
    return any(_opposed(a, b) for a, b in pairs)


def _opposed(a: Atom, b: Atom) -> bool:
    same = {*a.terms} == {*b.terms}
    if same and {a.predicate, b.predicate} == {"near", "far"}:
        said = dict((*a.numbers, *b.numbers))
        return said.get("within", 0.0) < said.get("least", 0.0)
    if not same and not (a.terms[0] == b.terms[0] and "lifted" in (a.predicate, b.predicate)):
        return False
    if a.predicate == b.predicate in _ONE_WAY and a.terms == b.terms[::-1]:
        return True
    for far in (a, b):  # 3 cm away may well be above, or touched
        if far.predicate == "far" and dict(far.numbers).get("least", 1.0) <= 0.05:
            return False
    seen = b.predicate if a.terms == b.terms else PREDICATES[b.predicate].mirror or b.predicate
    return {a.predicate, seen} in _OPPOSED


def is_sequential(found: Sequence[Formula]) -> bool:
    """Returns whether each of the formulas can only come after the one before."""
    if len(without_implied_steps(found, at_once=True)) < len(found):
        return False  # "pick it up, put it there" asks for no lifting
    states = [without_operator(formula, "hold") for formula in found]
    return all(contradicts(pair) for pair in itertools.pairwise(states))


def without_implied_steps(found: Sequence[Formula], at_once: bool = False) -> list[Formula]:
    """Returns the goals without those that only lead to the next one, or follow from the one
    before.

    What is put somewhere was grasped before, a drawer into which something is put was opened, and
    what is on or in something is let go. "Pick it up and put it there" asks for no lifting; with
    "then" in place of "and" it does, and still not for the drawer.
    """
    return [
        formula
        for before, formula, after in zip((None, *found), found, (*found[1:], None), strict=False)
        if not (
            isinstance(formula, Atom)
            and isinstance(after, Atom)
            and _is_implied_step(formula, after, at_once, len(found) == 2)
        )
        and not (
            at_once
            and isinstance(formula, Atom)
            and formula.predicate == "released"
            and isinstance(before, Atom)
            and before.predicate in ("on", "inside")
            and before.terms[0] == formula.terms[0]
        )
    ]


def _is_implied_step(formula: Atom, after: Atom, at_once: bool, two: bool) -> bool:
    placed = after.predicate in ("on", "inside", "inserted", "next_to")
    if formula.predicate == "open" and after.predicate == "inside":
        return two and not formula.numbers and after.terms[1] == formula.terms[0]
    if not at_once or formula.terms[0] != after.terms[0]:
        return False
    if formula.predicate == "lifted":
        return placed and not formula.numbers  # what it says is asked for
    return formula.predicate == "grasped" and (placed or after.predicate == "lifted")


def without_repeats(found: Sequence[Formula]) -> list[Formula]:
    """Returns each formula once: "behind it, 5 to 8 cm behind it" repeats the first with a
    number."""
    again = {Atom(f.predicate, f.terms) for f in found if isinstance(f, Atom) and f.numbers}
    return [f for f in dict.fromkeys(found) if f not in again]


def simplify_conjuncts(found: Sequence[Formula]) -> list[Formula]:
    """Returns the conjuncts with two displacements of one thing merged ("7 cm left and 4 cm
    forward"), and without the states that another conjunct holds for a time."""
    ways = [f for f in found if isinstance(f, Atom) and f.predicate == "moved"]
    if len(ways) == 2 and ways[0].terms == ways[1].terms:
        first, second = (dict(way.numbers) for way in ways)
        if not first.keys() & second.keys():
            one = Atom.of("moved", *ways[0].terms, **first, **second)
            found = [one, *(f for f in found if f not in ways)]
    held = [without_operator(f, "hold") for f in found if without_operator(f, "hold") != f]
    held += [Atom(f.predicate, f.terms) for f in held if isinstance(f, Atom)]
    return [f for f in found if f not in held]
