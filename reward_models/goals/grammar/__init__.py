"""Reads a sentence into a formula: words, things, quantities, clauses, sentences, meaning.

Every word must have its place in a pattern of ``wordings.toml``, in a noun phrase, in a quantity or
in what joins clauses; a sentence is read in every way in which all of its words have one. If these
mean one formula, that is it; if they mean several, the sentence is refused, and so it is where what
it says has no meaning on the card, and where it has no such reading: a policy trained on a misread
sentence is worse than a question.

May import: goals.
"""

from __future__ import annotations

import re

from reward_models.base import TaskCard
from reward_models.goals.formula import Formula, FormulaError, canonical, fill
from reward_models.goals.grammar import clauses, sentences
from reward_models.goals.grammar.noun_phrases import EntityNames
from reward_models.goals.grammar.patterns import split, without_articles
from reward_models.goals.grammar.refusals import RefusalBuilder, explain_refusal
from reward_models.goals.grammar.semantics import SemanticInterpreter
from reward_models.goals.refusal import Refusal

MAX_WORDS = 80
_QUESTION = re.compile(r"\?[^\w]*$")
_TALE = re.compile(
    r"\W*(?:(?:i|we) wonder|(?:you|somebody|someone|he|she|they) (?:have|has|had) \w+ed)\b", re.I
)
_REQUEST = re.compile(
    r"\W*(?:\w+\W+){0,4}?"
    r"(?:can|could|would|may|might|why|how about|what about|any chance|will you)\b",
    re.IGNORECASE,
)


def read(text: str, card: TaskCard) -> Formula:
    """Reads a sentence into a formula.

    Args:
        text: The sentence.
        card: The card of the task.

    Raises:
        Refusal: It is not certain what the sentence means, or the card does not say who acts.
    """
    things = EntityNames(card)
    if things.actor is None:
        raise Refusal(
            "unknown_object",
            f"task {card.task!r} has neither one gripper nor one known body, so its sentences are "
            "not parsed",
            "; ".join(card.goals.values()),
        )
    refuse = RefusalBuilder(text, things)
    said = split(text)
    asks = bool(_QUESTION.search(text)) and not _REQUEST.match(text)
    if len(said) > MAX_WORDS:
        raise refuse("unsupported", f"expected at most {MAX_WORDS} words, got {len(said)}")
    if _TALE.match(text):
        raise refuse("no_goal", "it describes or asks about a state; say what to achieve")
    words, named = without_articles(said)
    found: dict[Formula, Formula] = {}
    wrong: list[Refusal] = []
    without: list[Refusal] = []  # what the card lacks for it, in a formula's words
    spoken = clauses.ClauseParser(words, named, things)
    for elements in sentences.SentenceParser(spoken).whole() if words and not asks else ():
        try:
            formula = SemanticInterpreter(things, card, refuse).formula(elements)
            found.setdefault(canonical(fill(formula, card)), formula)
        except Refusal as error:
            wrong.append(error)
        except FormulaError as error:
            without.append(refuse("unsupported", str(error)))
    if len(found) > 1:
        ways = " or ".join(str(f) for f in list(found.values())[:2])
        raise refuse("ambiguous", f"it has several readings: {ways}")
    if not found:
        raise (*wrong, *without)[0] if wrong or without else explain_refusal(said, asks, refuse)
    return next(iter(found.values()))
