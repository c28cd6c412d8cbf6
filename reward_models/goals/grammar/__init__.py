"""Reads a sentence into a formula over a task's entities, or refuses and says why.

``reward_models.goals.reader`` reads first; here is what it has no place for: wordings of relations
between the gripper and things. Reading goes in five steps, each a short table and a short function:

1. words        lower case, contractions opened, articles dropped
2. phrases      "to the left hand side of" -> LEFT_OF, "could you" -> POLITE, "after that" -> THEN
3. entities     "the red-coloured box" -> #red_cube, "the robot's hand" -> HAND, verbs -> their stem
4. composition  the sentence is cut at THEN and AND, pronouns and ellipsis are filled in
5. clauses      what is left must match one clause pattern from its first to its last word

A card without a gripper has none of these relations. What is refused is tried by ``speech``, which
takes reasons, calls and introductions off a sentence as people say it; it uses ``words`` and
``lexicon``, and nothing of the five steps.

Every word must be accounted for: by a table, by the card, or by the closed list of polite words.
A word that is not is a refusal, never a guess, because a policy trained on a misread sentence is
worse than a question. The entities come from the card; no object is known here.
"""

from __future__ import annotations

import re

from reward_models.base import TaskCard
from reward_models.goals.captions import describe_vocabulary
from reward_models.goals.formula import Atom, Formula, join
from reward_models.goals.grammar.checks import check_movers, check_readings, check_words
from reward_models.goals.grammar.clauses import PARTICIPLE
from reward_models.goals.grammar.compose import Composer
from reward_models.goals.grammar.entities import mark_nouns, match_entities, without_particles
from reward_models.goals.grammar.lexicon import ARTICLES
from reward_models.goals.grammar.names import Names
from reward_models.goals.grammar.refusals import Refuser
from reward_models.goals.grammar.rewrites import REWRITES, symbols_of
from reward_models.goals.grammar.speech import read_speech
from reward_models.goals.grammar.words import match_phrases, split_words
from reward_models.goals.predicates import role
from reward_models.goals.refusal import Refusal

__all__ = ["MAX_WORDS", "read"]

MAX_WORDS = 80


def read(text: str, card: TaskCard) -> Formula:
    """The formula a sentence means on this card; ``Refusal`` where that is not certain."""
    formula = _read(text, card)
    if isinstance(formula, Atom) and formula.predicate == "balanced":
        return join("always", formula)  # to balance is to keep doing it
    return formula


def _read(text: str, card: TaskCard) -> Formula:
    try:
        formula = _read_plain(text, card)
        if isinstance(formula, Atom) and formula.predicate == "touch":
            if "press" in card.entity(formula.object).affordances:  # a poke at a button
                said = read_speech(text, card)
                return said or formula
        return formula
    except Refusal:
        if (atom := read_speech(text, card)) is not None:
            return atom
        raise


def _read_plain(text: str, card: TaskCard) -> Formula:
    if any(role(entity) == "body" for entity in card.entities):
        raise Refusal("unsupported", "a body has no relations to things")
    names = Names(card)
    refuse = Refuser(text, f"Understood: {describe_vocabulary(card)}", names.words)
    raw = names.shaded(split_words(text))
    if len(raw) > MAX_WORDS:
        raise refuse("unsupported", f"{len(raw)} words, at most {MAX_WORDS} are read")
    marked = mark_nouns(raw, names)
    tokens = match_phrases([word for word in marked if word not in ARTICLES])
    asks = any(t.symbol in ("POLITE", "WANT") for t in tokens)
    tokens, wrong = match_entities(tokens, names, refuse)
    tokens = without_particles(tokens)
    check_words(raw, tokens, names, refuse)
    if wrong:
        raise wrong[0]
    if re.search(r"\?[^\w]*$", text) and not asks:
        if next(t.symbol for t in tokens if t.symbol != ",") != "MODAL":
            raise refuse("no_goal", "a question is not a goal")
    check_readings(raw, tokens, names, refuse)
    s = " ".join(symbols_of(tokens))
    if PARTICIPLE.search(s):
        raise refuse("ambiguous", "a thing that does something, or what it is to do? Say 'is'")
    for pattern, replacement in REWRITES:
        s = " ".join(pattern.sub(replacement, s).split()).strip(" ,")
    formula = Composer(names, refuse).formula(s)
    check_movers(formula, card, refuse)
    return formula
