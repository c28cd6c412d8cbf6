"""A sentence as words, and patterns over words.

A pattern is a text: words stand for themselves, ``[x]`` may be left out, ``(x|y)`` is a choice, and
capitals are slots that a reader fills (``S``, ``O`` a thing, ``MUCH`` a quantity, ...).
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

from reward_models.goals.grammar.lexicon import CONTRACTIONS, DOUBLED, IRREGULAR

_STOPS = re.compile(r"(?<!\d)\.(?!\d)|\.(?=\s|$)|[,;:!?\u2026]+(?=\D|$)|(?<=\D)[,;:!?]+")
_TOKEN = re.compile(
    r"'s\b|,|\d+(?:\.\d+)?|\.\d+|(?:m|cm|mm|km)/(?:s|h)\b|[^\W\d_]+|[%\u00b0\u00b1]|\+/?-|[^\s\w]"
)


_ARROW = re.compile(r"\s*(?:-+>|=+>|\u2192|\u21d2|>>)\s*")
_STEP = re.compile(r"(?:^|(?<=[\s,;.]))\(?(?:step|stage|phase)?\s?#?(\d)\s?[).:](?=\s)")


_HEADING = re.compile(
    r"\s*(?:(?:student|lab|test|robot) "
    ")?(?:lab|exercise|task|test|trial|part|case|experiment|assignment|run|item|problem|goal|"
    r"protocol)(?: (?:no\.?|number|nr\.?))? ?#?\d+ ?[a-z]?\s*[.:)]\s+"
)


def _in_steps(text: str) -> str:
    """With "then" for the numbers of a list: "1. touch it. 2. go away" and "step 1: ..."; and
    without a heading: "test 3: ..."."""
    text = _HEADING.sub("", text, count=1) if _HEADING.match(text) else text
    found = list(_STEP.finditer(text.lstrip()))
    if (
        len(found) < 2
        or found[0].start()
        or [m[1] for m in found] != [str(n) for n in range(1, len(found) + 1)]
    ):
        return text
    labels = iter(["", *[" , then "] * (len(found) - 1)])
    return _STEP.sub(lambda _: next(labels), text.lstrip())


@lru_cache(maxsize=1024)
def split(text: str) -> tuple[str, ...]:
    """Splits a text into lower-case words, numbers, units and commas; every stop becomes a
    comma."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub("[\u2018\u2019\u02bc`]", "'", text)
    for pattern, replacement in CONTRACTIONS:
        text = re.sub(pattern, replacement, text)
    text = _ARROW.sub(" , then ", _in_steps(text))
    text = _STOPS.sub(" , ", re.sub(r"\s-+\s(?!\d)", " , ", text))
    text = re.sub(r"(?<=\d)-(?=\d)", " to ", text)
    text = re.sub(r"(?<=[^\W\d_])[-_](?=[^\W\d_])|(?<=\d)-(?=[^\W\d_])", " ", text)
    text = re.sub(r"[\"()\[\]\u2010-\u2015\u201c\u201d]+", " ", text)
    words: list[str] = []
    for word in _TOKEN.findall(text):
        if word == "," and (not words or words[-1] == ","):
            continue
        words.append(word)
    return tuple(words[:-1] if words[-1:] == [","] else words)


def without_articles(words: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[int]]:
    """Returns the words without "the", and the places of the words that it stood before."""
    kept: list[str] = []
    named: list[int] = []
    for before, word in zip(("", *words), words, strict=False):
        if word != "the":
            named += [len(kept)] * (before == "the")
            kept.append(word)
    return tuple(kept), frozenset(named)


@cache
def verb_forms(verb: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Returns {"base", "s", "ing" or "ed": word sequences} of a verb with its particles ("pick
    up")."""
    head, *rest = verb.split()
    double = head + head[-1] if head in DOUBLED else head
    silent = head.endswith("e") and not head.endswith(("ee", "oe", "be"))
    bare = head[:-1] if silent else double
    third = head + ("es" if head.endswith(("s", "sh", "ch", "x", "o", "z")) else "s")
    past = bare + "ed"
    if head.endswith("y") and head[-2] not in "aeo":
        third, past = head[:-1] + "ies", head[:-1] + "ied"
    third = {"be": "is", "have": "has"}.get(head, third)
    ing = "lying" if head == "lie" else bare + "ing"
    forms = {"base": head, "s": third, "ing": ing, "ed": IRREGULAR.get(head, past)}
    return {form: tuple((w, *rest) for w in said.split("|")) for form, said in forms.items()}


# ------------------------------------------------------------------------------------ patterns

Bound = tuple[tuple[str, Any], ...]  # slots filled so far
Slot = Callable[[str, int], list[tuple[Any, int]]]  # (slot, from) -> (what it says, end)
_PARTS = re.compile(r"[\[\]()|]|[^\s\[\]()|]+")


def expand(text: str) -> list[tuple[str, ...]]:
    """Returns every phrase that a pattern without slots stands for."""

    def phrases(node: Any) -> list[tuple[str, ...]]:
        what, inner = node
        if what == "word":
            return [(inner,)]
        if what == "opt":
            return [(), *phrases(inner)]
        return [
            tuple(itertools.chain.from_iterable(parts))
            for option in inner.all
            for parts in itertools.product(*map(phrases, option))
        ]

    return list(dict.fromkeys(phrases(_choice(_parts(text), 0)[0])))


class FirstWordIndex:
    """Several things, found by the word that they may begin with; None: by any, or by none."""

    def __init__(self, of: Iterable[tuple[frozenset[str] | None, Any]]) -> None:
        begun = tuple(of)
        self.all = tuple(one for _, one in begun)
        words = frozenset().union(*(first or () for first, _ in begun))
        self._open = tuple(one for first, one in begun if first is None)
        self.first = None if self._open else words
        self._by_word = {
            word: tuple(one for first, one in begun if first is None or word in first)
            for word in words
        }

    def at(self, word: str) -> tuple[Any, ...]:
        """Returns the entries that may begin with ``word``, in their order; "" stands for the
        end."""
        return self._by_word.get(word, self._open)


class PhraseTable:
    """Phrases without slots, told apart by bars or semicolons, and found where they stand."""

    words: frozenset[str] = frozenset()  # all that any table has

    def __init__(self, text: str) -> None:
        self.phrases = frozenset(p for part in text.split(";") for p in expand(part.strip()))
        self.lengths = sorted({len(phrase) for phrase in self.phrases}, reverse=True)
        PhraseTable.words |= {word for phrase in self.phrases for word in phrase}

    def ends(self, words: tuple[str, ...], at: int) -> Iterator[int]:
        """Yields where the phrases that stand at ``at`` end, the longest first."""
        for n in self.lengths:
            if at + n <= len(words) and words[at : at + n] in self.phrases:
                yield at + n


class Pattern:
    """One compiled pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree, rest = _choice(_parts(text), 0)
        assert rest == len(_parts(text)), text
        self.first = _first(self.tree)

    def match(self, words: tuple[str, ...], at: int, slot: Slot) -> Iterator[tuple[Bound, int]]:
        """Yields the filled slots and the end of every way to match at ``at``."""
        if self.first is not None and (at >= len(words) or words[at] not in self.first):
            return
        yield from _match(self.tree, words, at, (), slot)

    def literals(self) -> frozenset[str]:
        """Its words that stand for themselves."""
        return frozenset(p for p in _parts(self.text) if p[0].islower() or p[0] == "'")


@cache
def pattern(text: str) -> Pattern:
    """Returns the compiled pattern of a text."""
    return Pattern(text)


class Patterns:
    """Patterns, each with what it stands for, found by the word that they may begin with."""

    def __init__(self, of: Iterable[tuple[Any, str]]) -> None:
        self._of = tuple(of)

    def at(self, word: str) -> tuple[tuple[Any, Pattern], ...]:
        """Returns the entries that may match where ``word`` stands, in their order."""
        return self._choice.at(word)

    @cached_property
    def _choice(self) -> FirstWordIndex:  # compiled when it is first asked for
        compiled = ((meant, pattern(text)) for meant, text in self._of)
        return FirstWordIndex((what.first, (meant, what)) for meant, what in compiled)


@cache
def patterns(*texts: str) -> Patterns:
    """Returns the compiled patterns of texts, each of which stands for itself."""
    return Patterns((text, text) for text in texts)


def _parts(text: str) -> list[str]:
    """Brackets, bars and words; "the" is left out, as it is in sentences."""
    return [part for part in _PARTS.findall(text) if part != "the"]


def _choice(parts: list[str], at: int) -> tuple[Any, int]:
    options: list[Any] = [[]]
    while at < len(parts) and parts[at] not in "])":
        part = parts[at]
        if part == "|":
            options.append([])
        elif part in "[(":
            inner, at = _choice(parts, at + 1)
            options[-1].append(("opt", inner) if part == "[" else inner)
        else:
            options[-1].append(("slot" if part.isupper() else "word", part))
        at += 1
    return (
        "or",
        FirstWordIndex((_first_of_sequence(option), tuple(option)) for option in options),
    ), at


def _first(node: Any) -> frozenset[str] | None:
    """The words that a match may begin with; None: it may begin with a slot, or be empty."""
    what, inner = node
    if what == "word":
        return frozenset({inner})
    return inner.first if what == "or" else None


def _first_of_sequence(option: Sequence[Any]) -> frozenset[str] | None:
    """The same of parts that follow one another."""
    found: set[str] = set()
    for what, inner in option:
        begins = _first(inner if what == "opt" else (what, inner))
        if begins is None:
            return None
        found |= begins
        if what != "opt":
            return frozenset(found)
    return None  # nothing in it must be there


def _match(
    node: Any, words: tuple[str, ...], at: int, bound: Bound, slot: Slot
) -> Iterator[tuple[Bound, int]]:
    what, inner = node
    if what == "slot":
        for value, end in slot(inner, at):
            yield (*bound, (inner, value)), end
    elif what == "opt":
        yield bound, at
        yield from _match(inner, words, at, bound, slot)
    else:
        for option in inner.at(words[at] if at < len(words) else ""):
            yield from _sequence(option, 0, words, at, bound, slot)


def _sequence(
    nodes: tuple[Any, ...], k: int, words: tuple[str, ...], at: int, bound: Bound, slot: Slot
) -> Iterator[tuple[Bound, int]]:
    """Of the nodes from ``k`` on."""
    while k < len(nodes) and nodes[k][0] == "word":
        if at >= len(words) or words[at] != nodes[k][1]:
            return
        at, k = at + 1, k + 1
    if k == len(nodes):
        yield bound, at
        return
    for more, end in _match(nodes[k], words, at, bound, slot):
        yield from _sequence(nodes, k + 1, words, end, more, slot)
