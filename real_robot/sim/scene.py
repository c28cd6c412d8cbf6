"""SimScene: one simulated world of a task, and the truth that only harnesses may ask it for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from real_robot.core.arm_layout import ArmLayout, robot_of
from real_robot.perception.scene_poses import pose_slots
from sims.core.initial_states import write_initial_states
from sims.core.rng import RowRng
from sims.core.task import Task
from sims.randomization.domain_randomization import ArmServos
from sims.truth import SuccessJudge
from sims.utils.mujoco_warnings import take_mujoco_warnings

Array = np.ndarray

_NO_ACTUATION = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)


class SimScene:
    """One row of physics. Device models step it; a policy sees it through them alone."""

    def __init__(self, task: Task[Any], seed: int = 0, stiffness: float | None = None):
        """``stiffness`` N m/rad, at most, of the turning joints' servos; None: their own."""
        self.task, self.robot = task, robot_of(task)
        model = task.spec().compile()
        self.timestep = float(model.opt.timestep)  # s
        take_mujoco_warnings()
        self.batch = Batch(model, 1, nthread=1, persistent=task.persistent)
        self.arm = ArmLayout(model, self.robot)
        self._views = task.bind(self.batch)
        self._goal = None if task.formula else task.goals()[task.goal]
        self._judge = (
            SuccessJudge(task.formula, task, self.batch, self._views) if task.formula else None
        )
        self._judged_every = round(task.control_dt / self.timestep)
        self._steps = 0
        known = pose_slots(model, task, self.robot)
        self._places = {name: place for name, (_, place) in known.items()}
        self._bodies = {name: int(model.body(body).id) for name, (body, _) in known.items()}
        self._disabled = self.batch.expand("opt.disableflags")
        self.qpos, self.qvel = self.batch.qpos[0], self.batch.qvel[0]  # (nq,), (nv,) live
        self.ctrl = self.batch.ctrl[0]  # (nu,) live
        self.force = self.batch.actuator_force[0]  # (nu,) N m live
        self.weight = self.batch.qfrc_gravcomp[0]  # (nv,) N m live
        self.constraint = self.batch.qfrc_constraint[0]  # (nv,) N m live
        # A batch computes the fields that were asked for before the step.
        self._xpos, self._xquat = self.batch.xpos[0], self.batch.xquat[0]
        if stiffness is not None:
            servos = ArmServos.of(task, model)
            gain, bias = (self.batch.expand(f"actuator_{name}prm") for name in ("gain", "bias"))
            shares = servos.stiffness_shares(np.array([[servos.softness_of(stiffness)]]))
            servos.soften(gain, bias, np.zeros(1, np.int64), shares)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """A starting state: that of ``BatchEnv(task, 1, seed=seed)`` after its first reset."""
        row = np.zeros(1, np.int64)
        write_initial_states(
            self.task, self._views, self.batch, row, RowRng(seed, row, row), holds=self._goal_met
        )
        self._steps = 0

    def begin(self) -> None:
        """An episode begins as things stand now: what a formula is about counts from here."""
        self._steps = 0
        if self._judge is not None:
            self._judge.begin(np.zeros(1, np.int64))

    def _goal_met(self, rows: Array) -> Array:
        if self._judge is not None:
            return self._judge.settled(rows)
        return np.array([self.success()])

    def step(self) -> None:
        """One physics step."""
        self.batch.step(nstep=1, stage=self.task.stage)
        self._steps += 1
        if self._judge is not None and self._steps % self._judged_every == 0:
            self._judge.step(np.zeros(1, bool))

    def limp(self, limp: bool) -> None:
        """Takes torque off all actuators, or gives it back."""
        self._disabled[0] = (self._disabled[0] & ~_NO_ACTUATION) | (_NO_ACTUATION * limp)

    def poses(self) -> dict[str, tuple[Array, Array]]:
        """The true {name: (pos (3,) m, quat (4,))} of everything that must be perceived."""
        return {
            name: (self._xpos[body].copy(), self._xquat[body].copy())
            for name, body in self._bodies.items()
        }

    def place(self, poses: Mapping[str, tuple[Array, Array]]) -> None:
        """Puts objects where ``poses`` {name: (pos (3,) m, quat (4,))} has them."""
        for name in self._places.keys() & poses.keys():
            self._places[name].write(self.batch, 0, *poses[name])

    def success(self) -> bool:
        """Whether the task's goal holds now, or has been fulfilled."""
        if self._judge is not None:
            return bool(self._judge.success()[0])
        return bool(self._goal.success(self._views)[0])

    def distance(self) -> float:
        """The true distance to the goal, m; nan where the goal is a formula."""
        if self._goal is None:
            return float("nan")
        return float(self._goal.distance(self._views)[0])

    def state(self) -> Array:
        """The state row (nstate,) f64; ``BatchEnv.render_states`` makes a frame of it."""
        return self.batch.state[0].copy()
