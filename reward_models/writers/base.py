"""What a writer of reward programs answers with, and what it may know."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from reward_models.programs.diagnostics import Diagnostic


@dataclass(frozen=True)
class Draft:
    """A program as its writer wrote it; nothing is known of it yet.

    ``parents`` are the hashes of the programs it was made from.
    """

    text: str
    writer: str
    notes: str = ""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What a writer is told of a program that was tried and trained: never its success.

    Whoever searches gives the evidence with the program it would keep first.
    """

    draft: Draft
    curves: dict[str, tuple[float, ...]]  # {component: a few means along training}
    diagnostics: tuple[Diagnostic, ...] = ()


def fingerprint(text: str) -> str:
    """Returns the name of a program's text, its sha256."""
    return hashlib.sha256(text.encode()).hexdigest()
