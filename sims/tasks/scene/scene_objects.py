"""The objects on the table: their shapes, colours and what of their orientation can be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from sims.core.task import Array, Entity
from sims.core.terms import box_distance, cylinder_distance, sphere_distance


@dataclass(frozen=True)
class SceneObject:
    """One of the objects: a coloured primitive standing on the table."""

    name: str
    colour: str
    kind: str
    aliases: tuple[str, ...]
    rgba: tuple[float, float, float, float]
    size: tuple[float, ...]  # m: box half sizes, (radius,), (radius, half height)
    height: float  # m, of the centre above the table
    affordances: tuple[str, ...] = ()  # what may be done to it; (): as the task has it

    @property
    def round(self) -> float:
        """m, the radius of the circle that it stands in."""
        wide, deep, _ = self.half
        outline = self.kind in ("ball", "cylinder", "peg")
        return max(wide, deep) if outline else float(np.hypot(wide, deep))

    @property
    def half(self) -> tuple[float, float, float]:
        """m, half its width, depth and height as it stands."""
        wide, deep = self.size[:2] if self.kind == "cube" else (self.size[0], self.size[0])
        return wide, deep, self.height

    def distance(self, point: Array) -> Array:
        """Returns the distance (...,) m of points (..., 3) in its frame to its surface."""
        if self.kind == "cube":
            return box_distance(point, np.asarray(self.size))
        if self.kind == "ball":
            return sphere_distance(point, *self.size)
        return cylinder_distance(point, *self.size)

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Adds a free body with this shape."""
        kinds = {
            "cube": mujoco.mjtGeom.mjGEOM_BOX,
            "ball": mujoco.mjtGeom.mjGEOM_SPHERE,
            "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
            "peg": mujoco.mjtGeom.mjGEOM_CYLINDER,
        }
        body = spec.worldbody.add_body(name=self.name, pos=(0.0, 0.0, self.height))
        body.add_freejoint(name=self.name)
        body.add_geom(
            name=self.name,
            type=kinds[self.kind],
            size=[*self.size, *[0.0] * (3 - len(self.size))],
            rgba=self.rgba,
            mass=0.04,
            # Without rolling friction a ball leaves the table as soon as it is touched.
            condim=6,
            friction=(0.6, 0.01, 0.004 if self.kind == "ball" else 0.001),
        )


THINGS = (
    SceneObject(
        "red_cube",
        "red",
        "cube",
        ("cube", "block", "box", "brick"),
        (0.90, 0.08, 0.06, 1.0),
        (0.02, 0.02, 0.02),
        0.02,
    ),
    SceneObject(
        "blue_ball",
        "blue",
        "ball",
        ("ball", "sphere", "orb"),
        (0.06, 0.18, 0.95, 1.0),
        (0.021,),
        0.021,
    ),
    SceneObject(
        "green_cylinder",
        "green",
        "cylinder",
        ("cylinder", "can", "tube"),
        (0.05, 0.75, 0.12, 1.0),
        (0.019, 0.024),
        0.024,
    ),
)


def cube_orientation(mat: Array) -> Array:
    """Returns orientation features of a cube that are equal where it looks the same.

    Args:
        mat: (N, 3, 3), the rotation matrix of the cube.

    Returns:
        (N, 3): for a cube that lies flat, cos and sin of 4 times its yaw, and 1. In general, with
        its edges as unit vectors (x, y, z): real and imaginary part of half the sum of
        (x + i y)**4, and the sum of z**4.
    """
    quarter = 0.5 * ((mat[:, 0] + 1j * mat[:, 1]) ** 4).sum(axis=1)
    return np.stack([quarter.real, quarter.imag, (mat[:, 2] ** 4).sum(axis=1)], axis=1)


@dataclass(frozen=True)
class OrientationFeature:
    """A feature of an object's orientation that a frame can show."""

    name: str
    measure: Callable[[Array], Array]  # (N, 3, 3) -> (N, 3)
    doc: str


# Whatever a symmetry hides is left out: no reward could tell such states apart in a frame.
TURNS: dict[str, tuple[OrientationFeature, ...]] = {
    "cube": (
        OrientationFeature(
            "facing", cube_orientation, "cos and sin of 4 times the yaw, and 1 when lying flat"
        ),
    ),
    "cylinder": (OrientationFeature("up", lambda mat: mat[:, 2], "world's up in its own axes"),),
    "ball": (),
    "peg": (OrientationFeature("up", lambda mat: mat[:, 2], "world's up in its own axes"),),
    "item": (OrientationFeature("up", lambda mat: mat[:, 2], "world's up in its own axes"),),
}
GRIPPER = Entity(
    "gripper",
    (
        "gripper",
        "hand",
        "claw",
        "fingers",
        "finger",
        "arm",
        "robot",
        "effector",
        "tool",
        "tip",
        "jaws",
    ),
    "",
    "gripper",
    ("move",),
    "gripper",
    "tip",
)
