"""Drivers over the vendors' own clients, one file per vendor, loaded when first used."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a driver's client loads this package without what the bridge is made of
    from real_robot.driver import RobotDriver

# arm: (module, class, extra that installs the vendor's client, the client's module)
DRIVERS: dict[str, tuple[str, str, str, str]] = {
    "so101": ("real_robot.drivers.so101", "So101Driver", "so101", "scservo_sdk"),
    "ur5e": ("real_robot.drivers.ur", "UrDriver", "ur", "rtde_control"),
}


def make(name: str, where: str, **options: Any) -> RobotDriver:
    """The driver of arm ``name`` at ``where``, a port or a host; not yet connected."""
    if name not in DRIVERS:
        close = difflib.get_close_matches(name, DRIVERS, n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"no driver for {name!r}; known: {', '.join(sorted(DRIVERS))}.{hint}")
    module, cls, extra, client = DRIVERS[name]
    if importlib.util.find_spec(client) is None:
        raise ValueError(
            f"{name} needs its vendor's client, module {client!r}: pip install 'robo-rl[{extra}]'"
        )
    return getattr(importlib.import_module(module), cls)(where, **options)
