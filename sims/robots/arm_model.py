"""How every arm is built of its numbers: a base, a chain of links with servos, a gripper, a tip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sims.robots.parts import (
    Jaws,
    Link,
    Quat,
    Rgba,
    ServoSpec,
    Vec3,
    add_finger_material,
    add_jaws,
    add_link,
    quat,
    set_inertia,
)
from sims.robots.robot import Array, Robot


class Base(NamedTuple):
    """The body that stands on the table."""

    mass: float  # kg
    com: Vec3 | None  # m; None: the XML names no inertia of a body that does not move
    inertia: tuple[float, ...]  # kg m^2, as a link's
    turn: Quat | None = None  # as a link's
    yaw: float = 0.0  # rad, of its frame in the arm's


class Palm(NamedTuple):
    """A gripper with sliding jaws, fixed to the last link."""

    xyz: Vec3  # m, in the last link's frame
    rpy: Vec3  # rad
    mass: float  # kg
    com: Vec3  # m
    inertia: tuple[float, ...]  # kg m^2
    jaws: Jaws
    rgba: Rgba  # of the jaws


@dataclass(frozen=True, kw_only=True)
class ArmModel:
    """The numbers of one arm.

    Without a ``palm`` the last link is the moving jaw, and the link before it, ``gripper``, the
    fixed one. With one, the controller takes the arm's weight off its joints (gravcomp).
    """

    base: Base
    links: tuple[Link, ...]
    servos: tuple[ServoSpec, ...]  # of each link's joint
    add_shapes: Callable[[dict[str, mujoco.MjsBody]], None]  # gives the bodies, by name, geoms
    tip_xyz: Vec3  # m, in the gripper's frame
    tip_rpy: Vec3 = (0.0, 0.0, 0.0)
    palm: Palm | None = None

    def build(self, spec: mujoco.MjSpec, pos: Vec3 = (0.0, 0.0, 0.0), yaw: float = 0.0) -> None:
        """Adds the arm to ``spec``, base at ``pos`` (m), turned by ``yaw`` (rad) about z.

        Arm shapes have contype 0 and conaffinity 1: they touch whatever has bit 1 in contype, which
        is every geom that says nothing, and never one another.
        """
        turned = quat((0.0, 0.0, yaw + self.base.yaw))
        parent = spec.worldbody.add_body(name="base", pos=list(pos), quat=turned)
        set_inertia(parent, *self.base[:4])
        bodies = {"base": parent}
        for link, servo in zip(self.links, self.servos, strict=True):
            bodies[link.body] = parent = add_link(spec, parent, link, servo)
        palm = self.palm
        if palm is not None:
            turned = quat(palm.rpy)
            parent = parent.add_body(name="gripper", pos=list(palm.xyz), quat=turned)
            set_inertia(parent, palm.mass, palm.com, palm.inertia)
            bodies["gripper"] = parent
        add_finger_material(spec)
        self.add_shapes(bodies)
        gripper = bodies["gripper"]
        if palm is not None:
            add_jaws(spec, gripper, palm.jaws, palm.rgba)
            for body in (*bodies.values(), *gripper.bodies):
                body.gravcomp = 1.0
        gripper.add_site(name="tip", pos=list(self.tip_xyz), quat=quat(self.tip_rpy), group=4)

    def robot(self, name: str, *, velocity_limit: Array | float, **numbers: Any) -> Robot:
        """The arm as the simulations know it: what the model says, and the fields in ``numbers``.

        Args:
            name: What the arm is called in ``ROBOTS``.
            velocity_limit: (n,) rad/s, or one speed for every joint.
            numbers: The other fields of ``Robot``; ``acceleration_limit`` may be one number too.
        """
        if self.palm is None:
            arm, jaw = self.links[:-1], self.links[-1]
            gripper = {"gripper_joint": jaw.joint, "gripper_range": jaw.limit}
            fingers = ("finger_fixed", "finger_moving")
        else:
            arm, jaws = self.links, self.palm.jaws
            driven, *followers = jaws.joints
            gripper = {
                "gripper_joint": driven,
                "gripper_followers": tuple(followers),
                "gripper_range": (0.0, jaws.travel),
                "gripper_unit": "m",
            }
            fingers = ("finger_left", "finger_right")
        n = len(arm)
        numbers["acceleration_limit"] = np.broadcast_to(numbers["acceleration_limit"], n)
        return Robot(
            name=name,
            joints=tuple(link.joint for link in arm),
            joint_range=np.array([link.limit for link in arm]),
            velocity_limit=np.broadcast_to(velocity_limit, n),
            effort_limit=np.array([servo.force for servo in self.servos[:n]]),
            tool_site="tip",
            finger_geoms=fingers,
            base_body="base",
            build=self.build,
            **gripper,
            **numbers,
        )
