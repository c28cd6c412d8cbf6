"""The robot arms that the simulations can use, by name.

May import: core, rendering, utils.
"""

from __future__ import annotations

from sims.robots.fr3 import FR3
from sims.robots.koch import KOCH
from sims.robots.robot import Robot, Workspace
from sims.robots.so101 import SO101
from sims.robots.ur5e import UR5E
from sims.utils.did_you_mean import unknown_name_error

ROBOTS: dict[str, Robot] = {robot.name: robot for robot in (SO101, UR5E, FR3, KOCH)}


def robots_for_task(task: str) -> tuple[str, ...]:
    """The names of the robots that do `task`."""
    return tuple(name for name, arm in ROBOTS.items() if arm.tasks is None or task in arm.tasks)


def get(name: str, task: str | None = None) -> Robot:
    """The robot called `name`, for `task` where one is given; ValueError that lists the known names
    if there is none, or what it is offered for.
    """
    if name in ROBOTS:
        arm = ROBOTS[name]
        if task is not None and arm.tasks is not None and task not in arm.tasks:
            msg = f"robot {name!r} is for {', '.join(arm.tasks)}; for {task}: "
            raise ValueError(msg + ", ".join(robots_for_task(task)))
        return arm
    raise unknown_name_error(f"unknown robot {name!r}", name, sorted(ROBOTS), "available robots")


__all__ = ["FR3", "KOCH", "ROBOTS", "SO101", "UR5E", "Robot", "Workspace", "get", "robots_for_task"]
