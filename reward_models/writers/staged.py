"""The reward program of any formula: a level that rises with every part that is done.

``(parts done + closeness of the next) / parts``, and something on top where the whole holds (as
reward machines are shaped; closeness is a kernel of what is missing, the margins' shortfall in m).
The program reads what the goal's automaton remembers beside the task's signals, so it says where an
episode stands without memory of its own. A thing is brought somewhere by being pushed from behind:
its closeness counts in full only with the tip there. What has to be grasped, slid or pressed comes
about by the templates of ``manipulation_templates.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from reward_models.base import TaskCard
from reward_models.goals.automaton import DONE, FAILED, Automaton, Path
from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import Atom, Formula, Joined, formula_kind
from reward_models.goals.margins import (
    FormulaMargins,
    least_margin_text,
    resolve_choices,
    shortfall_text,
    signal_arguments,
)
from reward_models.goals.predicates import GRIPPER, PREDICATES, role
from reward_models.writers.manipulation_templates import HANDLED
from reward_models.writers.template_lines import ProgramLines, TemplateNumbers, no_template


@dataclass
class _Part:
    """How far a part is: text in [0, 1], and how many stages it is."""

    text: str
    stages: int = 1


def write_staged(
    measured: FormulaMargins, automaton: Automaton, numbers: TemplateNumbers | None = None
) -> str:
    """Returns the program of a formula, over ``measured.card`` and the automaton's slots."""
    return _Writer(measured, automaton, numbers or TemplateNumbers()).program()


