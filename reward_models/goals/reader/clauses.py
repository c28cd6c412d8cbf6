"""Clauses: what a verb, a relation or a state asks for, with its things and quantities as said.

A clause is read in every way that its words allow; which things "it" may mean, and whether the
card has what is asked, ``meaning.py`` decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from reward_models.goals.predicates import GRIPPER
from reward_models.goals.reader import joints, quantities
from reward_models.goals.reader.lexicon import TELLING
from reward_models.goals.reader.quantities import Much
from reward_models.goals.reader.things import Many, Phrase, Phrases, Said, Thing, Things
from reward_models.goals.reader.wordings import (
    BODY_DEEDS,
    DEEDS,
    DIRECTIONS,
    GO,
    GOES,
    MAKE,
    MEASURED,
    PLACE,
    PLACE_HAND,
    POSE_VERBS,
    POSES,
    RELATIONS,
    STATEMENTS,
    STATES,
    STAY,
    UNCLEAR,
)
from reward_models.goals.reader.words import (
    Bound,
    Pattern,
    pattern,
    verb_forms,
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
    mood: str = ""  # "never", "always": it is no goal, but what is to be avoided, or kept up
    lasting: bool = False  # "stay", "keep"
    told: bool = False  # of a thing, that it is or should be so; not an order
    ended: bool = False  # nothing that leaves its verb out may follow
    also: str = ""  # a state of the subject besides: "be still beside it"


Found = tuple[Clause, int]

# Slots of quantities that must be bounds, or are taken for ones: unit, and what is taken of one.
_AMOUNTS: dict[str, tuple[str, Callable[[Much], Much | None]]] = {
    "SLOW": ("m/s", lambda much: much if much.most is not None and not much.just else None),
    "FAST": ("m/s", lambda much: much if much.least is not None and not much.just else None),
    "SPEED": ("m/s", lambda much: much.at_least() if much.just else None),
    "CAP": ("m/s", lambda much: much.at_most() if much.most is not None else None),
    "BOUND": ("m", lambda much: much if not much.just else None),
    "UNDER": ("m", lambda much: much if much.least is None else None),
    "NEAR": ("m", lambda much: much.at_most() if much.just or much.least is None else None),
    "LASTS": ("s", lambda much: much if much.just or much.most is None else None),
    "ENDS": ("s", lambda much: much if much.just or much.least is None else None),
    "ATMOST": ("s", lambda much: much if much.least is None else None),
}


def _any(clause: Clause) -> bool:
    return True


def _plain(clause: Clause) -> bool:
    return not clause.mood


def _manner(clause: Clause) -> bool:
    return clause.predicate in ("slower", "faster", "at_height") and clause.much is not None


# Slots that are clauses: how they are said, and which of those are meant.
_SAID: dict[str, tuple[str, Callable[[Clause], bool]]] = {
    "DO": ("base", _plain),
    "DOING": ("ing", _any),
    "ACTING": ("ing", _plain),
    "STAYING": ("ing", lambda clause: clause.lasting),
    "TOLD": ("statement", _plain),
    "MOODED": ("base ing statement", lambda clause: bool(clause.mood)),
    "KEPT": (
        "base ing statement",
        lambda clause: clause.lasting and clause.told and _plain(clause),
    ),
    "SUFFERS": ("plain", _plain),
    "RELATION": ("relation", _any),
    "BEING": ("relation state pose", _any),
    "BIT": ("fragment", _any),
    "NAMED": ("fragment", lambda clause: not clause.predicate),
    "RELATED": ("fragment", lambda clause: clause.predicate not in ("", "against")),
    "TIMED": ("timed fragment", _plain),
    "PACE": ("pace", _any),
    "MANNER": ("ing", _manner),
    "PACED": ("verbless", _manner),
}

Verb = tuple[tuple[str, ...], str, str, Pattern | None]


@cache
def _verbs(kind: str, form: str) -> dict[str, list[Verb]]:
    """First word -> (words, stem, predicate, what follows) of the verbs of a kind in a form."""
    table: dict[str, list[Any]] = defaultdict(list)
    rows = {
        "deed": DEEDS + UNCLEAR, "body": BODY_DEEDS + UNCLEAR, "place": (("", PLACE, ""),),
        "go": (("", GO, ""),), "make": (("", MAKE, ""),), "goes": (("", GOES, ""),),
        "hand": (("", PLACE_HAND, ""),), "pose": (("", POSE_VERBS, ""),),
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
    texts = [t for table in (RELATIONS, STATES, POSES) for rows in table.values() for t in rows]
    texts += [*DIRECTIONS, *(rest for _, _, rest in (*DEEDS, *BODY_DEEDS))]
    found = {word for text in texts for word in pattern(text).literals()}
    for kind in ("deed", "body", "place", "hand", "go", "make", "goes", "pose"):
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
        self.body = actor is not None and actor.kind != GRIPPER and not things.objects
        self.balances = actor is not None and "balance" in actor.affordances
        self.known: dict[tuple[str, str, int], list[Any]] = {}
        self.measures = not MEASURED.isdisjoint(words)

    def _memo(self, what: str, form: str, i: int, read: Any) -> list[Any]:
        key = what, form, i
        if key not in self.known:
            self.known[key] = []
            self.known[key] = list(dict.fromkeys(read()))
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

    def said(self, forms: str, i: int) -> Iterator[Found]:
        """Clauses at ``i`` in any of these forms: of a verb, or a method's name."""
        for form in forms.split():
            verbs = form in ("base", "ing")
            yield from self.clause(form, i) if verbs else getattr(self, form)(i)

    def _slot(self, name: str, i: int) -> Iterator[tuple[Any, int]]:
        if name in _SAID:
            said, meant = _SAID[name]
            yield from ((clause, end) for clause, end in self.said(said, i) if meant(clause))
            return
        if self.word(i) == "first":  # "touch first the cube": sentences.py knows that it was said
            i += 1
        i = next(joints.ORDERED.ends(self.words, i), i)
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
            case "HAND" | "AID":
                yield from ((p, e) for p, e in self.phrases.one(i)
                            if name == "AID" or self.acting(p))  # fmt: skip
            case "ANY":
                end = i
                while end < len(self.words) and self.words[end] not in TELLING:
                    end += 1
                    yield self.words[i:end], end
            case "THING":
                yield from self.phrases.one(i)
            case "ITS":
                if self.word(i) == "its":
                    yield Said("it"), i + 1
            case "MUCH":
                yield from self.much(i)
            case "PART":
                yield from quantities.share(self.words, i)
                for after in quantities.LEAST.ends(self.words, i):
                    for found, end in quantities.share(self.words, after):
                        yield found.at_least(), end
            case "EVER":
                if self.word(i) == "not":
                    yield "never", i + 1 + (self.word(i + 1) == "ever")
                for mood, table in joints.PLAINLY.items():
                    yield from ((mood, end) for end in table.ends(self.words, i))
            case _ if name in _AMOUNTS:
                unit, taken = _AMOUNTS[name]
                for found, end in self.much(i):
                    if found.unit == unit and (kept := taken(found)) is not None:
                        yield kept, end
            case "HEIGHT":
                at = i + (self.word(i) == "at" and self.word(i + 1)[:1].isdigit())
                if self.words[i : i + 2] == ("up", "to"):
                    for found, end in self.much(i + 2):  # "up to 1.4 m or higher"
                        if found.unit == "m" and found.most is None:
                            yield found, end
                for found, end in self.much(at):
                    if found.unit == "m" and not found.just:
                        yield found, end + (self.word(end) == "high")
            case "WAY":
                for sign, texts in joints.TURNS.items():
                    yield from ((sign, end) for end in texts.ends(self.words, i))
            case "TIMES":
                at = next(quantities.LEAST.ends(self.words, i), i)
                for value, end in quantities.number(self.words, at):
                    if self.word(end) in ("times", "swings") and value == int(value):
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
                    objects = tuple(slots[k] for k in ("O", "ITS", "T") if k in slots)
                    much = slots.get("MUCH") or slots.get("NEAR") or slots.get("BOUND")
                    if much is not None and much.unit != "m":
                        continue
                    numbers = tuple((n, slots[n.upper()]) for n in "xy" if n.upper() in slots)
                    if name == "near" and much is not None and text.startswith("MUCH"):
                        if much.least is not None or much.most is None:
                            continue  # "closer than 5 cm to", and not "5 cm of"
                    found = Clause(name, None, objects, much, numbers)
                    yield found, end
                    yield from self._measured(found, end)

    def _measured(self, found: Clause, i: int) -> Iterator[Found]:
        """A relation whose quantity or tolerance follows it: "behind it, 5 cm away"."""
        start = i + (self.word(i) == ",")
        if found.predicate == "at_point" and found.much is None:
            for after in quantities.GIVE_OR_TAKE.ends(self.words, start):
                for unit, value, end in quantities.quantity(self.words, after):
                    if unit == "m":
                        yield replace(found, much=Much("m", None, value)), end
        if found.much is not None:
            for much, end in quantities.taken(found.much, self.words, i):
                yield replace(found, much=much), end
            return
        for after in (start, *joints.BY.ends(self.words, start)):
            for much, end in self.much(after) if found.predicate in joints.BESIDE else ():
                if much.unit == "m":
                    yield replace(found, much=much), end
                    for last in joints.AWAY.ends(self.words, end):
                        yield replace(found, much=much), last

    def state(self, i: int) -> list[Found]:
        """States without their subject: "upright", "halfway open"."""
        return self._memo("state", "", i, lambda: self._state(i))

    def _state(self, i: int) -> Iterator[Found]:
        for name, texts in STATES.items():
            for text in texts:
                for slots, end in self.filled(pattern(text), i):
                    if end > i and (name != "at_height" or self.body):
                        yield from self._with(Clause(name), slots, end)

    def ways(self, i: int) -> list[Found]:
        """Ways from where a thing was: "7 cm left and 4 cm forward"."""
        return self._memo("ways", "", i, lambda: self._ways(i))

    def _ways(self, i: int) -> Iterator[Found]:
        for left, front, exact, end in self._way(i):
            yield self._moved(left, front, exact), end
            for taken, last in quantities.taken(exact, self.words, end) if exact else ():
                yield self._moved(left, front, taken), last
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
                    for after in {end, end + (self.word(end) == ",")}:  # "back, away from camera"
                        for _, last in self.filled(pattern(text), after):
                            if last > after and self.word(last) != "of":
                                yield left, front, last
                                if self.word(last) == ",":
                                    yield left, front, last + 1
                for last in joints.FROM_START.ends(self.words, end) if end > i else ():
                    yield left, front, last

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
        if self.body:
            for stem, _, _, start in self.verb("pose", form, i):
                for found, end in self.pose(start):
                    yield replace(found, verb=stem), end
        else:
            yield from self._placing(form, i)
            yield from self._going(form, i)
        for stem, _, _, start in self.verb("make", form, i):
            for phrase, end in self.phrases.at(start):
                for found, last in self._does(phrase, end, ("base", "ing")):
                    yield replace(found, verb=stem, told=not self.acting(phrase)), last

    def pose(self, i: int) -> list[Found]:
        """What a body does or is, without a verb: "a front flip", "arms up"."""
        return self._memo("pose", "", i, lambda: self._pose(i))

    def _pose(self, i: int) -> Iterator[Found]:
        for name, texts in POSES.items() if self.body else ():
            for text in texts if (name == "upright") == self.balances else ():
                for _, end in self.filled(pattern(text), i):
                    yield Clause(name), end

    def _with(self, clause: Clause, slots: dict[str, Any], end: int) -> Iterator[Found]:
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

    def _placing(self, form: str, i: int) -> Iterator[Found]:
        """A thing is put somewhere: "push the cube 5 cm to the left", "keep it upright"."""
        verbs = [(v, False) for v in self.verb("place", form, i)]
        for (stem, _, _, start), hand in [*verbs, *((v, True) for v in self.verb("hand", form, i))]:
            lasting = stem in ("keep", "hold", "leave", "have")
            for phrase, end in self.phrases.at(start):
                if hand and not self.acting(phrase):
                    continue
                if stem in ("keep", "hold", "leave", "have", "get"):
                    for found, last in (*self._situated(phrase, end), *self._suffers(phrase, end)):
                        yield replace(found, subject=phrase, verb=stem, lasting=lasting), last
                for at in self._with_tool(end):
                    for found, last in self._where(at, stem):
                        yield replace(found, subject=phrase, verb=stem, lasting=lasting), last
                    if not lasting:
                        yield from self._results(phrase, stem, at)
                if self.word(end) == "to" and self.acting(phrase) and not hand:
                    for found, last in self.clause("base", end + 1):  # "move the arm to touch it"
                        if found.predicate == "touch" and found.verb in joints.BUMPS:
                            yield replace(found, verb=stem), last

    def _with_tool(self, i: int) -> Iterator[int]:
        """``i``, and behind "with the claw" at ``i``."""
        yield i
        for text in ("(with|using) HAND",):
            for _, end in self.filled(pattern(text), i):
                if self.word(end) not in ("left", "right"):
                    yield end

    def _results(self, phrase: Phrase, stem: str, i: int) -> Iterator[Found]:
        """What is to be in the end: "push it until it is left of the ball"."""
        for at in joints.OVER.ends(self.words, i):
            for start in joints.SO_THAT.ends(self.words, at):
                for found, last in self.statement(start):
                    about = found.subject in (Said("it"), phrase)
                    about |= found.subject is None and self.acting(phrase)
                    if about:
                        yield replace(found, subject=phrase, verb=stem), last
                    elif self.acting(phrase) and Said("it") in found.objects:
                        it = tuple(phrase if o == Said("it") else o for o in found.objects)
                        yield replace(found, objects=it, verb=stem, told=False), last
        for slots, end in self.filled(pattern("(to|towards|toward|away from) O"), i):
            both = Many("and", (phrase, slots["O"]))
            for start in joints.SO_THAT.ends(self.words, end):
                for found, last in self._does(both, start + 1, ("be", "base")):
                    if self.word(start) == "they" and found.predicate in ("together", "apart"):
                        yield replace(found, verb=stem), last

    def _going(self, form: str, i: int) -> Iterator[Found]:
        actor = self.things.actor
        for stem, _, _, start in self.verb("go", form, i):
            if actor is not None and stem in ("move", "go", "come", "shift", "retreat"):
                yield from self._results(Thing(actor.name), stem, start)
            lasting = stem.split()[0] in STAY or self.word(start) in ("no", "not")
            yield from (
                (replace(found, verb=stem, lasting=lasting), end)
                for at in self._with_tool(start)
                for found, end in self._where(at, stem)
                if stem != "stop" or found.predicate != "against"  # "stop touching it"
            )
            for state, end in (
                self.state(start) if stem in joints.STAND else ()
            ):  # "still beside it"
                if state.predicate == "still":
                    for found, last in self.relation(end):
                        yield replace(found, verb=stem, lasting=lasting, also="still"), last

    def _where(self, i: int, verb: str) -> Iterator[Found]:
        """What a verb of place is followed by: a relation, a state, a way, a goal."""
        back = i + 1 if self.word(i) in ("over", "back", "up", "down", "both") else i
        either = i + (self.word(i) == "either" and "or" in self.words[i:])
        for start in dict.fromkeys((i, back, either, *joints.OVER.ends(self.words, i))):
            yield from self.relation(start)
            for after in joints.UP_TO.ends(self.words, start):
                for phrase, end in self.phrases.at(after):
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
        for found, end in self.much(by) if verb not in joints.NO_WAY else ():
            if found.unit == "m":
                yield Clause("displaced", None, (), found), end
                for last in joints.ANYWHERE.ends(self.words, end):
                    yield Clause("displaced", None, (), found), last

    # ------------------------------------------------------------------------------ statements

    def statement(self, i: int) -> list[Found]:
        """A subject and what it is or does: "the cube is left of the ball"."""
        return self._memo("statement", "", i, lambda: self._statement(i))

    def _statement(self, i: int) -> Iterator[Found]:
        yield from self._distance(i)
        if self.word(i) == "you":
            yield from self.clause("base", i + 1)
        for phrase, end in self.phrases.at(i):
            for found, last in self._does(phrase, end, ("s", "be", "modal", "perfect")):
                yield replace(found, told=not self.acting(phrase)), last
            for mood, found, last in self._mooded(phrase, end):
                if not found.mood or mood == "always":  # "it must always be untouched"
                    told, mood = not self.acting(phrase), found.mood or mood
                    yield replace(found, told=told, mood=mood), last

    def _mooded(self, phrase: Phrase, i: int) -> Iterator[tuple[str, Clause, int]]:
        """What a subject is never, or always, to be: "must not be touched", "always stays up"."""
        for mood, table in joints.MOODS.items():
            for after in table.ends(self.words, i):
                yield from ((mood, *found) for found in self.plainly(phrase, after))
        be = i + (self.word(i) in ("is", "are", "stays", "stay", "remains", "remain"))
        for mood, table in joints.PLAINLY.items():
            for after in table.ends(self.words, be):
                there = () if be > i else self._does(phrase, after, ("s", "be"))
                yield from ((mood, *found) for found in (*there, *self._is(phrase, after)))

    def plain(self, i: int) -> Iterator[Found]:
        """ "the cube be touched"."""
        for phrase, end in self.phrases.at(i):
            yield from self.plainly(phrase, end)

    def timed(self, i: int) -> Iterator[Found]:
        """A clause of time: "touching it", "you have touched it", "the cube is left of it"."""
        yield from self.clause("ing", i)
        yield from self.statement(i)
        yield from self.having(i)
        if self.word(i) == "you":
            yield from self.clause("base", i + 1)

    def having(self, i: int) -> Iterator[Found]:
        """ "you have touched it", "having touched it"."""
        for start in joints.HAVING.ends(self.words, i + (self.word(i) == "when")):
            yield from self.clause("ed", start)

    def pace(self, i: int) -> Iterator[Found]:
        """ "at most 5 cm/s"."""
        for found, end in self.much(i):
            if found.unit == "m/s" and not found.just:
                yield Clause("slower" if found.least is None else "faster", much=found), end

    def plainly(self, phrase: Phrase, i: int) -> Iterator[Found]:
        """What a subject is or does, its verb in its plain form: "be touched", "touch it"."""
        if isinstance(phrase, Many) and phrase.how == "nor" and self.word(i) in ("may", "can"):
            i += 1
        yield from self._acts(phrase, "base", i)
        if self.word(i) == "be":
            yield from self._acts(phrase, "ing", i + 1)
            yield from self._is(phrase, i + 1)

    def beside(self, i: int) -> Iterator[tuple[str, Clause, int]]:
        """ "with the gripper always above it", "without the cube touching it": what goes along."""
        opening = self.word(i)
        for phrase, end in self.phrases.at(i + 1) if opening in ("with", "without") else ():
            starts = [("never", end + (self.word(end) == "ever"))]
            if opening == "with":
                starts = [
                    (m, at) for m, t in joints.PLAINLY.items() for at in t.ends(self.words, end)
                ]
                starts.append(("", end))
            for mood, start in starts:
                lasting = self.word(start) in ("staying", "kept", "remaining", "being")
                how = mood or ("while" if lasting else "always")
                after = start + lasting
                for found, last in (*self.relation(after), *self.state(after)):
                    if mood or lasting or found.much is not None:
                        yield how, replace(found, subject=phrase), last
                for found, last in self._acts(phrase, "ing", start) if mood else ():
                    yield how, found, last

    def verbless(self, i: int) -> Iterator[Found]:
        """A subject and a relation or state: "red cube left of the ball", "the drawer open"."""
        for phrase, end in self.phrases.at(i):
            if isinstance(phrase, Said) and phrase.how != "it":
                continue  # "both left of it and far from that"
            if self.word(end) == "over" and self.word(i) in ("hand", "tip") and i not in self.named:
                continue  # "hand over the ball"
            if self.acting(phrase):
                for found, last in self.clause("ing", end):  # "cheetah running forwards"
                    yield replace(found, subject=found.subject or phrase), last
                yield from self.pose(end)
            states = self.state(end)
            if self.body and self.acting(phrase):
                states = [(f, e) for f, e in states if f.predicate in joints.OF_BODIES]
            if i in self.named and self.word(end).endswith("ed"):
                states = []  # "the drawer closed" tells what happened
            for found, last in (*self.relation(end), *states, *self.ways(end)):
                if self.word(end) == "clear" and self.acting(phrase) and found.much is None:
                    continue  # "fingers clear of it": far, or only not touching?
                yield replace(found, subject=phrase), last
            yield from self._situated(phrase, end)
            if i not in self.named and not self.acting(phrase):  # "peg inserted in the hole"
                yield from self._suffers(phrase, end)
            if self.word(end) == "to" and i not in self.named:
                for target, last in self.phrases.one(end + 1):
                    yield Clause("to", phrase, (target,)), last
        yield from self.pose(i)

    def wanted(self, i: int) -> Iterator[Found]:
        """What may follow "I would like": "the cube pushed to the ball", "you to walk"."""
        for phrase, end in self.phrases.at(i):
            yield from self._does(phrase, end, ("base", "ing", "past"))
        yield from self._clause("ed", i) if self.words[i - 1 : i] == ("you",) else ()
        yield from self._nouns(i)

    def _nouns(self, i: int) -> Iterator[Found]:
        """What is wanted as a noun: "contact with the ball", "a big gap between them"."""
        for stem in ("have", "keep", "give"):
            for predicate, verbs, rest in DEEDS:
                if stem in verbs.split("|") and predicate in ("touch", "together", "parted"):
                    if rest[0] in "[(":
                        for slots, end in self.filled(pattern(rest), i):
                            yield from self._with(Clause(predicate), slots, end)

    def _does(self, phrase: Phrase, i: int, how: tuple[str, ...]) -> Iterator[Found]:
        """What a subject that ends at ``i`` is or does."""
        word = self.word(i)
        if word in ("please", "first", "now"):
            i, word = i + 1, self.word(i + 1)
        if "be" in how and word in ("is", "are", "be", "stays", "remains", "stay", "sits", "gets"):
            yield from self._is(phrase, i + 1)
        if "past" in how:
            yield from self._acts(phrase, "ed", i)
            if word in ("was", "were", "got", "gets", "be"):
                yield from self._is(phrase, i + 1)
            if word in ("could", "would", "can", "will", "should"):
                yield from self._acts(phrase, "base", i + 1)
        if "s" in how:
            yield from self._acts(phrase, "s", i)
            several = self.acting(phrase) and self.word(i - 1) in joints.SEVERAL
            if isinstance(phrase, Many) or phrase == Said("them") or several:
                yield from self._acts(phrase, "base", i)
            if self.word(i + 1) and word in ("is", "are"):
                yield from self._acts(phrase, "ing", i + 1)
        if "ing" in how:
            yield from self._acts(phrase, "ing", i)
        if "base" in how:
            yield from self._acts(phrase, "base", i + 1 if word == "to" else i)
            yield from self._is(phrase, i)
        if "modal" in how:
            for start in (i, *joints.MODALS.ends(self.words, i)):
                if start == i and not (isinstance(phrase, Many) and phrase.how == "nor"):
                    continue
                yield from self.plainly(phrase, start + (self.word(start) == "first"))
        if "perfect" in how:  # "has been moved", "has moved"
            for start in joints.PERFECT.ends(self.words, i):
                been = self.word(start - 1) == "been"
                yield from self._is(phrase, start) if been else self._acts(phrase, "ed", start)

    def _is(self, phrase: Phrase, i: int) -> Iterator[Found]:
        states = self.state(i)
        if self.body and self.acting(phrase):  # to stand or be upright is another thing there
            states = [(f, e) for f, e in states if f.predicate in joints.OF_BODIES]
            states += self.pose(i)
        for found, end in (*self.relation(i), *states):
            yield replace(found, subject=phrase), end
        for end in joints.UNTOUCHED.ends(self.words, i) if not self.body else ():
            yield Clause("touch", None, (phrase,), mood="never"), end
        yield from self._situated(phrase, i)
        for found, end in self._suffers(phrase, i):
            for last in self._by(end):
                yield replace(found, ended=last > end and found.predicate == "touch"), last

    def _situated(self, phrase: Phrase, i: int) -> Iterator[Found]:
        """Where a thing is, with how it is there: "sitting on the disc", "located beside it"."""
        starts = [start for _, _, _, start in self.verb("goes", "ing", i)]
        for start in [*starts, *([i + 1] if self.word(i) in joints.SITUATED else [])]:
            for found, end in self.relation(start):
                yield replace(found, subject=phrase, verb="be"), end

    def _suffers(self, phrase: Phrase, i: int) -> Iterator[Found]:
        """What is done to a thing: "touched", "pushed to the ball", "pulled out"."""
        for stem, predicate, rest, start in self.verb("deed", "ed", i):
            if rest is None or predicate == "unclear":
                continue
            if predicate == "touch" and rest.text == "O":
                yield Clause("touch", None, (phrase,), verb=stem), start
            elif rest.text == "S" or rest.text.startswith("S "):
                for slots, end in self.filled(pattern(rest.text[1:].strip()), start):
                    yield from self._with(Clause(predicate, verb=stem), {**slots, "S": phrase}, end)
        verbs = [(v, False) for v in self.verb("place", "ed", i)]
        for (stem, _, _, start), hand in [*verbs, *((v, True) for v in self.verb("hand", "ed", i))]:
            if hand and not self.acting(phrase):
                continue
            for at in self._by(start):
                for found, end in self._where(at, stem):
                    yield replace(found, subject=phrase, verb=stem), end

    def _by(self, i: int) -> Iterator[int]:
        """``i``, and behind "by the gripper" at ``i``."""
        yield i
        if self.word(i) == "by":
            yield from (end for phrase, end in self.phrases.one(i + 1) if self.acting(phrase))

    def _acts(self, phrase: Phrase, form: str, i: int) -> Iterator[Found]:
        """Of whoever acts every deed; of a thing only where it goes and what it touches."""
        if self.acting(phrase):
            for found, end in self.clause(form, i):
                yield replace(found, subject=found.subject or phrase), end
            return
        for stem, _, _, start in self.verb("goes", form, i):
            lasting = stem in STAY
            for found, end in self._is(phrase, start):
                yield replace(found, verb=found.verb or stem, lasting=lasting), end
            for found, end in self._where(start, stem):
                if stem != "be" and (found.predicate != "inside" or found.objects):
                    yield replace(found, subject=phrase, verb=stem, lasting=lasting), end
        for stem, predicate, rest, start in self.verb("deed", form, i):
            if predicate == "touch" and rest is not None and stem in joints.BUMPS:
                for slots, end in self.filled(rest, start):
                    if "O" in slots:
                        yield Clause("against", phrase, (slots["O"],), verb=stem), end
                if isinstance(phrase, Many) or phrase == Said("them"):
                    for end in joints.EACH_OTHER.ends(self.words, start):
                        yield Clause("together", phrase, verb=stem), end

    def acting(self, phrase: Phrase) -> bool:
        """Whether a phrase names whoever acts."""
        actor = self.things.actor
        return isinstance(phrase, Thing) and actor is not None and phrase.term == actor.name

    def _distance(self, i: int) -> Iterator[Found]:
        """ "the distance between A and B is at least 20 cm", "there is contact between them"."""
        for name, text in STATEMENTS if self.measures else ():
            for slots, end in self.filled(pattern(text), i):
                if "MUCH" not in slots or slots["MUCH"].unit == "m":
                    yield from self._with(Clause(name), slots, end)

    def continued(self, i: int) -> Iterator[Found]:
        """What goes on about whoever the clause before was about: "and touches the can"."""
        for start in joints.MODALS.ends(self.words, i) if self.word(i) != "to" else ():
            yield from self.clause("base", start)
        for stem, _, _, start in self.verb("goes", "s", i):
            for found, end in self._where(start, stem):
                yield replace(found, bare=True, lasting=stem in STAY), end
        for stem, predicate, rest, start in self.verb("deed", "s", i):
            if predicate == "touch" and rest is not None and stem in joints.BUMPS:
                for slots, end in self.filled(rest, start):
                    yield Clause("against", None, (slots["O"],), verb=stem, bare=True), end

    def fragment(self, i: int) -> Iterator[Found]:
        """What leaves its verb out: "then the ball", "and left of the cube", "then to the can"."""
        for phrase, end in self.phrases.at(i):
            if not (isinstance(phrase, Said) and phrase.how == "it"):
                yield Clause("", None, (phrase,), bare=True), end
        for found, end in (*self.relation(i), *self.ways(i)):
            yield replace(found, bare=True), end
        for subject, at in self.phrases.one(i):  # "put A left of B and C right of B"
            for found, end in self.relation(at):
                if self.word(at) == "clear" and self.acting(subject) and found.much is None:
                    continue
                yield replace(found, subject=subject, bare=True, verb="likewise"), end
            for found, end in self.ways(at):
                yield replace(found, subject=subject, bare=True, verb="likewise"), end
            if self.word(at) == "to":
                for phrase, end in self.phrases.one(at + 1):
                    yield Clause("to", subject, (phrase,), bare=True, verb="likewise"), end
        if self.word(i) in ("from", "of"):  # "far from the ball and from the can"
            for phrase, end in self.phrases.one(i + 1):
                yield Clause("", None, (phrase,), bare=True, verb="from"), end
        if self.word(i) == "to":
            for phrase, end in self.phrases.at(i + 1):
                yield Clause("to", None, (phrase,), bare=True), end
        for found, end in self.state(i):
            if found.predicate in ("slower", "faster", "still"):
                yield replace(found, bare=True), end
        if not self.body:
            yield from ((replace(found, bare=True), end) for found, end in self.pace(i))
