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
    """The parts joined; of one that is itself."""
    return parts[0] if len(parts) == 1 else join(operator, *parts)


def without_operator(formula: Formula, operator: str) -> Formula:
    """What is to be held, once or always; itself where it is not under that operator."""
    wrapped = isinstance(formula, Joined) and formula.operator == operator
    return formula.parts[0] if wrapped else formula


# --------------------------------------------------------------------------------- constraints


def always_formula(made: Formula) -> Formula:
    """What is to be kept up; FormulaError where it cannot be, or is not so at the start."""
    if formula_kind(made) != "state":
        raise FormulaError("only a state can be required all the time, not an event")
    if any(a.predicate in _BROUGHT and not a.numbers for a in atoms(made)):
        raise FormulaError("the state cannot hold from the start: say when it shall hold")
    return join("always", made)


def never_formulas(made: Formula) -> list[Formula]:
    """What is never to be, one constraint for each thing."""
    each = [(part, _converse(part)) for part in _each(made)]
    return [join("always", kept) if kept else join("never", part) for part, kept in each]


def negations(made: Formula) -> list[Formula]:
    """That it is not so, one formula for each thing."""
    return [_converse(part) or join("not", part) for part in _each(made)]


def with_contact(made: Formula) -> Formula:
    """The same with things that touch in place of things beside each other."""
    if isinstance(made, Atom):
        return Atom.of("touch", *made.terms) if made.predicate == "next_to" else made
    return join(made.operator, *map(with_contact, made.parts), **dict(made.numbers))


def _each(made: Formula) -> list[Formula]:
    if formula_kind(made) == "state":
        return [p for part in parts_of(made, "or") for p in parts_of(part, "and")]
    inner = [without_operator(part, "once") for part in parts_of(made, "and")]
    if any(formula_kind(part) != "state" for part in inner):
        raise FormulaError("only a state can be forbidden, not an event")
    return inner


def _converse(made: Formula) -> Formula | None:
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
    """Whether two of these cannot be at once."""
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
    """Whether each of these can only come after the one before."""
    if len(without_implied_steps(found, at_once=True)) < len(found):
        return False  # "pick it up, put it there" asks for no lifting
    states = [without_operator(formula, "hold") for formula in found]
    return all(contradicts(pair) for pair in itertools.pairwise(states))


def without_implied_steps(found: Sequence[Formula], at_once: bool = False) -> list[Formula]:
    """Without what only leads to the next goal, or follows from the one before: what is put
    somewhere was grasped before, and a drawer into which something is put was opened; what is on or
    in something is let go. "Pick it up and put it there" asks for no lifting; "then" in its place
    does, but for the drawer."""
    return [
        formula
        for before, formula, after in zip((None, *found), found, (*found[1:], None), strict=False)
        if not (
            isinstance(formula, Atom)
            and isinstance(after, Atom)
            and _leads(formula, after, at_once, len(found) == 2)
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


def _leads(formula: Atom, after: Atom, at_once: bool, two: bool) -> bool:
    placed = after.predicate in ("on", "inside", "inserted", "next_to")
    if formula.predicate == "open" and after.predicate == "inside":
        return two and not formula.numbers and after.terms[1] == formula.terms[0]
    if not at_once or formula.terms[0] != after.terms[0]:
        return False
    if formula.predicate == "lifted":
        return placed and not formula.numbers  # what it says is asked for
    return formula.predicate == "grasped" and (placed or after.predicate == "lifted")


def without_repeats(found: Sequence[Formula]) -> list[Formula]:
    """Each but once: "behind it, 5 to 8 cm behind it" says the first again with a number."""
    again = {Atom(f.predicate, f.terms) for f in found if isinstance(f, Atom) and f.numbers}
    return [f for f in dict.fromkeys(found) if f not in again]


def merge_directions(found: Sequence[Formula]) -> list[Formula]:
    """Ways of one thing along two axes as one ("7 cm left and 4 cm forward"), and no state that
    another part holds for a time."""
    ways = [f for f in found if isinstance(f, Atom) and f.predicate == "moved"]
    if len(ways) == 2 and ways[0].terms == ways[1].terms:
        first, second = (dict(way.numbers) for way in ways)
        if not first.keys() & second.keys():
            one = Atom.of("moved", *ways[0].terms, **first, **second)
            found = [one, *(f for f in found if f not in ways)]
    held = [without_operator(f, "hold") for f in found if without_operator(f, "hold") != f]
    held += [Atom(f.predicate, f.terms) for f in held if isinstance(f, Atom)]
    return [f for f in found if f not in held]
