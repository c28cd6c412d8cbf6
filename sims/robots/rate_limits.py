"""Shaping: what the bridge on a real arm makes of a policy's joint targets, for all rows at once.

There a target is approached at 100 Hz within the joints' speed, acceleration and jerk (Ruckig, one
arm at a time; ``real_robot/safety/stages/rate_limits.py``). Here the same is one rule that
vectorises: each tick takes the most acceleration after which the quickest stop does not lead past
the target, both as seen by an observer who moves along with it. ``tests/test_rate_limits.py``
compares it with the filter. The jaws are not rate-limited: they are light, and the bridge passes
their commands on almost unchanged.

An arm that feels what pushes on it is stopped there by half of what a joint can do
(``real_robot/safety/stages/effort.py``); so it is here, and its episode ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from mujoco.batch import Batch

from sims.core.task import Task
from sims.robots.robot import PUSH, TARGET_DT, Robot

Array = np.ndarray

BEHIND = 0.1  # rad, a goal that steps are counted from is at most so far from the command
ALMOST = 0.99  # share of full speed up to which a target's own motion is gone along with
_HALVINGS = 8  # of the range of accelerations: to 0.4 % of it


class JointCommand(NamedTuple):
    """Where joints were last told to be, and how they were told to move there; (..., n)."""

    qpos: Array  # rad
    qvel: Array  # rad/s
    qacc: Array  # rad/s^2


@dataclass(frozen=True, eq=False)
class RateLimiter:
    """The limits of one arm's joints."""

    velocity: Array  # (n,) rad/s
    acceleration: Array  # (n,) rad/s^2
    jerk: Array  # (n,) rad/s^3
    period: float = TARGET_DT  # s

    @classmethod
    def of(cls, arm: Robot) -> RateLimiter:
        """That of ``arm``."""
        return cls(arm.velocity_limit, arm.acceleration_limit, arm.jerk)

    def towards(self, last: JointCommand, qpos: Array, qvel: Array) -> JointCommand:
        """Returns the next command towards targets at ``qpos`` (..., n) rad, moving at ``qvel``."""
        dt, a0 = self.period, last.qacc
        qvel = np.clip(qvel, -ALMOST * self.velocity, ALMOST * self.velocity)
        x0, v0 = last.qpos - (qpos - qvel * dt), last.qvel - qvel  # the target rests at 0
        low = np.maximum(a0 - self.jerk * dt, -self.acceleration)
        high = np.minimum(a0 + self.jerk * dt, self.acceleration)
        # The jerk is constant within a tick, so place and speed after it are linear in its end.
        v1, x1 = v0 + dt / 2 * a0, x0 + dt * (v0 + dt / 3 * a0)
        for _ in range(_HALVINGS):
            acc = (low + high) / 2
            v, x = v1 + dt / 2 * acc, x1 + dt * dt / 6 * acc
            heading = v + qvel + acc * np.abs(acc) / (2 * self.jerk)  # once ``acc`` has ended
            past = (self.rest(x, v, acc) > 0) | (heading > self.velocity)
            past &= heading > -self.velocity
            low, high = np.where(past, low, acc), np.where(past, acc, high)
        acc = (low + high) / 2
        x, v = x1 + dt * dt / 6 * acc, v1 + dt / 2 * acc
        return JointCommand(x + qpos, v + qvel, acc)

    def rest(self, qpos: Array, qvel: Array, qacc: Array) -> Array:
        """Returns where the quickest stop ends, (..., n) rad: jerk to -peak, hold, back to 0."""
        side = np.where(qvel + qacc * np.abs(qacc) / (2 * self.jerk) < 0, -1.0, 1.0)
        v, a = side * qvel, side * qacc
        peak = np.sqrt(np.maximum(self.jerk * v + a * a / 2, 1e-12))
        peak = np.minimum(self.acceleration, peak)
        down = (a + peak) / self.jerk  # s
        way = down * (v + down * (a / 2 - self.jerk * down / 6))
        v = v + (a - peak) * down / 2  # where the peak is reached
        last = peak * peak / self.jerk / 2  # rad/s, lost while it is left
        held = np.maximum(v - last, 0.0) / peak  # s
        return qpos + side * (way + held * (v + last) / 2 + last * peak / self.jerk / 3)


