"""TASKS: name -> task class, one line each.

May import: core, rendering, robots, tasks/scene.
"""

from __future__ import annotations

from typing import Any

from sims.core.task import Task
from sims.tasks.ant import Ant
from sims.tasks.button import Button
from sims.tasks.custom_tabletop import CustomTabletop
from sims.tasks.drawer import Drawer
from sims.tasks.drawer_then_place import DrawerThenPlace
from sims.tasks.half_cheetah import HalfCheetah
from sims.tasks.hopper import Hopper
from sims.tasks.humanoid import Humanoid
from sims.tasks.lift import Lift
from sims.tasks.peg import Peg
from sims.tasks.pick_place import PickPlace
from sims.tasks.push import Push
from sims.tasks.reach import Reach
from sims.tasks.stack import Stack
from sims.tasks.walker2d import Walker2d

ARM_TASKS: tuple[type[Task[Any]], ...] = (
    Reach,
    Push,
    Lift,
    PickPlace,
    Stack,
    Drawer,
    Button,
    Peg,
    DrawerThenPlace,
)
BODIES: tuple[type[Task[Any]], ...] = (Hopper, HalfCheetah, Walker2d, Ant, Humanoid)

TASKS: dict[str, type[Task[Any]]] = {
    task.name: task for task in (*ARM_TASKS, CustomTabletop, *BODIES)
}

# Removed bodies, and the Gymnasium environments to use in their place.
REMOVED: dict[str, str] = {
    "inverted_pendulum": "gym:InvertedPendulum-v5",
    "pusher": "gym:Pusher-v5",
    "reacher": "gym:Reacher-v5",
    "swimmer": "gym:Swimmer-v5",
}
