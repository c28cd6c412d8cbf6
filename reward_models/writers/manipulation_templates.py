"""Templates of what is done to a thing: lift it, put it somewhere, open or close it, press it.

Each answers with how far it is fulfilled (0 to 1), the distance in metres that is left (0 where it
holds with margin), and its terms. What they know is the card: places, the range of the joint called
after the thing, and that a drawer comes out to where its handle is. Their atoms are filled: how
high and how far is the goal's.
"""

from __future__ import annotations

from collections.abc import Callable

from reward_models.base import CardEntity, TaskCard
from reward_models.goals.formula import Atom, fill
from reward_models.goals.margins import formula_margins, shortfall_text
from reward_models.goals.predicates import MARKS, role
from reward_models.writers.template_lines import (
    ProgramLines,
    Realised,
    TemplateNumbers,
    no_template,
    rounded,
    signal_of,
)

SURE, SURELY_PRESSED = 0.05, 0.0833  # of a joint's range, beyond what is asked
BESIDE_BAR = 0.021  # m, from the bar to a closed hand that pushes it
UNDER_BAR = 0.015  # m, the tip no lower than this under the bar
HALF = 0.02  # m, half the height of a thing whose card does not say it
HIGHER = 0.01  # m, of a lifted thing, than is asked
LYING = 0.005  # m, its centre higher than half its height when it still lies there
CARRIED = 0.04  # m, and while it is carried
HANGING = 0.15  # m, over its place, from where on going down is felt
LET_GO = 0.01  # m, from lying there, how near it must be to be let go of
LEFT_ALONE = 0.06  # m, the tip this far over the centre of what is to be left alone
# How far, in m, {thing} is from where it belongs, seen from above and in height, by the {place}.
_NEAR = "below(norm({thing}[:2] - {place}[:2]), {aside})"
_FLAT = (_NEAR, "below({thing}[2], {lying})")
PLACES = {
    **dict.fromkeys(MARKS, _FLAT),
    "drawer": (
        "hypot(outside({thing}[0] - {place}[0], -0.03, 0.03), "
        "outside({thing}[1] - {place}[1], -0.03, 0.03))",
        "below({thing}[2], 0.032)",
    ),
}
# On a thing that lies on the table.
STACKED = (
    _NEAR,
    "hypot(outside({thing}[2] - {place}[2] - {rise}, -0.004, 0.004), below({place}[2], {under}))",
)
# A peg in a hole: its half length, how much deeper and nearer the axis than is asked; m.
HALF_PEG, DEEPER, NEARER = 0.035, 0.001, 0.0002
STRAIGHTER = 0.01  # of the least cosine of its lean
HELD = 0.03  # m, from the tip to the centre of what the jaws have between them