class RateLimitedTargets:
    """The shaped commands (N, n) of a batch, beside the goals that its tasks write and observe.

    Between two steps ``ctrl`` holds the goals, as the bridge's twin has it; within a step, the
    commands.
    """

    def __init__(self, task: Task[Any], batch: Batch, n_substeps: int):
        arm = getattr(task, "arm", None)
        if not isinstance(arm, Robot):
            raise ValueError(
                f"task {task.name!r} has no arm with known limits; leave out --rate-limited"
            )
        model = batch.model
        self.ticks = round(task.control_dt / TARGET_DT)
        if abs(self.ticks * TARGET_DT - task.control_dt) > 1e-9 or n_substeps % self.ticks:
            raise ValueError(
                f"control_dt must be a multiple of {TARGET_DT} s and of the physics "
                f"step; got {task.control_dt} s"
            )
        self.substeps = n_substeps // self.ticks  # of physics per tick
        self._shaper, self._window = RateLimiter.of(arm), arm.lag_limit
        actuators = [model.actuator(name).id for name in arm.joints]
        joints = [int(model.joint(name).qposadr[0]) for name in arm.joints]
        self._ctrl, self._qpos = (batch.ctrl, actuators), (batch.qpos, joints)
        # A batch computes the fields that were asked for before its steps.
        self._push = batch.qfrc_constraint if arm.feels else None  # (N, nv) N m live
        self._dofs = [int(model.joint(name).dofadr[0]) for name in arm.joints]
        self._most = PUSH * arm.effort_limit
        n = batch.ctrl.shape[0]
        self.stopped = np.zeros(n, bool)  # (N,) by a push, since it was last cleared
        self.command = np.zeros((n, 3, len(arm.joints)))  # qpos, qvel, qacc
        self.late = np.zeros(n, int)  # (N,) ticks until an arm hears of a command
        self.sent = self.command[None, :, 0].copy()  # (longest + 1, N, n) rad, the newest first

    def hear_late(self, longest: int) -> None:
        """Makes room for rows that are ``late`` by up to ``longest`` ticks."""
        self.sent = np.repeat(self.command[None, :, 0], longest + 1, axis=0)

    @property
    def goal(self) -> Array:
        """Returns a copy of what ``ctrl`` holds for the arm, (N, n) rad."""
        ctrl, ids = self._ctrl
        return ctrl[:, ids]

    def begin(self, ids: Array) -> None:
        """Starts the commands of rows ``ids`` (n,) at rest at their targets."""
        self.command[ids] = 0.0
        self.command[ids, 0] = self.goal[ids]
        self.hear(ids)

    def hear(self, ids: Array) -> None:
        """Fills the delay line of rows ``ids`` (n,) with their newest command."""
        self.sent[:, ids] = self.command[ids, 0]

    def tick(self, qpos: Array, qvel: Array) -> Array:
        """Commands the next point on the way to ``qpos`` (N, n) rad, moving at ``qvel``.

        Returns the goals (N, n), which stay near the joints where the arm is too strong for more.
        """
        if np.isfinite(self._window):
            data, ids = self._qpos
            near = np.clip(qpos, data[:, ids] - self._window, data[:, ids] + self._window)
            qvel = np.where((near != qpos).any(axis=1, keepdims=True), 0.0, qvel)
            qpos = near
        command = self._shaper.towards(JointCommand(*self.command.transpose(1, 0, 2)), qpos, qvel)
        self.command[:] = np.stack(command, axis=1)
        self.sent[1:] = self.sent[:-1]
        self.sent[0] = command.qpos
        self.write(self.sent[self.late, np.arange(len(qpos))])
        return np.clip(qpos, command.qpos - BEHIND, command.qpos + BEHIND)

    def feel(self) -> None:
        """Notes which arms are pushed too hard now."""
        if self._push is not None:
            self.stopped |= (np.abs(self._push[:, self._dofs]) > self._most).any(axis=1)

    def write(self, targets: Array) -> None:
        """Gives the arm's actuators ``targets`` (N, n) rad."""
        ctrl, ids = self._ctrl
        ctrl[:, ids] = targets
