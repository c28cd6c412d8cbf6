"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

Json = Annotated[bool, tyro.conf.arg(name="json")]  # of a field that cannot be named so
# Taken out by commands/offers.py before the others are read; here so that --help shows it.
Accept = Annotated[
    int,
    tyro.conf.arg(help="where --goal is not read: the number of what is offered instead, unasked"),
]


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a task is made of, for commands that speak of its things."""

    robot: str = ""  # as `robo-rl list robots` shows; empty: the task's own
    things: str = ""  # on the table of task tabletop: "yellow ball, two red cubes, white plate"
    scene: str = ""  # on that table: your FILE.xml, with its card FILE.toml beside it
