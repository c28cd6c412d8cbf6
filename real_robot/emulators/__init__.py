"""The device ends of arms' wire protocols, with the simulated arm behind them.

Each file speaks one vendor's protocol well enough for that vendor's own client, unmodified. They
prove what goes over the wire; they are not the hardware.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from real_robot.emulators.device import Emulator
    from sims.task import Task

# arm: (module, class)
EMULATORS: dict[str, tuple[str, str]] = {
    "so101": ("real_robot.emulators.so101", "So101Emulator"),
    "ur5e": ("real_robot.emulators.ur5e", "Ur5eEmulator"),
}


def make(name: str, task: Task[Any], **options: Any) -> Emulator:
    """The emulator of arm ``name`` with the scene of ``task`` behind it; not yet started."""
    if name not in EMULATORS:
        close = difflib.get_close_matches(name, EMULATORS, n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"no emulator for {name!r}; known: {', '.join(sorted(EMULATORS))}.{hint}")
    module, cls = EMULATORS[name]
    return getattr(importlib.import_module(module), cls)(task, **options)
