"""Sentences into formulas over a task's entities, and formulas back into sentences."""

from reward_models.goals.captions import Plan, caption, describe_vocabulary, paraphrases, stages
from reward_models.goals.grammar import Refusal, read
from reward_models.goals.predicates import And, Atom, Formula, Then, parse_formula

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
