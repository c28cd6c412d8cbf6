"""`robo-rl teleop`: a person moves an arm, through the same loop, filter and log as a policy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from real_robot import arms
from robo_rl.arm.episodes import next_number
from robo_rl.commands.arm_options import ArmSessionOptions
from robo_rl.commands.arm_session import run_arm_session
from sims.core.multi_goal import ANY


@dataclass(frozen=True, kw_only=True)
class TeleopCommand(ArmSessionOptions):
    """Teleoperates an arm and records every episode; no policy runs."""

    task: str = "reach"  # task name, see `robo-rl list tasks`
    goal: str = ""  # goal of the task, as a sentence or a key; empty: the first one
    # operator's device: keyboard, gamepad[:PATH], leader:PORT, scripted:FILE or scripted:expert
    human: str = "keyboard"
    seconds: float = 0.0  # episode length limit, s; 0: the task's own
    log: Path | None = Path("teleop")  # folder of MCAP logs, one per episode; new ones are appended

    def check(self) -> None:
        """ValueError where an option is out of its range, or contradicts another."""
        super().check()
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"--seconds must be finite and not below 0, got {self.seconds:g}")
        if self.goal == ANY:
            raise ValueError(
                f"a recorded episode has one goal, got --goal {ANY}; name one goal of the task"
            )
        if not self.human:
            raise ValueError(
                "--human must name a device: keyboard, gamepad, leader or scripted; got none"
            )


def main(argv: Sequence[str]) -> int:
    """Runs episodes in which an operator moves the arm, and returns the exit code.

    Args:
        argv: The words after ``robo-rl teleop``.

    Returns:
        0, or 1 if a fault or the safety filter stopped an episode.

    Raises:
        ValueError: the task's arm has no driver and ``--emulate`` is not given.
    """
    command = tyro.cli(TeleopCommand, args=list(argv), prog="robo-rl teleop")
    command.check()
    from robo_rl.arm.noop_policy import make_noop_policy
    from robo_rl.goals.reading import demonstrated_task

    task = demonstrated_task(vars(command), command.goal)
    if getattr(task, "robot", None) not in arms.ARMS and not command.emulate:
        raise ValueError(f"task {task.name!r} has no arm with a driver; arms with one: {arms.ARMS}")
    if command.seconds:
        task = dataclasses.replace(task, episode_s=command.seconds)
    perceives = command.emulate or command.control is not None or bool(command.camera)
    return run_arm_session(
        command, make_noop_policy(task, perceives), task, first=next_number(command.log)
    )
