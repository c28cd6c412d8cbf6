"""Scene: one simulated world of a task, and the truth that only harnesses may ask it for."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from real_robot.layout import ArmLayout, free_bodies, robot_of
from sims.rng import RowRng
from sims.task import Task, owned

Array = np.ndarray

_NO_ACTUATION = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)


class Scene:
    """One row of physics. Device models step it; a policy sees it through them alone."""

    def __init__(self, task: Task[Any], seed: int = 0):
        self.task, self.robot = task, robot_of(task)
        model = task.spec().compile()
        self.timestep = float(model.opt.timestep)  # s
        self.batch = Batch(model, 1, nthread=1, persistent=task.persistent)
        self.arm = ArmLayout(model, self.robot)
        self._views = task.bind(self.batch)
        self._goal = task.goals()[task.goal]
        self._free = free_bodies(model, task, self.robot)
        self._disabled = self.batch.expand("opt.disableflags")
        self.qpos, self.qvel = self.batch.qpos[0], self.batch.qvel[0]  # (nq,), (nv,) live
        self.ctrl = self.batch.ctrl[0]  # (nu,) live
        self.force = self.batch.actuator_force[0]  # (nu,) N m live
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """A starting state: that of ``BatchEnv(task, 1, seed=seed)`` after its first reset."""
        row = np.zeros(1, np.int64)
        self.batch.reset(row, stage=mujoco.mjtStage.mjSTAGE_NONE)
        for array in owned(self._views).values():
            array[:] = 0
        self.task.reset(self._views, row, RowRng(seed, row, row))
        self.batch.forward()

    def step(self) -> None:
        """One physics step."""
        self.batch.step(nstep=1, stage=self.task.stage)

    def limp(self, limp: bool) -> None:
        """Takes torque off all actuators, or gives it back."""
        self._disabled[0] = (self._disabled[0] & ~_NO_ACTUATION) | (_NO_ACTUATION * limp)

    def poses(self) -> dict[str, tuple[Array, Array]]:
        """The true {entity: (pos (3,) m, quat (4,))} of the loose objects."""
        return {
            name: (self.qpos[at : at + 3].copy(), self.qpos[at + 3 : at + 7].copy())
            for name, at in self._free.items()
        }

    def success(self) -> bool:
        """Whether the task's goal holds now."""
        return bool(self._goal.success(self._views)[0])

    def distance(self) -> float:
        """The true distance to the goal, m."""
        return float(self._goal.distance(self._views)[0])

    def state(self) -> Array:
        """The state row (nstate,) f64; ``BatchEnv.render_states`` makes a frame of it."""
        return self.batch.state[0].copy()
