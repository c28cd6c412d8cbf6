"""Clearance: how far the arm is from itself, from the table and from the ends of its workspace.

Distances are MuJoCo's own (``mj_geomDistance``) on the model the policy was trained in. Loose
objects do not count: touching them is the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import mujoco
import numpy as np

from real_robot.core.arm_layout import ArmLayout, robot_of
from sims.core.task import Task
from sims.robots import Robot

Array = np.ndarray


class NearestPair(NamedTuple):
    """How much room there is, and what it is measured to."""

    room: float  # m, clearance (negative: penetration), up to ``margin``
    what: str  # "gripper - table"
    tool: tuple[float, ...]  # (3,) m, where the tool is


class Clearance:
    """Room about an arm in a pose; makes its own copy of everything, so poses may be imagined."""

    def __init__(
        self,
        model: mujoco.MjModel,
        robot: Robot,
        *,
        margin: float = 0.005,  # m to keep between the arm and itself or the scene
        workspace: Sequence[Sequence[float]] = (),  # (3, 2) m: low and high of the tool; (): all
    ):
        self.margin, self._model, self._data = margin, model, mujoco.MjData(model)
        self._arm = ArmLayout(model, robot)
        jaws = (robot.gripper_joint, *robot.gripper_followers)
        self._jaws = [int(model.joint(name).qposadr[0]) for name in jaws]
        self._tool = model.site(robot.tool_site).id
        self._workspace = np.array(workspace, float) if len(workspace) else None
        self.pairs = self._pairs(robot)  # (k, 2) geoms
        radius = np.where(model.geom_rbound > 0, model.geom_rbound, np.inf)  # m, of spheres
        self._reach = (radius[self.pairs].sum(axis=1) + margin) ** 2  # (k,) m^2
        # Of each pair the one's bounding sphere and the other's box, then the other way round.
        self._sphere = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])  # (2k,) geoms
        self._box = np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])
        self._radius, self._aabb = radius[self._sphere], model.geom_aabb[self._box]
        self._segment = np.zeros(6)
        # A tick asks for the last command, and for the next one's ends, more than once.
        self._recent = lru_cache(maxsize=16)(self._near)

    @classmethod
    def of(cls, task: Task[Any], **options: Any) -> Clearance:
        """The clearance of the arm of ``task`` in its scene."""
        return cls(task.spec().compile(), robot_of(task), **options)

    def near(self, qpos: Array, gripper: float) -> NearestPair:
        """The least room with the joints at ``qpos`` (n,) rad and the gripper that far open."""
        return self._recent(np.asarray(qpos, float).tobytes(), float(gripper))

    def _near(self, pose: bytes, gripper: float) -> NearestPair:
        data, qpos = self._data, np.frombuffer(pose)
        data.qpos[self._arm.qpos] = qpos
        data.qpos[self._jaws] = self._arm.jaw_angle(gripper)
        mujoco.mj_kinematics(self._model, data)
        at = data.site_xpos[self._tool]
        best = NearestPair(self.margin, "", tuple(at))
        if self._workspace is not None:
            inside = np.concatenate([at - self._workspace[:, 0], self._workspace[:, 1] - at])
            i = int(inside.argmin())
            if inside[i] < best.room:
                end = "low" if i < 3 else "high"
                axis = "xyz"[i % 3]
                what = f"tool, {end} end of the workspace in {axis}"
                best = best._replace(room=float(inside[i]), what=what)
        for a, b in self._close():
            room = mujoco.mj_geomDistance(self._model, data, a, b, best.room, self._segment)
            if room < best.room:
                best = best._replace(room=room, what=f"{self._name(a)} - {self._name(b)}")
        return best

    def _close(self) -> Array:
        """(m, 2) the pairs that may be closer than the margin, told from what bounds them."""
        places, turns = self._data.geom_xpos, self._data.geom_xmat
        k = len(self.pairs)
        apart = places.take(self._sphere[:k], axis=0) - places.take(self._box[:k], axis=0)
        close = np.flatnonzero(np.einsum("kj,kj->k", apart, apart) < self._reach)
        ways = np.concatenate([close, close + k])
        box = self._box.take(ways)
        at = places.take(self._sphere.take(ways), axis=0) - places.take(box, axis=0)
        at = np.einsum("kij,ki->kj", turns.take(box, axis=0).reshape(-1, 3, 3), at)  # in its frame
        aabb = self._aabb.take(ways, axis=0)
        outside = np.maximum(np.abs(at - aabb[:, :3]) - aabb[:, 3:], 0.0)
        room = np.sqrt(np.einsum("kj,kj->k", outside, outside)) - self._radius.take(ways)
        far = (room >= self.margin).reshape(2, -1).any(axis=0)
        return self.pairs[close[~far]]

    def _pairs(self, robot: Robot) -> Array:
        """Pairs of geoms that could touch and must not: arm and arm, arm and what stands still."""
        model = self._model
        root = model.body(robot.base_body).id
        arm = [b for b in range(model.nbody) if self._descends(b, root)]
        solid = [g for g in range(model.ngeom) if model.geom_contype[g] | model.geom_conaffinity[g]]
        mine = [g for g in solid if model.geom_bodyid[g] in arm]
        still = [g for g in solid if g not in mine and model.body_weldid[model.geom_bodyid[g]] == 0]
        pairs = [(a, b) for i, a in enumerate(mine) for b in mine[i + 1 :] if self._separated(a, b)]
        # Jaws are there to close: closed ones with just the margin between them froze the arm.
        jaws = {model.joint(j).bodyid[0] for j in (robot.gripper_joint, *robot.gripper_followers)}
        bodies = model.geom_bodyid
        pairs = [(a, b) for a, b in pairs if not {bodies[a], bodies[b]} <= jaws]
        # What cannot move away from the table may well stand on it.
        moving = [g for g in mine if model.body_weldid[model.geom_bodyid[g]] != 0]
        pairs += [(a, b) for a in moving for b in still]
        # Shapes that overlap at home are drawn so: a shell around a motor.
        self.pairs = np.array(pairs, int).reshape(-1, 2)
        mujoco.mj_resetData(model, self._data)
        self._data.qpos[self._arm.qpos] = robot.home
        mujoco.mj_kinematics(model, self._data)
        segment = np.zeros(6)
        free = [
            mujoco.mj_geomDistance(model, self._data, a, b, 1.0, segment) > self.margin
            for a, b in self.pairs
        ]
        return self.pairs[np.array(free, bool)]

    def _separated(self, a: int, b: int) -> bool:
        """Whether two geoms are on bodies that more than one joint separates."""
        weld, parent = self._model.body_weldid, self._model.body_parentid
        one, two = (weld[self._model.geom_bodyid[g]] for g in (a, b))
        return one != two and weld[parent[one]] != two and weld[parent[two]] != one

    def _descends(self, body: int, root: int) -> bool:
        while body not in (root, 0):
            body = int(self._model.body_parentid[body])
        return body == root

    def _name(self, geom: int) -> str:
        model = self._model
        return model.geom(geom).name or model.body(model.geom_bodyid[geom]).name
