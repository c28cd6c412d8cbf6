"""Sentences into formulas over a task's entities, and formulas back into sentences.

May import: programs.
"""

import importlib

from reward_models.base import TaskCard
from reward_models.goals.captions import Plan, describe_vocabulary, paraphrases, stages
from reward_models.goals.formula import Atom, Formula, FormulaError, Joined, fill, parse
from reward_models.goals.refusal import Refusal

__all__ = [
    "Atom",
    "Formula",
    "FormulaError",
    "Joined",
    "Plan",
    "Refusal",
    "describe_vocabulary",
    "fill",
    "paraphrases",
    "parse",
    "read",
    "stages",
]


def read(text: str, card: TaskCard) -> Formula:
    """Reads a sentence into a formula over the card's entities.

    Raises:
        Refusal: It is not certain what the sentence means.
    """
    # Its phrases take a fifth of a second to lay out, which a policy at work never needs.
    grammar = importlib.import_module(f"{__name__}.grammar")
    return grammar.read(text, card)
