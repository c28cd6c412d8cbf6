"""`robo-rl reward train KIND`: a scorer on embeddings of one frozen encoder, from episodes."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Sequence
from dataclasses import make_dataclass
from typing import Annotated

import tyro

from robo_rl.evaluation.reward_tables import figures_text
from robo_rl.runtime.progress_bars import stage_progress, stderr_console
from robo_rl.scorers.train import KINDS, train_scorer
from sims.utils.did_you_mean import unknown_name_error


def main(argv: Sequence[str]) -> int:
    """Trains a scorer, writes it with its card and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl reward train``; the first is the kind of scorer.

    Raises:
        ValueError: the kind is unknown, or the file to write exists already.
    """
    kind, *rest = argv
    if kind not in KINDS:
        raise unknown_name_error(f"unknown kind of scorer {kind!r}", kind, ("clip", *KINDS))
    unnamed = tyro.conf.arg(name="")  # its options have nothing in front
    printed = Annotated[bool, tyro.conf.arg(name="json", help="print the card as JSON")]
    fields = [("scorer", Annotated[KINDS[kind], unnamed]), ("as_json", printed, False)]
    command = tyro.cli(
        make_dataclass(kind, fields),
        args=rest,
        prog=f"robo-rl reward train {kind}",
        description=inspect.getdoc(KINDS[kind]),
    )
    if command.scorer.out.exists():
        raise ValueError(f"{command.scorer.out} exists already; give a new one")
    console = stderr_console()
    with stage_progress(console) as progress:
        command_line = shlex.join(["robo-rl", "reward", "train", *argv])
        card = train_scorer(command.scorer, progress, command_line)
    if command.as_json:
        print(json.dumps(card, indent=1))
    else:
        console.print(figures_text(card["figures"]), highlight=False)
        print(command.scorer.out)
    return 0
