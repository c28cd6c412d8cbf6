"""Noun phrases: what a sentence calls the card's things, and which of them it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reward_models.base import CardEntity, TaskCard
from reward_models.goals.formula import EntityChoice, Term
from reward_models.goals.grammar.lexicon import (
    ALSO_CALLED,
    BODIES,
    COLOUR_WORDS,
    COLOURS,
    DETERMINERS,
    GENERIC,
    GENERIC_PLURAL,
    HANDS,
    LOOKS,
    PLACES,
    SHADES,
)
from reward_models.goals.grammar.patterns import PhraseTable, expand, split
from reward_models.goals.grammar.quantities import NUMBERS
from reward_models.goals.predicates import BODY, FURNITURE, GRIPPER, MARKS, role

_HERE = PhraseTable(
    "[that is|which is] [sitting|lying|standing|resting|placed] (on|upon) (table|tabletop|desk)|"
    "[that is] over there"
)
# What chooses, behind its noun; one word alone stands before it too, and so do the SIDES.
CHOICES = {
    phrase: rule
    for rule, text in {
        "nearest": "nearest|closest",
        "farthest": "farthest|furthest",
        "leftmost": "leftmost|(on|to|at) left|on left side|(furthest|farthest) [to] left",
        "rightmost": "rightmost|(on|to|at) right|on right side|(furthest|farthest) [to] right",
        "frontmost": "frontmost|foremost|(in|at) front",
        "rearmost": "rearmost|hindmost|backmost|(in|at) back",
    }.items()
    for phrase in expand(text)
}
SIDES = {
    "left": "leftmost",
    "right": "rightmost",
    "front": "frontmost",
    "back": "rearmost",
    "rear": "rearmost",
}
_BEING = PhraseTable("that is|which is|that lies|lying|standing")
_WHAT = PhraseTable(
    "(what|whatever|whichever) is|(what|whatever) lies|what stands|one [that is]|whichever "
    "(one|object) is|object that is"
)
_OTHERS = PhraseTable(
    "(anything|everything|something) else|any other (object|objects|thing)|[any of|all] others|"
    "other (ones|objects|things)|(all|any of) other objects|rest"
)
_ONE_OF = PhraseTable(
    "(one|any|either|any one) of [two|three|these|them|objects] [objects|things] [,]"
)
# How several are meant, and whether their noun is a plural.
_QUANTIFIERS = (
    ("each", True, PhraseTable("each of|every one of|all [of]")),
    ("each", False, PhraseTable("each|every|each and every")),
    ("and", True, PhraseTable("both [of]")),
    ("or", True, PhraseTable("(any|either|any one) of")),
    ("or", False, PhraseTable("any|either")),
    ("nor", True, PhraseTable("(none|neither) of")),
    ("nor", False, PhraseTable("no|neither")),
)
# "A red cube" of two is any of them; "an object" of whatever there is says too little.
_INDEFINITE = ((True, PhraseTable("(one|some) of")), (False, PhraseTable("a|an|one|some|any one")))
_ALL = {"everything": "each", "anything": "or", "nothing": "nor"}
_COLOURED = PhraseTable("[that is] (coloured|colored)|(that|which) is|(of|with) [a]")
_SELF = (("you",), ("yourself",), ("itself",))
# Superlatives of size: which half extents count, and whether the most of them is meant.
_SIZES = {
    "biggest": (True, "all"),
    "largest": (True, "all"),
    "smallest": (False, "all"),
    "tallest": (True, "high"),
    "highest": (True, "high"),
    "shortest": (False, "high"),
    "widest": (True, "wide"),
    "narrowest": (False, "wide"),
    "flattest": (False, "high"),
}


@dataclass(frozen=True)
class Referent:
    """One entity, or one that is chosen at the start."""

    term: Term


@dataclass(frozen=True)
class Anaphor:
    """What was said before: ``it``, ``them`` (all, ``each`` for itself), those ``other`` than
    what was, or the ``room`` that "put it in" leaves out."""

    how: str
    of: tuple[str, ...] = ()  # the entities that may be meant; (): any
    count: int = 0  # how many they must be; 0: any number


@dataclass(frozen=True)
class ReferentList:
    """Several: ``and`` all of them, ``or`` one of them, ``each`` for itself, ``nor`` none; a
    ``list`` has commas alone."""

    how: str
    parts: tuple[Phrase, ...]


Phrase = Referent | Anaphor | ReferentList


class EntityNames:
    """The names of one card's things."""

    def __init__(self, card: TaskCard) -> None:
        self.card = card
        actors = [e for e in card.entities if e.kind in (GRIPPER, BODY)]
        hands = [e for e in actors if e.kind == GRIPPER]
        self.actor: CardEntity | None = (hands or actors)[0] if len(hands or actors) == 1 else None
        self.objects = [e.name for e in card.entities if role(e) == "object"]
        self.nouns: dict[tuple[str, ...], list[str]] = {}
        for entity in card.entities:
            also = ALSO_CALLED.get(entity.name if entity.kind == BODY else entity.kind, "")
            if entity.kind == "ball" and hands:
                also = ""  # the ball that a finger reaches is a mark
            plain = entity.name.removeprefix(f"{entity.colour}_")  # of red_brick: brick
            called = (entity.name, plain, entity.kind, *entity.aliases)
            for name in (*called, *filter(None, also.split("|"))):
                known = self.nouns.setdefault(split(name), [])
                if entity.name not in known and not GENERIC.issuperset(split(name)):
                    known.append(entity.name)
        if self.actor:
            bodies = () if self.objects else BODIES
            for name in (*(HANDS if hands else ((n,) for n in bodies)), *_SELF):
                self.nouns.setdefault(tuple(name), [self.actor.name])
        self.nouns = {key: names for key, names in self.nouns.items() if names}
        self.colour = {e.name: " ".join(split(e.colour)) for e in card.entities}
        self.colours = COLOURS | set(self.colour.values()) - {""}
        named = frozenset(word for key in self.nouns for word in key)
        self.words = named | self.colours | {f"{word}s" for word in named}

    def names_any(self, text: str) -> bool:
        """Whether a sentence has a name of one of the things, which is not "it" or "the robot"."""
        said, all_ = split(text), {*_SELF, *((name,) for name in BODIES)}
        return any(
            said[at : at + len(name)] == name
            for name in self.nouns.keys() - all_
            for at in range(len(said))
        )

    @property
    def loose(self) -> list[str]:
        """The things that may be moved, which "each object" means."""
        entities = [self.card.entity(name) for name in self.objects]
        found = [e.name for e in entities if e.kind not in MARKS | FURNITURE]
        return found or self.objects


