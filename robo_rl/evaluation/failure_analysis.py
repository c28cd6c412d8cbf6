"""Which part of a goal was missing where it was not fulfilled: what to look into first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from reward_models.base import TaskCard
from reward_models.goals.formula import (
    Formula,
    Joined,
    formula_kind,
    from_data,
    join,
    parts_of,
    to_data,
)
from reward_models.goals.text import to_sentence
from sims.truth import SuccessJudge

Array = np.ndarray


def missed_parts(judge: SuccessJudge, card: TaskCard, success: Array) -> dict[str, int]:
    """{part in words: episodes that lacked it first}, of those in which the judge's goal was not
    fulfilled, as ``success`` (N,) bool says; the most frequent first.

    What was broken counts before what was not done, which counts in its order.
    """
    left, found = ~success, {}
    for words, part in _parts(from_data(judge.goal), card):
        lacks = left & ~judge.at_last(judge.course(to_data(part)).done)
        if lacks.any():
            found[words] = found.get(words, 0) + int(lacks.sum())
        left &= ~lacks
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def missed_goals(goals: Sequence[str], success: Array) -> dict[str, int]:
    """Returns {goal in words: failed episodes}, the most frequent first.

    Args:
        goals: The goal of each environment, in words.
        success: (N,) bool, whether its episode succeeded.
    """
    failed = Counter(words for words, met in zip(goals, success, strict=True) if not met)
    return dict(failed.most_common())


def _parts(goal: Formula, card: TaskCard) -> Iterator[tuple[str, Formula]]:
    """(words, what must be done) of the goal's parts; of a sequence up to each of its own."""
    parts = parts_of(goal, "and")
    for part in sorted(parts, key=lambda p: _ORDER[formula_kind(p)]):
        if isinstance(part, Joined) and part.operator == "then":
            for last in range(1, len(part.parts) + 1):
                so_far = part.parts[:last]
                done = join("then", *so_far) if last > 1 else _first(so_far[0])
                yield to_sentence(part.parts[last - 1], card), done
        else:
            yield to_sentence(part, card), part


_ORDER = {"constraint": 0, "event": 1, "state": 2}


def _first(part: Formula) -> Formula:
    """The first part of a sequence, which need not last."""
    return join("once", part) if formula_kind(part) == "state" else part


def failure_line(found: dict[str, int]) -> str:
    """``not fulfilled: 60 times "never: ..", 41 times ".."``; empty where nothing was missing."""
    listed = ", ".join(f'{count} times "{words}"' for words, count in found.items())
    return f"not fulfilled: {listed}" if listed else ""
