"""ArmNumbers: what is published of an arm, as a driver needs it, without its model.

They are ``sims.robots``' own. A process that shall load no simulation is given them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from real_robot.core.driver import Description

Array = np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmNumbers:
    """Of one arm of n joints and a gripper."""

    name: str
    joints: tuple[str, ...]  # n names, base to tool
    actuators: tuple[str, ...]  # the same, the gripper last
    joint_range: Array  # (n, 2) rad
    velocity_limit: Array  # (n,) rad/s
    acceleration_limit: Array  # (n,) rad/s^2
    jerk: Array  # (n,) rad/s^3
    effort_limit: Array  # (n,) N m
    overload: float  # share of it that, kept up, makes a motor let go; 0: none does
    period: float  # s between two targets

    @classmethod
    def of(cls, name: str) -> ArmNumbers:
        """Those of the arm called ``name``; ValueError lists the known names."""
        from sims import robots  # loads MuJoCo
        from sims.robots.robot import TARGET_DT

        robot = robots.get(name)
        names = [field.name for field in fields(cls) if field.name != "period"]
        return cls(period=TARGET_DT, **{name: getattr(robot, name) for name in names})

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> ArmNumbers:
        """What ``to_plain`` made of some."""
        arrays = {k: np.array(v) for k, v in told.items() if isinstance(v, list)}
        names = {k: tuple(told[k]) for k in ("joints", "actuators")}
        return cls(**{**told, **arrays, **names})


def to_plain(about: ArmNumbers | Description) -> dict[str, Any]:
    """Returns the fields as JSON-able data."""
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(about).items()}


def description_from_plain(told: Mapping[str, Any]) -> Description:
    """Returns the description that ``to_plain`` was made from."""
    lists = {k: np.array(v) for k, v in told.items() if isinstance(v, list)}
    return Description(**{**told, **lists, "joints": tuple(told["joints"])})
