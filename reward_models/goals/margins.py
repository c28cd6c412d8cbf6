"""What is missing to each predicate of a formula, in m: the table's margins over a task's signals.

A margin is text of the reward language, so that a reward program can hold it; here it is also
compiled to numpy for a formula's automaton. Signals that only a goal has (where a thing was at the
first step, or as a part of the sequence was done; which one was chosen) are named ``start_..``,
``after1_..`` and ``chosen_..``; whoever runs the formula remembers them for each row.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from reward_models.base import CardEntity, CardSignal, TaskCard
from reward_models.goals.formula import Atom, EntityChoice, Formula, atoms, fill
from reward_models.goals.predicates import AFTER, BODY, FURNITURE, GRIPPER, MARKS, PREDICATES
from reward_models.programs import Program, load
from reward_models.programs.language import MAX_COMPONENTS

Array = np.ndarray


@dataclass(frozen=True)
class StoredSignal:
    """A signal as it was at the first step, or when so many parts of the sequence were done; until
    then, as it is."""

    signal: str
    after: int = 0

    @property
    def name(self) -> str:
        """What it is called among the signals."""
        return f"after{self.after}_{self.signal}" if self.after else f"start_{self.signal}"

    @property
    def when(self) -> str:
        """When it was so, in words."""
        return f"after part {self.after} of the goal" if self.after else "at the start"


class NoMargin(ValueError):
    """A predicate whose margin the card's signals do not say."""


class _Unknown(Exception):
    """A condition on a quantity that this scene does not have; the message names the quantity."""


@dataclass
class FormulaMargins:
    """A filled formula over a task's card, and the text of what its atoms measure."""

    formula: Formula
    task_card: TaskCard
    conditions: dict[Atom, tuple[str, ...]] = field(
        default_factory=dict
    )  # each >= 0 where it holds
    aims: dict[Atom, str] = field(default_factory=dict)  # vectors (3) m; "": it has none
    kept: tuple[StoredSignal, ...] = ()  # what has to be remembered
    choices: tuple[EntityChoice, ...] = ()

    @property
    def card(self) -> TaskCard:
        """The task's card with the signals that the formula remembers."""
        known = {s.name: s for s in self.task_card.signals}
        extra = [
            replace(known[k.signal], name=k.name, doc=f"{known[k.signal].doc}, {k.when}")
            for k in self.kept
        ]
        for number, choice in enumerate(self.choices, 1):
            most = len(choice.among) - 1.0
            doc = f"which of {', '.join(choice.among)} is the {choice.rule}, from 0"
            extra.append(CardSignal(f"chosen_{number}", (1,), "1", "goal", (0.0, most), doc, False))
        return replace(self.task_card, signals=(*self.task_card.signals, *extra))

    def picked(self, atom: Atom, texts: Sequence[str]) -> str:
        """Returns text that picks, for each environment, the one of ``texts`` that its choices
        mean; there is one for each of ``resolve_choices(atom)``."""
        choices = [t for t in atom.terms if isinstance(t, EntityChoice)]
        picks = [f"chosen_{self.choices.index(choice) + 1}[0]" for choice in choices]
        return _picked(list(texts), picks, [len(choice.among) for choice in choices])

    def way(self, atom: Atom) -> str:
        """Returns text (3) m of the way that a thing is to go: the atom's aim, or to the mark that
        it is to lie on; "" where an atom has neither."""
        if self.aims[atom] or len(atom.terms) < 2:
            return self.aims[atom]
        ways, card = list(resolve_choices(atom)), self.task_card
        thing, mark = (
            self.picked(atom, [card.entity(str(one.terms[i])).pose_signal for one in ways])
            for i in (0, 1)
        )
        return f"{mark} - {thing}"

    def chosen(self, signals: Mapping[str, Array]) -> Array:
        """Returns which of each choice's entities is chosen now, (N, choices), from signals {name:
        (N, k)}."""
        columns = [_choose(c, signals, self.task_card) for c in self.choices]
        return np.stack(columns, axis=1) if columns else np.zeros((len(signals[_any(signals)]), 0))

    def begun(self, signals: Mapping[str, Array]) -> dict[str, Array]:
        """Returns the signals {name: (N, k)} to remember of an episode that begins now."""
        return {kept.name: signals[kept.signal] for kept in self.kept}

    def remembered(self, kept: Mapping[str, Array], chosen: Array) -> dict[str, Array]:
        """Returns the signals that only the goal has.

        Args:
            kept: {name: (N, k)} signals that are remembered.
            chosen: (N, choices) which of each choice's entities is chosen.

        Returns:
            {name: (N, k)}: those remembered, and ``chosen_1`` and so on.
        """
        return {one.name: kept[one.name] for one in self.kept} | {
            f"chosen_{i}": chosen[:, i - 1 : i] for i in range(1, 1 + len(self.choices))
        }


