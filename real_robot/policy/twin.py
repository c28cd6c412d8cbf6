"""Twin: one row of the task's own model, fed with measurements.

Observation and control run on the real arm through the very code that trained the policy:
``Task.obs`` and ``Task.control`` see a one-row batch whose joints were measured, whose objects were
perceived, and whose targets are where the arm was last told to go, after every limit. What a task
remembers of an episode it remembers here too: every observation is a step of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from real_robot.core.arm_layout import ArmLayout, robot_of
from real_robot.core.driver import Fault, RobotState, Target
from real_robot.perception.base import Pose
from real_robot.perception.scene_poses import pose_slots
from real_robot.safety.filter import SafetyStop
from sims.core.task import Task
from sims.utils.mujoco_warnings import take_mujoco_warnings

Array = np.ndarray

_BAD = [int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQVEL)]


class Twin:
    """The measured arm and objects as a row of ``task``, for one episode and in one thread."""

    def __init__(self, task: Task[Any]):
        self.task = task
        robot = robot_of(task)
        model = task.spec().compile()
        self.joints = robot.joints
        take_mujoco_warnings()
        self.batch = Batch(model, 1, nthread=1, persistent=task.persistent)
        self._views = task.bind(self.batch)
        self._arm = ArmLayout(model, robot)
        self._places = {name: place for name, (_, place) in pose_slots(model, task, robot).items()}
        self._qpos, self._qvel = self.batch.qpos[0], self.batch.qvel[0]
        self._ctrl, self._warnings = self.batch.ctrl[0], self.batch.warning[0]
        self.entities = tuple(self._places)  # whose poses ``observe`` needs
        self._row, self._begun = np.zeros(1, np.int64), False
        self.batch.forward()
        self.columns = {name: c.shape[1] for name, c in task.obs(self._views).items()}

    def observe(self, state: RobotState, poses: Mapping[str, Pose]) -> Array:
        """The observation (obs_dim,) f32 of a measurement and the objects' poses: the episode's
        first, and then one for each action.

        Objects are taken to be at rest: their speeds are not perceived. One without a pose stays
        where it was. SafetyStop if the model cannot hold what was measured.
        """
        measured = [state.qpos, state.qvel, state.gripper]
        for what, values in {"joints": measured, **poses}.items():
            if not all(np.isfinite(v).all() for v in values):
                raise SafetyStop(Fault.NONFINITE, f"measured {what}: {values}")
        self._qpos[self._arm.qpos], self._qvel[self._arm.qvel] = state.qpos, state.qvel
        self._qpos[self._arm.jaw] = self._arm.jaw_angle(state.gripper)
        for name, place in self._places.items():
            if name in poses:
                place.write(self.batch, 0, poses[name].pos, poses[name].quat)
        self._warnings[_BAD, 1] = 0
        self.batch.forward(stage=self.task.stage)
        if self._warnings[_BAD, 1].any():
            # MuJoCo resets a row that it finds out of bounds, and says so only in a counter.
            raise SafetyStop(
                Fault.NONFINITE, f"values out of bounds: joints {measured}, poses {poses}"
            )
        (self.task.after_step if self._begun else self.task.after_reset)(self._views, self._row)
        self._begun = True
        columns = self.task.obs(self._views)
        return np.concatenate([c[0] for c in columns.values()]).astype(np.float32)

    def target(self, action: Array) -> Target:
        """The joint targets that ``action`` (act_dim,) means, counted from the last ones sent."""
        self.task.control(self._views, action[None].copy())
        opening = self._arm.opening(self._ctrl[self._arm.jaw_ctrl])
        return Target(self._ctrl[self._arm.ctrl], opening)

    def commit(self, goal: Array, gripper: float) -> None:
        """Notes where the arm is going, (n,) rad: the next observation and target count from it."""
        self._ctrl[self._arm.ctrl] = goal
        self._ctrl[self._arm.jaw_ctrl] = self._arm.jaw_angle(gripper)
