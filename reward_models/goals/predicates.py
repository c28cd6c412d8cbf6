"""The relations a goal can be made of, and formulas over them.

One table for everybody: the grammar reads sentences into these, captions write them back, and
reward code computes them. Left and right are as the front camera's picture shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reward_models.base import Entity, TaskCard

GRIPPER = "gripper"  # the kind of the entity that acts on objects
BODY = "body"  # the kind of a body that moves itself; every other kind is an object


@dataclass(frozen=True)
class Predicate:
    """A relation of two entities; the first is the one that moves, the second is always an object.
    With ``arity`` 1 it is an action of one entity.

    ``caption`` is the canonical sentence, filled with ``subject`` and ``object``. ``mirror`` is the
    predicate that holds with the two swapped, where there is one.
    """

    name: str
    subjects: frozenset[str]  # of {"gripper", "object", "body"}, or what the thing must afford
    caption: str
    mirror: str = ""
    arity: int = 2
    objects: frozenset[str] = frozenset({"object"})  # or its kind, or what it must afford


_GRIPPER = frozenset({"gripper"})
_OBJECT = frozenset({"object"})
_BODY = frozenset({"body"})
_TOPS = frozenset({"target", "disc", "stack"})  # a mark on the table, or what can be stacked on
_HOLLOWS = frozenset({"drawer", "hole"})

PREDICATES: dict[str, Predicate] = {
    p.name: p
    for p in (
        Predicate("touch", _GRIPPER, "{subject} touches {object}", mirror="touch"),
        Predicate("above", _GRIPPER, "{subject} is above {object}"),
        Predicate("left_of", _GRIPPER | _OBJECT, "{subject} is left of {object}", "right_of"),
        Predicate("right_of", _GRIPPER | _OBJECT, "{subject} is right of {object}", "left_of"),
        Predicate("far", _GRIPPER | _OBJECT, "{subject} is far from {object}", mirror="far"),
        Predicate("next_to", _OBJECT, "{subject} is next to {object}", mirror="next_to"),
        Predicate("lifted", frozenset({"lift"}), "{subject} is lifted", arity=1),
        Predicate("on", frozenset({"place", "push"}), "{subject} is on {object}", objects=_TOPS),
        Predicate(
            "inside", frozenset({"place", "insert"}), "{subject} is in {object}", objects=_HOLLOWS
        ),
        Predicate("open", frozenset({"open"}), "{subject} is open", arity=1),
        Predicate("closed", frozenset({"close"}), "{subject} is closed", arity=1),
        Predicate("pressed", frozenset({"press"}), "{subject} is pressed", arity=1),
        Predicate("forward", _BODY, "{subject} moves forward", arity=1),
        Predicate("front_flip", _BODY, "{subject} does a front flip", arity=1),
        Predicate("back_flip", _BODY, "{subject} does a back flip", arity=1),
        Predicate("wave", _BODY, "{subject} waves a leg", arity=1),
        Predicate("lie_down", _BODY, "{subject} lies down", arity=1),
        Predicate("stand_up", _BODY, "{subject} stands up", arity=1),
        Predicate("kneel", _BODY, "{subject} kneels", arity=1),
        Predicate("at", _BODY, "{subject} is at {object}"),
        Predicate("balanced", frozenset({"balance"}), "{subject} stays upright", arity=1),
        Predicate("raise_arms", _BODY, "{subject} raises both arms", arity=1),
    )
}


@dataclass(frozen=True)
class Atom:
    """``predicate(subject, object)``, the arguments being names of entities; an action of one
    entity has no object."""

    predicate: str
    subject: str
    object: str = ""

    def __post_init__(self) -> None:
        if self.predicate not in PREDICATES:
            known = ", ".join(PREDICATES)
            raise ValueError(f"no predicate {self.predicate!r}; known: {known}")
        arity = PREDICATES[self.predicate].arity
        if arity != 1 + bool(self.object):
            raise ValueError(f"{self.predicate}: expected {arity} names, got {self}")
        for name in (self.subject, self.object)[:arity]:
            if not _NAME.fullmatch(name):
                raise ValueError(f"an entity's name is letters, digits and _; got {name!r}")

    def __str__(self) -> str:
        names = f"{self.subject}, {self.object}" if self.object else self.subject
        return f"{self.predicate}({names})"


@dataclass(frozen=True)
class Then:
    """The parts hold one after the other, in this order."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        _check_parts(self)

    def __str__(self) -> str:
        return f"then({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class And:
    """The parts hold at the same time; kept in the order they were said."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        _check_parts(self)

    def __str__(self) -> str:
        return f"and({', '.join(map(str, self.parts))})"


Formula = Atom | Then | And

_NAME = re.compile(r"[A-Za-z0-9_]+")
_TOKEN = re.compile(r"\s*([A-Za-z0-9_]+|[(),])")


def _check_parts(formula: Then | And) -> None:
    if len(formula.parts) < 2:
        kind = type(formula).__name__
        raise ValueError(f"{kind} joins two parts or more, got {len(formula.parts)}; use the part")


def role(entity: Entity) -> str:
    """``"gripper"``, ``"body"`` or ``"object"``: of which predicates it may be the subject."""
    return entity.kind if entity.kind in (GRIPPER, BODY) else "object"


def roles(entity: Entity) -> frozenset[str]:
    """Everything that a predicate may ask of an entity: its role, its kind, what it affords."""
    return frozenset({role(entity), entity.kind, *entity.affordances})


def check(formula: Formula, card: TaskCard) -> None:
    """ValueError unless every atom names entities of the card that its predicate allows."""
    for atom in atoms(formula):
        subject = card.entity(atom.subject)
        allowed = PREDICATES[atom.predicate].subjects
        if not allowed & roles(subject):
            who = " or ".join(sorted(allowed))
            raise ValueError(f"{atom.predicate} takes a {who} as subject, got {subject.name!r}")
        if not atom.object:
            continue
        target = card.entity(atom.object)
        if role(target) != "object" or target == subject:
            raise ValueError(f"{atom.predicate} is about another object, got {target.name!r}")
        fits = PREDICATES[atom.predicate].objects
        if not fits & roles(target):
            raise ValueError(
                f"{atom.predicate} takes a {' or '.join(sorted(fits))} as its second, "
                f"got {target.name!r}"
            )


def atoms(formula: Formula) -> Iterator[Atom]:
    """Every atom of the formula, from left to right."""
    if isinstance(formula, Atom):
        yield formula
    else:
        for part in formula.parts:
            yield from atoms(part)


def parse_formula(text: str) -> Formula:
    """The formula that ``str`` wrote, such as ``then(touch(gripper, a), far(gripper, a))``."""
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"formula {text!r}: expected a name or one of (),; got {text[at:]!r}")
        tokens.append(match[1])
        at = match.end()
    tokens.reverse()

    def take(expected: str | None = None) -> str:
        token = tokens.pop() if tokens else "the end"
        if expected is None and not _NAME.fullmatch(token):
            raise ValueError(f"formula {text!r}: expected a name, got {token!r}")
        if expected is not None and token not in expected.split():
            raise ValueError(f"formula {text!r}: expected one of {expected}, got {token!r}")
        return token

    def formula() -> Formula:
        head = take()
        take("(")
        if head not in ("then", "and"):
            subject = take()
            if take(", )") == ")":
                return Atom(head, subject)
            target = take()
            take(")")
            return Atom(head, subject, target)
        parts = [formula()]
        while take(", )") == ",":
            parts.append(formula())
        return Then(tuple(parts)) if head == "then" else And(tuple(parts))

    result = formula()
    if tokens:
        raise ValueError(f"formula {text!r}: expected the end, got {tokens[-1]!r}")
    return result
