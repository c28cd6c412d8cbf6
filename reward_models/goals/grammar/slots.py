"""What fills the slots of patterns in one sentence: things, quantities, parts, ways round; and the
verbs that stand there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from reward_models.goals.grammar import connectives, quantities
from reward_models.goals.grammar.lexicon import TELLING
from reward_models.goals.grammar.noun_phrases import (
    Anaphor,
    EntityNames,
    NounPhraseParser,
    Phrase,
    Referent,
)
from reward_models.goals.grammar.patterns import Bound, Pattern, pattern, verb_forms
from reward_models.goals.grammar.quantities import Quantity
from reward_models.goals.grammar.wordings import (
    BODY_DEEDS,
    DEEDS,
    GO,
    GOES,
    MAKE,
    PLACE,
    PLACE_HAND,
    POSE_VERBS,
    UNCLEAR,
)
from reward_models.goals.predicates import GRIPPER

# Slots of quantities that must be bounds, or are taken for ones: unit, and what is taken of one.
_AMOUNTS: dict[str, tuple[str, Callable[[Quantity], Quantity | None]]] = {
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

Verb = tuple[tuple[str, ...], str, str, Pattern | None]


@cache
def verb_forms_of(kind: str, form: str) -> dict[str, list[Verb]]:
    """Returns {first word: (words, stem, predicate, what follows)} of the verbs of a kind in a
    form."""
    table: dict[str, list[Any]] = defaultdict(list)
    rows = {
        "deed": DEEDS + UNCLEAR,
        "body": BODY_DEEDS + UNCLEAR,
        "place": (("", PLACE, ""),),
        "go": (("", GO, ""),),
        "make": (("", MAKE, ""),),
        "goes": (("", GOES, ""),),
        "hand": (("", PLACE_HAND, ""),),
        "pose": (("", POSE_VERBS, ""),),
    }[kind]
    for predicate, verbs, rest in rows:
        for verb in verbs.split("|"):
            for words in verb_forms(verb.strip())[form]:
                entry = words, verb.strip(), predicate, pattern(rest) if predicate else None
                table[words[0]].append(entry)
    return table


class SlotParser:
    """The words of one sentence, and what is said at each place."""

    def __init__(self, words: tuple[str, ...], named: frozenset[int], things: EntityNames) -> None:
        self.words, self.named, self.things = words, named, things
        self.phrases = NounPhraseParser(words, named, things)
        actor = things.actor
        self.body = actor is not None and actor.kind != GRIPPER and not things.objects
        self.balances = actor is not None and "balance" in actor.affordances
        self.known: dict[tuple[str, str, int], list[Any]] = {}

    def _memo(self, what: str, form: str, i: int, read: Any) -> list[Any]:
        key = what, form, i
        if key not in self.known:
            self.known[key] = []
            self.known[key] = list(dict.fromkeys(read()))
        return self.known[key]

    def word(self, i: int) -> str:
        """Returns the word at ``i``; "" after the last."""
        return self.words[i] if i < len(self.words) else ""

    def much(self, i: int) -> list[tuple[Quantity, int]]:
        """Returns the quantities at word ``i``, with their ends."""
        return self._memo("much", "", i, lambda: quantities.quantities_at(self.words, i))

    def acting(self, phrase: Phrase) -> bool:
        """Returns whether a phrase names the robot itself."""
        actor = self.things.actor
        return isinstance(phrase, Referent) and actor is not None and phrase.term == actor.name

    def aids(self, phrase: Phrase) -> bool:
        """Returns whether a phrase names a handle or the robot, with which one opens things."""
        if not isinstance(phrase, Referent) or not isinstance(phrase.term, str):
            return isinstance(phrase, Anaphor)
        handle = "pull" in self.things.card.entity(phrase.term).affordances
        return handle or self.acting(phrase)

    def slot(self, name: str, i: int) -> list[tuple[Any, int]]:
        """Returns what may fill a slot of a pattern at word ``i``, with its end."""
        return self._memo("slot", name, i, lambda: self._slot(name, i))

    def _slot(self, name: str, i: int) -> Iterator[tuple[Any, int]]:
        if self.word(i) == "first":  # "touch first the cube": sentences.py knows that it was said
            i += 1
        i = next(connectives.ORDERED.ends(self.words, i), i)
        if i >= len(self.words):
            return
        match name:
            case "S" | "SHUNNED" | "T":
                yield from self.phrases.at(i)
            case "O":
                yield from dict.fromkeys((*self.phrases.one(i), *self.phrases.at(i)))
            case "THING":
                yield from self.phrases.one(i)
            case "AID":  # what is pulled at, or who pulls
                yield from ((p, end) for p, end in self.phrases.one(i) if self.aids(p))
            case "HAND":
                yield from ((p, end) for p, end in self.phrases.one(i) if self.acting(p))
            case "ANY":
                end = i
                while end < len(self.words) and self.words[end] not in TELLING:
                    end += 1
                    yield self.words[i:end], end
            case "ITS":
                if self.word(i) == "its":
                    yield Anaphor("it"), i + 1
            case "MUCH":
                yield from self.much(i)
            case "PART":
                yield from quantities.shares_at(self.words, i)
                for after in quantities.LEAST.ends(self.words, i):
                    for found, end in quantities.shares_at(self.words, after):
                        yield found.at_least(), end
            case "EVER":
                if self.word(i) == "not":
                    yield "never", i + 1 + (self.word(i + 1) == "ever")
                for mood, table in connectives.PLAINLY.items():
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
                for sign, texts in connectives.TURNS.items():
                    yield from ((sign, end) for end in texts.ends(self.words, i))
            case "TIMES":
                at = next(quantities.LEAST.ends(self.words, i), i)
                for value, end in quantities.numbers_at(self.words, at):
                    if self.word(end) in ("times", "swings") and value == int(value):
                        yield Quantity("1", value, value, just=True), end + 1
                for text, value in (("once", 1.0), ("twice", 2.0)):
                    if self.word(i) == text:
                        yield Quantity("1", value, value, just=True), i + 1
            case "X" | "Y":
                sign, start = (-1, i + 1) if self.word(i) in ("-", "minus") else (1, i)
                for found, end in self.much(start):
                    if found.unit == "m" and found.just:
                        yield sign * found.value, end
                for value, end in quantities.numbers_at(self.words, start):
                    yield sign * value, end

    def filled(self, what: Pattern, i: int) -> Iterator[tuple[dict[str, Any], int]]:
        """Yields the slots of a pattern at word ``i``; a slot that stands twice is filled at most
        once."""
        found: tuple[Bound, int]
        for found in what.match(self.words, i, self.slot):
            bound, end = found
            slots = dict(bound)
            if len(slots) == len(bound):
                yield slots, end

    def verb(self, kind: str, form: str, i: int) -> Iterator[tuple[str, str, Pattern | None, int]]:
        """Yields (stem, predicate, what follows, end) of the verbs of a kind at word ``i``."""
        if i in self.named:
            return  # "the tip over the can" is no order to tip it over
        for words, stem, predicate, rest in verb_forms_of(kind, form).get(self.word(i), ()):
            inner = range(i + 1, i + len(words))  # "pull the open drawer" is not "pull open"
            if self.words[i : i + len(words)] == words and self.named.isdisjoint(inner):
                yield stem, predicate, rest, i + len(words)
