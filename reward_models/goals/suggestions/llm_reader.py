"""What a language model takes a sentence for: formulas of the language, held against the card.

The model sees the table of predicates and the card; whoever wants its answer trained on says so.
What is no formula, or means nothing on the card, is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from reward_models.base import TaskCard
from reward_models.goals.formula import Formula, FormulaError, canonical, fill, parse
from reward_models.goals.predicates import PREDICATES, Predicate, roles
from reward_models.remote.cassette import Message, Transport

_PROMPT = Path(__file__).parents[2] / "prompts" / "formula.txt"
_FORMULA = re.compile(r"[a-z_]+\(.*\)")
MAX_TOKENS = 600
MOST = 3


def messages(text: str, card: TaskCard) -> list[Message]:
    """Returns the request to a model: the language from its tables, the card, and the sentence."""
    fits = [row for row in PREDICATES.values() if _sayable(row, card)]
    told = _PROMPT.read_text(encoding="utf-8").format(
        predicates="\n".join(map(_signature, fits)),
        task=card.task,
        things=", ".join(f"{e.name} ({e.kind})" for e in card.entities),
        goals="; ".join(card.goals.values()),
    )
    return [{"role": "system", "content": told}, {"role": "user", "content": text}]


def llm_candidates(text: str, card: TaskCard, transport: Transport) -> list[Formula]:
    """Returns up to three formulas that a model proposes, in its order. Errors of ``transport`` are
    passed on."""
    found: dict[Formula, Formula] = {}
    for line in transport.complete(messages(text, card), MAX_TOKENS).text.splitlines():
        if match := _FORMULA.search(line):
            try:
                formula = parse(match[0])
                found.setdefault(canonical(fill(formula, card)), formula)
            except FormulaError:
                continue
    return list(found.values())[:MOST]


def _sayable(row: Predicate, card: TaskCard) -> bool:
    return all(any(roles(entity) & fits for entity in card.entities) for fits in row.roles)


def _signature(row: Predicate) -> str:
    numbers = "".join(f", {n.name} ({n.unit})" for n in row.numbers)
    of = ", ".join(f"{'xyz'[i]}: {' or '.join(sorted(fits))}" for i, fits in enumerate(row.roles))
    return (
        f"{row.name}({', '.join('xyz'[: row.arity])}{numbers}): "
        + row.caption.format(subject="x", object="y", third="z")
        + f" ({of})"
    )
