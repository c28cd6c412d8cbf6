"""What a sentence that was not read would say with its things spelled as they are, and with an
amount where it says a way alone: the nearest to what was said of all that it may have meant."""

from __future__ import annotations

from collections.abc import Iterator

from reward_models.base import TaskCard
from reward_models.goals.formula import Formula, FormulaError, canonical, fill
from reward_models.goals.grammar import read
from reward_models.goals.grammar.noun_phrases import EntityNames
from reward_models.goals.grammar.patterns import split
from reward_models.goals.grammar.refusals import correct_spelling
from reward_models.goals.refusal import Refusal

USUAL = "5 cm"  # of a way without an amount
_VAGUE = (
    "a few centimetres",
    "a few centimeters",
    "a few cm",
    "a little bit",
    "a little",
    "a bit",
    "slightly",
    "somewhat",
    "a tad",
    "some",
    *("gently", "softly", "carefully", "slowly"),
)
_EDGES = ("edge", "side", "border", "end", "half")
_SIDES = {
    "left": "left",
    "right": "right",
    "forward": "front",
    "forwards": "front",
    "backward": "back",
    "backwards": "back",
}  # of the table, by the way to it


def repaired_readings(text: str, card: TaskCard) -> list[Formula]:
    """Returns the readings of a sentence after one repair, the likeliest first, each formula
    once."""
    found: dict[Formula, Formula] = {}
    for words in _repairs(split(text), EntityNames(card)):
        try:
            formula = read(" ".join(words), card)
            found.setdefault(canonical(fill(formula, card)), formula)
        except (Refusal, FormulaError):
            continue
    return list(found.values())


def _repairs(said: tuple[str, ...], things: EntityNames) -> Iterator[tuple[str, ...]]:
    if (right := correct_spelling(said, things)) != said:
        yield right
    words = _without_vague_words(said)
    for at, word in enumerate(words):
        if word not in _SIDES:
            continue
        begin = at - 2 if words[max(at - 2, 0) : at] == ("to", "the") else at
        yield *words[:begin], *USUAL.split(), *words[begin:]
        rest = words[at + 1 :]
        if rest[:1] and rest[0] in _EDGES:
            rest = rest[4:] if rest[1:4] == ("of", "the", "table") else rest[1:]
        yield *words[:begin], *f"to the {_SIDES[word]} of the table".split(), *rest


def _without_vague_words(said: tuple[str, ...]) -> tuple[str, ...]:
    """Without what says that it is not far, for which the usual amount stands, or how."""
    text = f" {' '.join(said)} "
    for vague in _VAGUE:
        text = text.replace(f" {vague} ", " ")
    return tuple(text.split())
