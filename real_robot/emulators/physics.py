"""ArmPhysics: a task's scene whose arm is driven joint by joint, in step with a clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from real_robot.core.pacing import Clock
from real_robot.sim.scene import SimScene
from sims.core.task import Task

Array = np.ndarray

PACKET = 0.001  # s: targets that are heard within it came together


class JointTargetHistory:
    """The targets of a device's joints, as they came off the wire while the joints were stiff;
    ``cycle`` s apart where that is the device's to say."""

    def __init__(self, joints: int, cycle: float | None = None):
        self.cycle = cycle
        self.low, self.high = np.full(joints, np.inf), np.full(joints, -np.inf)  # rad
        self.step = np.zeros(joints)  # rad, the largest between two targets of a joint
        self.times: deque[float] = deque(maxlen=200_000)  # monotonic s, when each packet was heard
        self.moved = 0.0  # monotonic s, when a target last was another than before

    def add(self, which: int | slice, goal: Any, before: Any) -> None:
        """The joints ``which`` were told ``goal`` rad; the target until then was ``before``."""
        self.low[which] = np.minimum(self.low[which], goal)
        self.high[which] = np.maximum(self.high[which], goal)
        step = np.abs(np.subtract(goal, before))
        self.step[which] = np.maximum(self.step[which], step)
        self.note()
        if np.any(step > 0):
            self.moved = time.monotonic()

    def note(self) -> None:
        """Targets were heard now."""
        now = time.monotonic()
        if not self.times or now - self.times[-1] > PACKET:  # one packet may tell several joints
            self.times.append(now)

    def heard(self, since: float = 0.0) -> list[float]:
        """Returns when targets were received after ``since``, monotonic s."""
        return [t for t in self.times if t > since]

    def summary(self) -> dict[str, Any]:
        """For the control port: lowest and highest target and largest step of each joint, rad."""
        seen = np.isfinite(self.low)
        return {
            "goal_low": [float(x) if s else None for x, s in zip(self.low, seen, strict=True)],
            "goal_high": [float(x) if s else None for x, s in zip(self.high, seen, strict=True)],
            "goal_step": self.step,
            "goal_cycle": self.cycle,
            "largest_step": float(self.step.max()),
            "moved": self.moved,
        }


