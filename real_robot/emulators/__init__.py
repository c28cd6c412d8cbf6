"""The device ends of arms' wire protocols, with the simulated arm behind them.

Each file speaks one vendor's protocol well enough for that vendor's own client, unmodified. They
prove what goes over the wire; they are not the hardware.

May import: arms, core, perception, sim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from real_robot import arms

if TYPE_CHECKING:
    from real_robot.emulators.emulator import Emulator
    from sims.core.task import Task


def make(name: str, task: Task[Any], **options: Any) -> Emulator:
    """The emulator of arm ``name`` with the scene of ``task`` behind it; not yet started."""
    return arms.load(arms.spec(name).emulator)(task, **options)
