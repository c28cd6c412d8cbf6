"""`robo-rl reward picture`: pictures of a goal, for --reward goal-image:FILE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from robo_rl.commands.options import SceneOptions
from robo_rl.goals.reading import known_goal
from robo_rl.rewards.goal_pictures import take_pictures


@dataclass(frozen=True, kw_only=True)
class PictureCommand(SceneOptions):
    """Takes pictures of a goal that is met: at the end of the expert's episodes or of a run's, or
    wherever chance has met it."""

    task: str = "reach"  # as `robo-rl list tasks` shows
    goal: str = ""  # sentence or key with a success judge; empty: the first goal
    of: str = "expert"  # source of the states: expert, chance, or a run folder
    count: int = 1  # number of pictures; more than one need a folder as --out
    out: Path  # the file to write, .png, or the new folder
    camera: str = ""  # empty: the task's first camera, which encoders use
    size: int = 0  # px, height and width; 0: the camera's own
    seed: int = 0  # seed of the episodes


def main(argv: Sequence[str]) -> int:
    """Writes pictures and a card that says what they show, and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl reward picture``.

    Raises:
        ValueError: ``--out`` exists, or is not a .png file for one picture and a folder for
            several.
    """
    command = tyro.cli(PictureCommand, args=list(argv), prog="robo-rl reward picture")
    if command.count < 1 or (command.count == 1) != (command.out.suffix == ".png"):
        raise ValueError(
            "--out must be FILE.png for one picture and a new folder for several; got --count "
            f"{command.count} --out {command.out}"
        )
    if command.out.exists():
        raise ValueError(f"{command.out} exists already; give a new one")
    task, goal = known_goal(vars(command), command.goal)
    summary = take_pictures(
        task,
        goal,
        command.out,
        of=command.of,
        count=command.count,
        camera=command.camera,
        size=command.size,
        seed=command.seed,
    )
    print(f"{command.out}: {command.count} of {summary}")
    return 0
