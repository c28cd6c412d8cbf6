"""What a formula takes: what brings its parts about, and how long an episode is."""

from __future__ import annotations

from reward_models.base import CardEntity, TaskCard
from reward_models.goals.formula import Atom, EntityChoice, Formula
from reward_models.goals.predicates import BODY, BY, GRIPPER, MARKS, PREDICATES, role


def episode_seconds(formula: Formula, card: TaskCard) -> float:
    """Returns the length s of an episode for a goal, as docs/reference/goal-language.md has it."""
    if isinstance(formula, Atom):
        return _time(formula, card)
    parts = [episode_seconds(part, card) for part in formula.parts]
    match formula.operator:
        case "then":
            return sum(parts)
        case "and":
            longest: dict[str, float] = {}
            for part, time in zip(formula.parts, parts, strict=True):
                who = str(part.terms[0]) if isinstance(part, Atom) else str(part)
                longest[who] = max(longest.get(who, 0.0), time)
            return sum(longest.values())
        case "or" | "while" | "until":
            return max(parts)
        case "hold":
            return parts[0] + formula.seconds
        case "never" | "always":
            return 0.0
    return parts[0]


def _time(atom: Atom, card: TaskCard) -> float:
    by = _usually(atom, card)
    return card.episode_s if by == "act" else BY[by]


def achieved_by(atom: Atom, card: TaskCard) -> str:
    """Returns what brings an atom about, a key of ``BY``. A thing is pushed onto a mark, which
    needs no grasp."""
    by = _usually(atom, card)
    if by != "put":
        return by
    what, where = (_first(term, card) for term in atom.terms[:2])
    return "push" if where.kind in MARKS and "push" in what.affordances else by


def _usually(atom: Atom, card: TaskCard) -> str:
    mover = role(_first(atom.terms[0], card))
    return {BODY: "act", GRIPPER: "go"}.get(mover) or PREDICATES[atom.predicate].by


def _first(term: str | EntityChoice, card: TaskCard) -> CardEntity:
    """What a term is about, or the first of what it may be about."""
    return card.entity(term.among[0] if isinstance(term, EntityChoice) else term)
