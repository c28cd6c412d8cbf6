"""Formulas drawn at random: what nobody had in mind when the rest was written."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from reward_models.base import TaskCard
from reward_models.goals.formula import Atom, Formula, FormulaError, check, join
from reward_models.goals.predicates import GRIPPER, PREDICATES, Number, Predicate, role, roles

SHAPES = (
    # Forms of a goal by the atoms they take: a of what is to be brought about, g of the gripper.
    "a",
    "a",
    "a",
    "a",
    "hold(a)",
    "then(a, a)",
    "then(a, g)",
    "then(g, a)",
    "then(g, a, g)",
    "and(a, never(g))",
    "and(a, always(slower))",
    "and(a, g)",
    "or(a, a)",
    "within(a)",
    "while(a, not(g))",
    "until(not(g), a)",
    "and(once(g), once(a))",
)
SAID = 0.5  # of the numbers that have a default, the share that is drawn all the same
STRETCH = (0.6, 1.5)  # times the default
MOST = 0.95  # of the highest that a number may be
REACH = 0.12  # m, of what has none
TURNS = np.pi / 12  # rad, in steps of which turns are drawn
TRIES = 1_000


def sample_formula(card: TaskCard, rng: np.random.Generator, by: Sequence[str]) -> Formula:
    """Samples a goal.

    Args:
        card: The task's card.
        rng: Chooses the goal and its form.
        by: What brings the goal about, keys of ``BY``.

    Raises:
        ValueError: The card has no such goal.
    """
    shape = str(rng.choice(SHAPES))
    for _ in range(TRIES):
        try:
            made = _shaped(shape, card, rng, by)
            check(made, card)
        except FormulaError:
            continue
        return made
    raise ValueError(f"found no {shape} formula for task {card.task} in {TRIES} tries")


def _shaped(shape: str, card: TaskCard, rng: np.random.Generator, by: Sequence[str]) -> Formula:
    name, _, inside = shape.partition("(")
    if name == "a":
        return _atom(card, rng, by)
    if name == "g":
        return _atom(card, rng, ("go",))
    if name == "slower":
        return Atom.of("slower", _gripper(card), speed=_rounded(rng.uniform(0.1, 0.4)))
    parts = [_shaped(part, card, rng, by) for part in _split(inside[:-1])]
    if name == "hold":
        return join(name, *parts, seconds=_rounded(rng.uniform(0.3, 1.5)))
    if name == "within":
        return join(name, *parts, seconds=_rounded(rng.uniform(1.5, 4.0)))
    if name in ("and", "or", "then") and len(set(parts)) < len(parts):
        raise FormulaError("the same part occurs twice")
    return join(name, *parts)


def _split(text: str) -> list[str]:
    """The parts of ``a, never(g)``, those in brackets whole."""
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append(text[last:at].strip())
            last = at + 1
    return [*parts, text[last:].strip()]


def _atom(card: TaskCard, rng: np.random.Generator, by: Sequence[str]) -> Atom:
    """A predicate that a card has entities for, with some of its numbers."""
    known = [
        (row, named) for row in PREDICATES.values() if (named := _entity_choices(row, card, by))
    ]
    if not known:
        raise ValueError(f"task {card.task} has no goals that can be achieved by {', '.join(by)}")
    row, named = known[int(rng.integers(len(known)))]
    names = named[int(rng.integers(len(named)))]
    return Atom(row.name, names, tuple(_numbers(row, rng).items()))


def _entity_choices(row: Predicate, card: TaskCard, by: Sequence[str]) -> list[tuple[str, ...]]:
    """The entities that a predicate may be about and that are brought there by one of ``by``."""
    if not row.margin or not _goal(row):
        return []
    fitting = [[e for e in card.entities if fits & roles(e)] for fits in row.roles]
    fitting[0] = [e for e in fitting[0] if ("go" if role(e) == GRIPPER else row.by) in by]
    tuples = (tuple(e.name for e in those) for those in itertools.product(*fitting))
    return [names for names in tuples if len(set(names)) == len(names)]


def _goal(row: Predicate) -> bool:
    """Whether people ask for it by itself: how fast is a manner of something else."""
    return all(number.unit != "m/s" for number in row.numbers)


def _numbers(row: Predicate, rng: np.random.Generator) -> dict[str, float]:
    said = {}
    must = {str(rng.choice(row.needs))} if row.needs else set()
    for number in row.numbers:
        if number.name in must or number.default is None:
            said[number.name] = _needed(number, rng)
        elif isinstance(number.default, float) and 0 < number.default < number.high:
            if rng.random() >= SAID:
                continue
            value = _rounded(number.default * rng.uniform(*STRETCH))
            said[number.name] = min(max(value, number.low), MOST * number.high)
    return said


def _needed(number: Number, rng: np.random.Generator) -> float:
    if number.unit == "rad":
        return float(rng.choice([-1, 1]) * rng.integers(1, 6) * TURNS)
    sign = rng.choice([-1, 1]) if number.low < 0 else 1
    return float(sign * _rounded(rng.uniform(0.3, 1.0) * REACH))


def _gripper(card: TaskCard) -> str:
    return next(e.name for e in card.entities if role(e) == GRIPPER)


def _rounded(value: float) -> float:
    """To two digits, as people say numbers."""
    return float(f"{value:.2g}")