def formula_margins(formula: Formula, card: TaskCard) -> FormulaMargins:
    """Returns the text of every atom's conditions.

    Raises:
        NoMargin: The card's signals do not measure an atom.
    """
    formula = fill(formula, card, part=True)
    every = tuple(dict.fromkeys(atoms(formula)))
    choices = dict.fromkeys(t for a in every for t in a.terms if isinstance(t, EntityChoice))
    made = FormulaMargins(formula, card, choices=tuple(choices))
    kept: dict[StoredSignal, None] = {}
    for atom in every:
        written = [_written(one, card, kept) for one in resolve_choices(atom)]
        made.conditions[atom] = tuple(
            made.picked(atom, texts)
            for texts in zip(*(conditions for conditions, _ in written), strict=True)
        )
        made.aims[atom] = made.picked(atom, [aim for _, aim in written])
    made.kept = tuple(kept)
    return made


class MarginEvaluator:
    """``FormulaMargins`` as numpy: margins and aims of every atom, rows at once."""

    def __init__(self, of: FormulaMargins):
        self.of = of
        self.atoms = tuple(of.conditions)
        texts = [text for atom in self.atoms for text in of.conditions[atom]]
        texts += [f"({of.aims[a]})[{i}]" for a in self.atoms if of.aims[a] for i in range(3)]
        self._programs = [_program(part, of.card) for part in _parts(texts)]
        read = {s for program in self._programs for s in program.lowered.inputs}
        self.before = tuple(dict.fromkeys(i.signal for i in read if i.previous))

    def __call__(
        self, after: Mapping[str, Array], before: Mapping[str, Array]
    ) -> tuple[dict[Atom, Array], dict[Atom, Array]]:
        """({atom: margins (N, conditions)}, {atom: aim (N, 3)}); ``after`` has the remembered
        signals too, ``before`` those of one step ago that ``self.before`` names."""
        columns: list[Array] = []
        for program in self._programs:
            columns += program(after, before=before).values()
        found = iter(columns)
        margins = {a: _taken(found, len(self.of.conditions[a])) for a in self.atoms}
        return margins, {a: _taken(found, 3) for a in self.atoms if self.of.aims[a]}


def shortfall_text(conditions: tuple[str, ...], room: float = 0.0) -> str:
    """Returns text of how far conditions are from holding together by ``room``, >= 0: the length of
    all shortfalls."""
    short = [f"above({condition}, {room!r})" for condition in conditions]
    text = short[0]
    for one in short[1:]:
        text = f"hypot({text}, {one})"
    return text


def least_margin_text(conditions: tuple[str, ...]) -> str:
    """Returns text of the margin of conditions that hold together: their least."""
    text = conditions[0]
    for one in conditions[1:]:
        text = f"minimum({text}, {one})"
    return text


def _parts(texts: list[str]) -> Iterator[list[str]]:
    """As many at a time as a program may have components and nodes."""
    for first in range(0, len(texts), MAX_COMPONENTS):
        yield texts[first : first + MAX_COMPONENTS]


def _program(texts: list[str], card: TaskCard) -> Program:
    body = "".join(f'        "c{i}": {text},\n' for i, text in enumerate(texts))
    return load(
        f"def reward({', '.join(signal_arguments(texts, card))}):\n    return {{\n{body}    }}\n",
        card,
    )


def signal_arguments(texts: list[str], card: TaskCard) -> list[str]:
    """Returns the arguments of a program that computes ``texts``."""
    words = dict.fromkeys(w for text in texts for w in re.findall(r"[A-Za-z_]\w*", text))
    known = {s.name for s in card.signals} | {f"prev_{s.name}" for s in card.signals}
    return [word for word in words if word in known]


def _taken(found: Iterator[Array], count: int) -> Array:
    return np.stack([next(found) for _ in range(count)], axis=1)


def resolve_choices(atom: Atom) -> Iterator[Atom]:
    """Yields the atom for every way in which its choices may fall."""
    among = [(t,) if isinstance(t, str) else t.among for t in atom.terms]
    for names in itertools.product(*among):
        yield Atom(atom.predicate, names, atom.numbers)


