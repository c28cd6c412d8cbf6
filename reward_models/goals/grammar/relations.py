"""Relations, states and ways as they are said, without their verb: "5 cm above the ball", "halfway
open", "7 cm left and 4 cm forward", "arms up"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from reward_models.goals.grammar import connectives, quantities
from reward_models.goals.grammar.noun_phrases import Phrase
from reward_models.goals.grammar.patterns import Patterns, pattern
from reward_models.goals.grammar.quantities import Quantity
from reward_models.goals.grammar.slots import SlotParser
from reward_models.goals.grammar.wordings import DIRECTIONS, POSES, RELATIONS, START, STATES

_RELATIONS, _STATES, _POSES = (
    Patterns((name, text) for name, texts in table.items() for text in texts)
    for table in (RELATIONS, STATES, POSES)
)


@dataclass(frozen=True)
class Clause:
    """A predicate, or what stands for one (``to``, ``apart``, ...), as it was said.

    ``subject`` None: whoever acts, or whoever the clause before was about.
    """

    predicate: str
    subject: Phrase | None = None
    objects: tuple[Phrase, ...] = ()
    much: Quantity | None = None
    numbers: tuple[tuple[str, float], ...] = ()
    verb: str = ""  # the stem of the verb that said it; empty: none did
    bare: bool = False  # without a verb or a subject: "then the ball", "left of the cube"
    mood: str = ""  # "never", "always": it is no goal, but what is to be avoided, or kept up
    lasting: bool = False  # "stay", "keep"
    told: bool = False  # of a thing, that it is or should be so; not an order
    ended: bool = False  # nothing that leaves its verb out may follow
    also: str = ""  # a state of the subject besides: "be still beside it"
    began: bool = False  # of where it was as the episode began, in so many words


Found = tuple[Clause, int]


class RelationParser(SlotParser):
    """What is said of a subject that stands before it, or of none."""

    def relation(self, i: int) -> list[Found]:
        """Relations without their subject: "5 cm above the ball", "between them"."""
        return self._memo("relation", "", i, lambda: self._relation(i))

    def _relation(self, i: int) -> Iterator[Found]:
        for name, text, slots, end in self._matches(_RELATIONS, i):
            objects = tuple(slots[k] for k in ("O", "ITS", "T") if k in slots)
            much = slots.get("MUCH") or slots.get("NEAR") or slots.get("BOUND")
            if much is not None and much.unit != "m":
                continue
            much = slots.get("PART", much)
            numbers = tuple((n, slots[n.upper()]) for n in "xy" if n.upper() in slots)
            if name == "near" and much is not None and text.startswith("MUCH"):
                if much.least is not None or much.most is None:
                    continue  # "closer than 5 cm to", and not "5 cm of"
            found = Clause(name, None, objects, much, numbers, began=START in text)
            yield found, end
            yield from self._with_quantity_after(found, end)

    def _matches(self, table: Patterns, i: int) -> Iterator[tuple[str, str, dict[str, Any], int]]:
        """(predicate, its wording, what fills the wording's slots, end) of what fits at ``i``."""
        for name, what in table.at(self.word(i)):
            for slots, end in self.filled(what, i):
                yield name, what.text, slots, end

    def _with_quantity_after(self, found: Clause, i: int) -> Iterator[Found]:
        """A relation whose quantity or tolerance follows it: "behind it, 5 cm away"."""
        start = i + (self.word(i) == ",")
        if found.predicate == "at_point" and found.much is None:
            for after in quantities.GIVE_OR_TAKE.ends(self.words, start):
                for unit, value, end in quantities.unit_quantities(self.words, after):
                    if unit == "m":
                        yield replace(found, much=Quantity("m", None, value)), end
        if found.much is not None:
            for much, end in quantities.with_tolerance(found.much, self.words, i):
                yield replace(found, much=much), end
            return
        for after in (start, *connectives.BY.ends(self.words, start)):
            for much, end in self.much(after) if found.predicate in connectives.BESIDE else ():
                if much.unit == "m":
                    yield replace(found, much=much), end
                    for last in connectives.AWAY.ends(self.words, end):
                        yield replace(found, much=much), last

    def state(self, i: int) -> list[Found]:
        """States without their subject: "upright", "halfway open"."""
        return self._memo("state", "", i, lambda: self._state(i))

    def _state(self, i: int) -> Iterator[Found]:
        for name, _, slots, end in self._matches(_STATES, i):
            if end > i and (name != "at_height" or self.body):
                yield from self._with_slots(Clause(name), slots, end)

    def _with_slots(self, clause: Clause, slots: dict[str, Any], end: int) -> Iterator[Found]:
        """The clause with what filled its slots."""
        if "EVER" in slots:
            clause = replace(clause, mood=slots["EVER"])
        if "SHUNNED" in slots:
            yield replace(clause, objects=(slots["SHUNNED"],), mood="never"), end
            return
        kinds = "MUCH PART SLOW FAST SPEED NEAR UNDER CAP HEIGHT TIMES".split()
        much = next((slots[k] for k in kinds if k in slots), None)
        if "WAY" in slots and much is not None:
            if not much.just:
                return
            angle = slots["WAY"] * much.value
            much = replace(much, least=angle, most=angle)
        subject = slots.get("S")
        objects = tuple(slots[k] for k in ("O", "T") if k in slots)
        yield replace(clause, subject=subject, objects=objects, much=much), end

    def ways(self, i: int) -> list[Found]:
        """Ways from where a thing was: "7 cm left and 4 cm forward"."""
        return self._memo("ways", "", i, lambda: self._ways(i))

    def _ways(self, i: int) -> Iterator[Found]:
        for found, end in self._plain_ways(i):
            yield found, end
            for last in connectives.FROM_START.ends(self.words, end):
                yield replace(found, began=True), last
            for last in connectives.FROM_HERE.ends(self.words, end):
                yield found, last

    def _plain_ways(self, i: int) -> Iterator[Found]:
        for left, front, exact, end in self._way(i):
            yield self._displacement(left, front, exact), end
            for taken, last in quantities.with_tolerance(exact, self.words, end) if exact else ():
                yield self._displacement(left, front, taken), last
            joined = end + 1 if self.word(end) in ("and", ",") else end
            for left2, front2, exact2, last in self._way(joined) if joined > end else ():
                if (left != 0) != (left2 != 0):
                    yield self._displacement(left + left2, front + front2, exact and exact2), last

    def _displacement(self, left: float, front: float, exact: Quantity | None) -> Clause:
        return Clause("moved", None, (), exact, (("left", left), ("front", front)))

    def _way(self, i: int) -> Iterator[tuple[float, float, Quantity | None, int]]:
        """(left, front, the quantity, end) of one way with its length before or after."""
        by = i + 1 if self.word(i) == "by" else i
        for found, end in self.much(by):
            if found.unit == "m":
                length = found.least if found.least is not None else found.most
                for left, front, last in self._direction(end):
                    yield left * (length or 0), front * (length or 0), found, last
        for left, front, end in self._direction(i):
            for after in (end, end + 1):
                if after > end and self.word(end) != "by":
                    continue
                for found, last in self.much(after):
                    if found.unit == "m":
                        length = found.least if found.least is not None else found.most
                        yield left * (length or 0), front * (length or 0), found, last

    def _direction(self, i: int) -> Iterator[tuple[int, int, int]]:
        for text, (left, front) in DIRECTIONS.items():
            for _, end in self.filled(pattern(text), i):
                beside = self.word(end) == "of" and not [
                    *connectives.FROM_START.ends(self.words, end)
                ]
                if end > i and not beside:
                    yield left, front, end
                    for after in {end, end + (self.word(end) == ",")}:  # "back, away from camera"
                        for _, last in self.filled(pattern(text), after):
                            if last > after and self.word(last) != "of":
                                yield left, front, last
                                if self.word(last) == ",":
                                    yield left, front, last + 1

    def pose(self, i: int) -> list[Found]:
        """Parses what a body does or is, without a verb, at word ``i``: "a front flip", "arms
        up"."""
        return self._memo("pose", "", i, lambda: self._pose(i))

    def _pose(self, i: int) -> Iterator[Found]:
        for name, _, _, end in self._matches(_POSES, i) if self.body else ():
            if (name == "upright") == self.balances:
                yield Clause(name), end
