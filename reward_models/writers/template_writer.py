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

from dataclasses import dataclass, replace

import numpy as np

from reward_models.base import TaskCard
from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import Atom, Formula, fill, parts_of
from reward_models.goals.margins import (
    FormulaMargins,
    NoMargin,
    formula_margins,
    least_margin_text,
    shortfall_text,
)
from reward_models.goals.predicates import role
from reward_models.writers.locomotion_templates import ACTED
from reward_models.writers.manipulation_templates import HANDLED
from reward_models.writers.template_lines import (
    NoTemplate,
    ProgramLines,
    TemplateNumbers,
    no_template,
)


@dataclass(frozen=True)
class TemplateStructure:
    """What terms the templates are made of; the first value of each is the standard one."""

    kernel: str = "near"  # how a distance becomes progress
    slopes: str = "both"  # of the gripper's progress: wide and tight, or one of them
    approach: str = "behind"  # what is paid before a push: standing behind, being close, nothing
    gated: bool = True  # whether a push counts in full only with the gripper behind the object
    bonus: bool = True  # something on top where everything holds
    effort: bool = False  # whether actions cost

    def mutated(self, rng: np.random.Generator) -> TemplateStructure:
        """Returns a copy with another value in one place."""
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


SURELY = 0.002  # m, of a gripper's place, within the tolerances, where it holds for sure

REALISED = HANDLED | ACTED  # by templates of their own


def write_program(
    formula: Formula,
    card: TaskCard,
    numbers: TemplateNumbers | None = None,
    structure: TemplateStructure | None = None,
) -> str:
    """Returns the program of a formula."""
    numbers, structure = numbers or TemplateNumbers(), structure or TemplateStructure()
    if structure.effort and not numbers.effort:
        numbers = replace(numbers, effort=EFFORT)
    if not structure.bonus:
        numbers = replace(numbers, bonus=0.0)
    program = ProgramLines()
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
    program: ProgramLines,
    n: TemplateNumbers,
    structure: TemplateStructure,
    stem: str,
    done: str,
) -> str:
    """Adds the terms of atoms that hold together; answers how far they hold, as an expression."""
    atoms = _atoms(part)
    own = [a for a in atoms if role(card.entity(a.subject)) == "gripper"]
    moved = [a for a in atoms if role(card.entity(a.subject)) == "object"]
    others = [a for a in atoms if a not in own]
    handled = [a for a in others if a.predicate in REALISED and achieved_by(a, card) != "push"]
    moved = [a for a in moved if a not in handled]
    if left := [atom for atom in atoms if atom not in (*own, *handled, *moved)]:
        raise no_template(left[0], f"predicate {left[0].predicate} is not supported")
    gate = f"{done} * " if done else ""
    distances = [_gripper(atom, card, program) for atom in own]
    there = [f"({away} <= 0.0)" for away in distances]
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
            there.append(f"({left} <= 0.0)")
        for name, (weight, text) in terms.items():
            program.components[f"{stem}{name}{tail}"] = f"{gate}{_n(weight)} * {text}"
    before = ""
    for index, atom in enumerate(moved, 1):
        tail = f"_{index}" if len(moved) > 1 else ""
        pushed, holds = _pushed(atom, card, program, n, structure, stem, tail, gate + before)
        reached.append(pushed)
        there.append(holds)
        before += f"{pushed} * "
    if n.bonus and there:
        every = " & ".join(there)
        every = every if len(there) == 1 else f"({every})"
        program.components[f"{stem}there"] = f"{_n(n.bonus)} * {gate}{every}"
    return " * ".join(reached)


def _atoms(part: Formula) -> tuple[Atom, ...]:
    inner = []
    for one in parts_of(part, "and"):
        if not isinstance(one, Atom):
            raise no_template(one, f"operator {one.operator} is not supported")
        inner.append(one)
    return tuple(dict.fromkeys(inner))


def _n(value: float) -> str:
    return repr(float(value))


def _measured(atom: Atom, card: TaskCard) -> FormulaMargins:
    """How an atom is measured from the card's signals alone."""
    try:
        found = formula_margins(atom, card)
    except NoMargin as error:
        raise NoTemplate(f"no reward template: {error}") from None
    if found.kept or found.choices:
        raise no_template(atom, "it needs memory of the episode")
    return found


def _gripper(atom: Atom, card: TaskCard, program: ProgramLines) -> str:
    """The text of how far, in m, the gripper is from where it is to be."""
    found = _measured(atom, card)
    program.say(f"{atom}: 0 m away where it holds")
    return program.let(
        "away", program.reading(shortfall_text(found.conditions[atom], SURELY), card)
    )


def _pushed(
    atom: Atom,
    card: TaskCard,
    p: ProgramLines,
    n: TemplateNumbers,
    structure: TemplateStructure,
    stem: str,
    tail: str,
    gate: str,
) -> tuple[str, str]:
    """Adds the two stages of a push; answers (progress of the atom, whether it holds)."""
    found = _measured(atom, card)
    if not (way := found.way(atom)):
        raise no_template(
            atom, "the goal names neither a direction nor a target to push the object to"
        )
    hand = next(e for e in card.entities if role(e) == "gripper")
    tip = p.read(hand) if structure.gated or structure.approach != "none" else ""
    mover = p.read(card.entity(atom.subject))
    kernel, off = structure.kernel, ""
    if structure.approach == "behind" or structure.gated:
        p.say(f"{atom}: first behind it, on the line to where it is to go, then along that line")
        line = f"direction(({p.reading(way, card)})[:2])"
        behind = p.let("behind", f"{mover}[:2] - {_n(n.behind)} * {line}")
        off = p.let("off", f"hypot(norm({tip}[:2] - {behind}), {tip}[2] - {_n(n.low)})")
    else:
        p.say(f"{atom}: 0 m away where it holds")
    # What is pushed to the very edge of what is asked for comes to rest outside of it.
    away = p.let("away", p.reading(shortfall_text(found.conditions[atom], n.room), card))
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
    return close, f"({least_margin_text(found.conditions[atom])} >= {SURELY})"


def adjusted_numbers(
    numbers: TemplateNumbers, curves: dict[str, tuple[float, ...]]
) -> TemplateNumbers:
    """Returns numbers changed by how the components' means went along training."""
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
