"""What is not read is refused, with a code and a reason that names the way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from reward_models.goals.captions import describe_vocabulary
from reward_models.goals.grammar import clauses, quantities, sentences
from reward_models.goals.grammar.lexicon import (
    ASKING,
    COLOUR_WORDS,
    COLOURS,
    DETERMINERS,
    FUNCTION,
    GENERIC,
    GENERIC_PLURAL,
    LOOKS,
    SCENERY,
    SHADES,
    UNSUPPORTED,
)
from reward_models.goals.grammar.noun_phrases import EntityNames, NounPhraseParser
from reward_models.goals.grammar.patterns import without_articles
from reward_models.goals.refusal import Refusal

_BEFORE_NOUN = frozenset("of above over from to beside near touch tap poke reach".split())
# What can be meant in two ways, wherever it stands.
_TWOFOLD = (
    ("(?:hand|tip) over", "'hand' or 'tip' may be a verb or the gripper: rephrase it"),
    (
        "(?:before|after) (?:that|this)|later|so as to|in order to",
        "unclear which goal comes first: say 'first ..., then ...'",
    ),
    (
        "(?:you|hand|gripper|arm|robot|it) (?:may|might|can|could)",
        "a requirement, or only a permission? Say 'must' or leave it out",
    ),
    (r"\d+ , \d+", "comma between numbers: write 5.5 for a decimal, 'and' between two numbers"),
    (
        r"\S.*? , (?!(?:and|or|then|but|while|first|until) ).*",
        "only a comma joins two goals: say 'then' or 'and'",
    ),
)
SURELY = 0.8  # alike: "bal" is a ball, and a wall is none
_JOINERS = frozenset("and or then but while , first".split())


def known_words() -> frozenset[str]:
    """Returns every word that the reader knows on any card."""
    known = clauses.vocabulary() | sentences.vocabulary() | quantities.WORDS | UNSUPPORTED.keys()
    known |= FUNCTION | DETERMINERS | GENERIC | GENERIC_PLURAL | LOOKS | COLOUR_WORDS | SCENERY
    return known | ASKING | COLOURS | SHADES.keys() | {"the", ",", "'s", "please"}


def nearest_word(word: str, known: Iterable[str], alike: float = 0.75) -> str:
    """Returns the known word that ``word`` may be a misspelling of; "" where none has a similarity
    of ``alike``."""
    close = difflib.get_close_matches(word, sorted(w for w in known if len(w) > 1), 1, alike)
    return close[0] if close else ""


def correct_spelling(words: tuple[str, ...], things: EntityNames) -> tuple[str, ...]:
    """Returns the words, with unknown ones replaced by the name of a thing that they clearly
    misspell."""
    strange = {word for word in words if word.isalpha()} - things.words - known_words()
    return tuple(
        word in strange and nearest_word(word, things.words, SURELY) or word for word in words
    )


class RefusalBuilder:
    """Builds the refusals of one sentence."""

    def __init__(self, text: str, things: EntityNames) -> None:
        quoted = " ".join(text.split())
        self.quoted = quoted if len(quoted) <= 80 else quoted[:77] + "..."
        self.things = things
        self.known = "; ".join(things.card.goals.values()) or describe_vocabulary(things.card)

    def __call__(self, code: str, why: str, among: Sequence[str] = ()) -> Refusal:
        return Refusal(code, f'did not understand "{self.quoted}": {why}', self.known, among)

    def unknown(self, word: str, code: str) -> Refusal:
        """Returns the refusal of an unknown word, with the word that it may be a misspelling of."""
        known = self.things.words | (known_words() if code == "unknown_word" else set())
        close = nearest_word(word, known)
        hint = f"; nearest known word: {close!r}" if close else ""
        if code == "unknown_object" and close:  # rather a slip of the pen than another thing
            code = "unknown_word"
        word = word if len(word) <= 40 else word[:37] + "..."
        what = "no such object here" if code == "unknown_object" else "unknown word"
        return self(code, f"{what}: {word!r}{hint}")


def explain_refusal(words: tuple[str, ...], asks: bool, refuse: RefusalBuilder) -> Refusal:
    """Returns why a sentence has no reading; ``words`` are those of the sentence with its
    articles."""
    things = refuse.things
    said = sentences.strip_politeness(words, things)
    asks |= said[:1] != () and said[0] in ASKING or said[:2] in (("do", "you"), ("do", "i"))
    if not said or asks:
        return refuse("no_goal", "a question or an empty sentence is not a goal")
    known = known_words() | things.words
    for i, word in enumerate(words):
        if word in known or word[0].isdigit() or word[0] == ".":
            continue
        if word == "-" and words[i + 1 : i + 2] and words[i + 1][0].isdigit():
            return refuse("unsupported", "no amount is negative: say the other direction")
        before = words[max(i - 2, 0) : i]
        described = bool(before) and before[-1] in COLOURS | COLOUR_WORDS
        described |= len(before) == 2 and before[1] in ("the", "a") and before[0] in _BEFORE_NOUN
        return refuse.unknown(word, "unknown_object" if described else "unknown_word")
    wrong = list(_unresolved_phrases(words, things))
    for code in ("unknown_object", "ambiguous"):
        for found, phrase, fits in wrong:
            if found == code == "unknown_object":
                return refuse(code, f"no such object here: {phrase!r}")
            if found == code:
                which = (
                    f"may be any of {', '.join(fits)}"
                    if fits
                    else "names no single object: name the object"
                )
                return refuse(code, f"{phrase!r} {which}", fits)
    for word in words:
        if word in SCENERY and word not in things.words:
            return refuse.unknown(word, "unknown_object")
    for word in words:
        if word in UNSUPPORTED and (word,) not in things.nouns:
            if UNSUPPORTED[word] in ("negation", "a choice or a condition", "a quantity"):
                return refuse(
                    "unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not supported here"
                )
    plain = [w for w in said if w not in things.words | DETERMINERS | GENERIC | LOOKS | _JOINERS]
    if not [w for w in plain if w != "the"]:
        return refuse("no_goal", "it names no goal relation, such as 'touch' or 'on'")
    if (
        said[-1] in _JOINERS | DETERMINERS | {"the"}
        or said[0] in ("before", "after")
        or said[-1] in _BEFORE_NOUN
    ):
        return refuse("ambiguous", "the sentence is incomplete at its start or end")
    if said[-1] in ("above", "touches", "hover") or len(said) == 1:
        return refuse("ambiguous", f"{said[-1]!r} needs an object: name it")
    if said[-1] in ("left", "right") and said[-3:-1] != ("on", "the"):
        return refuse("ambiguous", f"{said[-1]!r} needs an object or a distance")
    for word in words:
        if word in UNSUPPORTED and word not in clauses.vocabulary():
            return refuse("unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not supported here")
    text = " ".join(words)
    for twofold, why in _TWOFOLD:
        if re.search(rf"(?<!\S)(?:{twofold})(?!\S)", text):
            return refuse("ambiguous", why)
    return refuse("unsupported", "no known sentence pattern matches these words; rephrase it")


def _unresolved_phrases(
    words: tuple[str, ...], things: EntityNames
) -> Iterator[tuple[str, str, list[str]]]:
    """Noun phrases that name nothing on the card, or several things."""
    plain, named = without_articles(words)
    phrases = NounPhraseParser(plain, named, things)
    for i, word in enumerate(plain):
        shade = SHADES.get(word, word)
        following = plain[i + 1 : i + 2]
        skip = following and following[0] in COLOUR_WORDS | _JOINERS
        noun = plain[i + 2 if skip else i + 1 :][:1]
        nouns = things.nouns.get(noun, things.objects if noun and noun[0] in GENERIC else [])
        if shade in things.colours and nouns and things.colour[nouns[0]]:
            if following[0] not in _JOINERS and shade not in {things.colour[n] for n in nouns}:
                yield "unknown_object", f"{word} {noun[0]}", []
            fits = [n for n in nouns if things.colour[n] == shade]
            if i in named and following[0] not in _JOINERS and len(fits) > 1:
                yield "ambiguous", f"the {word} {noun[0]}", fits
        if shade in things.colours and i in named and (not following or following[0] in _JOINERS):
            yield "ambiguous", f"the {word}", []
        if shade in things.colours and noun and noun[0] in COLOURS and following[0] in _JOINERS:
            yield "ambiguous", f"{word} {following[0]} {noun[0]}", []
        nouns = things.nouns.get((word,), things.loose if word in GENERIC else [])
        for shade, end in phrases.coloured(i + 1) if nouns else ():
            if shade not in {things.colour[n] for n in nouns}:
                yield "unknown_object", " ".join(plain[i:end]), []
        told = i in named or plain[i - 1 : i] in (("a",), ("an",), ("this",), ("that",))
        if told and len(nouns) > 1:
            yield "ambiguous", f"the {word}", nouns
