"""`robo-rl reward train proposer`: what is offered where a sentence was not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from reward_models.goals.suggestions.proposer import SHIPPED
from robo_rl.runs.run_dir import atomic_write
from robo_rl.runtime.checkout import benchmarks


@dataclass(frozen=True, kw_only=True)
class TrainProposerCommand:
    """Trains the proposer on the sets of sentences for development in a checkout's tests/data, and
    on the wordings of the table of predicates. `robo-rl bench reading` judges it."""

    out: Path | None = None  # .safetensors file to write
    ship: bool = False  # overwrite the weights inside the package instead


def main(argv: Sequence[str]) -> int:
    """Trains the goal proposer, writes its weights and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl reward train proposer``.

    Raises:
        ValueError: both or neither of ``--out`` and ``--ship`` are given.
    """
    command = tyro.cli(TrainProposerCommand, args=list(argv), prog="robo-rl reward train proposer")
    if (command.out is None) != command.ship:
        raise ValueError(
            "give either --out FILE, or --ship to overwrite the weights inside the package"
        )
    from robo_rl.goals.proposer_training import (
        train_proposer,  # torch takes seconds, which --help shall not
    )

    sentences = list(benchmarks("proposer_sentences").lessons())
    path = command.out or SHIPPED
    atomic_write(path, train_proposer(sentences).save())
    print(f"{path}: from {len(sentences):,} sentences")
    return 0
