"""The table of predicates: what a goal can say of a task's things, one row each.

``docs/reference/goal-language.md`` is the meaning of every row. The grammar reads sentences into
these, captions write them back, and reward code computes them. Left and right are as the front
camera's picture shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reward_models.base import CardEntity

GRIPPER = "gripper"  # the kind of the entity that acts on objects
BODY = "body"  # the kind of a body that moves itself; every other kind is an object
MARKS = frozenset({"target", "disc", "plate"})  # flat on the table
FURNITURE = frozenset({"button", "drawer", "handle", "hole", "fixture"})


_AT_OTHER = "{b} - {a}"
THIRD = round(1 / 3, 4)
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
        """The number where it was not said; ``said``: another was."""
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
    aim: str = _AT_OTHER
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
    """``"gripper"``, ``"body"`` or ``"object"``: of which predicates it may be the subject."""
    return entity.kind if entity.kind in (GRIPPER, BODY) else "object"


def roles(entity: CardEntity) -> frozenset[str]:
    """Everything that a predicate may ask of an entity: its role, its kind, what it affords."""
    loose = role(entity) == "object" and entity.kind not in MARKS | FURNITURE
    return frozenset(
        {role(entity), entity.kind, *entity.affordances, *({"thing"} if loose else ())}
    )


def _resting(entities: Sequence[CardEntity]) -> float | None:
    """How far aside a thing may rest: half the width of what is under it, 3/4 of a mark's radius;
    None where the card does not say its size."""
    under = entities[-1]
    if not under.half:
        return None
    return round(under.half[0] * (0.75 if under.kind in MARKS else 1.0), 6)


def _beside_it(entities: Sequence[CardEntity]) -> float:
    """How far apart the centres of neighbours may be: more where they are too wide for that."""
    wide = sum(entity.half[0] if entity.half else 0.0 for entity in entities)
    return max(0.065, round(wide + 0.024, 6))


def _by_kind(thing: float, body: float) -> Callable[[Sequence[CardEntity]], float]:
    """A default of things and another one of bodies."""
    return lambda entities: body if entities[0].kind == BODY else thing


def _fits(*names: str) -> frozenset[str]:
    return frozenset(names)


_MOVER, _THING, _OBJECT, _BODY = (
    _fits("gripper", "thing"),
    _fits("thing"),
    _fits("object"),
    _fits("body"),
)
_HAND, _ANY = _fits("gripper"), _fits("gripper", "object")
_ACTOR = _fits("gripper", "thing", "body")


def _speed(
    thing: float, body: float | None = None, said: Literal["", "least", "most"] = "most"
) -> tuple[Number, ...]:
    default = thing if body is None else _by_kind(thing, body)
    return (Number("speed", "m/s", default, high=100.0, said=said),)


def _act(name: str, words: str, *numbers: Number, said: bool = True) -> Predicate:
    """What a body does by itself; writers/locomotion_templates.py knows how, and no margin says how
    far it is."""
    spoken = _BODY if said else frozenset()
    caption = f"{{subject}} {words}"
    return Predicate(name, (_BODY,), caption, numbers, spoken=spoken, by="act", seen="none")


_AFTER = Number(AFTER, "1", 0.0, high=200.0)
_HEIGHTS = (
    Number("height", "m", 0.055, said="just"),
    Number("tolerance", "m", 0.035, exact=0.015, said="tolerance"),
    Number("over", "m", 0.025),
)
_LEFT = (
    "{s} is left of {o}",
    "{s} is to the left of {o}",
    "{s} is on the left side of {o}",
    "{s} is to the left side of {o}",
    "{s} is on the left of {o}",
    "{s} stays on the left of {o}",
    "{s} is at the left-hand side of {o}",
    "{s} is positioned left of {o}",
)
_INSIDE = (
    "{s} is in {o}",
    "{s} is inside {o}",
    "{s} lies in {o}",
    "{s} rests in {o}",
    "{s} sits inside {o}",
    "{s} is placed inside {o}",
)
_OFF = "norm({a}[:2] - {b}[:2])"  # seen from above


def _beside(name: str, along: str, across: str, aim: str, mirror: str, **more: Any) -> Predicate:
    return Predicate(
        name,
        (_ANY, _OBJECT),
        f"{{subject}} is {name.replace('_', ' ')} {{object}}",
        (
            Number("gap", "m", 0.05, low=-2.0, said="least"),
            Number("most", "m", 2.0, said="most"),
            Number("abreast", "m", 0.05),
        ),
        mirror=mirror,
        margin=(f"{along} - {{gap}}", f"{{most}} - ({along})", f"{{abreast}} - abs({across})"),
        aim=aim,
        level=True,
        **more,
    )


def _on_side(name: str, words: str, far_in: str, aim: str) -> Predicate:
    """A part of the table's area: the outermost ``share`` of it to one side."""
    share = Number("share", "1", THIRD, high=1.0, said="least")
    return Predicate(
        name,
        (_MOVER,),
        f"{{subject}} is {words} of the table",
        (share,),
        margin=(far_in,),
        aim=aim,
        level=True,
        seen="asked",
    )


