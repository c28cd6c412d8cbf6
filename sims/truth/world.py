"""Where the things of a scene are and how far their surfaces are apart, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.task import Task
from sims.core.terms import box_distance, capsule_distance, cylinder_distance, norm, sphere_distance
from sims.tasks.scene.tabletop import Tabletop

Array = np.ndarray

GRIPPER = "gripper"
SPHERE, BOX, CYLINDER, CAPSULE = (
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_BOX,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
    )
)


class World:
    """Live views of a batch, by the names of a task's entities; all in the world frame, m."""

    def __init__(self, task: Task[Any], batch: Batch, views: Any):
        self.task, self.views, self.dt = task, views, task.control_dt
        self._batch, self._model = batch, batch.model
        self._entities = {entity.name: entity for entity in task.entities()}
        arm = getattr(task, "arm", None)
        self.fingers: tuple[str, ...] = arm.finger_geoms if isinstance(task, Tabletop) else ()
        self._tool = batch.site(arm.tool_site) if self.fingers else None
        self._grip_offset = arm.grip_offset if self.fingers else 0.0
        things = task.objects if isinstance(task, Tabletop) else ()
        self._height = {thing.name: thing.height for thing in things}
        self._pose = {thing.name: batch.body(thing.name) for thing in things}
        self._sites = {
            name: batch.site(name)
            for name in self._entities
            if self.fingers and name != GRIPPER and name not in self._pose
        }
        ids = {name: [self._model.geom(name).id] for name in self.fingers}
        ids |= {name: _surface(self._model, name) for name in self._pose}
        self._geoms = {name: tuple(ids[name]) for name in ids}  # what can be touched
        self._placed = {g: batch.geom(g) for geoms in ids.values() for g in geoms}
        self._scratch = mujoco.MjData(self._model)

    @property
    def area(self) -> Array:
        """Returns the rectangle in which objects lie, (2, 2) m: x from, to; y from, to."""
        return np.reshape(self.task.area(), (2, 2))

    def point(self, name: str) -> Array:
        """Returns the point (N, 3) m of an entity.

        Raises:
            ValueError: the task has no such entity.
        """
        if name not in self._entities:
            raise ValueError(
                f"unknown entity {name!r} in task {self.task.name}; "
                f"available: {', '.join(self._entities)}"
            )
        if name in self._pose:
            return self._pose[name].xpos
        if name in self._sites:
            return self._sites[name].xpos
        if self._tool is not None:
            return self._tool.xpos
        return self.task.signals(self.views)[self._entities[name].pose_signal]

    def kind(self, name: str) -> str:
        """What an entity is: cube, drawer, ..."""
        return self._entities[name].kind

    def is_thing(self, name: str) -> bool:
        """Whether an entity is a free body."""
        return name in self._pose

    def half(self, name: str) -> tuple[float, ...]:
        """m, half the width, depth and height of an entity."""
        return self._entities[name].half

    def half_height(self, name: str) -> float:
        """m, of a thing as it stands; 0 of anything else."""
        return self._height.get(name, 0.0)

    def axes(self, thing: str) -> Array:
        """Returns a thing's own axes (N, 3, 3), which are the columns."""
        return self._pose[thing].xmat.reshape(-1, 3, 3)

    def grip_point(self) -> Array:
        """Returns the middle of the open jaws, (N, 3) m."""
        assert self._tool is not None
        return self._tool.xpos - self._grip_offset * self._tool.xmat.reshape(-1, 3, 3)[:, :, 0]

    def finger_centers(self) -> list[Array]:
        """Returns the centre (N, 3) of each finger's box."""
        return [self._placed[self._geoms[name][0]].xpos for name in self.fingers]

    def clearance(self, first: str, second: str, most: float) -> Array:
        """Returns the distance (N,) m from the gripper's fingers or a thing to another entity.

        Furniture is its point. Exact up to ``most``; beyond it only known to be more.
        """
        mine = self.fingers if first == GRIPPER else (first,)
        return np.minimum.reduce([self.gap(name, second, most) for name in mine])

    def gap(self, shape: str, other: str, most: float) -> Array:
        """Returns the distance (N,) m as ``clearance`` does, from one finger or thing."""
        mine = self._geoms[shape]
        if other not in self._geoms:
            point = self.point(other)
            return np.minimum.reduce([self._to_point(geom, point) for geom in mine])
        theirs = self._geoms[other]
        return np.minimum.reduce([self._geom_distance(a, b, most) for a in mine for b in theirs])

    def _geom_distance(self, one: int, other: int, most: float) -> Array:
        """(N,) between the surfaces of two geoms."""
        for round_one, against in ((one, other), (other, one)):
            kind, size = self._shape(round_one)
            if kind == SPHERE:
                apart = self._to_point(against, self._placed[round_one].xpos) - size[0]
                return np.maximum(apart, 0.0)
        return self._between(one, other, most)

    def _shape(self, geom: int) -> tuple[int, Array]:
        return int(self._model.geom_type[geom]), self._model.geom_size[geom]

    def _to_point(self, number: int, point: Array) -> Array:
        """(N,) from the surface of a geom to points (N, 3)."""
        (kind, size), geom = self._shape(number), self._placed[number]
        inside = np.einsum("ni,nij->nj", point - geom.xpos, geom.xmat.reshape(-1, 3, 3))
        if kind == BOX:
            return box_distance(inside, size)
        if kind == SPHERE:
            return sphere_distance(inside, size[0])
        if kind == CAPSULE:
            return capsule_distance(inside, size[0], size[1])
        assert kind == CYLINDER, "fingers and things are boxes, balls, cylinders and capsules"
        return cylinder_distance(inside, size[0], size[1])

    def _between(self, a: int, b: int, most: float) -> Array:
        """(N,) between two geoms neither of which is a sphere, by MuJoCo's own distance."""
        first, second = self._placed[a], self._placed[b]
        reach = self._model.geom_rbound[[a, b]].sum()
        # Looked up once: each look costs more than a row's distance.
        placed = [(geom, view.xpos, view.xmat) for geom, view in ((a, first), (b, second))]
        apart = np.maximum(norm(placed[0][1] - placed[1][1]) - reach, 0.0)
        data = self._scratch
        for row in np.flatnonzero(apart <= most):
            for geom, pos, mat in placed:
                data.geom_xpos[geom], data.geom_xmat[geom] = pos[row], mat[row]
            # Asked for a little more than needed: what it cannot resolve it calls the limit.
            distance = mujoco.mj_geomDistance(self._model, data, a, b, most + 0.01, None)
            apart[row] = max(distance, 0.0)
        return apart

    def joint_share(self, name: str) -> Array:
        """Returns how far (N,) the furniture's joint is along its range, from 0 to 1.

        Raises:
            ValueError: the entity has no joint.
        """
        moving: tuple[Any, ...] = getattr(self.task, "moving", ())
        for index, fixture in enumerate(moving):
            if name in [point.name for point in fixture.points]:
                low, high = fixture.range
                return (self.views.joint[index][:, 0] - low) / (high - low)
        raise ValueError(
            f"{name!r} of {self.task.name} has no joint that can be opened, closed or pressed"
        )


def _surface(model: mujoco.MjModel, body: str) -> list[int]:
    """The geoms of a body that can be touched."""
    first, count = model.body(body).geomadr[0], model.body(body).geomnum[0]
    solid = model.geom_contype | model.geom_conaffinity
    return [g for g in range(first, first + count) if solid[g]]


def select_candidate(rule: str, points: Sequence[Array]) -> Array:
    """Returns which candidate a choice selects, (N,), by the points (N, 3) of those it names."""
    if rule in ("nearest", "farthest"):
        away = np.stack([norm(point - points[0]) for point in points[1:]])
        return away.argmin(axis=0) if rule == "nearest" else away.argmax(axis=0)
    axis, sign = _ENDS[rule]
    return (sign * np.stack(points)[:, :, axis]).argmax(axis=0)


# Which coordinate is largest, and with which sign: left is -y and the front +x.
_ENDS = {"leftmost": (1, -1), "rightmost": (1, 1), "frontmost": (0, 1), "rearmost": (0, -1)}
CHOICES = ("nearest", "farthest", *_ENDS)
