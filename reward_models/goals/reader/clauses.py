"""Clauses: what a verb, a relation or a state asks for, with its things and quantities as said.

A clause is read in every way that its words allow; which things "it" may mean, and whether the
card has what is asked, ``meaning.py`` decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from reward_models.goals.grammar.phrases import expand
from reward_models.goals.predicates import GRIPPER
from reward_models.goals.reader import quantities
from reward_models.goals.reader.quantities import Much
from reward_models.goals.reader.things import Phrase, Phrases, Said, Thing, Things
from reward_models.goals.reader.wordings import (
    BODY_DEEDS,
    DEEDS,
    DIRECTIONS,
    GO,
    MAKE,
    PLACE,
    RELATIONS,
    STATES,
    STAY,
    UNCLEAR,
)
from reward_models.goals.reader.words import (
    Bound,
    Pattern,
    alternatives,
    pattern,
    split,
    verb_forms,
)

_BE = "be|stay|remain|end up|stand|sit|lie|rest|hover|keep|hang|stop|finish|end|wait|get"
_STAND = frozenset("be stay hold keep stand remain".split())
_ANYWHERE = expand(
    "(in any direction|in whatever direction|[away] from where (it|you) (was|were|started|are|is) "
    "[now|at start]|[away] from (its|your) start)"
)
_MODALS = alternatives(
    "should|must|shall|will|has to|have to|needs to|need to|ought to|is to|should always|"
    "is supposed to|to"
)


@dataclass(frozen=True)
class Clause:
    """A predicate, or what stands for one (``to``, ``apart``, ...), as it was said.

    ``subject`` None: whoever acts, or whoever the clause before was about.
    """

    predicate: str
    subject: Phrase | None = None
    objects: tuple[Phrase, ...] = ()
    much: Much | None = None
    numbers: tuple[tuple[str, float], ...] = ()
    verb: str = ""  # the stem of the verb that said it; empty: none did
    bare: bool = False  # without a verb or a subject: "then the ball", "left of the cube"
    shunned: bool = False  # it is to be avoided
    lasting: bool = False  # "stay", "keep"
    told: bool = False  # of a thing, that it is or should be so; not an order
    ended: bool = False  # nothing that leaves its verb out may follow
    also: str = ""  # a state of the subject besides: "be still beside it"


Found = tuple[Clause, int]


Verb = tuple[tuple[str, ...], str, str, Pattern | None]


@cache
def _verbs(kind: str, form: str) -> dict[str, list[Verb]]:
    """First word -> (words, stem, predicate, what follows) of the verbs of a kind in a form."""
    table: dict[str, list[Any]] = defaultdict(list)
    rows = {
        "deed": DEEDS + UNCLEAR, "body": BODY_DEEDS + UNCLEAR, "place": (("", PLACE, ""),),
        "go": (("", GO, ""),), "make": (("", MAKE, ""),), "be": (("", _BE, ""),),
    }[kind]  # fmt: skip
    for predicate, verbs, rest in rows:
        for verb in verbs.split("|"):
            for words in verb_forms(verb.strip())[form]:
                entry = words, verb.strip(), predicate, pattern(rest) if predicate else None
                table[words[0]].append(entry)
    return table


@cache
def vocabulary() -> frozenset[str]:
    """Every word that some pattern of a clause knows."""
    texts = [t for table in (RELATIONS, STATES) for rows in table.values() for t in rows]
    texts += [*DIRECTIONS, *(rest for _, _, rest in (*DEEDS, *BODY_DEEDS))]
    found = {word for text in texts for word in pattern(text).literals()}
    for kind in ("deed", "body", "place", "go", "make", "be"):
        for form in ("base", "s", "ing", "ed"):
            for rows in _verbs(kind, form).values():
                found |= {word for words, *_ in rows for word in words}
    return frozenset(found)


class Clauses:
    """The clauses of one sentence."""

    def __init__(self, words: tuple[str, ...], named: frozenset[int], things: Things) -> None:
        self.words, self.named, self.things = words, named, things
        self.phrases = Phrases(words, named, things)
        actor = things.actor
        self.body = actor is not None and actor.kind != GRIPPER
        self.known: dict[tuple[str, str, int], list[Any]] = {}
        self.reached = 0  # how far any pattern came, for what is said where nothing fits

    def _memo(self, what: str, form: str, i: int, read: Any) -> list[Any]:
        key = what, form, i
        if key not in self.known:
            self.known[key] = []
            self.known[key] = list(dict.fromkeys(read()))
            for _, end in self.known[key]:
                self.reached = max(self.reached, end)
        return self.known[key]

    def word(self, i: int) -> str:
        """The word at ``i``; empty behind the last."""
        return self.words[i] if i < len(self.words) else ""

    def much(self, i: int) -> list[tuple[Much, int]]:
        """The quantities at ``i``, and where they end."""
        return self._memo("much", "", i, lambda: quantities.much(self.words, i))

    # ------------------------------------------------------------------------------- slots

    def slot(self, name: str, i: int) -> list[tuple[Any, int]]:
        """What may fill a slot of a pattern at ``i``, and where that ends."""
        return self._memo("slot", name, i, lambda: self._slot(name, i))

    def _slot(self, name: str, i: int) -> Iterator[tuple[Any, int]]:
        if i >= len(self.words):
            return
        match name:
            case "S" | "SHUNNED":
                yield from self.phrases.at(i)
            case "O" | "T":
                yield from self.phrases.one(i) if name == "O" else self.phrases.at(i)
                if name == "O":
                    yield from ((p, e) for p, e in self.phrases.at(i) if (p, e) not in
                                self.phrases.one(i))  # fmt: skip
            case "MUCH":
                yield from self.much(i)
            case "TOL":
                for after in quantities.starts(self.words, i, quantities.GIVE_OR_TAKE):
                    for unit, value, end in quantities.quantity(self.words, after):
                        if unit == "m":
                            yield value, end
            case "PART":
                yield from quantities.share(self.words, i)
            case "SLOW" | "FAST":
                for found, end in self.much(i):
                    bound = found.most if name == "SLOW" else found.least
                    if found.unit == "m/s" and not found.just and bound is not None:
                        yield found, end
            case "HEIGHT":
                for opening, least in (("below", False), ("under", False), ("above", True),
                                       ("over", True), ("higher than", True),
                                       ("lower than", False), ("at least", True),
                                       ("at most", False), ("between", None)):  # fmt: skip
                    key = split(opening)
                    if self.words[i : i + len(key)] == key and least is not None:
                        for unit, value, end in quantities.quantity(self.words, i + len(key)):
                            if unit == "m":
                                end += 1 if self.word(end) == "high" else 0
                                yield Much("m", value if least else None,
                                           None if least else value), end  # fmt: skip
                for found, end in self.much(i):
                    if found.unit == "m" and found.least is not None and found.most is not None:
                        if not found.just:
                            yield found, end
            case "WAY":
                for text, sign in (("clockwise", -1.0), ("counterclockwise", 1.0),
                                   ("anticlockwise", 1.0), ("counter clockwise", 1.0),
                                   ("anti clockwise", 1.0)):  # fmt: skip
                    key = split(text)
                    if self.words[i : i + len(key)] == key:
                        yield sign, i + len(key)
            case "TIMES":
                for value, end in quantities.number(self.words, i):
                    if self.word(end) == "times" and value == int(value):
                        yield Much("1", value, value, just=True), end + 1
                for text, value in (("once", 1.0), ("twice", 2.0)):
                    if self.word(i) == text:
                        yield Much("1", value, value, just=True), i + 1
            case "X" | "Y":
                sign, start = (-1, i + 1) if self.word(i) in ("-", "minus") else (1, i)
                for found, end in self.much(start):
                    if found.unit == "m" and found.just:
                        yield sign * found.value, end
                for value, end in quantities.number(self.words, start):
                    yield sign * value, end
            case "NEARER":
                for found, end in self.much(i):
                    if found.unit == "m" and found.most is not None and found.least is None:
                        if self.word(end) in ("to", "of", "from"):
                            for phrase, last in self.phrases.at(end + 1):
                                yield (found, phrase), last

    def filled(self, what: Pattern, i: int) -> Iterator[tuple[dict[str, Any], int]]:
        """The slots of a pattern at ``i``; a slot that stands twice is filled once at most."""
        found: tuple[Bound, int]
        for found in what.match(self.words, i, self.slot):
            bound, end = found
            slots = dict(bound)
            if len(slots) == len(bound):
                yield slots, end

    def verb(self, kind: str, form: str, i: int) -> Iterator[tuple[str, str, Pattern | None, int]]:
        """(stem, predicate, what follows, end) of the verbs of a kind that stand at ``i``."""
        if i in self.named:
            return  # "the tip over the can" is no order to tip it over
        for words, stem, predicate, rest in _verbs(kind, form).get(self.word(i), ()):
            inner = range(i + 1, i + len(words))  # "pull the open drawer" is not "pull open"
            if self.words[i : i + len(words)] == words and self.named.isdisjoint(inner):
                yield stem, predicate, rest, i + len(words)

    # ------------------------------------------------------------------- relations and states

    def relation(self, i: int) -> list[Found]:
        """Relations without their subject: "5 cm above the ball", "between them"."""
        return self._memo("relation", "", i, lambda: self._relation(i))

    def _relation(self, i: int) -> Iterator[Found]:
        for name, texts in RELATIONS.items():
            for text in texts:
                for slots, end in self.filled(pattern(text), i):
                    objects = tuple(slots[k] for k in ("O", "T") if k in slots)
                    much = slots.get("MUCH")
                    if much is not None and much.unit != "m":
                        continue
                    numbers = tuple((n, slots[n.upper()]) for n in "xy" if n.upper() in slots)
                    if "TOL" in slots:
                        if much is None or not much.just:
                            continue
                        much = replace(much, tolerance=slots["TOL"])
                    if name == "near" and much is not None and text.startswith("MUCH"):
                        if much.least is not None or much.most is None:
                            continue  # "closer than 5 cm to", and not "5 cm of"
                    yield Clause(name, None, objects, much, numbers), end
        if self.word(i) in ("within",):
            return
        for found, end in self.much(i):  # "at least 10 cm away from it"
            if found.unit == "m" and not found.just:
                for opening in ("to", "from", "away from", "off", "of"):
                    key = split(opening)
                    if self.words[end : end + len(key)] == key:
                        for phrase, last in self.phrases.at(end + len(key)):
                            yield Clause("apart", None, (phrase,), found), last

    def state(self, i: int) -> list[Found]:
        """States without their subject: "upright", "halfway open"."""
        return self._memo("state", "", i, lambda: self._state(i))

    def _state(self, i: int) -> Iterator[Found]:
        for name, texts in STATES.items():
            for text in texts:
                for slots, end in self.filled(pattern(text), i):
                    if end > i:
                        yield from self._with(Clause(name), slots, end)

    def ways(self, i: int) -> list[Found]:
        """Ways from where a thing was: "7 cm left and 4 cm forward"."""
        return self._memo("ways", "", i, lambda: self._ways(i))

    def _ways(self, i: int) -> Iterator[Found]:
        for left, front, exact, end in self._way(i):
            yield self._moved(left, front, exact), end
            joined = end + 1 if self.word(end) in ("and", ",") else end
            for left2, front2, exact2, last in self._way(joined) if joined > end else ():
                if (left != 0) != (left2 != 0):
                    yield self._moved(left + left2, front + front2, exact and exact2), last

    def _moved(self, left: float, front: float, exact: Much | None) -> Clause:
        return Clause("moved", None, (), exact, (("left", left), ("front", front)))

    def _way(self, i: int) -> Iterator[tuple[float, float, Much | None, int]]:
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
                if end > i and self.word(end) != "of":
                    yield left, front, end

    # -------------------------------------------------------------------------------- clauses

    def clause(self, form: str, i: int) -> list[Found]:
        """Clauses that begin with a verb in a form: base "touch", ing "touching"."""
        return self._memo("clause", form, i, lambda: self._clause(form, i))

    def _clause(self, form: str, i: int) -> Iterator[Found]:
        for stem, predicate, rest, start in self.verb("body" if self.body else "deed", form, i):
            assert rest is not None
            for slots, end in self.filled(rest, start):
                lasting = stem.split()[0] in STAY and stem != "hold up"
                yield from self._with(Clause(predicate, verb=stem, lasting=lasting), slots, end)
        if not self.body:
            yield from self._placing(form, i)
            yield from self._going(form, i)
            for stem, _, _, start in self.verb("make", form, i):
                for phrase, end in self.phrases.at(start):
                    for found, last in self._does(phrase, end, ("base",)):
                        yield replace(found, verb=stem, told=not self.acting(phrase)), last

    def _with(self, clause: Clause, slots: dict[str, Any], end: int) -> Iterator[Found]:
        """The clause with what filled its slots."""
        if "NEARER" in slots:
            much, phrase = slots["NEARER"]
            yield replace(clause, objects=(phrase,), much=much, shunned=True), end
            return
        if "SHUNNED" in slots:
            yield replace(clause, objects=(slots["SHUNNED"],), shunned=True), end
            return
        much = next((slots[k] for k in ("MUCH", "PART", "SLOW", "FAST", "HEIGHT", "TIMES")
                     if k in slots), None)  # fmt: skip
        numbers = ()
        if clause.predicate == "turned" and much is not None:
            if much.unit != "rad":
                return
            if "WAY" in slots:
                if not much.just:
                    return
                angle = slots["WAY"] * much.value
                much = replace(much, least=angle, most=angle)
        subject = slots.get("S")
        objects = tuple(slots[k] for k in ("O", "T") if k in slots)
        yield replace(clause, subject=subject, objects=objects, much=much, numbers=numbers), end

    def _placing(self, form: str, i: int) -> Iterator[Found]:
        """A thing is put somewhere: "push the cube 5 cm to the left", "keep it upright"."""
        for stem, _, _, start in self.verb("place", form, i):
            lasting = stem in ("keep", "hold", "leave", "have")
            for phrase, end in self.phrases.at(start):
                for found, last in self._where(end, stem):
                    yield replace(found, subject=phrase, verb=stem, lasting=lasting), last
                for until in ("until", "till"):  # "push it until it is left of the ball"
                    if self.word(end) == until and not lasting:
                        for found, last in self.statement(end + 1):
                            if found.subject in (Said("it"), phrase):
                                yield replace(found, subject=phrase, verb=stem), last
            for found, end in self.relation(start):  # "put next to the ball the cube"
                for phrase, last in self.phrases.one(end) if stem in ("put", "place") else ():
                    if isinstance(phrase, Thing):
                        yield replace(found, subject=phrase, verb=stem), last

    def _going(self, form: str, i: int) -> Iterator[Found]:
        for stem, _, _, start in self.verb("go", form, i):
            lasting = stem.split()[0] in STAY
            yield from (
                (replace(found, verb=stem, lasting=lasting), end)
                for found, end in self._where(start, stem)
                if stem != "stop" or found.predicate != "against"  # "stop touching it"
            )
            for state, end in self.state(start) if stem in _STAND else ():  # "still beside it"
                if state.predicate == "still":
                    for found, last in self.relation(end):
                        yield replace(found, verb=stem, lasting=lasting, also="still"), last

    def _where(self, i: int, verb: str) -> Iterator[Found]:
        """What a verb of place is followed by: a relation, a state, a way, a goal."""
        back = i + 1 if self.word(i) in ("over", "back", "up", "down", "along", "across") else i
        for start in dict.fromkeys((i, back)):
            yield from self.relation(start)
            for opening in ("to", "up to", "over to", "all way to", "towards", "toward"):
                key = split(opening)
                if self.words[start : start + len(key)] == key:
                    for phrase, end in self.phrases.at(start + len(key)):
                        if opening not in ("towards", "toward"):
                            yield Clause("to", None, (phrase,)), end
        there = i + 1 if self.word(i) == "down" else i
        if self.word(there) == "there":
            yield Clause("there"), there + 1
        if self.word(i) in ("inside", "in") and not self.phrases.one(i + 1):
            yield Clause("inside", None, (Said("room"),)), i + 1
        yield from self.ways(i)
        state_verbs = ("be", "stay", "remain", "keep", "hold", "leave", "stand", "get", "end up",
                       "set", "have", "finish", "come")  # fmt: skip
        if verb in state_verbs:
            yield from self.state(i)
        by = i + 1 if self.word(i) == "by" else i
        for found, end in self.much(by):
            if found.unit == "m":
                yield Clause("displaced", None, (), found), end
                for text in _ANYWHERE:  # fmt: skip
                    key = split(text)
                    if self.words[end : end + len(key)] == key:
                        yield Clause("displaced", None, (), found), end + len(key)

    # ------------------------------------------------------------------------------ statements

    def statement(self, i: int) -> list[Found]:
        """A subject and what it is or does: "the cube is left of the ball"."""
        return self._memo("statement", "", i, lambda: self._statement(i))

    def _statement(self, i: int) -> Iterator[Found]:
        yield from self._distance(i)
        for phrase, end in self.phrases.at(i):
            for found, last in self._does(phrase, end, ("s", "be", "modal")):
                yield replace(found, told=not self.acting(phrase)), last

    def verbless(self, i: int) -> Iterator[Found]:
        """A subject and a relation or state: "red cube left of the ball", "the drawer open"."""
        for phrase, end in self.phrases.at(i):
            if isinstance(phrase, Said) and phrase.how != "it":
                continue  # "both left of it and far from that"
            if self.word(end) == "over" and self.word(i) in ("hand", "tip") and i not in self.named:
                continue  # "hand over the ball"
            states = () if self.body and self.acting(phrase) else self.state(end)
            if i in self.named and self.word(end).endswith("ed"):
                states = ()  # "the drawer closed" tells what happened
            for found, last in (*self.relation(end), *states):
                yield replace(found, subject=phrase), last

    def _does(self, phrase: Phrase, i: int, how: tuple[str, ...]) -> Iterator[Found]:
        """What a subject that ends at ``i`` is or does."""
        if "be" in how and self.word(i) in ("is", "are", "be", "stays", "remains", "stay", "sits"):
            yield from self._is(phrase, i + 1)
        if "s" in how:
            yield from self._acts(phrase, "s", i)
            if self.word(i + 1) and self.word(i) in ("is", "are"):
                yield from self._acts(phrase, "ing", i + 1)
        if "base" in how:
            start = i + 1 if self.word(i) == "to" else i
            yield from self._acts(phrase, "base", start)
            yield from self._is(phrase, i)
        if "modal" in how:
            for modal in _MODALS:
                if self.words[i : i + len(modal)] == modal:
                    yield from self._acts(phrase, "base", i + len(modal))
                    if self.word(i + len(modal)) == "be":
                        yield from self._acts(phrase, "ing", i + len(modal) + 1)

    def _is(self, phrase: Phrase, i: int) -> Iterator[Found]:
        states = self.state(i)
        if self.body and self.acting(phrase):  # to stand or be upright is another thing there
            states = [(f, e) for f, e in states if f.predicate in ("still", "slower", "faster")]
        for found, end in (*self.relation(i), *states):
            yield replace(found, subject=phrase), end
        for found, end in self.much(i):
            if found.unit == "m" and self.word(end) == "apart":
                yield Clause("apart", phrase, (), found), end + 1
        for stem, predicate, rest, start in self.verb("deed", "ed", i):
            if predicate == "touch" and rest is not None:
                after = start
                if self.word(start) == "by":
                    after = next((e for p, e in self.phrases.one(start + 1)
                                  if self.acting(p)), start)  # fmt: skip
                yield Clause("touch", None, (phrase,), verb=stem, ended=after > start), after
        for stem, _, _, start in self.verb("place", "ed", i):
            for found, end in self._where(start, stem):
                yield replace(found, subject=phrase, verb=stem), end

    def _acts(self, phrase: Phrase, form: str, i: int) -> Iterator[Found]:
        """Of whoever acts every deed; of a thing only where it goes and what it touches."""
        if self.acting(phrase):
            for found, end in self.clause(form, i):
                yield replace(found, subject=found.subject or phrase), end
            return
        for stem, _, _, start in self.verb("be", form, i):
            lasting = stem in STAY
            for found, end in self._is(phrase, start):
                yield replace(found, verb=stem, lasting=lasting), end
        for stem, predicate, rest, start in self.verb("deed", form, i):
            if predicate == "touch" and rest is not None and stem in ("touch", "contact", "reach"):
                for slots, end in self.filled(rest, start):
                    yield Clause("against", phrase, (slots["O"],), verb=stem), end

    def acting(self, phrase: Phrase) -> bool:
        """Whether a phrase names whoever acts."""
        actor = self.things.actor
        return isinstance(phrase, Thing) and actor is not None and phrase.term == actor.name

    def _distance(self, i: int) -> Iterator[Found]:
        """ "the distance between A and B is at least 20 cm"."""
        for text in ("[there is] [a] (distance|gap|space) between S [should] "
                     "(is|be|are|stays|to be|of) MUCH",
                     "[there is|there are] MUCH [of] [space|room|distance] between "
                     "S"):  # fmt: skip
            for slots, end in self.filled(pattern(text), i):
                if slots["MUCH"].unit == "m":
                    yield Clause("apart", slots["S"], (), slots["MUCH"]), end

    def fragment(self, i: int) -> Iterator[Found]:
        """What leaves its verb out: "then the ball", "and left of the cube", "then to the can"."""
        for phrase, end in self.phrases.at(i):
            if not (isinstance(phrase, Said) and phrase.how == "it"):
                yield Clause("", None, (phrase,), bare=True), end
        for found, end in (*self.relation(i), *self.ways(i)):
            yield replace(found, bare=True), end
        if self.word(i) == "to":
            for phrase, end in self.phrases.at(i + 1):
                yield Clause("to", None, (phrase,), bare=True), end
        for found, end in self.state(i):
            if found.predicate in ("slower", "faster", "still"):
                yield replace(found, bare=True), end
        if not self.body:
            for found, end in self.much(i):
                if found.unit == "m/s" and not found.just:
                    name = "slower" if found.least is None else "faster"
                    yield Clause(name, None, (), found, bare=True), end
