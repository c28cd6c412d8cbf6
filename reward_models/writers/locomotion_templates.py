"""Templates of what a body does by itself: go forward, flip, wave a leg, take a pose.

Each answers with how far it is fulfilled (0 to 1), what is left (0 where it holds with margin;
empty for what has no end, such as going forward), and its terms. What they know is the card: where
torso, hands and feet are, and the writer's own idea of how a hopper, an ant and a person are built.
A card that lacks the signals of an action has no template for it.

What happens in turn is followed by ``so_far``: once upside down in the air, then on the foot again.
The largest value so far of a product of earlier ones is a chain, each link of which needs the one
before; what a policy without memory does not see of the chain it must see in the body itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from reward_models.base import CardSignal, TaskCard
from reward_models.goals.formula import Atom
from reward_models.goals.predicates import PREDICATES
from reward_models.writers.template_lines import (
    ProgramLines,
    Realised,
    TemplateNumbers,
    no_template,
    rounded,
    signal_of,
)

Action = Callable[[ProgramLines, TaskCard, Atom, TemplateNumbers], Realised]

TURN = 2 * math.pi

# A hopper.
HEAD = 0.2  # m, from the middle of the torso to its top
FREE = 0.12  # m, of the head over the floor when it is upside down
INVERTED = 0.5  # rad, from half a turn
LANDED = 0.4  # rad, from a whole turn
FOOTED = 0.75  # m, height of a torso that stands on its foot
ALOFT = (0.4, 0.8)  # m, height of a torso that turns in the air rather than on the floor
LEAN = (0.15, 0.6)  # rad, of a torso that hops, and of one that lies
ONE_LEG = (0.75, 1.5)  # of the pace, and of the pay for being up: it falls sooner than four
SPIN = 8.0  # rad/s that is paid in full

# An ant.
RAISED = (0.08, 0.21)  # m, height of a foot on the floor, and of one that is waved
SIDE = 0.28  # sine of the leg's angle to where it points at rest
LINKS = 4  # times as many swings are followed: the foot may come down in between
MOST_SWINGS = 8  # of which a program is still short
RIGHT_WAY_UP = 0.6  # least height of the torso's own axis, 1 upright
ON_BACK = -0.92
AT_REST = 0.25  # m/s

# A person.
STANDING = (1.25, 0.22)  # m, least height of the torso, most height of the feet
KNEELING = (0.55, 1.0, 0.13)  # m, least and most height of the torso, most height of the knees
UPRIGHT = 0.88
OVERHEAD = 0.23  # m, from the middle of the chest to hands that are above the head
ERECT = 1.05  # m, least height of the torso of one who stands with raised arms
HOLDING = 0.35  # m/s, most speed of the torso in a pose that is held


def _forward(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    torso, before = p.read(card.entity(atom.subject)), p.before(card.entity(atom.subject))
    speed = p.let("speed", f"({torso}[0] - {before}[0]) / {card.control_dt!r}")
    known, pace = {s.name for s in card.signals}, n.pace * atom["pace"]
    upright = None
    if "pitch" in known:
        pace *= ONE_LEG[0]
        lean = p.joint(signal_of(card, "pitch"))
        fallen = f"ramp(abs({lean}), {LEAN[0]}, {LEAN[1]})"
        upright = ONE_LEG[1] * n.upright_weight, f"(1.0 - {fallen})"
    elif "torso_up" in known:
        up = p.joint(signal_of(card, "torso_up"))
        upright = n.upright_weight, f"ramp({up}, 0.0, 1.0)"
    going = p.let("going", f"ramp({speed}, 0.0, {pace!r})")
    terms = {"go": (n.move_weight, going)}
    if upright:  # it pays a little, or falling early would be no loss; most of it is for going
        terms["upright"] = upright
    return going, "", terms


def _flip(sign: str) -> Action:
    def realised(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
        pitch = signal_of(card, "pitch")
        turn = p.let("turn", f"{sign}{p.joint(pitch)}")
        before = p.let("before", f"{sign}{p.joint(pitch, before=True)}")
        height = p.let("height", f"{p.read(card.entity(atom.subject))}[2]")
        head = p.let("head", f"{height} + {HEAD} * cos({turn})")
        p.say("once upside down in the air, then a whole turn round and on the foot again")
        inverted = f"(abs({turn} - {rounded(TURN / 2)}) <= {INVERTED}) & ({head} >= {FREE})"
        over = p.let("over", f"so_far({inverted})")
        landed = f"{over} * ((abs({turn} - {rounded(TURN)}) <= {LANDED}) & ({height} >= {FOOTED}))"
        done = p.let("done", f"so_far({landed})")
        rate = p.let("rate", f"clip(({turn} - {before}) / {card.control_dt!r}, {-SPIN}, {SPIN})")
        air = p.let("air", f"ramp({height}, {ALOFT[0]}, {ALOFT[1]})")
        turning = f"{rate} / {SPIN} * {air}"
        terms = {
            "turn": (n.move_weight, f"where({done} > 0.0, 1.0, {turning})"),
            "height": (n.upright_weight, f"ramp({height}, 0.2, 1.2)"),
            "over": (n.reach_weight, over),
        }
        return done, p.let("left", f"1.0 - {done}"), terms

    return realised


def _wave(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    """One leg, the first on the card: its foot in the air and from side to side, in turn."""
    wanted = round(atom["swings"])
    if wanted > MOST_SWINGS:
        raise no_template(atom, f"at most {MOST_SWINGS} swings are supported, got {wanted}")
    feet = p.vector(_limbs(card, "feet_pos", 4, atom))
    body = card.entity(atom.subject)
    torso, before = p.read(body), p.before(body)
    up = p.joint(signal_of(card, "torso_up"))
    p.say("where the first leg points, from where it points at rest: away from the others' middle")
    leg = p.let("leg", f"clip(direction({feet}[0:2] - {torso}[:2]), -1.0, 1.0)")
    others = " + ".join(f"{feet}[{3 * k}:{3 * k + 2}]" for k in (1, 2, 3))
    rest = p.let("rest", f"clip(direction({torso}[:2] - ({others}) / 3.0), -1.0, 1.0)")
    side = p.let("side", f"{rest}[0] * {leg}[1] - {rest}[1] * {leg}[0]")
    aloft = p.let("aloft", f"({feet}[2] >= {RAISED[1]}) & ({up} >= {RIGHT_WAY_UP})")
    p.say("swings to either side in turn, and how many of them since the foot was last down")
    swings, last = [], ""
    for link in range(LINKS * wanted):
        at = f"{side} >= {SIDE}" if link % 2 == 0 else f"{side} <= {-SIDE}"
        last = p.let("swing", f"so_far({last and f'{last} * '}({aloft} & ({at})))")
        swings.append(last)
    count = p.let("count", " + ".join(swings))
    down = p.let("down", f"so_far({count} * (1.0 - {aloft}))")
    waved = p.let("waved", f"so_far({count} - {down}) / {float(wanted)!r}")
    was = f"prev_{feet}"
    p.signals[was] = None
    moved = f"({feet}[0:2] - {was}[0:2]) - ({torso}[:2] - {before}[:2])"
    speed = p.let("speed", f"norm({moved}) / {card.control_dt!r}")
    high = p.let("high", f"ramp({feet}[2], {RAISED[0]}, {RAISED[1]}) * ramp({up}, 0.0, 1.0)")
    terms = {
        "raise": (n.reach_weight, high),
        "level": (n.upright_weight, f"ramp({up}, 0.0, 1.0)"),
        "swing": (n.close_weight, f"{aloft} * clip({speed}, 0.0, 1.0)"),
        "waved": (n.move_weight, f"minimum({waved}, 1.0)"),
    }
    return f"minimum({waved}, 1.0)", p.let("left", f"above({waved}, 1.0)"), terms


def _lie_down(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    """On the back: what four legs carry lies still only there. Being slow pays as far as it is
    turned, and lying, which is to be turned and at rest, as much as either."""
    _limbs(card, "feet_pos", 4, atom)
    up = p.joint(signal_of(card, "torso_up"))
    speed = _speed(p, card)
    turned = p.let("turned", f"ramp(-{up}, -1.0, {-ON_BACK})")
    away = p.let("away", f"below({up}, {ON_BACK}) + below({speed}, {AT_REST}) / 1.0")
    terms = {
        "turn": (n.move_weight, turned),
        "still": (n.move_weight, f"{turned} * near({speed}, 1.0)"),
        "lying": (n.move_weight, f"({away} <= 0.0)"),
    }
    return turned, away, terms


def _pose(p: ProgramLines, card: TaskCard, n: TemplateNumbers, parts: list[str]) -> Realised:
    """Progress to a pose whose shortfalls are ``parts``, each over its scale, held upright."""
    up = p.joint(signal_of(card, "torso_up"))
    speed = _speed(p, card)
    away = p.let("away", " + ".join([*parts, f"above({up}, {UPRIGHT}) / 0.5"]))
    held = p.let("held", f"{away} + below({speed}, {HOLDING}) / 1.0")
    near = p.let("close", f"0.5 * near({away}, 1.0) + 0.5 * near({away}, 0.25)")
    terms = {"pose": (n.move_weight, near), "still": (n.reach_weight, f"near({held}, 0.25)")}
    return f"near({held}, 0.25)", held, terms


def _stand_up(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    feet = p.vector(_limbs(card, "feet_pos", 2, atom))
    least, most = STANDING
    height = f"above({p.read(card.entity(atom.subject))}[2], {least}) / 0.4"
    return _pose(p, card, n, [height, f"below(maximum({feet}[2], {feet}[5]), {most}) / 0.4"])


def _kneel(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    knees = p.vector(_limbs(card, "knees_pos", 2, atom))
    least, most, down = KNEELING
    height = f"outside({p.read(card.entity(atom.subject))}[2], {least}, {most}) / 0.4"
    return _pose(p, card, n, [height, f"below(maximum({knees}[2], {knees}[5]), {down}) / 0.4"])


def _raise_arms(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
    hands = p.vector(_limbs(card, "hands_pos", 2, atom))
    torso = p.read(card.entity(atom.subject))
    lower = f"minimum({hands}[2], {hands}[5]) - {torso}[2]"
    parts = [f"above({lower}, {OVERHEAD}) / 0.4", f"above({torso}[2], {ERECT}) / 0.4"]
    return _pose(p, card, n, parts)


def _as_usual(realised: Action) -> Action:
    """A template that knows an action as it is by default alone."""

    def usual(p: ProgramLines, card: TaskCard, atom: Atom, n: TemplateNumbers) -> Realised:
        for number in PREDICATES[atom.predicate].numbers:
            if atom[number.name] != number.default:
                raise no_template(atom, f"only {number.name} {number.default:g} is supported")
        return realised(p, card, atom, n)

    return usual


ACTED: dict[str, Action] = {
    "forward": _forward,
    "front_flip": _flip(""),
    "back_flip": _flip("-"),
    "wave": _wave,
    "lie_down": _as_usual(_lie_down),
    "stand_up": _as_usual(_stand_up),
    "kneel": _as_usual(_kneel),
    "raise_arms": _as_usual(_raise_arms),
}


def _speed(p: ProgramLines, card: TaskCard) -> str:
    """Of the torso, m/s: "root first" says the card of the speeds."""
    return p.let("speed", f"norm({p.vector(signal_of(card, 'qvel'))}[0:3])")


def _limbs(card: TaskCard, name: str, count: int, atom: Atom) -> CardSignal:
    signal = signal_of(card, name)
    if signal.shape[0] != count:
        kind = name.removesuffix("_pos")
        raise no_template(
            atom, f"it needs a body of {count} {kind}; task {card.task!r} has {signal.shape[0]}"
        )
    return signal