class NounPhraseParser:
    """The noun phrases of one sentence."""

    def __init__(self, words: tuple[str, ...], named: frozenset[int], things: EntityNames) -> None:
        self.words, self.named, self.things = words, named, things
        self.known: dict[tuple[str, int], list[tuple[Phrase, int]]] = {}

    def at(self, i: int) -> list[tuple[Phrase, int]]:
        """Returns every phrase that begins at word ``i``, also coordinated ones, with its end."""
        return self._memo("all", i)

    def one(self, i: int) -> list[tuple[Phrase, int]]:
        """Phrases that are not joined to another one."""
        return self._memo("one", i)

    def _memo(self, what: str, i: int) -> list[tuple[Phrase, int]]:
        if (what, i) not in self.known:
            self.known[what, i] = []
            found = self._phrases(i) if what == "all" else self._single_phrases(i)
            self.known[what, i] = list(dict.fromkeys(found))
        return self.known[what, i]

    def word(self, i: int) -> str:
        """Returns the word at ``i``; "" after the last."""
        return self.words[i] if i < len(self.words) else ""

    def _phrase_end(self, i: int, *phrases: str) -> int:
        """Where the longest of the phrases that stand at ``i`` ends; 0: none does."""
        keys = (tuple(phrase.split()) for phrase in phrases)
        return max((i + len(k) for k in keys if self.words[i : i + len(k)] == k), default=0)

    # ------------------------------------------------------------------------- joined phrases

    def _phrases(self, i: int) -> Iterator[tuple[Phrase, int]]:
        yield from self.one(i)
        start = self._phrase_end(i, "both of") or i + 1
        if joiner := {"both": "and", "either": "or", "neither": "nor"}.get(self.word(i)):
            for parts, how, end in self._list(start):
                if how == joiner or (how, joiner) == ("or", "nor"):
                    yield ReferentList("nor" if joiner == "nor" else how, parts), end
        for after in _ONE_OF.ends(self.words, i):
            for parts, how, end in self._list(after):
                if how in ("or", "and"):
                    yield ReferentList("or", parts), end
        for parts, how, end in self._list(i):
            yield ReferentList(how, parts), end

    def _list(self, i: int) -> Iterator[tuple[tuple[Phrase, ...], str, int]]:
        """Two phrases or more with one joining word between the last two, or commas alone."""
        for first, end in self.one(i):
            yield from self._list_rest((first,), end)

    def _list_rest(
        self, parts: tuple[Phrase, ...], i: int
    ) -> Iterator[tuple[tuple[Phrase, ...], str, int]]:
        for joiner in ("and", "or", "nor"):
            if after := self._phrase_end(i, joiner, f", {joiner}"):
                for phrase, end in self.one(after):
                    if not (isinstance(phrase, ReferentList) and phrase.how == "nor"):
                        yield (*parts, phrase), joiner, end
        if after := self._phrase_end(i, ","):
            for phrase, end in self.one(after):
                if isinstance(phrase, Referent):
                    if len(parts) > 1:
                        yield (*parts, phrase), "list", end
                    yield from self._list_rest((*parts, phrase), end)

    # ---------------------------------------------------------------------------- one phrase

    def _single_phrases(self, i: int) -> Iterator[tuple[Phrase, int]]:
        for phrase, end in self._bare(i):
            yield phrase, end
            yield from ((phrase, last) for last in _HERE.ends(self.words, end))

    def _bare(self, i: int) -> Iterator[tuple[Phrase, int]]:
        yield from self._pronoun(i)
        yield from self._quantified(i)
        yield from self._by_choice(i)
        start = i
        while self.word(start) in DETERMINERS:
            start += 1
        if start == i or self.word(i) in ("a", "an", "this", "that", "your", "its"):
            for names, end, plural, _ in self._noun(start):
                if not plural and len(names) == 1:
                    yield Referent(names[0]), end

    def _pronoun(self, i: int) -> Iterator[tuple[Phrase, int]]:
        everything = tuple(self.things.objects)
        if self.word(i) == "it":
            actor = self.things.actor
            alone = actor is not None and not self.things.objects  # whom else would it be about?
            yield Referent(actor.name) if alone else Anaphor("it"), i + 1
        if end := self._phrase_end(i, "them", "they", "these", "all of them"):
            yield Anaphor("them"), end
        if end := self._phrase_end(i, "both", "both of them", "two"):
            yield Anaphor("them", count=2), end
        if end := self._phrase_end(i, "each one"):
            yield Anaphor("each"), end
        if end := next(_OTHERS.ends(self.words, i), 0):
            yield Anaphor("other", everything), end
        if start := self._phrase_end(i, "other", "another"):
            # What is done "one after the other" speaks of no other one.
            if self.word(start) == "one" or self.words[max(0, i - 2) : i] != ("one", "after"):
                yield Anaphor("other", everything, 1), start + (self.word(start) == "one")
            number = int(NUMBERS.get(self.word(start), 0))
            if number:
                yield Anaphor("other", everything, number), start + 1
            for names, end, plural, generic in self._noun(start + bool(number)):
                if plural == bool(number):
                    yield (
                        Anaphor("other", everything if generic else tuple(names), number or 1),
                        end,
                    )

    def _quantified(self, i: int) -> Iterator[tuple[Phrase, int]]:
        if end := self._phrase_end(i, "nothing else"):
            yield ReferentList("nor", (Anaphor("other", tuple(self.things.objects)),)), end
        for how, wants, table in _QUANTIFIERS:
            for start in table.ends(self.words, i):
                if self.word(start - 1) == "of":  # "each of them", "neither of the other two"
                    for said, end in self._pronoun(start):
                        if isinstance(said, Anaphor) and said.how in ("them", "other"):
                            yield ReferentList(how, (said,)), end
                pair = self.word(i) in ("both", "either", "neither")
                yield from self._counted(start, how, wants, pair)
        for wants, table in _INDEFINITE:
            for start in table.ends(self.words, i):
                yield from self._counted(start, "or", wants, named=True)
        if self.word(i) in NUMBERS:  # "two cubes"
            yield from self._counted(i, "and", True)
        elif i in self.named:  # "the cubes": each of them
            yield from self._counted(i, "each", True)
        how = _ALL.get(self.word(i))
        if how and (how == "each" or len(self.things.loose) > 1):
            yield ReferentList(how, tuple(Referent(n) for n in self.things.loose)), i + 1

    def _counted(
        self, i: int, how: str, wants: bool, pair: bool = False, named: bool = False
    ) -> Iterator[tuple[Phrase, int]]:
        """Those that a noun names, of the number that may stand before it; with ``named`` none that
        every thing bears."""
        number = int(NUMBERS.get(self.word(i), 0))
        for names, end, plural, generic in self._noun(i + bool(number)):
            names = [n for n in names if n in self.things.objects]
            many = len(names) > 1 and number in (0, len(names)) and (len(names) == 2 or not pair)
            if plural == wants and many and not (named and generic):
                yield ReferentList(how, tuple(Referent(n) for n in names)), end

    def _by_choice(self, i: int) -> Iterator[tuple[Phrase, int]]:
        start = i
        while self.word(start) in ("a", "an", "your"):
            start += 1
        word = self.word(start)
        superlative = CHOICES.get((word,))
        if superlative and self._phrase_end(start + 1, "of"):  # "the nearest of the three objects"
            for group, end in self.at(start + 2):
                if isinstance(group, ReferentList) and all(
                    isinstance(p, Referent) for p in group.parts
                ):
                    names = [str(p.term) for p in group.parts if isinstance(p, Referent)]
                    yield from self._choice(superlative, names, end)
        rule = superlative or SIDES.get(word)
        for names, end, plural, generic in self._noun(start + 1) if rule or word in _SIZES else ():
            if generic:
                names = self._named_one(names, start + 1)
            if rule and not plural:
                yield from self._choice(rule, names, end)
            elif not plural and (name := self._by_size(word, names)):
                yield Referent(name), end
        for names, end, plural, generic in self._noun(start):
            if generic:
                names = self._named_one(names, start)
            if not plural and end > start:  # "the cube on the left"
                yield from self._by_place(names, next(_BEING.ends(self.words, end), end))
        for after in _WHAT.ends(self.words, i):  # "what is farthest from the ball"
            yield from self._by_place(self.things.loose, after)

    def _named_one(self, names: list[str], i: int) -> list[str]:
        """Which things "one" at ``i`` may be: "the left cube, then the right one" is of cubes."""
        if self.word(i) != "one":
            return names
        for at in range(i - 1, -1, -1):
            for found, _, plural, generic in self._noun(at):
                if not generic and not plural and len(found) > 1:
                    return found
        return names

    def _by_place(self, names: list[str], i: int) -> Iterator[tuple[Phrase, int]]:
        """Of these the one that is chosen by what is said at ``i``."""
        for end in range(i + 1, min(i + 3, len(self.words)) + 1):
            rule = CHOICES.get(self.words[i:end])
            if rule and not self._phrase_end(end, "of"):
                yield from self._choice(rule, names, end)

    def _choice(self, rule: str, names: list[str], i: int) -> Iterator[tuple[Phrase, int]]:
        """A choice among several; "nearest" is to the one who acts, or to what is said."""
        if rule not in ("nearest", "farthest"):
            among = [n for n in names if n in self.things.objects]
            if len(among) > 1:
                yield Referent(EntityChoice(rule, tuple(among))), i
            return
        actor = self.things.actor
        to, word = [], "to" if rule == "nearest" else "from"
        if actor is not None:
            to.append((actor.name, i))
        after = self._phrase_end(i, word, f"away {word}")
        for phrase, end in self._bare(after) if after else ():
            if isinstance(phrase, Referent) and isinstance(phrase.term, str):
                to.append((phrase.term, end))
        for name, end in to:
            among = [n for n in names if n in self.things.objects and n != name]
            if len(among) > 1:
                yield Referent(EntityChoice(rule, (name, *among))), end

    def _by_size(self, word: str, names: list[str]) -> str:
        """The one that is biggest, smallest, ...; empty: the card does not tell."""
        most, of = _SIZES[word]
        sizes = {}
        for name in names:
            half = self.things.card.entity(name).half
            if len(half) != 3:
                return ""
            volume = half[0] * half[1] * half[2]
            sizes[name] = {"all": volume, "high": half[2], "wide": half[0]}[of]
        extreme = (max if most else min)(sizes.values(), default=0.0)
        found = [n for n, size in sizes.items() if abs(size - extreme) < 1e-4 * max(extreme, 1e-9)]
        return found[0] if len(found) == 1 and len(names) > 1 else ""

    def _noun(self, i: int) -> Iterator[tuple[list[str], int, bool, bool]]:
        """(entities, end, plural, generic) of a noun at ``i``, with its colour before or after."""
        things, words = self.things, self.words
        colour, start = "", i
        looks = LOOKS - things.words  # a thing may be named so
        while start < len(words) and words[start] in looks:
            start += 1
        if start < len(words):
            shade = SHADES.get(words[start], words[start])
            shade = words[start] if words[start] in things.colour.values() else shade
            if shade in things.colours:
                double = SHADES.get(words[start]) == words[start + 1 : start + 2][:1]
                colour, start = shade, start + 1 + double
                start += start < len(words) and words[start] in COLOUR_WORDS
        while start < len(words) and words[start] in looks:
            start += 1
        found: list[tuple[list[str], int, bool, bool]] = []
        for n in range(min(4, len(words) - start), 0, -1):
            key = words[start : start + n]
            if key in things.nouns:
                found.append(
                    (things.nouns[key], self._past_apposition(start + n, key), False, False)
                )
                break
            single = (*key[:-1], key[-1].removesuffix("s"))
            if key[-1].endswith("s") and single in things.nouns:
                found.append((things.nouns[single], start + n, True, False))
                break
        word = words[start] if start < len(words) else ""
        if not found and (word in GENERIC or word in GENERIC_PLURAL):
            found.append((things.loose, start + 1, word in GENERIC_PLURAL, True))
        if not found and colour:
            joined = words[start : start + 1] in ((",",), ("and",), ("or",))
            following = words[start + joined : start + joined + 1]
            noun = words[start + joined + 1 : start + joined + 2]
            unfinished = joined and following and following[0] in things.colours
            unfinished = unfinished and (noun in things.nouns or noun and noun[0] in GENERIC)
            if start - 1 not in self.named and not unfinished:  # "the red", "red and blue ball"
                found.append((things.objects, start, False, True))
        for names, end, plural, generic in found:
            if not colour:
                for shade, last in self.coloured(end):
                    if fits := [n for n in names if things.colour[n] == shade]:
                        yield fits, last, plural, False
            if generic and (like := self._phrase_end(end, "shaped like a", "shaped like")):
                for same, last, _, _ in self._noun(like):
                    if fits := [n for n in same if not colour or things.colour[n] == colour]:
                        yield fits, last, False, False
                continue
            names = [n for n in names if not colour or things.colour[n] == colour]
            if names:
                yield names, end, plural, generic

    def _past_apposition(self, end: int, key: tuple[str, ...]) -> int:
        """Where a noun ends with what only says it again: "robot's hand", "target spot",
        "cube-shaped thing"."""
        names, words = self.things.nouns[key], self.words
        if words[end : end + 1] == ("shaped",) and words[end + 1 : end + 2]:
            return end + 2 if words[end + 1] in GENERIC else end
        for opening in ((), ("'s",), ("of",), ("of", "your"), ("of", "its"), ("on", "your")):
            at = end + len(opening)
            if words[end:at] != opening:
                continue
            for n in (3, 2, 1):
                again = words[at : at + n]
                if len(again) == n and self.things.nouns.get(again) == names:
                    own = self.things.actor is not None and names == [self.things.actor.name]
                    if (own or not opening) and again not in _SELF and key not in _SELF:
                        return self._past_apposition(at + n, again)
        kind = self.things.card.entity(names[0]).kind
        if words[end : end + 1] and words[end] in PLACES and kind in MARKS | {"ball"}:
            return end + 1
        return end

    def coloured(self, i: int) -> Iterator[tuple[str, int]]:
        """Parses a colour after a noun at word ``i``: "that is red", "coloured red", "of red
        colour"."""
        for at in _COLOURED.ends(self.words, i):
            shade = SHADES.get(self.word(at), self.word(at))
            if shade in self.things.colours:
                if self.word(at + 1) in COLOUR_WORDS:
                    yield shade, at + 2
                elif self.words[at - 1] not in ("of", "with", "a") or self.word(at + 1) in (
                    "",
                    ",",
                ):
                    yield shade, at + 1
