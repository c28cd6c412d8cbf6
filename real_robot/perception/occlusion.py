"""OcclusionBound: how far an object that nobody sees may have moved.

What nothing touches stays where it is. What the arm is close to moves no farther than the arm does
meanwhile, and neither does what stands next to that. So an object's last pose is worth something
for longer than a moment, and how much can be told: by metres and not by seconds.

It does not hold for what rolls away by itself once it was pushed, nor for people who reach in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from real_robot.core.arm_layout import ArmLayout, robot_of
from real_robot.perception.base import Pose
from real_robot.perception.scene_poses import pose_slots
from sims.core.task import Task

Array = np.ndarray

CLOSE = 0.015  # m: nearer than this counts as touching, for poses are not exact


class OcclusionBound:
    """``doubt`` in m of each object since it was last seen, for one episode."""

    def __init__(self, task: Task[Any]):
        model = task.spec().compile()
        robot = robot_of(task)
        self._model, self._data = model, mujoco.MjData(model)
        self._arm = ArmLayout(model, robot)
        jaws = (robot.gripper_joint, *robot.gripper_followers)
        self._jaws = [int(model.joint(name).qposadr[0]) for name in jaws]
        solid = [g for g in range(model.ngeom) if model.geom_contype[g] | model.geom_conaffinity[g]]
        root = model.body(robot.base_body).rootid[0]
        body = model.geom_bodyid
        # The base stands still, and so does what is bolted to it.
        self._mine = [
            g
            for g in solid
            if model.body_rootid[body[g]] == root
            and model.body_weldid[body[g]] != 0
            and model.body_weldid[body[g]] != model.body_weldid[root]
        ]
        self._loose: dict[str, tuple[int, list[int]]] = {}  # address in qpos, geoms
        for name, (label, _) in pose_slots(model, task, robot).items():
            at = model.body(label)
            joint = int(at.jntadr[0])
            if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                geoms = [g for g in solid if body[g] == at.id]
                self._loose[name] = int(model.jnt_qposadr[joint]), geoms
        self._before: Array | None = None  # (k, 3) m, the arm's shapes at the last look
        self._seen: dict[str, float] = {}  # s, when each was last seen
        self.doubt: dict[str, float] = dict.fromkeys(self._loose, 0.0)

    def observe(self, qpos: Array, gripper: float, poses: Mapping[str, Pose]) -> None:
        """The arm is at ``qpos`` (n,) rad, ``gripper`` open; ``poses`` are the last known ones."""
        data = self._data
        data.qpos[self._arm.qpos] = qpos
        data.qpos[self._jaws] = self._arm.jaw_angle(gripper)
        for name, (at, _) in self._loose.items():
            if name in poses:
                data.qpos[at : at + 3], data.qpos[at + 3 : at + 7] = poses[name][:2]
        mujoco.mj_kinematics(self._model, data)
        here = data.geom_xpos[self._mine].copy()
        moved = 0.0
        if self._before is not None:
            moved = float(np.linalg.norm(here - self._before, axis=1).max())
        self._before = here
        fresh = {n for n in self._loose if n in poses and poses[n].t > self._seen.get(n, -np.inf)}
        for name in fresh:
            self.doubt[name], self._seen[name] = 0.0, poses[name].t
        if moved == 0.0 or len(fresh) == len(self._loose):
            return
        for name in self._touched() - fresh:
            self.doubt[name] += moved

    def _touched(self) -> set[str]:
        """Objects close to the arm, or to one that is."""
        near, left = [self._mine], set(self._loose)
        touched: set[str] = set()
        while near:
            hands = near.pop()
            for name in sorted(left):
                geoms = self._loose[name][1]
                if any(self._close(a, b) for a in hands for b in geoms):
                    touched.add(name)
                    left.discard(name)
                    near.append(geoms)
        return touched

    def _close(self, a: int, b: int) -> bool:
        model, data = self._model, self._data
        apart = np.linalg.norm(data.geom_xpos[a] - data.geom_xpos[b])
        if apart - model.geom_rbound[a] - model.geom_rbound[b] > CLOSE:
            return False
        return mujoco.mj_geomDistance(model, data, a, b, CLOSE, None) < CLOSE