class _Writer:
    def __init__(self, measured: FormulaMargins, automaton: Automaton, numbers: TemplateNumbers):
        self.measured, self.automaton, self.n = measured, automaton, numbers
        self.p = ProgramLines()
        self.names: dict[str, str] = {}

    def program(self) -> str:
        part = self.part(self.automaton.formula, ())
        alive = f"(1.0 - {FAILED}[0])"
        values = {"level": f"{alive} * {part.text}", "there": f"{self.n.bonus!r} * {DONE}[0]"}
        slots = tuple(slot.signal for slot in self.automaton.slots)
        card = TaskCard(
            **{**vars(self.measured.card), "signals": self.measured.card.signals + slots}
        )
        self.p.lines = _needed(self.p.lines, list(values.values()))
        self.p.signals = dict.fromkeys(signal_arguments([*self.p.lines, *values.values()], card))
        self.p.components = values
        return self.p.text()

    def let(self, stem: str, text: str) -> str:
        """A name for an expression, the same for the same one."""
        if text not in self.names:
            self.names[text] = self.p.let(stem, text)
        return self.names[text]

    def part(self, formula: Formula, path: Path) -> _Part:
        if isinstance(formula, Atom) or formula_kind(formula) == "state":
            return _Part(self.closeness(formula))
        own = self.automaton.names[path]
        inner = [(*path, i) for i in range(len(formula.parts))]
        match formula.operator:
            case "then":
                parts = [self.part(p, at) for p, at in zip(formula.parts, inner, strict=True)]
                return self.sequence(parts, f"{own['part']}[0]")
            case "and":
                return self.together(formula, inner)
            case "or":
                parts = [self.part(p, at) for p, at in zip(formula.parts, inner, strict=True)]
                text = parts[0].text
                for one in parts[1:]:
                    text = f"maximum({text}, {one.text})"
                return _Part(self.let("best", text), max(p.stages for p in parts))
            case "hold":
                share = f"{own['held']}[0] / {float(self.automaton.steps(formula))!r}"
                close = self.closeness(formula.parts[0])
                return _Part(self.let("held", f"maximum(0.5 * {close} + 0.5 * {share}, {share})"))
            case "once":
                close = self.closeness(formula.parts[0])
                return _Part(self.let("once", f"maximum({own['done']}[0], {close})"))
            case "within" | "while" | "until":
                i = 1 if formula.operator == "until" else 0
                part = self.part(formula.parts[i], inner[i])
                return _Part(f"maximum({own['done']}[0], {part.text})", part.stages)
        return _Part("1.0", 0)  # a constraint: kept until it is broken, which ends all pay

    def sequence(self, parts: list[_Part], at: str) -> _Part:
        """The stages before the current part, and how far that is; of all of them."""
        total = float(sum(p.stages for p in parts))
        text, before = "1.0", total
        for i in range(len(parts) - 1, -1, -1):
            before -= parts[i].stages
            level = f"({before!r} + {float(parts[i].stages)!r} * {parts[i].text}) / {total!r}"
            text = f"where({at} < {i + 0.5}, {self.let('level', level)}, {text})"
        return _Part(self.let("level", text), int(total))

    def together(self, formula: Joined, inner: list[Path]) -> _Part:
        """States at once count as one part, by what all of them lack; events beside them."""
        states = [p for p in formula.parts if formula_kind(p) == "state"]
        parts = [
            self.part(p, at)
            for p, at in zip(formula.parts, inner, strict=True)
            if formula_kind(p) != "state"
        ]
        parts = [p for p in parts if p.stages]
        if states:
            whole = states[0] if len(states) == 1 else Joined("and", tuple(states))
            parts.append(_Part(self.closeness(whole)))
        if not parts:
            return _Part("1.0", 0)
        total = sum(p.stages for p in parts)
        if len(parts) == 1:
            return parts[0]
        text = " + ".join(f"{p.stages / total!r} * {p.text}" for p in parts)
        return _Part(self.let("together", text), total)

    def closeness(self, formula: Formula) -> str:
        """1 where a state holds, falling with what is missing."""
        n, moved = self.n, self.moved(formula)
        # What is pushed to the very edge of what is asked for comes to rest outside of it.
        room = n.room if any(not self.handles(atom) for atom in moved) else 0.0
        away = self.let("away", self.missing(formula, room))
        share, rest = n.wide_share, round(1 - n.wide_share, 6)
        text = f"{share!r} * near({away}, {n.wide!r}) + {rest!r} * near({away}, {n.tight!r})"
        close = self.let("close", text)
        for atom in moved:
            about = self.handled if self.handles(atom) else self.behind
            close = about(atom, close, away)
        return close

    def missing(self, formula: Formula, room: float) -> str:
        """m, 0 where it holds by ``room``: lengths of what is missing together, the least of
        either."""
        if isinstance(formula, Atom):
            return shortfall_text(self.measured.conditions[formula], room)
        if formula.operator == "not":
            return f"above(-({self.margin(formula.parts[0])}), {room!r})"
        join = "hypot" if formula.operator == "and" else "minimum"
        return _fold(join, (self.missing(part, room) for part in formula.parts))

    def margin(self, formula: Formula) -> str:
        if isinstance(formula, Atom):
            return least_margin_text(self.measured.conditions[formula])
        if formula.operator == "not":
            return f"-({self.margin(formula.parts[0])})"
        join = "minimum" if formula.operator == "and" else "maximum"
        return _fold(join, map(self.margin, formula.parts))

    def moved(self, formula: Formula) -> list[Atom]:
        """The atoms that are brought about by doing something to a thing."""
        if not isinstance(formula, Atom):
            parts = formula.parts if formula.operator != "not" else ()
            return [atom for part in parts for atom in self.moved(part)]
        card, row = self.measured.task_card, PREDICATES[formula.predicate]
        mover = next(resolve_choices(formula)).subject
        if role(card.entity(mover)) != "object":
            return []
        if row.by != "push" and formula.predicate not in HANDLED:
            raise no_template(formula, f"predicate {formula.predicate} is not supported")
        return [formula] if formula.predicate in HANDLED or self.measured.aims[formula] else []

    def handles(self, atom: Atom) -> bool:
        """Whether a thing is handled, and not pushed."""
        return atom.predicate in HANDLED and achieved_by(atom, self.measured.task_card) != "push"

    def behind(self, atom: Atom, close: str, away: str) -> str:
        """``close`` in full only with the tip behind the thing, on the line to where it goes."""
        card, n = self.measured.task_card, self.n
        hand = next(e for e in card.entities if e.kind == GRIPPER).pose_signal
        places = [card.entity(one.subject).pose_signal for one in resolve_choices(atom)]
        thing = self.measured.picked(atom, places)
        if len(places) > 1:
            thing = self.let("chosen", thing)
        way = self.let("way", f"direction(({self.measured.way(atom)})[:2])")
        spot = self.let("behind", f"{thing}[:2] - {n.behind!r} * {way}")
        off = self.let("off", f"hypot(norm({hand}[:2] - {spot}), {hand}[2] - {n.low!r})")
        gate = f"({n.ungated!r} + {round(1 - n.ungated, 6)!r} * near({off}, {n.behind_gate!r}))"
        paid = n.behind_weight / (n.behind_weight + n.push_weight)
        text = f"{paid!r} * near({off}, {n.behind_scale!r}) + {1 - paid!r} * {gate} * {close}"
        return self.let("pushed", f"where({away} <= 0.0, 1.0, {text})")

    def handled(self, atom: Atom, close: str, away: str) -> str:
        """How far the handling of a thing is; what else is to hold meanwhile is half of it."""
        ways = [self.handling(one) for one in resolve_choices(atom)]
        done = self.measured.picked(atom, ways)
        if len(ways) > 1:
            done = self.let("chosen", done)
        return self.let("held", f"where({away} <= 0.0, 1.0, {done} * (0.5 + 0.5 * {close}))")

    def handling(self, atom: Atom) -> str:
        """The terms of a handling of known things, as one share."""
        _, _, terms = HANDLED[atom.predicate](self.p, self.measured.task_card, atom, self.n)
        total = sum(weight for weight, _ in terms.values())
        text = " + ".join(f"{weight / total!r} * {text}" for weight, text in terms.values())
        return self.let("handled", text)


def _needed(lines: list[str], last: list[str]) -> list[str]:
    """The lines whose names are read by what follows them: templates say more than is asked."""
    kept: list[str] = []
    for line in reversed(lines):
        name = line.split("=", 1)[0].strip()
        if any(re.search(rf"\b{name}\b", text) for text in (*kept, *last)):
            kept.append(line)
    return kept[::-1]


def _fold(join: str, texts: Iterable[str]) -> str:
    """Expressions folded by a function of two."""
    return reduce(lambda one, other: f"{join}({one}, {other})", texts)
