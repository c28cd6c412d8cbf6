"""Reads a sentence into a formula: words, things, quantities, clauses, sentences, meaning.

Every word must have its place in a pattern of ``wordings.py``, in a noun phrase, in a quantity or
in what joins clauses; a sentence is read in every way in which all of its words have one. If these
mean one formula, that is it; if they mean several, the sentence is refused, and so it is where what
it says has no meaning on the card. A sentence that has no such reading is left to the wordings of
``reward_models.goals.grammar``, which know nothing of numbers, order or constraints.
"""

from __future__ import annotations

import re

from reward_models.base import TaskCard
from reward_models.goals import grammar
from reward_models.goals.formula import Formula, FormulaError, atoms, fill
from reward_models.goals.grammar.lexicon import LEXICON, UNSUPPORTED
from reward_models.goals.grammar.refusals import Refuser
from reward_models.goals.reader import clauses, quantities, sentences
from reward_models.goals.reader.meaning import Meaning
from reward_models.goals.reader.things import Things
from reward_models.goals.reader.wordings import OF
from reward_models.goals.reader.words import split, without_articles
from reward_models.goals.refusal import Refusal

MAX_WORDS = 80
_QUESTION = re.compile(r"\?[^\w]*$")
_TALE = re.compile(
    r"\W*(?:(?:i|we) wonder|(?:you|somebody|someone|he|she|they) (?:have|has|had) \w+ed)\b", re.I
)
_REQUEST = re.compile(r"\W*(?:please\W+)?(?:can|could|would|will) you\b", re.IGNORECASE)


def read(text: str, card: TaskCard) -> Formula:
    """The formula of a sentence on this card; Refusal where that is not certain."""
    things = Things(card)
    refuse = Refuser(text, f"Known: {'; '.join(card.goals.values())}", things.words)
    formula = _composed(text, card, things, refuse)
    if formula is None:
        try:
            formula = grammar.read(text, card)
        except Refusal as refusal:
            raise _unread(text, refusal, things, refuse) from None
    for atom in atoms(formula):
        if atom.predicate in OF and atom.terms[0] != OF[atom.predicate]:
            raise refuse("unsupported", f"the {atom.terms[0]} cannot do that")
    return formula


def _composed(text: str, card: TaskCard, things: Things, refuse: Refuser) -> Formula | None:
    """The one formula that the sentence means where all of its words have a place; None where they
    have none, Refusal where what they say has no meaning here, or more than one."""
    words, named = without_articles(split(text))
    if not words or len(words) > MAX_WORDS or things.actor is None:
        return None
    if _QUESTION.search(text) and not _REQUEST.match(text):
        return None
    if _TALE.match(text):
        raise refuse("no_goal", "it tells or asks what is, and not what is to be")
    found: dict[Formula, Formula] = {}
    wrong: list[Refusal] = []
    for elements in sentences.Sentences(clauses.Clauses(words, named, things)).whole():
        try:
            formula = Meaning(things, card, refuse).formula(elements)
            found.setdefault(fill(formula, card), formula)
        except Refusal as error:
            wrong.append(error)
        except FormulaError as error:
            wrong.append(refuse("unsupported", str(error)))
    if len(found) > 1:
        ways = " or ".join(str(f) for f in list(found.values())[:2])
        raise refuse("ambiguous", f"it may mean {ways}")
    if found:
        return next(iter(found.values()))
    if wrong:
        raise wrong[0]
    return None


def _unread(text: str, refusal: Refusal, things: Things, refuse: Refuser) -> Refusal:
    """Why a sentence has no reading: a word that nobody knows, or what the wordings say."""
    if refusal.code in ("unknown_word", "unknown_object", "no_goal"):
        return refusal
    words = split(text)
    meant = [w for w in words if w != "," and (w,) not in sentences.POLITE.get(w, ())]
    if not meant or (_QUESTION.search(text) and not _REQUEST.match(text)):
        return refuse("no_goal", "a question or an empty sentence is not a goal")
    known = clauses.vocabulary() | sentences.vocabulary() | quantities.WORDS | things.words
    known |= LEXICON | {"the", ","}
    for word in words:
        if word not in known and not word[0].isdigit() and word[0] != ".":
            return refuse.unknown(word, "unknown_word")
    if "gripper" in {e.kind for e in things.card.entities}:
        return refusal
    for word in words:
        if word in UNSUPPORTED and word not in clauses.vocabulary():
            return refuse("unsupported", f"{UNSUPPORTED[word]} ({word!r}) is not understood here")
    return refuse("unsupported", "these words are not understood in this order")
