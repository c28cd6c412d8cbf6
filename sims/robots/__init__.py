"""The robot arms that the simulations can use, by name."""

from __future__ import annotations

import difflib

from sims.robots.fr3 import FR3
from sims.robots.robot import Robot, Workspace
from sims.robots.so101 import SO101
from sims.robots.ur5e import UR5E

ROBOTS: dict[str, Robot] = {robot.name: robot for robot in (SO101, UR5E, FR3)}


def get(name: str) -> Robot:
    """The robot called `name`; ValueError that lists the known names if there is none."""
    if name in ROBOTS:
        return ROBOTS[name]
    close = difflib.get_close_matches(name, ROBOTS, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    msg = f"unknown robot {name!r}; known robots: {', '.join(sorted(ROBOTS))}.{hint}"
    raise ValueError(msg)


__all__ = ["FR3", "ROBOTS", "SO101", "UR5E", "Robot", "Workspace", "get"]
