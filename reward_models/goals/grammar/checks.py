"""Refusals that need no parsing: questions, quantities, unknown words, double meanings."""

from __future__ import annotations

import itertools

from reward_models.base import TaskCard
from reward_models.goals.formula import Formula, atoms
from reward_models.goals.grammar.clauses import NAME_OF
from reward_models.goals.grammar.lexicon import (
    ARTICLES,
    ASKING,
    COLOUR_WORDS,
    DETERMINERS,
    FORMS,
    FUNCTION,
    GENERIC,
    GENERIC_PLURAL,
    GOVERNS_NOUN,
    LEXICON,
    NEVER_NAMED,
    NOT_NOUNS,
    SCENERY,
    UNSUPPORTED,
)
from reward_models.goals.grammar.names import Names
from reward_models.goals.grammar.phrases import PHRASE_WORDS
from reward_models.goals.grammar.refusals import Refusal, Refuser
from reward_models.goals.grammar.words import Token
from reward_models.goals.predicates import FURNITURE, MARKS, role


def check_words(raw: list[str], tokens: list[Token], names: Names, refuse: Refuser) -> None:
    """Refuses what is no goal at all, what is known to be out of reach, and unknown words."""
    meaningful = [t for t in tokens if t.symbol not in ("POLITE", ",")]
    if not meaningful:
        raise refuse("no_goal", "it asks for nothing")
    opening = [w for t in meaningful[:2] for w in t.text.split()]
    asking = meaningful[0].symbol not in ("WANT", "WISH") and (
        opening[0] in ASKING - {"do"} or opening[:2] in (["do", "you"], ["do", "i"])
    )
    if asking and opening[1:2] != ["not"]:
        raise refuse("no_goal", "a question is not a goal")
    unsupported = UNSUPPORTED.keys() - FUNCTION - FORMS.keys()
    for token in meaningful:
        word = token.symbol
        if any(c.isdigit() for c in word) and not word.startswith("#"):
            raise refuse("unsupported", f"a quantity ({word!r}) is not understood")
        if word in unsupported - PHRASE_WORDS:
            raise refuse("unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not understood")
        if word in GENERIC_PLURAL or (word[:-1],) in names.nouns and word.endswith("s"):
            if (word,) not in names.nouns and word not in LEXICON - GENERIC_PLURAL:
                raise refuse("unsupported", f"several things at once ({word!r}): name each")
    for word, following in itertools.pairwise([*raw, ","]):
        if word in ARTICLES and following in NEVER_NAMED and (following,) not in names.nouns:
            raise refuse("ambiguous", f"a word is missing between {word!r} and {following!r}")
    for word, colour, noun in zip(raw, [*raw[1:], ","], [*raw, ",", ","][2:], strict=True):
        named = noun in names.words | GENERIC | GENERIC_PLURAL | COLOUR_WORDS
        if (
            word in DETERMINERS
            and colour in names.colours
            and not named
            and noun in LEXICON | {","}
        ):
            raise refuse("ambiguous", f"'{word} {colour}' what? Say {colour} thing or its name")
    for i, word in enumerate(raw):
        plural = word.endswith("s") and (word[:-1],) in names.nouns
        if word == "," or word in LEXICON or word in names.words or plural:
            continue
        described = i > 0 and raw[i - 1] in names.colours | COLOUR_WORDS
        described |= i > 1 and raw[i - 1] in DETERMINERS and raw[i - 2] in GOVERNS_NOUN
        raise refuse.unknown(word, "unknown_object" if described else "unknown_word")
    for token in meaningful:  # last, as a phrase may only have been broken by an unknown word
        if (word := token.symbol) in unsupported:
            raise refuse("unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not understood")
        if word in SCENERY:
            raise refuse.unknown(word, "unknown_object")


def check_movers(formula: Formula, card: TaskCard, refuse: Refuser) -> None:
    """Refuses a relation of two things of which the first stands where it is, as furniture does."""
    for atom in atoms(formula):
        thing = card.entity(atom.subject)
        if atom.object and role(thing) == "object" and thing.affordances:
            if not {"push", "place"} & {*thing.affordances} or thing.kind in FURNITURE | MARKS:
                raise refuse("unsupported", f"the {thing.name} cannot be moved to something")


def check_readings(raw: list[str], tokens: list[Token], names: Names, refuse: Refuser) -> None:
    """Refuses wordings that can be read in two ways, where the symbols no longer show it."""

    def unsure(what: str) -> Refusal:
        return refuse("ambiguous", f"{what!r} can be read in two ways")

    def noun(word: str) -> bool:
        return word in (names.words | GENERIC) - NOT_NOUNS

    padded = [",", *raw, "", ""]
    for i, word in enumerate(raw):
        before, after, last = padded[i], padded[i + 2], padded[i + 3]
        if word in ("before", "after") and after in ("that", "this"):
            if noun(last) == (word == "after"):  # after that cube; before that, the cube
                raise unsure(" ".join(raw[i : i + 3]))
        named = before in DETERMINERS | names.words | FORMS.keys() | {"'s"}
        if word in ("hand", "tip") and after == "over" and not named:
            raise unsure(f"{word} over")
    symbols = [t.symbol for t in tokens]
    if "VIEW" in symbols and {*NAME_OF, "BELOW"} & {*symbols} - {"LEFT_OF", "RIGHT_OF"}:
        raise refuse("ambiguous", "only left and right are as the picture shows them")
    padded = ["", *symbols, "", ""]
    for i, token in enumerate(tokens):
        before, after, last = padded[i], padded[i + 2], padded[i + 3]
        things = [s == "HAND" or s[:1] == "#" for s in (before, after)]
        words = token.text.split()
        if token.symbol == "THEN" and "then" not in words and words[0] != "and":
            if things[0] and after == ",":  # touch the cube later, (but now) the ball
                raise unsure(token.text)
        if token.text in ("so as to", "in order to") and any(s[:1] == "#" for s in symbols[:i]):
            raise unsure(token.text)  # the thing that is pushed, or the arm?
        if token.symbol == "AND" and words[0] == "but" and things[1] and last in ("", ","):
            raise unsure(token.text)
        if token.symbol == "AND" and words[-1] in ("while", "whilst"):
            rest = [s for s in symbols[i:] if s != ","]
            following = rest[rest.index("THEN") + 1 :][:1] if "THEN" in rest else []
            if any(s == "HAND" or s[:1] == "#" or s.endswith("ing") for s in following):
                raise unsure("while ... then")
        possible = token.symbol == "MODAL" and words[0] in ("can", "could", "may", "might", "would")
        if possible and things[0] and not {"WANT", "WISH", "SURE", "UNTIL"} & set(symbols[:i]):
            raise refuse("ambiguous", f"{token.text!r}: is it to be, or only possible?")
        if token.symbol in ("with", "using", "use") and before[:1] == "#" and after == "HAND":
            if last in NAME_OF and tokens[i + 2].text.split()[0] != "to":
                raise unsure(f"{token.text} {tokens[i + 1].text} {tokens[i + 2].text}")