def _grasped(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    thing = p.read(card.entity(atom.subject))
    jaws = signal_of(card, "gripper")
    gap, held = _grip_terms(p, p.read(_hand(card)), thing, n)
    shut = p.let("shut", f"1.0 - ramp({p.joint(jaws)}, {jaws.range[0]!r}, {jaws.range[1]!r})")
    terms = {
        "reach": (n.reach_weight, f"({_closeness(gap, n)})"),
        "close": (n.close_weight, f"{held} * {shut}"),
    }
    return held, p.let("away", f"below({gap}, {HELD})"), terms


def _lifted(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    held, grip, terms = _grasped(p, card, atom, n)
    body = card.entity(atom.subject)
    thing, half = p.read(body), _half(body)
    high = rounded(half + atom["height"] + HIGHER)
    up = p.let("up", f"{held} * ramp({thing}[2], {rounded(half + LYING)}, {high})")
    left = p.let("away", f"hypot(above({thing}[2], {high}), {grip})")
    return up, left, {**terms, "lift": (n.move_weight, up)}


def _carried(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    """Grasped, lifted off the table, and taken to where it is to hang in the air."""
    body = card.entity(atom.subject)
    if "lift" not in body.affordances:
        raise no_template(atom, f"{body.name} cannot be lifted in {card.task}")
    held, _, terms = _grasped(p, card, atom, n)
    thing, half = p.read(body), _half(body)
    off = f"ramp({thing}[2], {rounded(half + LYING)}, {rounded(half + CARRIED)})"
    up = p.let("up", f"{held} * {off}")
    left = p.let(
        "away", p.reading(shortfall_text(formula_margins(atom, card).conditions[atom]), card)
    )
    carried = p.let("carried", f"{up} * ({_closeness(left, n)})")
    return carried, left, {**terms, "lift": (n.move_weight, up), "carry": (n.move_weight, carried)}


def _slid(opens: bool) -> Callable[[ProgramLines, TaskCard, Atom, TemplateNumbers], Realised]:
    def realised(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
        thing = card.entity(atom.subject)
        bar = next((e for e in card.entities if e.kind == "handle" and e.body == thing.body), None)
        if bar is None:
            raise no_template(atom, f"the task card lists no handle of {thing.name}")
        signal = signal_of(card, f"{thing.body}_joint")
        travel = signal.range[1]
        tip, handle, joint = p.read(_hand(card)), p.read(bar), p.joint(signal)
        out = p.let("out", f"direction({handle}[:2] - {p.read(thing)}[:2])")
        side = "-" if opens else "+"  # the hand pulls from behind the bar, pushes from before it
        level = p.let("level", f"norm({tip}[:2] - ({handle}[:2] {side} {BESIDE_BAR} * {out}))")
        off = p.let("off", f"hypot({level}, outside({tip}[2] - {handle}[2], {-UNDER_BAR}, 0.0))")
        if opens:
            share = min(atom["share"] + SURE, 1.0)
            left = p.let("away", f"above({joint}, {rounded(share * travel)})")
            way = share * travel
        else:
            share = max(atom["share"] - SURE, 0.0)
            left = p.let("away", f"below({joint}, {rounded(share * travel)})")
            way = (1 - share) * travel
        slid = p.let("slid", f"1.0 - {left} / {rounded(way)}")
        terms = {
            "reach": (n.reach_weight, _latched_progress(left, f"near({off}, {n.behind_scale!r})")),
            "slide": (n.move_weight, slid),
        }
        return slid, left, terms

    return realised


def _pressed(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    thing = card.entity(atom.subject)
    signal = signal_of(card, f"{thing.body}_joint")
    way = min(atom["share"] + SURELY_PRESSED, 1.0) * signal.range[1]
    off = p.let("off", f"norm({p.read(_hand(card))} - {p.read(thing)})")
    left = p.let("away", f"above({p.joint(signal)}, {rounded(way)})")
    pressed = p.let("pressed", f"1.0 - {left} / {rounded(way)}")
    terms = {
        "reach": (n.reach_weight, _latched_progress(left, f"near({off}, {n.wide!r})")),
        "press": (n.move_weight, pressed),
    }
    return pressed, left, terms


def _put(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    """Grasped, carried over the place, put down there and left alone."""
    where = card.entity(atom.object)
    if where.kind == "hole":
        return _inserted(p, card, atom, n)
    if where.kind not in PLACES and "stack" not in where.affordances:
        raise no_template(atom, f"inserting into a {where.kind} is not supported")
    what = card.entity(atom.subject)
    thing, tip, place = p.read(what), p.read(_hand(card)), p.read(where)
    half, under = _half(what), _half(where)
    lying, carried = rounded(half + LYING), rounded(half + CARRIED)
    jaws = signal_of(card, "gripper")
    lies = PLACES.get(where.kind, STACKED)
    words = {
        "thing": thing,
        "place": place,
        "aside": _surely_aside(where, atom),
        "lying": lying,
        "rise": rounded(half + under),
        "under": rounded(under + LYING),
    }
    beside, over = (p.let("off", text.format(**words)) for text in lies)
    off = p.let("off", f"hypot({beside}, {over})")
    down = p.let("down", f"{off} <= 0.0")
    gap, held = _grip_terms(p, tip, thing, n)
    opening = p.let("opening", f"ramp({p.joint(jaws)}, {jaws.range[0]!r}, {jaws.range[1]!r})")
    aside = p.let("aside", f"norm({thing}[:2] - {place}[:2])")
    # High while it is carried; over its place it is to go down, which is felt from up there.
    there = p.let("there", f"near({beside}, {n.tight!r})")
    high = p.let("high", f"maximum(ramp({thing}[2], {lying}, {carried}), {there})")
    up = p.let("up", f"where({down}, 1.0, {held} * {high})")
    moved = f"where({down}, 1.0, {up} * ({_closeness(aside, n)}))"
    clear = p.let("clear", f"above({tip}[2] - {thing}[2], {LEFT_ALONE})")
    left = p.let("away", f"hypot({off}, {clear})")
    low = f"(1.0 - ramp({over}, 0.0, {HANGING!r}))"
    # Jaws that touch the table hold it a little above where it lies: it is let go of from there.
    loose = p.let("loose", f"near({off}, {LET_GO!r}) * {opening}")
    near = _closeness(gap, n)
    terms = {
        "reach": (n.reach_weight, f"where({down}, 1.0, {near})"),
        "close": (n.close_weight, f"where({down}, 1.0, {held} * (1.0 - {opening}))"),
        "lift": (n.move_weight, up),
        "carry": (n.move_weight, moved),
        "place": (n.place_weight, f"where({down}, 1.0, {held} * {there} * {low})"),
        "leave": (n.place_weight, f"0.5 * {loose} + 0.5 * {down} * ({_closeness(clear, n)})"),
    }
    if "open" in where.affordances:  # which counts for all that follows
        opened, _, first = _slid(True)(p, card, fill(Atom.of("open", where.name), card), n)
        terms = {name: (weight, f"{opened} * {text}") for name, (weight, text) in terms.items()}
        terms = {"hook": first["reach"], "slide": first["slide"], **terms}
    return f"near({left}, {n.tight!r})", left, terms


def _inserted(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    """Grasped, carried over the hole with its end above the rim, let in upright."""
    stick = card.entity(atom.subject)
    thing, tip, hole = p.read(stick), p.read(_hand(card)), p.read(card.entity(atom.object))
    lean = p.vector(signal_of(card, f"{stick.body}_up")) + "[2]"
    jaws = signal_of(card, "gripper")
    gap, held = _grip_terms(p, tip, thing, n)
    shut = p.let("shut", f"1.0 - ramp({p.joint(jaws)}, {jaws.range[0]!r}, {jaws.range[1]!r})")
    aside = p.let("aside", f"norm({thing}[:2] - {hole}[:2])")
    deep = p.let("deep", f"{hole}[2] - ({thing}[2] - {HALF_PEG} * {lean})")
    end = p.let("end", f"{aside} + {HALF_PEG} * sqrt(maximum(1.0 - square({lean}), 0.0))")
    in_hole, in_line = rounded(atom["deep"] + DEEPER), rounded(atom["upright"] + STRAIGHTER)
    off = f"hypot(below({end}, {rounded(atom['aside'] - NEARER)}), above({deep}, {in_hole}))"
    left = p.let("away", f"hypot({off}, 0.05 * above({lean}, {in_line}))")
    high = p.let("high", f"maximum(ramp(-{deep}, -0.03, 0.005), near({aside}, 0.003))")
    upright = p.let("upright", f"ramp({lean}, 0.5, {in_line})")
    into = p.let("into", f"{upright} * near({aside}, 0.01) * ramp({deep}, 0.0, {in_hole})")
    near = _closeness(gap, n)
    line = f"(0.2 + 0.4 * near({aside}, {n.wide!r}) + 0.4 * near({aside}, 0.01))"
    terms = {
        "reach": (n.reach_weight, _latched_progress(left, near)),
        "close": (n.close_weight, _latched_progress(left, f"{held} * {shut}")),
        "carry": (n.move_weight, _latched_progress(left, f"{held} * {high} * {upright} * {line}")),
        "insert": (n.move_weight, into),
    }
    return into, left, terms


HANDLED: dict[str, Callable[[ProgramLines, TaskCard, Atom, TemplateNumbers], Realised]] = {
    "grasped": _grasped,
    "lifted": _lifted,
    "above": _carried,
    "on": _put,
    "inside": _put,
    "inserted": _put,
    "open": _slid(True),
    "closed": _slid(False),
    "pressed": _pressed,
}


def _grip_terms(p: ProgramLines, tip: str, thing: str, n: TemplateNumbers) -> tuple[str, str]:
    """(distance from the tip to the thing, how far the jaws have it between them)."""
    gap = p.let("gap", f"norm({tip} - {thing})")
    return gap, p.let("held", f"near(below({gap}, {HELD}), {n.tight!r})")


def _closeness(gap: str, n: TemplateNumbers) -> str:
    """Closeness that is felt from afar and still rises close by."""
    share, rest = n.wide_share, round(1 - n.wide_share, 6)
    return f"{share!r} * near({gap}, {n.wide!r}) + {rest!r} * near({gap}, {n.tight!r})"


def _half(thing: CardEntity) -> float:
    """m, half its height."""
    return thing.half[2] if thing.half else HALF


def _surely_aside(where: CardEntity, atom: Atom) -> str:
    """m, how far aside of a place a thing surely lies on it; of a drawer its walls say it."""
    if where.kind == "drawer":
        return ""
    return rounded(atom["aside"] - (0.01 if where.kind in PLACES else 0.005))


def _latched_progress(left: str, progress: str) -> str:
    """Progress that is not lost once the goal is reached."""
    return f"where({left} <= 0.0, 1.0, {progress})"


def _hand(card: TaskCard) -> CardEntity:
    return next(e for e in card.entities if role(e) == "gripper")
