"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from real_robot import arms

if TYPE_CHECKING:
    ArmName = str
else:  # made of a table, which a type checker cannot follow
    ArmName = Literal[arms.ARMS]
Json = Annotated[bool, tyro.conf.arg(name="json")]  # of a field that cannot be named so


@dataclass(frozen=True, kw_only=True)
class UnreadOptions:  # reading_offers.py takes it out before the others are parsed; --help shows it
    """Suggestions for a --goal that cannot be parsed."""

    accept: int = 0  # number of the suggestion to train without asking; 0: ask
    # What suggests goals: grammar (the embedded proposer) or llm (the model of --reading).
    reader: str = "grammar"


@dataclass(frozen=True, kw_only=True)
class SceneOptions:
    """The robot and the objects of a task."""

    robot: str = ""  # name from `robo-rl list robots`; empty: the task's own
    things: str = ""  # objects of task tabletop: "yellow ball, two red cubes, white plate"
    scene: str = ""  # your scene for task tabletop: FILE.xml, with FILE.toml beside it
