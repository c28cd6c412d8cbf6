"""Goals as formulas: predicates over a task's entities with typed numbers, joined over time.

``docs/reference/goal-language.md`` is the meaning; here are the types, the two spellings and the
checks. A formula is *as said* when it is parsed: numbers that nobody gave are not there. ``fill``
holds it against a card and gives it *as meant*, with every number; only that has a spelling as
data, so what crosses packages has no defaults on either side.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from reward_models.base import CardEntity, TaskCard
from reward_models.goals.predicates import AFTER, PREDICATES, Number, roles

Kind = Literal["state", "event", "constraint"]

MAX_NODES, MAX_DEPTH, MAX_CHARS = 200, 20, 8_000
SECONDS = Number("seconds", "s", None, low=0.0, high=3600.0)


@dataclass(frozen=True)
class OperatorRule:
    """How an operator takes its parts: ``state`` are the places that need a state formula."""

    least: int
    most: int
    kind: Kind | None  # None: as its parts
    state: tuple[int, ...] = ()
    numbers: tuple[Number, ...] = ()


MANY = MAX_NODES
OPERATORS: dict[str, OperatorRule] = {
    "and": OperatorRule(2, MANY, None),
    "or": OperatorRule(2, MANY, None),
    "not": OperatorRule(1, 1, "state", (0,)),
    "once": OperatorRule(1, 1, "event", (0,)),
    "hold": OperatorRule(1, 1, "event", (0,), (SECONDS,)),
    "then": OperatorRule(2, MANY, "event"),
    "within": OperatorRule(1, 1, "event", (), (SECONDS,)),
    "while": OperatorRule(2, 2, "event", (1,)),
    "until": OperatorRule(2, 2, "event", (0,)),
    "never": OperatorRule(1, 1, "constraint", (0,)),
    "always": OperatorRule(1, 1, "constraint", (0,)),
}
# Choices made at the first step, and how many entities each needs.
CHOICES = {
    "nearest": 3,
    "farthest": 3,
    "leftmost": 2,
    "rightmost": 2,
    "frontmost": 2,
    "rearmost": 2,
}
# Units that a number may be written in, and what one of each is in SI.
UNITS: dict[str, dict[str, float]] = {
    "m": {"m": 1.0, "cm": 0.01, "mm": 0.001},
    "s": {"s": 1.0, "ms": 0.001, "min": 60.0},
    "rad": {"rad": 1.0, "deg": math.pi / 180},
    "m/s": {"m/s": 1.0, "cm/s": 0.01, "mm/s": 0.001},
    "1": {"%": 0.01},
}


class FormulaError(ValueError):
    """A formula that means nothing; one line that names the slot and what fits there."""


@dataclass(frozen=True)
class EntityChoice:
    """One of several entities, chosen by where they are at the first step."""

    rule: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.rule not in CHOICES:
            raise FormulaError(f"unknown choice {self.rule!r}{_meant(self.rule, CHOICES)}")
        if len(self.names) < CHOICES[self.rule]:
            raise FormulaError(
                f"{self.rule} takes {CHOICES[self.rule]} entities or more, got {len(self.names)}"
            )
        for name in self.names:
            _check_name(self.rule, name)

    @property
    def among(self) -> tuple[str, ...]:
        """The entities that may be chosen: not the one that others are near to."""
        return self.names[1:] if self.rule in ("nearest", "farthest") else self.names

    def __str__(self) -> str:
        return f"{self.rule}({', '.join(self.names)})"


Term = str | EntityChoice


@dataclass(frozen=True)
class Atom:
    """A predicate of one entity or more, with numbers in SI units: those that were said, or all."""

    predicate: str
    terms: tuple[Term, ...]
    numbers: tuple[tuple[str, float], ...] = ()  # in the order of the predicate's row

    def __post_init__(self) -> None:
        known = PREDICATES.get(self.predicate)
        if known is None:
            raise FormulaError(
                f"unknown predicate {self.predicate!r}{_meant(self.predicate, PREDICATES)}"
            )
        if len(self.terms) != known.arity:
            raise FormulaError(
                f"{self.predicate} takes {known.arity} entit{'y' if known.arity == 1 else 'ies'}, "
                f"got {len(self.terms)}: {', '.join(map(str, self.terms))}"
            )
        for term in self.terms:
            if isinstance(term, str):
                _check_name(self.predicate, term)
        object.__setattr__(self, "numbers", _ordered(self.predicate, known.numbers, self.numbers))

    @classmethod
    def of(cls, predicate: str, *terms: Term, **numbers: float) -> Atom:
        """Makes an atom: ``Atom.of("above", "gripper", "red_cube", height=0.05)``."""
        return cls(predicate, terms, tuple(numbers.items()))

    @property
    def subject(self) -> str:
        """The name of the first entity; an atom about a choice has none."""
        return _named(self, 0)

    @property
    def object(self) -> str:
        """The name of the second entity; empty where there is none."""
        return _named(self, 1) if len(self.terms) > 1 else ""

    def __getitem__(self, number: str) -> float:
        """A number by name; KeyError where it was not said."""
        return dict(self.numbers)[number]

    def __str__(self) -> str:
        return _spelled(self.predicate, self.terms, self.numbers)


@dataclass(frozen=True)
class Joined:
    """Formulas under an operator, kept in the order they were said."""

    operator: str
    parts: tuple[Formula, ...]
    numbers: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        known = OPERATORS.get(self.operator)
        if known is None:
            raise FormulaError(
                f"unknown operator {self.operator!r}{_meant(self.operator, OPERATORS)}"
            )
        count, name = len(self.parts), self.operator
        if not known.least <= count <= known.most:
            exact = known.least == known.most
            raise FormulaError(
                f"{name} takes {known.least}{'' if exact else ' or more'} "
                f"part{'s' * (known.least > 1)}, got {count}"
            )
        for at, part in enumerate(self.parts, 1):
            found = formula_kind(part)
            if at - 1 in known.state and found != "state":
                raise FormulaError(f"part {at} of {name} must be a state, got {found} {part}")
            if found == "constraint" and name != "and":
                raise FormulaError(
                    f"{part} spans the whole episode, so it cannot be part {at} of {name}; put it "
                    "into the outermost and, or use while(.., not(..))"
                )
            if name != "and" and isinstance(part, Joined) and _constrains(part):
                raise FormulaError(
                    f"never and always span the whole episode: put them not inside {name}, "
                    "but in the outermost and"
                )
        object.__setattr__(self, "numbers", _ordered(name, known.numbers, self.numbers))
        for number in known.numbers:
            if number.name not in dict(self.numbers):
                raise FormulaError(f"{name} needs {number.name}, such as {number.name}=1")

    @property
    def seconds(self) -> float:
        """Of ``hold`` and ``within``."""
        return dict(self.numbers)["seconds"]

    def __str__(self) -> str:
        return _spelled(self.operator, self.parts, self.numbers)


Formula = Atom | Joined


def join(operator: str, *parts: Formula, **numbers: float) -> Joined:
    """Makes a joined formula: ``join("then", a, b)``, ``join("hold", a, seconds=1)``."""
    return Joined(operator, parts, tuple(numbers.items()))


def formula_kind(formula: Formula) -> Kind:
    """Returns whether a formula is a state, an event or a constraint
    (docs/reference/goal-language.md)."""
    if isinstance(formula, Atom):
        return "state"
    own = OPERATORS[formula.operator].kind
    if own is not None:
        return own
    kinds = {formula_kind(part) for part in formula.parts}
    if kinds == {"constraint"}:
        return "constraint"
    return "state" if kinds == {"state"} else "event"


def atoms(formula: Formula) -> Iterator[Atom]:
    """Yields every atom of the formula, from left to right."""
    if isinstance(formula, Atom):
        yield formula
    else:
        for part in formula.parts:
            yield from atoms(part)


def parts_of(formula: Formula, operator: str) -> tuple[Formula, ...]:
    """Its parts under ``operator``, those of nested ones among them; itself if it has none."""
    if isinstance(formula, Joined) and formula.operator == operator:
        return tuple(p for part in formula.parts for p in parts_of(part, operator))
    return (formula,)


def sequence_path(formula: Formula) -> tuple[int, ...] | None:
    """Returns the path to the outermost ``then`` as numbers of parts; None without one."""
    if isinstance(formula, Atom) or formula_kind(formula) != "event" or formula.operator == "or":
        return None
    if formula.operator == "then":
        return ()
    for at, part in enumerate(formula.parts):
        if (found := sequence_path(part)) is not None:
            return (at, *found)
    return None


def canonical(formula: Formula) -> Formula:
    """Returns a formula in its one canonical spelling. Two that differ only in the order of the
    parts of ``and`` and ``or``, in nesting, or in the last digits of a number are equal."""
    numbers = tuple((name, round(value, 9)) for name, value in formula.numbers)
    if isinstance(formula, Atom):
        return Atom(formula.predicate, formula.terms, numbers)
    parts = tuple(map(canonical, formula.parts))
    if formula.operator in ("and", "or", "then"):
        parts = tuple(p for part in parts for p in parts_of(part, formula.operator))
    if formula.operator in ("and", "or"):
        parts = tuple(sorted(dict.fromkeys(parts), key=str))
    return (
        parts[0]
        if len(parts) == 1 < len(formula.parts)
        else Joined(formula.operator, parts, numbers)
    )


def fill(formula: Formula, card: TaskCard, part: bool = False) -> Formula:
    """Checks a formula against a card and gives every number a value.

    Missing numbers are those of the table of predicates: more exact where another number of the
    atom is given, and with a tolerance of their own under ``never`` and ``not``.

    Args:
        formula: The formula.
        card: The task's card.
        part: Whether this is a part of a formula, so what comes before it is unknown.

    Raises:
        FormulaError: An atom does not fit the card, or a number must be given.
    """
    if not part:
        _check_order(formula, sequence_path(formula))
    return _filled(formula, card, avoided=False)


def check(formula: Formula, card: TaskCard) -> None:
    """Checks that every atom names entities of the card that its predicate takes.

    Raises:
        FormulaError: One does not.
    """
    for atom in atoms(formula):
        _checked(atom, card)


def parse(text: str) -> Formula:
    """Reads a formula written as text; numbers may have a unit.

    Raises:
        FormulaError: The text is not a formula.
    """
    return _Parser(text).whole()


def to_data(formula: Formula) -> list[Any]:
    """Returns a formula as lists that JSON keeps.

    Args:
        formula: A filled formula.

    Returns:
        ``[name, [arguments], {numbers}]``. ``after`` is left out where it is 0, so goals that
        compare with the start are written as before that number existed.

    Raises:
        FormulaError: A number is missing: fill the formula against a card first.
    """
    if isinstance(formula, Atom):
        known = {n.name for n in PREDICATES[formula.predicate].numbers}
        if missing := sorted(known - dict(formula.numbers).keys()):
            raise FormulaError(
                f"{formula} lacks {', '.join(missing)}: fill it against a card first"
            )
        terms = [t if isinstance(t, str) else [t.rule, [*t.names], {}] for t in formula.terms]
        numbers = {n: value for n, value in formula.numbers if n != AFTER or value}
        return [formula.predicate, terms, numbers]
    return [formula.operator, [to_data(p) for p in formula.parts], dict(formula.numbers)]


def from_data(data: Any) -> Formula:
    """Reads a formula from the lists of ``to_data``.

    Raises:
        FormulaError: The lists are something else.
    """
    return _from_data(data, "formula", [0], 0)


def _check_order(formula: Formula, way: tuple[int, ...] | None, before: int = 0) -> None:
    """FormulaError where something is compared with the end of a part that does not come before:
    ``way`` is that to the sequence, ``before`` how many of its parts are."""
    if isinstance(formula, Atom):
        after = dict(formula.numbers).get(AFTER, 0.0)
        if after not in range(before + 1):
            raise FormulaError(
                f"{formula}: {AFTER} counts parts of the sequence before its own: a whole number "
                f"from 0 to {before} here, got {after:g}"
            )
        return
    for at, part in enumerate(formula.parts):
        if way == ():
            _check_order(part, None, at)
        else:
            _check_order(part, way[1:] if way and way[0] == at else None, before)


def _filled(formula: Formula, card: TaskCard, avoided: bool) -> Formula:
    if isinstance(formula, Atom):
        return _filled_atom(formula, card, avoided)
    avoided = avoided ^ (formula.operator in ("not", "never"))
    parts = tuple(_filled(part, card, avoided) for part in formula.parts)
    return Joined(formula.operator, parts, formula.numbers)


def _filled_atom(atom: Atom, card: TaskCard, avoided: bool) -> Atom:
    known, entities = PREDICATES[atom.predicate], _checked(atom, card)
    said = dict(atom.numbers)
    if known.needs and not said.keys() & set(known.needs):
        raise FormulaError(
            f"{atom}: needs {' or '.join(known.needs)}, such as {known.needs[0]}=8cm"
        )
    numbers = {}
    for number in known.numbers:
        value = said.get(number.name)
        if value is None:
            value = number.meant(entities, bool(said), avoided)
        if value is None:
            raise FormulaError(
                f"{atom}: needs {number.name} in {number.unit}, which has no default"
            )
        numbers[number.name] = value
    return Atom(atom.predicate, atom.terms, tuple(numbers.items()))


# What a role asks for where it is what can be done with a thing.
_DONE = "balance", "close", "insert", "lift", "open", "place", "press", "push", "stack"
_FOR = {name: f"something to {name}" for name in _DONE}


def _checked(atom: Atom, card: TaskCard) -> list[CardEntity]:
    """The entities of an atom, of a choice the first; FormulaError unless all of them fit."""
    known, first, named = PREDICATES[atom.predicate], [], []
    for place, fits, term in zip(_ORDINAL, known.roles, atom.terms, strict=False):
        names = (term,) if isinstance(term, str) else term.among
        found = [_entity(atom, place, name, card) for name in names]
        if isinstance(term, EntityChoice):
            _entity(atom, place, term.names[0], card)
        for entity in found:
            if not fits & roles(entity):
                able = [e.name for e in card.entities if fits & roles(e)]
                wanted = " or ".join(sorted(_FOR.get(one, one) for one in fits))
                raise FormulaError(
                    f"{atom.predicate}: its {place} must be {wanted}, got "
                    f"{entity.name!r}; fits here: {', '.join(able) or 'nothing'}"
                )
        first.append(found[0])
        named += names
    if len(set(named)) < len(named):
        raise FormulaError(f"{atom}: its entities must differ")
    return first


_ORDINAL = "first", "second", "third"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def _entity(atom: Atom, place: str, name: str, card: TaskCard) -> CardEntity:
    for entity in card.entities:
        if entity.name == name:
            return entity
    known = _meant(name, [e.name for e in card.entities])
    raise FormulaError(
        f"{atom.predicate}: its {place}, {name!r}, is not an entity of {card.task}{known}"
    )


def _constrains(formula: Joined) -> bool:
    return any(
        formula_kind(p) == "constraint" or isinstance(p, Joined) and _constrains(p)
        for p in formula.parts
    )


def _meant(wrong: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(wrong, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; available: {', '.join(names)}"


def _check_name(where: str, name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FormulaError(
            f"{where}: an entity name must consist of letters, digits and _; got {name!r}"
        )


def _named(atom: Atom, slot: int) -> str:
    term = atom.terms[slot]
    if isinstance(term, EntityChoice):
        raise FormulaError(
            f"{atom} holds a choice that is resolved only at the start of an episode"
        )
    return term


def _ordered(
    where: str, known: tuple[Number, ...], said: tuple[tuple[str, float], ...]
) -> tuple[tuple[str, float], ...]:
    """The numbers in the order of the table, each checked."""
    slots = {number.name: number for number in known}
    found: dict[str, float] = {}
    for name, value in said:
        if name not in slots:
            takes = f"; it takes {', '.join(slots)}" if slots else "; it takes no parameters"
            raise FormulaError(f"{where} has no parameter {name!r}{takes}")
        if name in found:
            raise FormulaError(f"{where}: {name} is given twice")
        slot = slots[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FormulaError(f"{where}: {name} must be a number in {slot.unit}, got {value!r}")
        if not slot.low <= value <= slot.high:
            raise FormulaError(
                f"{where}: {name} must be from {slot.low:g} to {slot.high:g} {slot.unit}, "
                f"got {value:g}"
            )
        found[name] = float(value)
    return tuple((name, found[name]) for name in slots if name in found)


def _spelled(name: str, arguments: tuple[Any, ...], numbers: tuple[tuple[str, float], ...]) -> str:
    given = [*map(str, arguments), *(f"{n}={_short(v)}" for n, v in numbers)]
    return f"{name}({', '.join(given)})"


def _short(value: float) -> str:
    text = repr(float(value))
    return text.removesuffix(".0")


def _from_data(data: Any, where: str, nodes: list[int], depth: int) -> Formula:
    nodes[0] += 1
    if nodes[0] > MAX_NODES or depth > MAX_DEPTH:
        raise FormulaError(f"a formula has at most {MAX_NODES} parts, {MAX_DEPTH} deep")
    name, arguments, numbers = _triple(data, where)
    given = tuple(numbers.items())
    if name in OPERATORS:
        parts = (
            _from_data(part, f"{where}[1][{i}]", nodes, depth + 1)
            for i, part in enumerate(arguments)
        )
        return Joined(name, tuple(parts), given)
    terms: list[Term] = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, str):
            terms.append(argument)
            continue
        rule, names, none = _triple(argument, f"{where}[1][{i}]")
        if none:
            raise FormulaError(f"{where}[1][{i}]: {rule} has no numbers, got {none}")
        terms.append(EntityChoice(rule, tuple(names)))
    if name in PREDICATES and PREDICATES[name].compares and AFTER not in numbers:
        given += ((AFTER, 0.0),)
    return Atom(name, tuple(terms), given)


def _triple(data: Any, where: str) -> tuple[str, list[Any], Mapping[str, Any]]:
    right = isinstance(data, list | tuple) and len(data) == 3
    if right and isinstance(data[0], str) and isinstance(data[1], list | tuple):
        if isinstance(data[2], Mapping):
            return data[0], list(data[1]), data[2]
    shown = repr(data)
    shown = shown if len(shown) < 60 else f"{shown[:57]}..."
    raise FormulaError(f"{where}: expected [name, [arguments], {{numbers}}], got {shown}")


class _Parser:
    """One text, read once from left to right."""

    def __init__(self, text: str):
        if len(text) > MAX_CHARS:
            raise FormulaError(f"a formula has at most {MAX_CHARS} characters, got {len(text)}")
        self.text, self.at, self.nodes = text, 0, 0

    def fail(self, expected: str) -> NoReturn:
        rest = self.text[self.at :].strip()
        got = repr(rest[:20]) if rest else "the end"
        raise FormulaError(f"formula at character {self.at + 1}: expected {expected}, got {got}")

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        blank = re.match(r"\s*", self.text[self.at :])
        assert blank is not None
        self.at += blank.end()
        match = pattern.match(self.text, self.at)
        if match is None:
            self.fail(expected)
        self.at = match.end()
        return match[0]

    def whole(self) -> Formula:
        formula = self.formula(self.take(_NAME, "a predicate or an operator"), 0)
        if self.text[self.at :].strip():
            self.fail("the end")
        return formula

    def formula(self, name: str, depth: int) -> Formula:
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise FormulaError(f"a formula has at most {MAX_NODES} parts, {MAX_DEPTH} deep")
        if name not in OPERATORS and name not in PREDICATES:
            known = [*PREDICATES, *OPERATORS]
            raise FormulaError(f"unknown predicate or operator {name!r}{_meant(name, known)}")
        row = OPERATORS[name].numbers if name in OPERATORS else PREDICATES[name].numbers
        arguments: list[Any] = []
        numbers: list[tuple[str, float]] = []
        self.take(_OPEN, f"( after {name}")
        while True:
            word = self.take(_NAME, f"an argument of {name}")
            following = self.text[self.at :].lstrip()[:1]
            if following == "=":
                self.take(_EQUALS, "=")
                numbers.append((word, self.number(name, word, row)))
            elif following == "(":
                inner = self.choice(word) if word in CHOICES else self.formula(word, depth + 1)
                arguments.append(inner)
            else:
                arguments.append(word)
            if self.take(_NEXT, f", or ) in {name}") == ")":
                break
        if name in OPERATORS:
            for at, argument in enumerate(arguments, 1):
                if not isinstance(argument, Atom | Joined):
                    raise FormulaError(f"part {at} of {name} must be a formula, got {argument}")
            return Joined(name, tuple(arguments), tuple(numbers))
        for at, argument in enumerate(arguments, 1):
            if isinstance(argument, Atom | Joined):
                raise FormulaError(f"argument {at} of {name} must be an entity, got {argument}")
        return Atom(name, tuple(arguments), tuple(numbers))

    def choice(self, rule: str) -> EntityChoice:
        self.take(_OPEN, "(")
        names = [self.take(_NAME, f"an entity of {rule}")]
        while self.take(_NEXT, f", or ) in {rule}") == ",":
            names.append(self.take(_NAME, f"an entity of {rule}"))
        return EntityChoice(rule, tuple(names))

    def number(self, where: str, name: str, row: tuple[Number, ...]) -> float:
        value = float(self.take(_NUMBER, f"a number for {name}"))
        unit = self.take(_UNIT, "a unit")
        if not unit:
            return value
        slot = next((n for n in row if n.name == name), None)
        if slot is None:
            return value  # the name is wrong, and that is what will be said
        if unit not in UNITS[slot.unit]:
            fits = ", ".join(UNITS[slot.unit])
            raise FormulaError(f"{where}: {name} is in {slot.unit}, got {unit!r}; fits: {fits}")
        return value * UNITS[slot.unit][unit]


_OPEN, _EQUALS, _NEXT = re.compile(r"\("), re.compile("="), re.compile(r"[,)]")
_UNIT = re.compile(r"(?:[a-zA-Z]+(?:/s)?|%)?")
