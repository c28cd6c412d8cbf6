"""Places: what of a scene is perceived, and how a measured pose is put into a model of it.

Three kinds of things have a pose of their own: what lies loose (a free joint), furniture that each
episode may have elsewhere (a mocap body), and a part of furniture that slides in it (a drawer, a
button), whose pose says how far it is out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.task import Task
from sims.robots import Robot

Array = np.ndarray


class PoseSlot(Protocol):
    """Where one thing's pose lives in a model; ``row`` is the row of a batch."""

    def write(self, batch: Batch, row: int, pos: Array, quat: Array) -> None:
        """Puts the thing at ``pos`` (3,) m, ``quat`` (4,)."""
        ...


@dataclass(frozen=True)
class FreeBodyPose:
    """A body with a free joint."""

    at: int  # its first address in qpos

    def write(self, batch: Batch, row: int, pos: Array, quat: Array) -> None:
        """Puts the thing at ``pos`` (3,) m, ``quat`` (4,)."""
        batch.qpos[row, self.at : self.at + 3] = pos
        batch.qpos[row, self.at + 3 : self.at + 7] = quat


@dataclass(frozen=True)
class MocapPose:
    """A mocap body."""

    mocap: int

    def write(self, batch: Batch, row: int, pos: Array, quat: Array) -> None:
        """Puts the thing at ``pos`` (3,) m, ``quat`` (4,)."""
        batch.mocap_pos[row, self.mocap] = pos
        batch.mocap_quat[row, self.mocap] = quat


@dataclass(frozen=True)
class SlidingPose:
    """A body on a slide joint in a piece of furniture, written after the furniture."""

    at: int  # address in qpos
    mocap: int  # of the furniture
    zero: tuple[float, ...]  # m, the body in the furniture's frame when the joint is at 0
    axis: tuple[float, ...]  # unit, of the joint in the furniture's frame
    offset: float  # m, joint position at which the body is at ``zero``

    def write(self, batch: Batch, row: int, pos: Array, quat: Array) -> None:
        """Slides the thing as near to ``pos`` (3,) m as its joint goes; ``quat`` (4,) is unused."""
        zero, axis = np.empty(3), np.empty(3)
        turn = batch.mocap_quat[row, self.mocap]
        mujoco.mju_rotVecQuat(zero, np.array(self.zero), turn)
        mujoco.mju_rotVecQuat(axis, np.array(self.axis), turn)
        out = pos - batch.mocap_pos[row, self.mocap] - zero
        batch.qpos[row, self.at] = self.offset + out @ axis


def pose_slots(
    model: mujoco.MjModel, task: Task[Any], robot: Robot
) -> dict[str, tuple[str, PoseSlot]]:
    """{name: (body, place)} of what ``task`` must perceive, furniture before what slides in it.

    A thing is called as its entity is, furniture that is no entity by its body's name. What is part
    of the arm or cannot move needs no perception and is left out.
    """
    arm = model.body(robot.base_body).rootid[0]
    found: dict[str, tuple[str, PoseSlot]] = {}
    taken: set[int] = set()
    entities = [(e, model.body(e.body)) for e in task.entities()]
    named = {int(body.id): e.name for e, body in reversed(entities)}
    for entity, body in entities:
        if body.rootid[0] == arm or body.weldid[0] == 0 or int(body.id) in taken:
            continue
        root = model.body(body.rootid[0])
        if root.mocapid[0] >= 0 and int(root.id) not in taken:
            found[named.get(int(root.id), root.name)] = root.name, MocapPose(int(root.mocapid[0]))
            taken.add(int(root.id))
        if int(body.id) not in taken:
            found[entity.name] = body.name, _moving(model, task, entity.name, body, root)
            taken.add(int(body.id))
    return found


def _moving(model: mujoco.MjModel, task: Task[Any], name: str, body: Any, root: Any) -> PoseSlot:
    joint = int(body.jntadr[0])
    kind = model.jnt_type[joint] if joint >= 0 else None
    if kind == mujoco.mjtJoint.mjJNT_FREE:
        return FreeBodyPose(int(model.jnt_qposadr[joint]))
    in_furniture = root.mocapid[0] >= 0 and body.parentid[0] == root.id
    if kind == mujoco.mjtJoint.mjJNT_SLIDE and in_furniture:
        axis = np.empty(3)
        mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], body.quat)
        at = int(model.jnt_qposadr[joint])
        offset = float(model.qpos0[at])
        return SlidingPose(at, int(root.mocapid[0]), tuple(body.pos), tuple(axis), offset)
    raise ValueError(
        f"entity {name!r} of task {task.name!r} moves, but body {body.name!r} has neither a free "
        "joint nor a slide in a mocap body: its measured pose cannot be written into the twin"
    )