class ArmPhysics:
    """The arm's joints, base to tool and then the gripper, as one wire protocol's device sees them.

    ``goal`` (n,) rad and ``torque`` (n,) of 0 to 1 are the device's to write; the measured arrays
    are its to read. The simulated arm's actuators follow ``goal``, unless the device has a loop of
    its own, whose torques it writes to ``push`` (n,) N m before every step. After ``reset`` the arm
    is held as if by hand until every joint has torque, so that nothing falls while nobody is
    connected.
    """

    def __init__(self, task: Task[Any], clock: Clock, seed: int = 0):
        self._clock = clock
        self.load(task, seed)

    def load(self, task: Task[Any], seed: int) -> None:
        """Another scene with the same arm."""
        self.scene = SimScene(task, seed)
        robot, arm = self.scene.robot, self.scene.arm
        model = self.scene.batch.model
        self.robot, self.joints = robot, robot.actuators
        jaw_speed = int(model.joint(robot.gripper_joint).dofadr[0])
        self._qpos = np.array([*arm.qpos, arm.jaw])
        self._qvel = np.array([*arm.qvel, jaw_speed])
        self._turns = model.jnt_type[model.dof_jntid[self._qvel]] == mujoco.mjtJoint.mjJNT_HINGE
        self._ctrl = np.array([*arm.ctrl, arm.jaw_ctrl])
        self._range = self.scene.batch.expand("actuator_forcerange")[0]  # (nu, 2) live
        self._strength = self._range[self._ctrl].copy()
        self._gain = self.scene.batch.expand("actuator_gainprm")[0]  # (nu, ...) live
        self._bias = self.scene.batch.expand("actuator_biasprm")[0]
        self._kp, self._kv = self._gain[self._ctrl, 0].copy(), -self._bias[self._ctrl, 2]
        self.push: Array | None = None
        self._own = False  # the actuators do what ``push`` says
        self.soften(None)
        self._blocked: dict[int, float] = {}  # {joint: angle rad}
        self._site = int(model.site(robot.tool_site).id)
        self._tool = self.scene.batch.site_xpos[0], self.scene.batch.site_xmat[0]
        self.step_ns = round(self.scene.timestep * 1e9)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """The scene's start for ``seed``; the arm is limp and held by hand."""
        self.scene.reset(seed)
        self.torque = np.zeros(len(self.joints))
        self.goal = self.qpos
        self._hand: Array | None = self.qpos
        self._due = self._clock.now_ns()
        self.highest_speed = np.zeros(len(self.joints))  # rad/s, measured at every step

    @property
    def qpos(self) -> Array:
        """Joint angles (n,) rad."""
        return self.scene.qpos[self._qpos]

    @property
    def qvel(self) -> Array:
        """Joint speeds (n,) rad/s."""
        return self.scene.qvel[self._qvel]

    @property
    def effort(self) -> Array:
        """Torques of the motors (n,) N m."""
        return self.scene.force[self._ctrl] * (self._hand is None)

    @property
    def gravity(self) -> Array:
        """What carries the arm's weight (n,) N m besides the motors, as a real arm's would."""
        return self.scene.weight[self._qvel]

    @property
    def outside(self) -> Array:
        """Torques (n,) N m of the motors against what touches the arm or holds a joint."""
        against = -self.scene.constraint[self._qvel]
        against[list(self._blocked)] = self.effort[list(self._blocked)]
        return against

    @property
    def tool(self) -> tuple[Array, Array]:
        """Place (3,) m and axes (3, 3), one a column, of what is between the jaws' tips."""
        places, axes = self._tool
        return places[self._site].copy(), axes[self._site].reshape(3, 3).copy()

    @property
    def strength(self) -> Array:
        """The largest torque of each motor (n,) N m."""
        return self._strength[:, 1]

    @property
    def held(self) -> bool:
        """Whether a hand holds the arm."""
        return self._hand is not None

    def soften(self, stiffness: float | None) -> None:
        """No servo of a turning joint pushes with more than ``stiffness`` N m/rad, as damped as
        before; None: with its own.

        A device with a loop of its own makes of it what its gains say.
        """
        share = np.ones_like(self._kp)
        if stiffness is not None:
            share[self._turns] = np.minimum(1.0, stiffness / self._kp[self._turns])
        self.stiffness, self.damping = share * self._kp, np.sqrt(share) * self._kv
        if not self._own:
            self._actuate(self.stiffness, self.damping, 0.0)

    def _actuate(self, kp: Any, kv: Any, push: Any) -> None:
        """What the actuators do: N m/rad towards their goal, N m s/rad against motion, N m."""
        bias = self._bias
        self._gain[self._ctrl, 0], bias[self._ctrl, 1] = kp, np.negative(kp)
        bias[self._ctrl, 2], bias[self._ctrl, 0] = np.negative(kv), push

    def _drive(self) -> None:
        """Sets the actuators for the next step."""
        held, own = self._hand, self.push is not None and self._hand is None
        if own != self._own:
            self._own = own
            self._range[self._ctrl] = (-np.inf, np.inf)
            self._actuate(self.stiffness * (not own), self.damping * (not own), 0.0)
        if own:
            self._bias[self._ctrl, 0] = self.push
            return
        scale = self.torque if held is None else np.ones(len(self.joints))
        self._range[self._ctrl] = scale[:, None] * self._strength
        self.scene.ctrl[self._ctrl] = self.goal if held is None else held

    def block(self, joint: int | None) -> None:
        """Something holds ``joint`` (from 0) where it is, whatever its motor does; None: none."""
        self._blocked = {} if joint is None else {joint: float(self.qpos[joint])}

    def let_go(self) -> None:
        """The hand is taken away; joints without torque fall."""
        self._hand = None

    def move_by_hand(self, qpos: Array) -> None:
        """Puts the joints at ``qpos`` (n,) rad at once and holds them there if they are limp."""
        self.scene.qpos[self._qpos], self.scene.qvel[self._qvel] = qpos, 0.0
        self.scene.batch.forward()
        self._hand = None if self.torque.all() else self.qpos

    def advance(self, control: Callable[[float], None]) -> None:
        """Physics up to the clock's present; ``control(dt)`` runs before every step of ``dt`` s."""
        now, dt = self._clock.now_ns(), self.scene.timestep
        while self._due + self.step_ns <= now:
            control(dt)
            if self.torque.all():
                self._hand = None
            self._drive()
            self.scene.step()
            for joint, angle in self._blocked.items():
                self.scene.qpos[self._qpos[joint]] = angle
                self.scene.qvel[self._qvel[joint]] = 0.0
            self._due += self.step_ns
            np.maximum(self.highest_speed, np.abs(self.qvel), out=self.highest_speed)
