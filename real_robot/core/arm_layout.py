"""ArmLayout: where an arm's joints and a scene's objects live in a MuJoCo model."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from sims import robots
from sims.core.task import Task
from sims.robots import Robot

Array = np.ndarray


class ArmLayout:
    """Indices of the arm of ``task`` in ``model``, by joint name, never by position."""

    def __init__(self, model: mujoco.MjModel, robot: Robot):
        joints = [model.joint(name) for name in robot.joints]
        self.qpos = np.array([j.qposadr[0] for j in joints])  # (n,)
        self.qvel = np.array([j.dofadr[0] for j in joints])  # (n,)
        self.ctrl = np.array([model.actuator(name).id for name in robot.joints])  # (n,)
        self.jaw = int(model.joint(robot.gripper_joint).qposadr[0])
        self.jaw_ctrl = int(model.actuator(robot.gripper_joint).id)
        self._closed, self._open = robot.gripper_range

    def opening(self, angle: float) -> float:
        """The gripper's opening, 0 closed to 1 open, at a joint ``angle`` in rad."""
        return float((angle - self._closed) / (self._open - self._closed))

    def jaw_angle(self, opening: float) -> float:
        """The gripper joint's angle in rad at an ``opening`` of 0 to 1."""
        return self._closed + opening * (self._open - self._closed)


def has_arm(task: Task[Any]) -> bool:
    """Returns whether ``task`` moves an arm, so that its policies can run on one."""
    return bool(getattr(task, "robot", None))


def robot_of(task: Task[Any]) -> Robot:
    """The arm that ``task`` moves; ValueError if it has none."""
    name = getattr(task, "robot", None)
    if not name:
        raise ValueError(f"task {task.name!r} has no field 'robot': it has no arm to drive")
    return robots.get(name)
