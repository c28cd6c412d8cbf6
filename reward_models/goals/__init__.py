"""Sentences into formulas over a task's entities, and formulas back into sentences."""

from reward_models.base import TaskCard
from reward_models.goals.captions import Plan, caption, describe_vocabulary, paraphrases, stages
from reward_models.goals.predicates import And, Atom, Formula, Then, parse_formula
from reward_models.goals.refusal import Refusal

__all__ = [
    "And",
    "Atom",
    "Formula",
    "Plan",
    "Refusal",
    "Then",
    "caption",
    "describe_vocabulary",
    "paraphrases",
    "parse_formula",
    "read",
    "stages",
]


def read(text: str, card: TaskCard) -> Formula:
    """The formula a sentence means on this card; ``Refusal`` where that is not certain."""
    # Its phrases take a fifth of a second to lay out, which a policy at work never needs.
    from reward_models.goals import grammar

    return grammar.read(text, card)
