"""The table of predicates: what a goal can say of a task's things, one row each.

``docs/goals.md`` is the meaning of every row. The grammar reads sentences into these, captions
write them back, and reward code computes them. Left and right are as the front camera's picture
shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reward_models.base import Entity

GRIPPER = "gripper"  # the kind of the entity that acts on objects
BODY = "body"  # the kind of a body that moves itself; every other kind is an object
MARKS = frozenset({"target", "disc"})  # flat on the table
FURNITURE = frozenset({"button", "drawer", "handle", "hole"})


@dataclass(frozen=True)
class Number:
    """A number of a predicate or operator, in SI units.

    ``default`` is what is meant where none is said, perhaps by the size of the entities; None: it
    must be said. ``exact`` takes its place where another number of the same predicate was said,
    and ``avoid`` under ``never`` and ``not``.
    """

    name: str
    unit: str
    default: float | Callable[[Sequence[Entity]], float | None] | None
    exact: float | None = None
    avoid: float | None = None
    low: float = 0.0
    high: float = 2.0

    def meant(self, entities: Sequence[Entity], said: bool, avoided: bool) -> float | None:
        """The number where it was not said; ``said``: another was."""
        if avoided and self.avoid is not None:
            return self.avoid
        if said and self.exact is not None:
            return self.exact
        return self.default(entities) if callable(self.default) else self.default


@dataclass(frozen=True)
class Predicate:
    """A relation of entities, the first of which is the one that moves, or an action of one.

    ``roles`` says for each entity what fits: of {"gripper", "thing", "object", "body"}, its kind,
    or what it affords. ``caption`` is the canonical sentence, filled with ``subject``, ``object``
    and ``third``. ``mirror`` is the predicate that holds with the first two swapped, where there is
    one. ``needs``: numbers of which one must be said. ``spoken``: the first entities of which the
    grammar reads it; where there are none, no sentence means it yet and it is written as a formula.
    """

    name: str
    roles: tuple[frozenset[str], ...]
    caption: str
    numbers: tuple[Number, ...] = ()
    mirror: str = ""
    needs: tuple[str, ...] = ()
    spoken: frozenset[str] = frozenset()

    @property
    def arity(self) -> int:
        return len(self.roles)


def role(entity: Entity) -> str:
    """``"gripper"``, ``"body"`` or ``"object"``: of which predicates it may be the subject."""
    return entity.kind if entity.kind in (GRIPPER, BODY) else "object"


def roles(entity: Entity) -> frozenset[str]:
    """Everything that a predicate may ask of an entity: its role, its kind, what it affords."""
    loose = role(entity) == "object" and entity.kind not in MARKS | FURNITURE
    return frozenset(
        {role(entity), entity.kind, *entity.affordances, *({"thing"} if loose else ())}
    )


def _resting(entities: Sequence[Entity]) -> float | None:
    """How far aside a thing may rest: half the width of what is under it, 3/4 of a mark's radius;
    None where the card does not say its size."""
    under = entities[-1]
    if not under.half:
        return None
    return round(under.half[0] * (0.75 if under.kind in MARKS else 1.0), 6)


def _by_kind(thing: float, body: float) -> Callable[[Sequence[Entity]], float]:
    """A default of things and another one of bodies."""
    return lambda entities: body if entities[0].kind == BODY else thing


def _fits(*names: str) -> frozenset[str]:
    return frozenset(names)


_MOVER, _THING, _OBJECT, _BODY = (
    _fits("gripper", "thing"), _fits("thing"), _fits("object"), _fits("body"),
)  # fmt: skip
_HAND, _ANY = _fits("gripper"), _fits("gripper", "object")
_ACTOR = _fits("gripper", "thing", "body")

_HEIGHTS = (
    Number("height", "m", 0.055),
    Number("tolerance", "m", 0.035, exact=0.015),
    Number("over", "m", 0.025),
)
_BESIDE = (
    Number("gap", "m", 0.05, low=-2.0),
    Number("most", "m", 2.0),
    Number("abreast", "m", 0.05),
)
_WAY = (
    Number("left", "m", 0.0, low=-2.0),
    Number("front", "m", 0.0, low=-2.0),
    Number("tolerance", "m", 0.02),
)
_PLACED = (
    Number("aside", "m", _resting),
    Number("tolerance", "m", 0.006),
    Number("clear", "m", 0.005),
)


def _speed(thing: float, body: float | None = None) -> tuple[Number, ...]:
    default = thing if body is None else _by_kind(thing, body)
    return (Number("speed", "m/s", default, high=100.0),)


def _share(default: float) -> tuple[Number, ...]:
    return (Number("share", "1", default, high=1.0),)


def _cosine(default: float) -> tuple[Number, ...]:
    return (Number("cosine", "1", default, low=-1.0, high=1.0),)


PREDICATES: dict[str, Predicate] = {
    p.name: p
    for p in (
        Predicate(
            "touch",
            (_MOVER, _OBJECT),
            "{subject} touches {object}",
            (Number("within", "m", 0.02, avoid=0.004),),
            mirror="touch",
            spoken=_HAND,
        ),
        Predicate(
            "above", (_MOVER, _OBJECT), "{subject} is above {object}", _HEIGHTS, spoken=_HAND
        ),
        Predicate("below", (_MOVER, _OBJECT), "{subject} is below {object}", _HEIGHTS),
        Predicate(
            "left_of",
            (_ANY, _OBJECT),
            "{subject} is left of {object}",
            _BESIDE,
            "right_of",
            spoken=_ANY,
        ),
        Predicate(
            "right_of",
            (_ANY, _OBJECT),
            "{subject} is right of {object}",
            _BESIDE,
            "left_of",
            spoken=_ANY,
        ),
        Predicate(
            "in_front_of", (_ANY, _OBJECT), "{subject} is in front of {object}", _BESIDE, "behind"
        ),
        Predicate(
            "behind", (_ANY, _OBJECT), "{subject} is behind {object}", _BESIDE, "in_front_of"
        ),
        Predicate(
            "near",
            (_ANY, _OBJECT),
            "{subject} is near {object}",
            (Number("within", "m", 0.08),),
            mirror="near",
        ),
        Predicate(
            "far",
            (_ANY, _OBJECT),
            "{subject} is far from {object}",
            (Number("least", "m", 0.18),),
            mirror="far",
            spoken=_ANY,
        ),
        Predicate(
            "next_to",
            (_OBJECT, _OBJECT),
            "{subject} is next to {object}",
            (Number("within", "m", 0.065), Number("standing", "m", 0.01)),
            mirror="next_to",
            spoken=_OBJECT,
        ),
        Predicate(
            "between",
            (_MOVER, _OBJECT, _OBJECT),
            "{subject} is between {object} and {third}",
            (Number("off", "m", 0.03), Number("ends", "1", 0.2, high=0.5)),
        ),
        Predicate(
            "in_line",
            (_THING, _THING, _THING),
            "{subject}, {object} and {third} are in a line",
            (Number("off", "m", 0.02),),
        ),
        Predicate(
            "on",
            (_fits("place", "push"), _fits("target", "disc", "stack")),
            "{subject} is on {object}",
            _PLACED,
            spoken=_fits("place", "push"),
        ),
        Predicate(
            "inside",
            (_fits("place"), _fits("drawer")),
            "{subject} is in {object}",
            (Number("below", "m", 0.035), Number("clear", "m", 0.005)),
            spoken=_fits("place"),
        ),
        Predicate(
            "inserted",
            (_fits("insert"), _fits("hole")),
            "{subject} is in {object}",
            (
                Number("aside", "m", 0.005),
                Number("deep", "m", 0.015),
                Number("upright", "1", 0.97, high=1.0),
            ),
            spoken=_fits("insert"),
        ),
        Predicate(
            "lifted",
            (_fits("lift"),),
            "{subject} is lifted",
            (Number("height", "m", 0.05), Number("hand", "m", 0.06)),
            spoken=_fits("lift"),
        ),
        Predicate("moved", (_MOVER,), "{subject} has moved", _WAY, needs=("left", "front")),
        Predicate(
            "displaced",
            (_MOVER,),
            "{subject} is away from where it was",
            (Number("least", "m", 0.05), Number("most", "m", 2.0)),
        ),
        Predicate(
            "at",
            (_ACTOR, _OBJECT),
            "{subject} is at {object}",
            (Number("within", "m", 0.02),),
            spoken=_BODY,
        ),
        Predicate(
            "at_point",
            (_MOVER,),
            "{subject} is at a point",
            (
                Number("x", "m", None, low=-2.0),
                Number("y", "m", None, low=-2.0),
                Number("within", "m", 0.03),
            ),
        ),
        Predicate(
            "upright",
            (_fits("cylinder", "peg", "body"),),
            "{subject} is upright",
            (Number("cosine", "1", _by_kind(0.9, 0.85), low=-1.0, high=1.0),),
        ),
        Predicate(
            "toppled", (_fits("cylinder", "peg"),), "{subject} lies on its side", _cosine(0.5)
        ),
        Predicate(
            "turned",
            (_fits("cube"),),
            "{subject} has turned",
            (Number("angle", "rad", None, low=-6.3, high=6.3), Number("tolerance", "rad", 0.17)),
        ),
        Predicate("open", (_fits("open"),), "{subject} is open", _share(0.8), spoken=_fits("open")),
        Predicate(
            "closed", (_fits("close"),), "{subject} is closed", _share(0.1), spoken=_fits("close")
        ),
        Predicate(
            "pressed",
            (_fits("press"),),
            "{subject} is pressed",
            _share(0.6667),
            spoken=_fits("press"),
        ),
        Predicate(
            "grasped", (_fits("lift"),), "{subject} is grasped", (Number("within", "m", 0.004),)
        ),
        Predicate("released", (_THING,), "{subject} is let go of", (Number("clear", "m", 0.005),)),
        Predicate("still", (_ACTOR,), "{subject} is still", _speed(0.03, 0.3)),
        Predicate("slower", (_ACTOR,), "{subject} is slow", _speed(0.1, 1.0)),
        Predicate("faster", (_ACTOR,), "{subject} is fast", _speed(0.1, 1.0)),
        Predicate(
            "forward",
            (_BODY,),
            "{subject} moves forward",
            (Number("pace", "m/s", 1.0, high=100.0),),
            spoken=_BODY,
        ),
        Predicate(
            "backward",
            (_BODY,),
            "{subject} moves backward",
            (Number("pace", "m/s", 0.5, high=100.0),),
        ),
        Predicate("front_flip", (_BODY,), "{subject} does a front flip", spoken=_BODY),
        Predicate("back_flip", (_BODY,), "{subject} does a back flip", spoken=_BODY),
        Predicate(
            "wave",
            (_BODY,),
            "{subject} waves a leg",
            (Number("swings", "1", 3, low=1, high=100),),
            spoken=_BODY,
        ),
        Predicate(
            "lie_down",
            (_BODY,),
            "{subject} lies down",
            (*_cosine(-0.9), *_speed(0.3)),
            spoken=_BODY,
        ),
        Predicate(
            "stand_up",
            (_BODY,),
            "{subject} stands up",
            (Number("height", "m", 1.2), *_speed(0.5)),
            spoken=_BODY,
        ),
        Predicate("kneel", (_BODY,), "{subject} kneels", _speed(0.5), spoken=_BODY),
        Predicate("raise_arms", (_BODY,), "{subject} raises both arms", _speed(0.5), spoken=_BODY),
        Predicate(
            "balanced",
            (_fits("balance"),),
            "{subject} stays upright",
            (Number("tilt", "rad", 0.2),),
            spoken=_fits("balance"),
        ),
        Predicate(
            "at_height",
            (_BODY,),
            "{subject} is at a height",
            (Number("least", "m", 0.0, high=100.0), Number("most", "m", 100.0, high=100.0)),
            needs=("least", "most"),
        ),
    )
}