_ACROSS_X, _ACROSS_Y = "{a}[0] - {b}[0]", "{a}[1] - {b}[1]"
_UNIT = "direction({c}[:2] - {b}[:2])"
_LINE = "{c}[:2] - {b}[:2]"
_ALONG = f"dot({{a}}[:2] - {{b}}[:2], {_UNIT})"
_OFF_LINE = f"(({{a}}[0] - {{b}}[0]) * ({_UNIT})[1] - ({{a}}[1] - {{b}}[1]) * ({_UNIT})[0])"
_TRIANGLE = "(({b}[0] - {a}[0]) * ({c}[1] - {a}[1]) - ({b}[1] - {a}[1]) * ({c}[0] - {a}[0]))"
_LONGEST = (
    "maximum(maximum(norm({a}[:2] - {b}[:2]), norm({b}[:2] - {c}[:2])), norm({a}[:2] - {c}[:2]))"
)
_LEAN = "sqrt(maximum(1.0 - square({a.up}), 0.0))"
_SPEED = "norm({a} - {a.before}) / {dt}"

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
            wordings=(
                "{s} touches {o}",
                "{s} is touching {o}",
                "{s} is in contact with {o}",
                "{s} makes contact with {o}",
                "{s} reaches {o}",
                "{o} is touched by {s}",
                "{s} comes into contact with {o}",
                "{o} is in contact with {s}",
            ),
            margin=("{within} - {contact}",),
        ),
        Predicate(
            "above",
            (_MOVER, _OBJECT),
            "{subject} is above {object}",
            _HEIGHTS,
            spoken=_HAND,
            wordings=(
                "{s} is above {o}",
                "{s} hovers over {o}",
                "{s} is over {o}",
                "{s} is directly above {o}",
                "{s} hovers above {o}",
                "{s} stays over {o}",
                "{s} is positioned above {o}",
            ),
            margin=("{tolerance} - abs({a.foot} - {b.top} - {height})", f"{{over}} - {_OFF}"),
            aim="vec({b}[0] - {a}[0], {b}[1] - {a}[1], {b.top} + {height} - {a.foot})",
            by="lift",
        ),
        Predicate(
            "below",
            (_MOVER, _OBJECT),
            "{subject} is below {object}",
            _HEIGHTS,
            margin=("{tolerance} - abs({b.foot} - {a.top} - {height})", f"{{over}} - {_OFF}"),
            aim="vec({b}[0] - {a}[0], {b}[1] - {a}[1], {b.foot} - {height} - {a.top})",
            by="lift",
        ),
        _beside(
            "left_of",
            "{b}[1] - {a}[1]",
            _ACROSS_X,
            "vec({b}[0] - {a}[0], {b}[1] - {gap} - {a}[1], 0.0)",
            "right_of",
            spoken=_ANY,
            wordings=_LEFT,
        ),
        _beside(
            "right_of",
            "{a}[1] - {b}[1]",
            _ACROSS_X,
            "vec({b}[0] - {a}[0], {b}[1] + {gap} - {a}[1], 0.0)",
            "left_of",
            spoken=_ANY,
            wordings=tuple(w.replace("left", "right") for w in _LEFT),
        ),
        _beside(
            "in_front_of",
            "{a}[0] - {b}[0]",
            _ACROSS_Y,
            "vec({b}[0] + {gap} - {a}[0], {b}[1] - {a}[1], 0.0)",
            "behind",
        ),
        _beside(
            "behind",
            "{b}[0] - {a}[0]",
            _ACROSS_Y,
            "vec({b}[0] - {gap} - {a}[0], {b}[1] - {a}[1], 0.0)",
            "in_front_of",
        ),
        Predicate(
            "near",
            (_ANY, _OBJECT),
            "{subject} is near {object}",
            (Number("within", "m", 0.08, said="most"),),
            mirror="near",
            margin=("{within} - norm({a} - {b})",),
            level=True,
        ),
        Predicate(
            "far",
            (_ANY, _OBJECT),
            "{subject} is far from {object}",
            (Number("least", "m", 0.18, said="least"),),
            mirror="far",
            spoken=_ANY,
            wordings=(
                "{s} is far from {o}",
                "{s} is far away from {o}",
                "{s} is away from {o}",
                "{s} stays away from {o}",
                "{s} keeps clear of {o}",
                "{s} is at a distance from {o}",
                "{s} is a long way from {o}",
            ),
            margin=("norm({a} - {b}) - {least}",),
            aim="{least} * direction({a} - {b}) - ({a} - {b})",
            level=True,
        ),
        Predicate(
            "nearer",
            (_MOVER, _OBJECT),
            "{subject} is nearer to {object} than at the start",
            (Number("by", "m", 0.05, avoid=0.01, said="least"), _AFTER),
            there="{subject} is nearer to {object} than it was there",
            seen="clip",
            margin=("norm({a.start} - {b.start}) - norm({a} - {b}) - {by}",),
            level=True,
        ),
        Predicate(
            "next_to",
            (_OBJECT, _OBJECT),
            "{subject} is next to {object}",
            (Number("within", "m", _beside_it), Number("standing", "m", 0.01)),
            mirror="next_to",
            spoken=_OBJECT,
            wordings=(
                "{s} is next to {o}",
                "{s} is beside {o}",
                "{s} is right next to {o}",
                "{s} is close to {o}",
                "{s} touches {o}",
                "{s} is adjacent to {o}",
                "{s} and {o} are side by side",
                "{s} has been pushed to {o}",
            ),
            margin=(
                f"{{within}} - {_OFF}",
                "{standing} - abs({a}[2] - {a.rest})",
                "{standing} - abs({b}[2] - {b.rest})",
            ),
            level=True,
        ),
        Predicate(
            "between",
            (_MOVER, _OBJECT, _OBJECT),
            "{subject} is between {object} and {third}",
            (Number("off", "m", 0.03), Number("ends", "1", 0.2, high=0.5)),
            margin=(
                f"{_ALONG} - {{ends}} * norm({_LINE})",
                f"(1.0 - {{ends}}) * norm({_LINE}) - {_ALONG}",
                f"{{off}} - abs({_OFF_LINE})",
                f"norm({_LINE}) - 0.001",
            ),
            aim="0.5 * ({b} + {c}) - {a}",
            level=True,
        ),
        Predicate(
            "in_line",
            (_THING, _THING, _THING),
            "{subject}, {object} and {third} are in a line",
            (Number("off", "m", 0.02),),
            margin=(f"{{off}} - abs({_TRIANGLE}) / maximum({_LONGEST}, 0.001)",),
            aim="0.5 * ({b} + {c}) - {a}",
            level=True,
        ),
        Predicate(
            "on",
            (_fits("place", "push"), _fits(*MARKS, "stack")),
            "{subject} is on {object}",
            (
                Number("aside", "m", _resting),
                Number("tolerance", "m", 0.006),
                Number("clear", "m", 0.005),
            ),
            spoken=_fits("place", "push"),
            by="put",
            wordings=(
                "{s} is on {o}",
                "{s} is on top of {o}",
                "{s} stands on {o}",
                "{s} rests on {o}",
                "{s} sits on {o}",
                "{s} is placed on {o}",
            ),
            margin=(
                f"{{aside}} - {_OFF}",
                "{tolerance} - abs({a.foot} - {b.top})",
                "{tolerance} - abs({b}[2] - {b.rest})",
                "{clearance} - {clear}",
            ),
        ),
        Predicate(
            "inside",
            (_fits("place"), _fits("drawer")),
            "{subject} is in {object}",
            (Number("below", "m", 0.035), Number("clear", "m", 0.005)),
            spoken=_fits("place"),
            by="put",
            wordings=_INSIDE,
            margin=(
                "{b.wide} - abs({a}[0] - {b}[0])",
                "{b.deep} - abs({a}[1] - {b}[1])",
                "{below} - {a}[2]",
                "{clearance} - {clear}",
            ),
        ),
        Predicate(
            "inserted",
            (_fits("insert"), _fits("hole")),
            "{subject} is in {object}",
            (
                Number("aside", "m", 0.005),
                Number("deep", "m", 0.015, said="least"),
                Number("upright", "1", 0.97, high=1.0),
            ),
            spoken=_fits("insert"),
            by="insert",
            wordings=_INSIDE,
            margin=(
                # Which way it leans is not on the card; in a hole, only that way which brings its
                # end under the middle.
                f"{{aside}} - abs({_OFF} - {{a.rest}} * {_LEAN})",
                "{b}[2] - {a}[2] + {a.rest} * {a.up} - {deep}",
                "0.1 * ({a.up} - {upright})",
            ),
        ),
        Predicate(
            "lifted",
            (_fits("lift"),),
            "{subject} is lifted",
            (Number("height", "m", 0.05, said="least"), Number("hand", "m", 0.06)),
            spoken=_fits("lift"),
            by="lift",
            margin=("{a.foot} - {height}", "{hand} - norm({a} - {grip})"),
            aim="vec(0.0, 0.0, {height} - {a.foot})",
        ),
        Predicate(
            "moved",
            (_MOVER,),
            "{subject} has moved",
            (
                Number("left", "m", 0.0, low=-2.0),
                Number("front", "m", 0.0, low=-2.0),
                Number("tolerance", "m", 0.02, said="tolerance"),
                _AFTER,
            ),
            needs=("left", "front"),
            back="{subject} is back in its place, seen from above",
            there="{subject} has moved from there",
            seen="clip",
            margin=(
                "{tolerance} - hypot({a}[0] - {a.start}[0] - {front}, "
                "{a.start}[1] - {a}[1] - {left})",
            ),
            aim="vec({a.start}[0] + {front} - {a}[0], {a.start}[1] - {left} - {a}[1], 0.0)",
            level=True,
        ),
        Predicate(
            "raised",
            (_HAND,),
            "{subject} is higher than at the start",
            (
                Number("height", "m", 0.05, low=-2.0, said="just"),
                Number("tolerance", "m", 0.02, said="tolerance"),
                _AFTER,
            ),
            back="{subject} is as high as at the start",
            there="{subject} is higher than it was there",
            less=("higher", "lower"),
            seen="clip",
            margin=("{tolerance} - abs({a}[2] - {a.start}[2] - {height})",),
            aim="vec(0.0, 0.0, {a.start}[2] + {height} - {a}[2])",
        ),
        Predicate(
            "displaced",
            (_MOVER,),
            "{subject} is away from where it was",
            (
                Number("least", "m", 0.05, said="least"),
                Number("most", "m", 2.0, said="most"),
                _AFTER,
            ),
            there="{subject} is away from there",
            seen="clip",
            margin=(
                "norm({a}[:2] - {a.start}[:2]) - {least}",
                "{most} - norm({a}[:2] - {a.start}[:2])",
            ),
            aim="{a} - {a.start}",
            level=True,
        ),
        Predicate(
            "at",
            (_ACTOR, _OBJECT),
            "{subject} is at {object}",
            (Number("within", "m", 0.02),),
            spoken=_BODY,
            margin=(f"{{within}} - {_OFF}",),
            level=True,
        ),
        _on_side(
            "on_left",
            "on the left side",
            "{low_y} + {share} * {deep} - {a}[1]",
            "vec(0.0, {low_y} + 0.5 * {share} * {deep} - {a}[1], 0.0)",
        ),
        _on_side(
            "on_right",
            "on the right side",
            "{a}[1] - {high_y} + {share} * {deep}",
            "vec(0.0, {high_y} - 0.5 * {share} * {deep} - {a}[1], 0.0)",
        ),
        _on_side(
            "at_front",
            "at the front",
            "{a}[0] - {high_x} + {share} * {wide}",
            "vec({high_x} - 0.5 * {share} * {wide} - {a}[0], 0.0, 0.0)",
        ),
        _on_side(
            "at_back",
            "at the back",
            "{low_x} + {share} * {wide} - {a}[0]",
            "vec({low_x} + 0.5 * {share} * {wide} - {a}[0], 0.0, 0.0)",
        ),
        Predicate(
            "in_middle",
            (_MOVER,),
            "{subject} is in the middle of the table",
            (Number("share", "1", THIRD, high=1.0, said="most"),),
            seen="asked",
            margin=(
                "0.5 * {share} * {wide} - abs({a}[0] - {middle_x})",
                "0.5 * {share} * {deep} - abs({a}[1] - {middle_y})",
            ),
            aim="vec({middle_x} - {a}[0], {middle_y} - {a}[1], 0.0)",
            level=True,
        ),
        Predicate(
            "at_point",
            (_MOVER,),
            "{subject} is at a point",
            (
                Number("x", "m", None, low=-2.0),
                Number("y", "m", None, low=-2.0),
                Number("within", "m", 0.03, said="most"),
            ),
            margin=("{within} - hypot({a}[0] - {x}, {a}[1] - {y})",),
            aim="vec({x} - {a}[0], {y} - {a}[1], 0.0)",
            level=True,
        ),
        Predicate(
            "upright",
            (_fits("cylinder", "peg", "item", "body"),),
            "{subject} is upright",
            (Number("cosine", "1", _by_kind(0.9, 0.85), low=-1.0, high=1.0),),
            margin=("0.1 * ({a.up} - {cosine})",),
        ),
        Predicate(
            "toppled",
            (_fits("cylinder", "peg", "item"),),
            "{subject} lies on its side",
            (Number("cosine", "1", 0.5, low=-1.0, high=1.0),),
            margin=("0.1 * ({cosine} - abs({a.up}))",),
        ),
        Predicate(
            "turned",
            (_fits("cube"),),
            "{subject} has turned",
            (
                Number("angle", "rad", None, low=-6.3, high=6.3, said="just"),
                Number("tolerance", "rad", 0.17, said="tolerance"),
                _AFTER,
            ),
            there="{subject} has turned from there",
            seen="clip",
            margin=(
                "0.05 * ({tolerance} - 0.25 * abs(wrapped({a.turn} - {a.turn_before} "
                "- 4.0 * {angle})))",
            ),
        ),
        Predicate(
            "open",
            (_fits("open"),),
            "{subject} is open",
            (Number("share", "1", 0.8, high=1.0, said="least"),),
            spoken=_fits("open"),
            by="slide",
            margin=("{a.joint} - {share} * {a.travel}",),
        ),
        Predicate(
            "closed",
            (_fits("close"),),
            "{subject} is closed",
            (Number("share", "1", 0.1, high=1.0, said="most"),),
            spoken=_fits("close"),
            by="slide",
            margin=("{share} * {a.travel} - {a.joint}",),
        ),
        Predicate(
            "pressed",
            (_fits("press"),),
            "{subject} is pressed",
            (Number("share", "1", 0.6667, high=1.0, said="least"),),
            spoken=_fits("press"),
            by="press",
            margin=("{a.joint} - {share} * {a.travel}",),
        ),
        Predicate(
            "grasped",
            (_fits("lift"),),
            "{subject} is grasped",
            (Number("within", "m", 0.004),),
            by="lift",
            margin=(
                "{within} - {far_clearance}",
                "dot({a} - {middles}[0:3], direction({middles}[3:6] - {middles}[0:3]))",
                "dot({middles}[3:6] - {a}, direction({middles}[3:6] - {middles}[0:3]))",
            ),
        ),
        Predicate(
            "released",
            (_THING,),
            "{subject} is let go of",
            (Number("clear", "m", 0.005),),
            margin=("{clearance} - {clear}",),
        ),
        Predicate(
            "still",
            (_ACTOR,),
            "{subject} is still",
            _speed(0.03, 0.3),
            seen="clip",
            margin=(f"0.1 * ({{speed}} - {_SPEED})",),
        ),
        Predicate(
            "slower",
            (_ACTOR,),
            "{subject} is slow",
            _speed(0.1, 1.0),
            seen="clip",
            margin=(f"0.1 * ({{speed}} - {_SPEED})",),
        ),
        Predicate(
            "faster",
            (_ACTOR,),
            "{subject} is fast",
            _speed(0.1, 1.0, "least"),
            seen="clip",
            margin=(f"0.1 * ({_SPEED} - {{speed}})",),
        ),
        _act("forward", "moves forward", Number("pace", "m/s", 1.0, high=100.0, said="least")),
        _act(
            "backward",
            "moves backward",
            Number("pace", "m/s", 0.5, high=100.0, said="least"),
            said=False,
        ),
        _act("front_flip", "does a front flip"),
        _act("back_flip", "does a back flip"),
        _act("wave", "waves a leg", Number("swings", "1", 3, low=1, high=100, said="least")),
        _act(
            "lie_down", "lies down", Number("cosine", "1", -0.9, low=-1.0, high=1.0), *_speed(0.3)
        ),
        _act("stand_up", "stands up", Number("height", "m", 1.2), *_speed(0.5)),
        _act("kneel", "kneels", *_speed(0.5)),
        _act("raise_arms", "raises both arms", *_speed(0.5)),
        Predicate(
            "balanced",
            (_fits("balance"),),
            "{subject} stays upright",
            (Number("tilt", "rad", 0.2),),
            spoken=_fits("balance"),
            by="act",
            seen="none",
        ),
        Predicate(
            "at_height",
            (_fits("gripper", "body"),),
            "{subject} is at a height",
            (
                Number("least", "m", 0.0, high=100.0, said="least"),
                Number("most", "m", 100.0, high=100.0, said="most"),
            ),
            needs=("least", "most"),
            by="act",
            margin=("{a}[2] - {least}", "{most} - {a}[2]"),
            aim="vec(0.0, 0.0, minimum(maximum({a}[2], {least}), {most}) - {a}[2])",
        ),
    )
}
# Those that are about the table itself.
SIDES = frozenset("on_left on_right at_front at_back in_middle".split())
