"""The sentences that the proposer of readings is trained on (`robo-rl reward train proposer`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import sims
from benchmarks.labelled_sentences import SETS, UNSEEN, card_of, labelled
from robo_rl.goals.proposer_training import Labelled, wordings


def lessons() -> Iterator[Labelled]:
    """Every labelled sentence for development, and what the table of predicates calls its
    relations on each task's scene; none that a set kept out has too."""
    held_out = {text.casefold() for name in list(SETS)[:UNSEEN] for text, _, _ in labelled(name)}
    own = itertools.chain.from_iterable(map(labelled, list(SETS)[UNSEEN:]))
    table = (row for name in sims.TASKS for row in wordings(card_of(name)))
    yield from (row for row in (*own, *table) if row[0].casefold() not in held_out)
