"""What a proposal is made of, one function per published method; a further one is one function.

- ``text2reward`` (arXiv:2309.11489): zero-shot, or with examples retrieved by likeness of goals
- ``eureka`` (arXiv:2310.12931): the best program so far and how its components went
- ``card`` (arXiv:2410.14660): the same, and what the evaluator found wrong with it
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from reward_models.base import TaskCard
from reward_models.writers.base import Evidence
from reward_models.writers.llm import findings

Method = Callable[[TaskCard, str, int, Sequence[Evidence]], str]


def text2reward(examples: Mapping[str, str] | None = None, shots: int = 2) -> Method:
    """Returns a method that asks without examples, or with the ``shots`` of ``examples`` {goal:
    program} whose goals are most similar."""

    def ask(card: TaskCard, goal: str, index: int, evidence: Sequence[Evidence]) -> str:
        others = {g: p for g, p in (examples or {}).items() if g != goal}
        likest = sorted(others, key=lambda g: -difflib.SequenceMatcher(a=g, b=goal).ratio())
        shown = [f"Goal: {g}\n```python\n{others[g]}```" for g in likest[:shots]]
        return "\n".join(
            [
                *(["Examples for other goals:"] if shown else []),
                *shown,
                "Write the reward program for the goal.",
            ]
        )

    return ask


def eureka(card: TaskCard, goal: str, index: int, evidence: Sequence[Evidence]) -> str:
    """Asks for a new program first, and then for an improvement of the best one from its component
    statistics."""
    if not evidence:
        return f"Write the reward program for the goal. This is attempt {index + 1}: be different."
    return "\n".join(
        [
            "The best program so far:",
            f"```python\n{evidence[0].draft.text}```",
            reflection(evidence[0]),
            "Tips: a component that hardly changes must be rescaled, rewritten or dropped; one "
            "that dominates must be made smaller; if none rises, write the program anew.",
            f"Write an improved program. This is attempt {index + 1}.",
        ]
    )


def card(card_: TaskCard, goal: str, index: int, evidence: Sequence[Evidence]) -> str:
    """Eureka's feedback with the evaluator's findings on the best program."""
    ask = eureka(card_, goal, index, evidence)
    wrong = [d for e in evidence[:1] for d in e.diagnostics]
    return f"{ask}\nThe evaluator found:\n{findings(wrong)}" if wrong else ask


def reflection(evidence: Evidence) -> str:
    """Returns each component's means along training, as lines for a model."""
    lines = ["Means along training:"]
    for name, curve in evidence.curves.items():
        values = ", ".join(f"{v:.2f}" for v in curve)
        lines.append(f"- {name}: {values} (least {min(curve):.2f}, most {max(curve):.2f})")
    return "\n".join(lines)


METHODS: dict[str, Method] = {"text2reward": text2reward(), "eureka": eureka, "card": card}
