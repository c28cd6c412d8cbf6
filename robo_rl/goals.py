"""From what a person typed to what is trained and what is judged.

The sentence is read by the grammar into a formula. The formula's captions make the reward; the
ground truth is the task's own goal whose sentence reads to the same formula, or there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reward_models.base import TaskCard, from_dict
from reward_models.goals.captions import Plan, stages
from reward_models.goals.grammar import Refusal, read
from reward_models.goals.predicates import Formula
from sims.task import Task


@dataclass(frozen=True)
class ReadGoal:
    """A sentence as understood."""

    text: str
    formula: Formula | None  # None: not read (a reward that needs no formula may still be used)
    refusal: str  # why it was not read; empty if it was
    key: str  # the task's goal that means the same; empty: there is no ground truth
    card: TaskCard

    @property
    def plan(self) -> Plan:
        """The atoms to reward, in order; ValueError with the refusal when nothing was read."""
        if self.formula is None:
            raise ValueError(self.refusal)
        return stages(self.formula)

    @property
    def truth(self) -> str:
        """A sentence for people about how success will be judged."""
        if self.key:
            return f"judged by the ground truth of {self.key!r}"
        known = "; ".join(self.card.goals.values())
        return f"no ground truth for this sentence; known: {known}"


def read_goal(task: Task[Any], text: str) -> ReadGoal:
    """``text`` against a task: a sentence, or the key of one of its goals."""
    card = from_dict(task.card())
    text = card.goals.get(text, text)
    try:
        formula, refusal = read(text, card), ""
    except Refusal as error:
        formula, refusal = None, str(error)
    key = ""
    for name, sentence in card.goals.items():
        if formula is not None and read(sentence, card) == formula:
            key = name
            break
    return ReadGoal(text, formula, refusal, key, card)
