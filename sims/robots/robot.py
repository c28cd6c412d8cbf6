"""What the simulations need to know of one robot arm, whatever its make."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from sims.rendering.cameras import Camera

Array = NDArray[np.float64]

TARGET_DT = 0.01  # s between two joint targets that an arm is sent
# s in which a joint's acceleration builds up where no jerk is published: two periods at 100 Hz,
# and slow beside a servo's current loop.
JERK_S = 0.02
PUSH = 0.5  # share of a joint's torque that pushes from outside: more stops an arm that feels it


class Builder(Protocol):
    """A function that adds one arm to a spec."""

    def __call__(
        self,
        spec: mujoco.MjSpec,
        pos: tuple[float, float, float] = (0.0, 0.0, 0.0),
        yaw: float = 0.0,
    ) -> None:
        """Adds the arm to `spec`, base at `pos` (m), turned by `yaw` (rad)."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The table before one arm: where things lie, where the tip goes, and who looks at it.

    Places on the table are polar about the axis of the arm's first joint, which every arm turns
    about z; angles are from straight ahead to either side.
    """

    table: tuple[float, float, float]  # m, half sizes
    table_x: float  # m, its middle
    light: tuple[float, float, float]  # m
    shoulder_x: float  # m, the first joint's axis ahead of the base's origin
    reach: tuple[float, float]  # m from that axis: where things may lie
    sector: float  # rad
    inner_reach: tuple[float, float]  # m, the part of it with room for the hand on every side
    inner_sector: float  # rad
    air_reach: tuple[float, float]  # m, where the tip can be
    air_sector: float  # rad
    air_top: float  # m above the table
    aside: tuple[float, float, float]  # m: a place out of the way, mirrored in y
    turn: float  # rad, the first joint starts turned by up to this
    jitter: float  # rad, and the other joints by up to this
    span: float  # m, the tip never leaves this cube about the base
    front: Camera  # looks back at the arm
    top: Camera  # looks down, at an angle where the arm would hide what it works on

    @property
    def area(self) -> tuple[float, float, float, float]:
        """(x from, x to, y from, y to) m: the rectangle about all places where things may lie."""
        near, far = self.reach
        side = far * math.sin(min(self.sector, math.pi / 2))
        return (self.shoulder_x + near * math.cos(self.sector), self.shoulder_x + far, -side, side)


@dataclass(frozen=True, eq=False)
class Robot:
    """One arm: its names, its limits and how to build it. Per-joint arrays are (n,) in `joints`
    order and cover the arm only; the gripper is apart because no arm planner moves it.

    The actuators bear the names of the joints they drive, and take a joint angle in rad.
    """

    name: str
    joints: tuple[str, ...]  # arm joints, base to tool; the gripper is not one of them
    home: Array  # (n,) rad, the tool pointing straight down above the table
    joint_range: Array  # (n, 2) rad, low and high
    velocity_limit: Array  # (n,) rad/s
    acceleration_limit: Array  # (n,) rad/s^2
    effort_limit: Array  # (n,) N m
    gripper_joint: str
    gripper_range: tuple[float, float]  # rad or m, (closed, open)
    tool_site: str  # between the jaw tips; its z points out along the fingers
    finger_geoms: tuple[str, ...]  # the geoms that touch what is grasped
    base_body: str
    workspace: Workspace
    build: Builder
    grip_open: float | None = None  # how far it opens to grasp; None: all the way
    grip_offset: float = 0.0  # m from the middle of jaws so opened to the tip, along the tip's x
    lag_limit: float = np.inf  # rad a target may run ahead, so that a strong arm crushes nothing
    gripper_unit: str = "rad"  # or "m", where the jaws slide
    gripper_followers: tuple[str, ...] = ()  # joints that mirror the gripper's
    jerk_limit: Array | None = None  # (n,) rad/s^3, where one is published
    feels: bool = False  # its controller tells what pushes on it from outside
    softest: float = 0.0  # N m/rad, of turning joints: the least they are known to have; 0: unknown
    overload: float = 0.0  # share of a motor's torque that, kept up, makes it let go; 0: none does
    tasks: tuple[str, ...] | None = None  # those it is offered for; None: all

    def __post_init__(self) -> None:
        """Return nothing: make the arrays float64 and read-only, and check that they agree."""
        n = len(self.joints)
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, np.ndarray):
                continue
            fixed = np.array(value, dtype=np.float64)  # a copy, so no caller holds a writable one
            shape = (n, 2) if field.name == "joint_range" else (n,)
            if fixed.shape != shape:
                msg = f"{self.name}: {field.name} has shape {fixed.shape}, expected {shape}"
                raise ValueError(msg)
            fixed.flags.writeable = False
            object.__setattr__(self, field.name, fixed)
        if np.any(self.home < self.joint_range[:, 0]) or np.any(self.home > self.joint_range[:, 1]):
            msg = f"{self.name}: home lies outside the joint limits"
            raise ValueError(msg)

    @property
    def jerk(self) -> Array:
        """Returns the jerk limit (n,) rad/s^3, by default acceleration limit over ``JERK_S``."""
        return self.acceleration_limit / JERK_S if self.jerk_limit is None else self.jerk_limit

    @property
    def grip_range(self) -> tuple[float, float]:
        """(closed, open), rad or m, for handling things."""
        closed, opened = self.gripper_range
        return closed, opened if self.grip_open is None else self.grip_open

    @property
    def actuators(self) -> tuple[str, ...]:
        """Names of all actuators in the order they are built, n arm joints then the gripper."""
        return (*self.joints, self.gripper_joint)
