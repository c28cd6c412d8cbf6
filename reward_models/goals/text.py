"""Formulas in words: what was understood, read back in one sentence with the numbers that count."""

from __future__ import annotations

import math

from reward_models.base import TaskCard
from reward_models.goals.formula import Atom, EntityChoice, Formula, Joined, Term, formula_kind
from reward_models.goals.predicates import AFTER, PREDICATES

_WORDS = {
    "nearest": "whichever of {} is nearest to {} at the start",
    "farthest": "whichever of {} is farthest from {} at the start",
    "leftmost": "whichever of {} is leftmost at the start",
    "rightmost": "whichever of {} is rightmost at the start",
    "frontmost": "whichever of {} is foremost at the start",
    "rearmost": "whichever of {} is hindmost at the start",
}


def to_sentence(formula: Formula, card: TaskCard) -> str:
    """Writes a formula as one sentence: "first the gripper touches the red cube, then the gripper
    is above the green cylinder (height 5 cm, tolerance 1.5 cm, over 2.5 cm) for 1 s". Default
    numbers are left out."""
    if isinstance(formula, Atom):
        return _atom(formula, card)
    parts = [to_sentence(part, card) for part in formula.parts]
    match formula.operator:
        case "and" | "or":
            return _join_parts(formula, parts)
        case "then":
            return "first " + ", then ".join(parts)
        case "not":
            return f"it is not so that {parts[0]}"
        case "once":
            return f"at some time {parts[0]}"
        case "hold":
            return f"{parts[0]} for {format_quantity(formula.seconds, 's')}"
        case "within":
            return f"{parts[0]} within {format_quantity(formula.seconds, 's')}"
        case "while":
            return f"{parts[0]}, and until then {parts[1]}"
        case "until":
            return f"{parts[0]} until {parts[1]}"
        case "never":
            return f"never: {parts[0]}"
    return f"all the time: {parts[0]}"


def _join_parts(formula: Joined, parts: list[str]) -> str:
    """What is to be done, then what is to hold all along."""
    along = [
        text
        for p, text in zip(formula.parts, parts, strict=True)
        if formula_kind(p) == "constraint"
    ]
    rest = [
        f"({text})" if isinstance(p, Joined) and p.operator in ("and", "or", "then") else text
        for p, text in zip(formula.parts, parts, strict=True)
        if formula_kind(p) != "constraint"
    ]
    if len(rest) == 1:
        rest = [rest[0].removeprefix("(").removesuffix(")")] if rest[0][0] == "(" else rest
    return "; ".join([*([f" {formula.operator} ".join(rest)] if rest else []), *along])


def format_quantity(value: float, unit: str) -> str:
    """Returns a number with its unit as people write it: ``5 cm``, ``45 degrees``, ``80 %``."""
    match unit:
        case "m" if abs(value) < 1:
            return f"{value * 100:.4g} cm"
        case "m/s" if abs(value) < 1:
            return f"{value * 100:.4g} cm/s"
        case "rad":
            return f"{math.degrees(value):.4g} degrees"
        case "1":
            return f"{value:.4g}"
    return f"{value:.4g} {unit}"


def _atom(atom: Atom, card: TaskCard) -> str:
    row = PREDICATES[atom.predicate]
    names = dict(zip(("subject", "object", "third"), (_term(t) for t in atom.terms), strict=False))
    said = dict(atom.numbers)
    there = bool(said.pop(AFTER, 0))
    ways = [said.pop(n.name) for n in row.numbers if n.said != "tolerance" and n.name in said]
    back = bool(row.back and ways) and not any(ways) and not there
    words = (row.there if there else row.back if back else row.caption).format(**names)
    entities = [card.entity(t if isinstance(t, str) else t.among[0]) for t in atom.terms]
    usual = {n.name: n.meant(entities, False, False) for n in row.numbers}
    left = {n: value for n, value in atom.numbers if n in said or not back and n != AFTER}
    if row.less and ways and ways[0] < 0:
        words = words.replace(*row.less)
        left[row.numbers[0].name] = -ways[0]
    elif all(usual[name] == value for name, value in left.items()):
        return words
    given = ", ".join(
        f"{n.name} {format_quantity(left[n.name], n.unit)}" for n in row.numbers if n.name in left
    )
    return f"{words} ({given})"


def _term(term: Term) -> str:
    if not isinstance(term, EntityChoice):
        return f"the {term.replace('_', ' ')}"
    among = " and ".join(_term(name) for name in term.among)
    return _WORDS[term.rule].format(among, _term(term.names[0]))
