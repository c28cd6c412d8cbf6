"""`robo-rl reward train KIND`: a scorer on embeddings of one frozen encoder, from episodes."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Sequence
from dataclasses import make_dataclass
from typing import Annotated

import tyro
from rich.console import Console

from robo_rl.judging.tables import in_words
from robo_rl.progress import stages
from robo_rl.teaching import KINDS, train_scorer
from sims.names import unknown


def main(argv: Sequence[str]) -> int:
    """Writes a scorer with its card; ``argv`` begins with the kind."""
    kind, *rest = argv
    if kind not in KINDS:
        raise unknown(f"unknown kind of scorer {kind!r}", kind, ("clip", *KINDS))
    unnamed = tyro.conf.arg(name="")  # its options have nothing in front
    printed = Annotated[bool, tyro.conf.arg(name="json", help="print the card as JSON")]
    fields = [("scorer", Annotated[KINDS[kind], unnamed]), ("as_json", printed, False)]
    command = tyro.cli(
        make_dataclass(kind, fields), args=rest, prog=f"robo-rl reward train {kind}",
        description=inspect.getdoc(KINDS[kind]),
    )  # fmt: skip
    if command.scorer.out.exists():
        raise ValueError(f"{command.scorer.out} exists already; give a new one")
    console = Console(stderr=True)
    with stages(console) as progress:
        said = shlex.join(["robo-rl", "reward", "train", *argv])
        card = train_scorer(command.scorer, progress, said)
    if command.as_json:
        print(json.dumps(card, indent=1))
    else:
        console.print(in_words(card["figures"]), highlight=False)
        print(command.scorer.out)
    return 0