def _picked(texts: list[str], picks: list[str], counts: list[int]) -> str:
    """One of ``texts`` by the signals ``picks``; the last pick varies fastest."""
    if not picks or not texts[0]:
        return texts[0]
    rest = len(texts) // counts[0]
    ways = [
        _picked(texts[i * rest : (i + 1) * rest], picks[1:], counts[1:]) for i in range(counts[0])
    ]
    text = ways[-1]
    for i in range(counts[0] - 2, -1, -1):
        text = f"where({picks[0]} < {i + 0.5}, {ways[i]}, {text})"
    return text


def _written(atom: Atom, card: TaskCard, kept: dict[StoredSignal, None]) -> tuple[list[str], str]:
    row = PREDICATES[atom.predicate]
    if not row.margin:
        raise NoMargin(
            f"{atom.predicate} has no margin (signed distance to success): give the goal as "
            "a sentence, or use --reward task or reward code"
        )
    slots = _Slots(atom, card, kept)
    conditions, missing = [], []
    for text in row.margin:
        try:
            conditions.append(text.format_map(slots))
        except _Unknown as error:
            missing.append(str(error))
    if not conditions:
        needed = " and ".join(dict.fromkeys(missing))
        raise NoMargin(f"no margin for {atom}: task {card.task!r} does not give {needed}")
    try:
        return conditions, row.aim.format_map(slots)
    except (_Unknown, KeyError):
        return conditions, ""


# Of the rectangle on a table in which things lie.
_EDGES: dict[str, Callable[[Sequence[float]], float]] = {
    "low_x": lambda area: area[0],
    "high_x": lambda area: area[1],
    "low_y": lambda area: area[2],
    "high_y": lambda area: area[3],
    "middle_x": lambda area: 0.5 * (area[0] + area[1]),
    "middle_y": lambda area: 0.5 * (area[2] + area[3]),
    "wide": lambda area: area[1] - area[0],
    "deep": lambda area: area[3] - area[2],
}


class _Slots(dict[str, object]):
    """What stands in a row's braces."""

    def __init__(self, atom: Atom, card: TaskCard, kept: dict[StoredSignal, None]):
        after = int(dict(atom.numbers).get(AFTER, 0))
        things = {
            letter: EntityQuantities(card.entity(str(term)), card, kept, after)
            for letter, term in zip("abc", atom.terms, strict=False)
        }
        numbers = {name: repr(value) for name, value in atom.numbers}
        super().__init__(**things, **numbers, dt=repr(card.control_dt))
        self.card, self.things = card, things

    def __missing__(self, name: str) -> str:
        a = self.things["a"]
        if name == "contact" and a.entity.kind != GRIPPER:
            return _surfaces(a, self.things["b"])
        touched = self.things["b"] if name == "contact" else a
        if name in ("contact", "clearance"):
            return f"minimum({touched.fingers}[0], {touched.fingers}[1])"
        if name == "far_clearance":
            return f"maximum({touched.fingers}[0], {touched.fingers}[1])"
        if name == "middles":
            return a.signal("finger_middles")
        if name == "grip":
            return a.signal("grip", "tip")
        if name in _EDGES:
            if not self.card.area:
                raise _Unknown("the table's area")
            return repr(round(float(_EDGES[name](self.card.area)), 6))
        raise KeyError(name)


