"""Predicates: what a goal can say of a task's things. The table of them is ``predicates.toml``.

The grammar reads sentences into predicates, captions write them back, and reward code computes
them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any, Literal

from reward_models.base import CardEntity

GRIPPER = "gripper"  # the kind of the entity that acts on objects
BODY = "body"  # the kind of a body that moves itself; every other kind is an object
MARKS = frozenset({"target", "disc", "plate"})  # flat on the table
FURNITURE = frozenset({"button", "drawer", "handle", "hole", "fixture"})


AFTER = "after"  # the number: how many parts of the sequence were done when it begins to compare


@dataclass(frozen=True)
class Number:
    """A number of a predicate or operator, in SI units.

    ``default`` is what is meant where none is said, perhaps by the size of the entities; None: it
    must be said. ``exact`` takes its place where another number of the same predicate was said,
    and ``avoid`` under ``never`` and ``not``. ``said`` is what a quantity in a sentence must be to
    be this number: just that, the ``least`` or the ``most``; empty: no sentence says it so.
    """

    name: str
    unit: str
    default: float | Callable[[Sequence[CardEntity]], float | None] | None
    exact: float | None = None
    avoid: float | None = None
    low: float = 0.0
    high: float = 2.0
    said: Literal["", "just", "least", "most", "tolerance"] = ""

    def meant(self, entities: Sequence[CardEntity], said: bool, avoided: bool) -> float | None:
        """Returns the value of the number where a sentence does not state it.

        Args:
            entities: The entities of the atom.
            said: Whether another number of the atom is stated.
            avoided: Whether the atom is under ``never`` or ``not``.
        """
        if avoided and self.avoid is not None:
            return self.avoid
        if said and self.exact is not None:
            return self.exact
        return self.default(entities) if callable(self.default) else self.default


@dataclass(frozen=True)
class Predicate:
    """A relation of entities, the first of which is the one that moves, or an action of one.

    ``margin`` has its conditions, all of which hold where it holds: expressions of the reward
    language over the card's signals, in m or what is worth as much, at least 0 where they hold.
    ``margins`` fills in the entities ``a``, ``b`` and ``c`` and the numbers. ``aim`` likewise is
    the vector (3) m from the first entity to about where it is to be. A ``level`` one says of a
    thing only where on the table it is. One that compares with the first step has the number
    ``after``.
    """

    name: str
    # What fits for each entity: of {"gripper", "thing", "object", "body"}, a kind, an affordance.
    roles: tuple[frozenset[str], ...]
    caption: str  # the canonical sentence, filled with subject, object and third
    back: str = field(default="", kw_only=True)  # the same where its numbers are all 0
    there: str = field(default="", kw_only=True)  # the same compared with where a part ended
    # A word of these, and what stands in its place where the first number is negative.
    less: tuple[str, str] | None = field(default=None, kw_only=True)
    numbers: tuple[Number, ...] = ()
    mirror: str = ""  # the predicate that holds with the first two swapped
    needs: tuple[str, ...] = ()  # numbers of which one must be said
    spoken: frozenset[str] = frozenset()  # first entities of which the grammar reads it
    wordings: tuple[str, ...] = ()  # statements that mean it, the canonical one first; {s}, {o}
    margin: tuple[str, ...] = ()
    aim: str = "{b} - {a}"
    level: bool = False
    by: str = "push"  # what brings it about where the first entity is a thing: a key of BY
    # In what a camera would have to look at; "asked": a frame shows it to who is taught that goal.
    seen: Literal["frame", "asked", "clip", "none"] = "frame"

    @property
    def arity(self) -> int:
        """How many entities it is about."""
        return len(self.roles)

    @property
    def compares(self) -> bool:
        """Whether it is about where something was before, and not only about where it is."""
        return any(number.name == AFTER for number in self.numbers)


# What brings a predicate about, and the time s that an episode gives it; bodies have their task's.
BY = {
    "go": 2.5,
    "push": 4.0,
    "slide": 4.0,
    "press": 4.0,
    "lift": 4.0,
    "put": 6.0,
    "insert": 8.0,
    "act": 0.0,
}


def role(entity: CardEntity) -> str:
    """Returns ``"gripper"``, ``"body"`` or ``"object"``: which predicates an entity may be the
    subject of."""
    return entity.kind if entity.kind in (GRIPPER, BODY) else "object"


def roles(entity: CardEntity) -> frozenset[str]:
    """Returns everything that a predicate may ask of an entity: its role, kind and affordances."""
    loose = role(entity) == "object" and entity.kind not in MARKS | FURNITURE
    return frozenset(
        {role(entity), entity.kind, *entity.affordances, *({"thing"} if loose else ())}
    )


def _support_half_width(entities: Sequence[CardEntity]) -> float | None:
    """How far aside a thing may rest: half the width of what is under it, 3/4 of a mark's radius;
    None where the card does not say its size."""
    under = entities[-1]
    if not under.half:
        return None
    return round(under.half[0] * (0.75 if under.kind in MARKS else 1.0), 6)


def _neighbour_distance(entities: Sequence[CardEntity]) -> float:
    """How far apart the centres of neighbours may be: more where they are too wide for that."""
    wide = sum(entity.half[0] if entity.half else 0.0 for entity in entities)
    return max(0.065, round(wide + 0.024, 6))


def _by_kind(thing: float, body: float) -> Callable[[Sequence[CardEntity]], float]:
    """A default of things and another one of bodies."""
    return lambda entities: body if entities[0].kind == BODY else thing


_DEFAULTS = {"support_half_width": _support_half_width, "neighbour_distance": _neighbour_distance}
_AFTER = Number(AFTER, "1", 0.0, high=200.0)


def _number(name: str, unit: str, default: Any = None, **more: Any) -> Number:
    """A number of the file, whose default may be a rule's name or {"thing": .., "body": ..}."""
    if isinstance(default, dict):
        default = _by_kind(**default)
    return Number(name, unit, _DEFAULTS.get(default, default), **more)


def _predicate(name: str, row: dict[str, Any], expressions: dict[str, str]) -> Predicate:
    """A row of the file, with its ``expressions`` filled in."""
    numbers = [_number(key, **settings) for key, settings in row.pop("numbers", {}).items()]
    if row.pop("compares", False):
        numbers.append(_AFTER)
    more = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    more["margin"] = tuple(Template(one).substitute(expressions) for one in row.get("margin", ()))
    more["roles"] = tuple(frozenset(one.split()) for one in row["roles"])
    more["spoken"] = frozenset(row.get("spoken", "").split())
    return Predicate(name, numbers=tuple(numbers), **more)


def _predicates() -> dict[str, Predicate]:
    """The table of ``predicates.toml``; an expression may hold those above it."""
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    expressions: dict[str, str] = {}
    for name, text in rows.pop("expressions").items():
        expressions[name] = Template(text).substitute(expressions)
    return {name: _predicate(name, row, expressions) for name, row in rows.items()}


PREDICATES: dict[str, Predicate] = _predicates()
# Those that are about the table itself.
SIDES = frozenset("on_left on_right at_front at_back in_middle".split())
