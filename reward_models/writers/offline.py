"""Reward programs from a sentence without a language model: templates over the goal's formula.

Each atom of the formula is realised as a distance, in metres, that is 0 where the atom holds with
some margin to spare, and a distance becomes progress: a wide slope to come from afar, a narrow one
to finish. An object is moved by pushing, so its goal gets a stage before it: the gripper must stand
behind the object, on the line to where it is to go, and the later stage pays by how well it does.
``then`` pays a later part by the best that the earlier one has been so far in the episode.

This is written from the card (names and places of things) alone and shares nothing with the
simulators' success or dense rewards. It is a set of templates, no understanding: what it has no
template for is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from reward_models.base import TaskCard
from reward_models.goals import read
from reward_models.goals.formula import Atom, Formula, fill, parts_of
from reward_models.goals.predicates import role
from reward_models.programs.diagnostics import Diagnostic
from reward_models.writers.base import Draft, Evidence, fingerprint
from reward_models.writers.bodies import ACTED
from reward_models.writers.handling import HANDLED
from reward_models.writers.lines import Lines, NoTemplate, Numbers, rounded


@dataclass(frozen=True)
class Structure:
    """What terms the templates are made of; the first value of each is the standard one."""

    kernel: str = "near"  # how a distance becomes progress
    slopes: str = "both"  # of the gripper's progress: wide and tight, or one of them
    approach: str = "behind"  # what is paid before a push: standing behind, being close, nothing
    gated: bool = True  # whether a push counts in full only with the gripper behind the object
    bonus: bool = True  # something on top where everything holds
    effort: bool = False  # whether actions cost

    def mutated(self, rng: np.random.Generator) -> Structure:
        """A copy with another value in one place."""
        name = str(rng.choice(list(CHOICES)))
        others = [value for value in CHOICES[name] if value != getattr(self, name)]
        return replace(self, **{name: others[int(rng.integers(len(others)))]})


CHOICES: dict[str, tuple[str | bool, ...]] = {
    "kernel": ("near", "reaching", "inverse"),
    "slopes": ("both", "wide", "tight"),
    "approach": ("behind", "close", "none"),
    "gated": (True, False),
    "bonus": (True, False),
    "effort": (False, True),
}
EFFORT = 0.01  # weight of the cost of actions where a structure has one and the numbers do not


SURELY_BESIDE = 0.02  # m, two centres nearer than is asked are surely next to each other
TOUCH = 0.03  # m, from the tip to an object's centre, at which they surely touch
FAR = 0.21  # m
ASIDE = 0.065  # m
ABREAST = 0.03  # m
OVER = 0.01  # m, off the vertical line through the object
HEIGHT = (0.055, 0.085)  # m, of the tip over the object's centre
# "Left and right are as the front camera's picture shows them", which looks back at the arm.
LEFT = "-offset[1]"
RIGHT = "offset[1]"
LEFT_AXIS = "vec(0.0, -1.0)"
RIGHT_AXIS = "vec(0.0, 1.0)"


REALISED = HANDLED | ACTED  # by templates of their own


def write(
    formula: Formula,
    card: TaskCard,
    numbers: Numbers | None = None,
    structure: Structure | None = None,
) -> str:
    """The program of a formula."""
    numbers, structure = numbers or Numbers(), structure or Structure()
    if structure.effort and not numbers.effort:
        numbers = replace(numbers, effort=EFFORT)
    if not structure.bonus:
        numbers = replace(numbers, bonus=0.0)
    program = Lines()
    parts = parts_of(fill(formula, card), "then")
    done = ""  # how far the parts before this one were ever fulfilled
    for index, part in enumerate(parts, 1):
        stem = f"part{index}_" if len(parts) > 1 else ""
        reached = _part(part, card, program, numbers, structure, stem, done)
        if index < len(parts):
            best = program.let("done", f"so_far({reached})")
            done = best if not done else program.let("done", f"{done} * {best}")
    if numbers.effort:
        program.signals["action"] = None
        program.components["effort"] = f"{_n(numbers.effort)} * effort(action)"
    return program.text()


def _part(
    part: Formula,
    card: TaskCard,
    program: Lines,
    n: Numbers,
    structure: Structure,
    stem: str,
    done: str,
) -> str:
    """Adds the terms of atoms that hold together; answers how far they hold, as an expression."""
    atoms = _atoms(part)
    own = [a for a in atoms if role(card.entity(a.subject)) == "gripper"]
    moved = [a for a in atoms if role(card.entity(a.subject)) == "object"]
    handled = [a for a in atoms if a.predicate in REALISED]
    moved = [a for a in moved if a not in handled]
    gate = f"{done} * " if done else ""
    distances = []
    for atom in own:
        distances.append(_gripper(atom, card, program))
    reached = []
    if distances:
        away = distances[0] if len(distances) == 1 else program.let("away", " + ".join(distances))
        kernel = structure.kernel
        slopes = {
            "both": f"{_n(n.wide_share)} * {kernel}({away}, {_n(n.wide)}) + "
            f"{_n(round(1 - n.wide_share, 6))} * {kernel}({away}, {_n(n.tight)})",
            "wide": f"{kernel}({away}, {_n(n.wide)})",
            "tight": f"{kernel}({away}, {_n(n.tight)})",
        }
        near = program.let("progress", slopes[structure.slopes])
        program.components[f"{stem}near"] = f"{gate}{near}"
        reached.append(f"{kernel}({away}, {_n(n.tight)})")
    for index, atom in enumerate(handled, 1):
        if atom.predicate in HANDLED:
            program.say(f"{atom}: first the hand to where it can do that, then the thing's own way")
        else:
            program.say(f"{atom}: what a body does by itself")
        tail = f"_{index}" if len(handled) > 1 else ""
        done_so_far, left, terms = REALISED[atom.predicate](program, card, atom, n)
        reached.append(done_so_far)
        if left:
            distances.append(left)
        for name, (weight, text) in terms.items():
            program.components[f"{stem}{name}{tail}"] = f"{gate}{_n(weight)} * {text}"
    before = ""
    for index, atom in enumerate(moved, 1):
        tail = f"_{index}" if len(moved) > 1 else ""
        pushed, away = _pushed(atom, card, program, n, structure, stem, tail, gate + before)
        reached.append(pushed)
        distances.append(away)
        before += f"{pushed} * "
    if n.bonus and distances:
        every = " & ".join(f"({d} <= 0.0)" for d in distances)
        every = every if len(distances) == 1 else f"({every})"
        program.components[f"{stem}there"] = f"{_n(n.bonus)} * {gate}{every}"
    return " * ".join(reached)


def _atoms(part: Formula) -> tuple[Atom, ...]:
    inner = []
    for one in parts_of(part, "and"):
        if not isinstance(one, Atom):
            raise NoTemplate(f"{one.operator} has no template: {one}")
        inner.append(one)
    return tuple(dict.fromkeys(inner))


def _n(value: float) -> str:
    return repr(float(value))


# Atoms of the gripper: lines that end with the distance from making the atom true.
def _touch(p: Lines, tip: str, thing: str) -> str:
    return p.let("away", f"below(norm({tip} - {thing}), {TOUCH})")


def _above(p: Lines, tip: str, thing: str) -> str:
    offset = p.let("offset", f"{tip} - {thing}")
    level = f"below(norm({offset}[:2]), {OVER})"
    return p.let("away", f"hypot({level}, outside({offset}[2], {HEIGHT[0]}, {HEIGHT[1]}))")


def _beside(side: str) -> Callable[[Lines, str, str], str]:
    def lines(p: Lines, tip: str, thing: str) -> str:
        offset = p.let("offset", f"{tip} - {thing}")
        aside = f"above({side.replace('offset', offset)}, {ASIDE})"
        depth = f"outside({offset}[0], {-ABREAST}, {ABREAST})"
        return p.let("away", f"hypot({aside}, {depth})")

    return lines


def _far(p: Lines, tip: str, thing: str) -> str:
    return p.let("away", f"above(norm({tip} - {thing}), {FAR})")


GRIPPER: dict[str, Callable[[Lines, str, str], str]] = {
    "touch": _touch,
    "above": _above,
    "left_of": _beside(LEFT),
    "right_of": _beside(RIGHT),
    "far": _far,
}


def _gripper(atom: Atom, card: TaskCard, program: Lines) -> str:
    if atom.predicate not in GRIPPER:
        raise NoTemplate(f"no template for {atom}; known of the gripper: {', '.join(GRIPPER)}")
    program.say(f"{atom}: 0 m away where it holds")
    tip, thing = (program.read(card.entity(name)) for name in (atom.subject, atom.object))
    return GRIPPER[atom.predicate](program, tip, thing)


# Atoms of two objects: where the first is to go, on the table, seen from where the two are.
# {mover} and {other} are their places; the result is (spot to push to, distance that is left).
PUSH: dict[str, tuple[str, str]] = {
    "next_to": ("{other}[:2]", "below(norm({mover}[:2] - {other}[:2]), {near})"),
    "far": (
        f"{{other}}[:2] + {FAR} * direction({{mover}}[:2] - {{other}}[:2])",
        f"above(norm({{mover}}[:2] - {{other}}[:2]), {FAR})",
    ),
    "left_of": (
        f"{{other}}[:2] + {ASIDE} * {LEFT_AXIS}",
        f"hypot(above({{other}}[1] - {{mover}}[1], {ASIDE}), "
        f"outside({{mover}}[0] - {{other}}[0], {-ABREAST}, {ABREAST}))",
    ),
    "right_of": (
        f"{{other}}[:2] + {ASIDE} * {RIGHT_AXIS}",
        f"hypot(above({{mover}}[1] - {{other}}[1], {ASIDE}), "
        f"outside({{mover}}[0] - {{other}}[0], {-ABREAST}, {ABREAST}))",
    ),
}


def _pushed(
    atom: Atom,
    card: TaskCard,
    p: Lines,
    n: Numbers,
    structure: Structure,
    stem: str,
    tail: str,
    gate: str,
) -> tuple[str, str]:
    """Adds the two stages of a push; answers (progress of the atom, its distance)."""
    if atom.predicate not in PUSH:
        raise NoTemplate(f"no template for {atom}; known of two objects: {', '.join(PUSH)}")
    hand = next(e for e in card.entities if role(e) == "gripper")
    tip = p.read(hand) if structure.gated or structure.approach != "none" else ""
    mover, other = (p.read(card.entity(name)) for name in (atom.subject, atom.object))
    words = {"mover": mover, "other": other}
    if atom.predicate == "next_to":
        words["near"] = rounded(atom["within"] - SURELY_BESIDE)
    spot, left = (text.format(**words) for text in PUSH[atom.predicate])
    kernel, off = structure.kernel, ""
    if structure.approach == "behind" or structure.gated:
        p.say(f"{atom}: first behind it, on the line to where it is to go, then along that line")
        line = p.let("line", f"{spot} - {mover}[:2]")
        behind = p.let("behind", f"{mover}[:2] - {_n(n.behind)} * direction({line})")
        off = p.let("off", f"hypot(norm({tip}[:2] - {behind}), {tip}[2] - {_n(n.low)})")
    else:
        p.say(f"{atom}: 0 m away where it holds")
    away = p.let("away", left)
    close = p.let("close", f"{kernel}({away}, {_n(n.push_scale)})")
    weight = f"{_n(n.behind_weight)} * {gate}"
    if structure.approach == "behind":
        p.components[f"{stem}behind{tail}"] = f"{weight}{kernel}({off}, {_n(n.behind_scale)})"
    elif structure.approach == "close":
        reach = f"norm({tip} - {mover})"
        p.components[f"{stem}close{tail}"] = f"{weight}{kernel}({reach}, {_n(n.behind_gate)})"
    pushed = f"{_n(n.push_weight)} * {gate}{close}"
    if structure.gated:
        share, rest = _n(n.ungated), _n(round(1 - n.ungated, 6))
        pushed += f" * ({share} + {rest} * {kernel}({off}, {_n(n.behind_gate)}))"
    p.components[f"{stem}push{tail}"] = pushed
    return close, away


class OfflineWriter:
    """The templates as a Writer: the first draft with the standard numbers, then mutations.

    Mutation follows Eureka's three tips as rules: a component that stays near zero gets a wider
    slope, one that hardly changes is rescaled, one that dominates is made smaller.
    """

    name = "offline"

    def __init__(self, seed: int = 0):
        self.rng = np.random.default_rng(seed)

    def propose(
        self, card: TaskCard, goal: str, count: int, evidence: Sequence[Evidence] = ()
    ) -> list[Draft]:
        formula = read(goal, card)
        parents = [e for e in evidence if e.draft.writer == self.name][:2]
        drafts = []
        for index in range(count):
            numbers, origin = Numbers(), ()
            notes = "standard numbers"
            if parents:
                parent = parents[index % len(parents)]
                base = reflected(_numbers_of(parent.draft), parent.curves)
                numbers = base.mutated(self.rng)
                origin, notes = (parent.draft.text,), "numbers mutated after reflection"
            elif index:
                numbers, notes = numbers.mutated(self.rng), "numbers mutated"
            text = f"# numbers: {_spelled(numbers)}\n{write(formula, card, numbers)}"
            drafts.append(Draft(text, self.name, notes, tuple(fingerprint(t) for t in origin)))
        return drafts

    def repair(
        self, card: TaskCard, goal: str, draft: Draft, found: Sequence[Diagnostic]
    ) -> Draft | None:
        return None  # a template that is refused is a fault of ours


def reflected(numbers: Numbers, curves: dict[str, tuple[float, ...]]) -> Numbers:
    """Numbers changed by what the components did along training (means, first to last)."""
    last = {name: curve[-1] for name, curve in curves.items() if curve}
    if not last:
        return numbers
    total = sum(abs(v) for v in last.values()) or 1.0
    changed = {}
    for name, value in last.items():
        curve = curves[name]
        if "near" in name and abs(value) < 0.05:  # never reached: a slope that starts farther out
            changed["wide"] = min(0.6, 1.5 * numbers.wide)
        if "behind" in name and abs(value) < 0.05:
            changed["behind_scale"] = 1.5 * numbers.behind_scale
        if "push" in name and max(curve) - min(curve) < 0.02:  # did not change: steeper
            changed["push_scale"] = 0.7 * numbers.push_scale
        if "behind" in name and abs(value) > 0.8 * total:  # dominates: less of it
            changed["behind_weight"] = 0.6 * numbers.behind_weight
    return replace(numbers, **changed)


def _spelled(numbers: Numbers) -> str:
    return " ".join(f"{f.name}={getattr(numbers, f.name):g}" for f in fields(numbers))


def _numbers_of(draft: Draft) -> Numbers:
    head = draft.text.split("\n", 1)[0].removeprefix("# numbers: ")
    pairs = (entry.split("=") for entry in head.split())
    return Numbers(**{name: float(value) for name, value in pairs})