@dataclass
class EntityQuantities:
    """What can be said of one entity, as text of the reward language; _Unknown where it cannot."""

    entity: CardEntity
    card: TaskCard
    kept: dict[StoredSignal, None]
    after: int = 0

    def __str__(self) -> str:
        return self.entity.pose_signal

    def __format__(self, spec: str) -> str:
        return str(self)

    def signal(self, *names: str) -> str:
        """Returns the first of ``names`` that is a signal of the card."""
        known = {s.name for s in self.card.signals}
        for name in names:
            if name in known:
                return name
        raise _Unknown(f"signal {' or '.join(names)}")

    @property
    def start(self) -> str:
        """The position where the episode or the part began."""
        return self._kept(self.entity.pose_signal)

    def _kept(self, signal: str) -> str:
        found = StoredSignal(signal, self.after)
        self.kept[found] = None
        return found.name

    @property
    def before(self) -> str:
        """The position before the action."""
        return f"prev_{self.entity.pose_signal}"

    @property
    def rest(self) -> str:
        """Half its height, of a thing that stands on the table."""
        e = self.entity
        if e.kind in (GRIPPER, BODY) or e.kind in MARKS | FURNITURE or not e.half:
            raise _Unknown(f"the height of {e.name}")
        return repr(e.half[2])

    @property
    def foot(self) -> str:
        """The height m of its lower end."""
        return self._level("-")

    @property
    def top(self) -> str:
        """The height m of its upper end."""
        return self._level("+")

    def _level(self, sign: str) -> str:
        e = self.entity
        if e.kind in (GRIPPER, BODY) or e.kind in MARKS | FURNITURE:
            return f"{self}[2]"
        return f"({self}[2] {sign} {self.rest})"

    @property
    def wide(self) -> str:
        """Half its width m, along x."""
        return self._half(0)

    @property
    def deep(self) -> str:
        """Half its depth m, along y."""
        return self._half(1)

    def _half(self, axis: int) -> str:
        if not self.entity.half:
            raise _Unknown(f"the size of {self.entity.name}")
        return repr(self.entity.half[axis])

    @property
    def fingers(self) -> str:
        """The signal of the gripper's fingers."""
        return self.signal(f"{self.entity.name}_fingers")

    @property
    def tilt_cosine(self) -> str:
        """Returns text of the cosine of its tilt: 1 upright, 0 on its side."""
        if self.entity.kind != BODY:
            return f"{self.signal(f'{self.entity.name}_up')}[2]"
        name = self.signal("torso_up", "pitch")
        return f"{name}[0]" if name == "torso_up" else "cos(pitch[0])"

    @property
    def turn(self) -> str:
        """Its angle rad about the vertical."""
        facing = self.signal(f"{self.entity.name}_facing")
        return f"arctan2({facing}[1], {facing}[0])"

    @property
    def turn_before(self) -> str:
        """Its angle rad about the vertical where the part began."""
        facing = self._kept(self.signal(f"{self.entity.name}_facing"))
        return f"arctan2({facing}[1], {facing}[0])"

    @property
    def joint(self) -> str:
        """The position m of its joint."""
        return f"{self.signal(f'{self.entity.body}_joint')}[0]"

    @property
    def travel(self) -> str:
        """The largest position m of its joint."""
        name = self.signal(f"{self.entity.body}_joint")
        return repr(next(s for s in self.card.signals if s.name == name).range[1])


def _surfaces(a: EntityQuantities, b: EntityQuantities) -> str:
    """Distance m of two things that stand: that of their outlines from above, and of their heights.

    A ball's is its centre's, less its radius. _Unknown of two cubes: of their outlines the language
    has no short way to say it. Likewise of an item, whose outline may be any.
    """
    kinds = [q.entity.kind for q in (a, b)]
    if kinds.count("cube") > 1 or not a.entity.half or "item" in kinds:
        raise _Unknown(f"the distance of the surfaces of {a.entity.name} and {b.entity.name}")
    x, y = f"({a}[0] - {b}[0])", f"({a}[1] - {b}[1])"
    apart, wide, high, radius = f"hypot({x}, {y})", 0.0, 0.0, 0.0
    for q in (a, b):
        half = q.entity.half
        if q.entity.kind in MARKS | FURNITURE or not half:
            continue  # they are their point
        if q.entity.kind == "ball":
            radius += half[0]
            continue
        high += half[2]
        if q.entity.kind == "cube":
            yaw = f"(0.25 * {q.turn})"
            along = f"abs(cos({yaw}) * {x} + sin({yaw}) * {y}) - {half[0]!r}"
            across = f"abs(cos({yaw}) * {y} - sin({yaw}) * {x}) - {half[0]!r}"
            apart = f"hypot(maximum({along}, 0.0), maximum({across}, 0.0))"
        else:
            wide += half[0]
    over = f"maximum(abs({a}[2] - {b}[2]) - {round(high, 6)!r}, 0.0)"
    outlines = f"hypot(maximum({apart} - {round(wide, 6)!r}, 0.0), {over})"
    return f"maximum({outlines} - {round(radius, 6)!r}, 0.0)" if radius else outlines


def _choose(choice: EntityChoice, signals: Mapping[str, Array], card: TaskCard) -> Array:
    """(N,) which of ``choice.among`` it is, from 0."""
    points = np.stack([signals[card.entity(n).pose_signal] for n in choice.among], axis=1)
    if choice.rule in ("nearest", "farthest"):
        to = signals[card.entity(choice.names[0]).pose_signal]
        apart = np.linalg.norm(points - to[:, None], axis=2)
        return np.argmin(apart if choice.rule == "nearest" else -apart, axis=1)
    axis, sign = _EXTREME[choice.rule]
    return np.argmin(sign * points[:, :, axis], axis=1)


_EXTREME = {"leftmost": (1, 1), "rightmost": (1, -1), "frontmost": (0, -1), "rearmost": (0, 1)}


def _any(signals: Mapping[str, Array]) -> str:
    return next(iter(signals))
