"""Drivers over the vendors' own clients, one file per vendor, loaded when first used.

May import: arms, core.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a driver's client loads this package without what the bridge is made of
    from real_robot.core.driver import RobotDriver


def make(name: str, where: str, **options: Any) -> RobotDriver:
    """The driver of arm ``name`` at ``where``, a port or a host; not yet connected.

    Raises:
        ValueError: No arm has that name, or its vendor's client is not installed.
    """
    from real_robot import arms

    arm = arms.spec(name)
    if importlib.util.find_spec(arm.client) is None:
        raise ValueError(
            f"{name} needs its vendor's client, Python module {arm.client!r}: pip install "
            f"'robo-rl[{arm.extra}]'"
        )
    return arms.load(arm.driver)(where, **options)
