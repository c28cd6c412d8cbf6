"""Captions that somebody wrote for an env, and how true each is of a state: a file of both.

A TOML file of one table: the caption, and an expression of the reward language over the env's
signals that is 1 where it is true and 0 where it is not::

    [captions]
    "the pole stands upright" = "exp(-abs(obs[2]) / 0.05)"
    "the pole leans to the left" = "obs[2] < -0.1"

A CLIP of one's own is trained on frames whose captions are graded so. The expressions know the
state; the CLIP learns to see it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reward_models.base import TaskCard
from reward_models.programs import Program, Refused, load
from reward_models.programs.language import MAX_COMPONENTS

Array = np.ndarray
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class GradedCaptions:
    """Captions with the programs that grade them."""

    texts: tuple[str, ...]
    bodies: tuple[str, ...]  # the expressions, as written
    programs: tuple[Program, ...]

    def truth(
        self, signals: Mapping[str, Array], hidden: Mapping[str, Array] | None = None
    ) -> Array:
        """Returns how true each caption is.

        Args:
            signals: {name: (M, k)} signals of the states.
            hidden: Ignored: an expression itself says what it is about.

        Returns:
            (M, captions) in [0, 1]; NaN counts as false.
        """
        columns = [c for program in self.programs for c in program(signals).values()]
        graded = np.nan_to_num(np.stack(columns, axis=1).astype(np.float32), nan=0.0)
        return np.clip(graded, 0.0, 1.0)


def caption_words(text: str) -> list[str]:
    """Returns the words of a caption, in lower case."""
    return _WORD.findall(text.lower())


def read_captions(path: Path, card: TaskCard) -> GradedCaptions:
    """Reads the captions of a file.

    Raises:
        ValueError: The message names the file, the caption and what is wrong.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("captions")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    if not isinstance(table, dict) or len(table) < 2:
        raise ValueError(
            f'{path}: expected a table [captions] of at least two lines, "the pole stands upright" '
            f'= "exp(-abs(obs[2]) / 0.05)"; got {table!r}'
        )
    texts, bodies = tuple(table), list(table.values())
    for text, body in table.items():
        if not caption_words(text) or not isinstance(body, str):
            raise ValueError(f"{path}: {text!r} needs a caption and an expression in quotes")
        try:
            expressions([body], card)
        except ValueError as error:
            raise ValueError(f"{path}: {text!r}: {error}") from error
    parts = (bodies[i : i + MAX_COMPONENTS] for i in range(0, len(bodies), MAX_COMPONENTS))
    return GradedCaptions(texts, tuple(bodies), tuple(expressions(part, card) for part in parts))


def expressions(texts: Sequence[str], card: TaskCard, step: bool = False) -> Program:
    """Returns a program with each expression as a component, in order.

    Args:
        texts: Expressions over the card's signals.
        card: The task's card.
        step: Whether they may also read the signals before a step (``prev_NAME``) and its
            ``action``.

    Raises:
        ValueError: An expression is wrong; the message lists the signals.
    """
    named = re.findall(r"[A-Za-z_]\w*", " ".join(texts))
    known = [s.name for s in card.signals]
    if step:
        known += [*(f"prev_{name}" for name in known), "action"]
    signals = [name for name in known if name in named]
    lines = "".join(f'        "c{i}": {text},\n' for i, text in enumerate(texts))
    try:
        return load(f"def reward({', '.join(signals)}):\n    return {{\n{lines}    }}\n", card)
    except Refused as error:
        told = ", ".join(f"{s.name} {s.shape}" for s in card.signals)
        raise ValueError(f"{error}; signals: {told}") from error
