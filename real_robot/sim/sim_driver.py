"""SimDriver: an arm that is a MuJoCo simulation, with the delays and roundings of a real one."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from real_robot.core.driver import (
    Description,
    Fault,
    Identity,
    RobotFault,
    RobotState,
    Sent,
    Target,
    hold_position,
)
from real_robot.core.pacing import Clock, RealClock
from real_robot.sim.scene import SimScene
from sims.core.task import Task
from sims.robots.robot import TARGET_DT

Array = np.ndarray

ENCODER = 2 * np.pi / 4096  # rad, one step of a 12-bit magnetic encoder


class SimDriver:
    """RobotDriver over one simulated scene that moves as ``clock`` does, real or compressed.

    Physics is stepped up to the present whenever the driver is spoken to. ``scene`` is for tests
    and harnesses: it knows the truth. ``fault`` is what the device reports; set it to break the
    device.
    """

    def __init__(
        self,
        task: Task[Any],
        *,
        clock: Clock | None = None,
        period: float = TARGET_DT,  # s between targets
        command_delay: float = 0.0,  # s until a target takes effect
        latency: float = 0.0,  # s by which measurements are old when read
        encoder: float = ENCODER,  # rad, resolution of angles and targets; 0: exact
        noise: float = 0.0,  # rad, standard deviation of a measured angle
        stiffness: float | None = None,  # N m/rad, at most, of its servos; None: their own
        seed: int = 0,
    ):
        self.scene = SimScene(task, seed, stiffness)
        self.fault = Fault.NONE
        self._clock = clock or RealClock()
        self._period, self._command_delay, self._latency = period, command_delay, latency
        self._encoder, self._noise = encoder, noise
        self._rng = np.random.default_rng(seed)
        self._step_ns = round(self.scene.timestep * 1e9)
        self._open = self._enabled = False
        self._origin = 0  # ns, when physics began to run
        self._steps = 0
        self._pending: deque[tuple[int, Target]] = deque()  # ns when due, target
        self._samples: deque[RobotState] = deque()

    def describe(self) -> Description:
        """The arm's names and limits."""
        return Description.of(self.scene.robot, self._period)

    def connect(self) -> None:
        """Time begins to pass in the scene; the arm is limp."""
        self._open, self._enabled = True, False
        self._origin, self._steps = self._clock.now_ns(), 0
        self._pending.clear()
        self._samples.clear()
        self.scene.limp(True)
        self._sample()

    def identify(self) -> Identity:
        """The simulated device."""
        self._need(self._open, "connect()")
        return Identity(f"{self.scene.robot.name} (MuJoCo)", "sim", "0", "")

    def enable(self) -> None:
        """Stiffens the arm at its present angles.

        Raises:
            RobotFault: ``connect`` was not called, or a fault stands.
        """
        self._need(self._open, "connect()")
        if self.fault is not Fault.NONE:
            raise RobotFault(self.fault, "torque cannot be enabled; call clear_fault() first")
        self._advance()
        if not self._enabled:
            arm, scene = self.scene.arm, self.scene
            scene.ctrl[arm.ctrl] = scene.qpos[arm.qpos]
            scene.ctrl[arm.jaw_ctrl] = scene.qpos[arm.jaw]
        self._enabled = True
        self.hold()
        self.scene.limp(False)

    def read(self) -> RobotState:
        """The newest measurement that is at least ``latency`` old."""
        self._need(self._open, "connect()")
        self._advance()
        newest = self._clock.now_ns() * 1e-9 - self._latency + 1e-9
        while len(self._samples) > 1 and self._samples[1].t_host <= newest:
            self._samples.popleft()
        state = self._samples[0]
        return replace(state, fault=self.fault)

    def send(self, target: Target) -> Sent:
        """Takes a target into the queue; the answer is what the registers hold.

        Raises:
            RobotFault: ``enable`` was not called, or the target is not finite.
        """
        self._need(self._enabled, "enable()")
        if not (np.isfinite(target.qpos).all() and np.isfinite(target.gripper)):
            raise RobotFault(Fault.NONFINITE, f"target {target} is not finite and cannot be sent")
        self._advance()
        now = self._clock.now_ns()
        low, high = self.scene.robot.joint_range.T
        qpos = np.clip(self._rounded(target.qpos), low, high)
        sent = Target(qpos, float(np.clip(target.gripper, 0.0, 1.0)))
        self._pending.append((now + round(self._command_delay * 1e9), sent))
        return Sent(sent.qpos, sent.gripper, now * 1e-9)

    def hold(self) -> None:
        """Stays at the last target."""
        self._need(self._open, "connect()")
        self._advance()
        self._pending.clear()
        arm, scene = self.scene.arm, self.scene
        scene.ctrl[arm.ctrl] = hold_position(scene.qpos[arm.qpos], scene.ctrl[arm.ctrl])

    def last_target(self) -> Target:
        """The newest target."""
        if self._pending:
            return self._pending[-1][1]
        arm, scene = self.scene.arm, self.scene
        return Target(scene.ctrl[arm.ctrl].copy(), float(arm.opening(scene.ctrl[arm.jaw_ctrl])))

    def relax(self) -> dict[str, bool]:
        """Takes the torque off every joint."""
        self._need(self._open, "connect()")
        self._advance()
        self._pending.clear()
        self._enabled = False
        self.scene.limp(True)
        return dict.fromkeys(self.scene.robot.actuators, True)

    def clear_fault(self) -> None:
        """Forgets the fault."""
        self.fault = Fault.NONE

    def close(self) -> None:
        """Time stops in the scene."""
        self._open = self._enabled = False

    def _need(self, ready: bool, call: str) -> None:
        if not ready:
            raise RobotFault(Fault.DISCONNECTED, f"call {call} first")

    def _advance(self) -> None:
        """Physics up to the present, each target taking effect when it is due."""
        due = (self._clock.now_ns() - self._origin) // self._step_ns
        arm, scene = self.scene.arm, self.scene
        while self._steps < due:
            now = self._origin + self._steps * self._step_ns
            while self._pending and self._pending[0][0] <= now:
                target = self._pending.popleft()[1]
                scene.ctrl[arm.ctrl] = target.qpos
                scene.ctrl[arm.jaw_ctrl] = arm.jaw_angle(target.gripper)
            scene.step()
            self._steps += 1
            if self._latency > 0:
                self._sample()
        if self._samples[-1].seq < self._steps:
            self._sample()

    def _sample(self) -> None:
        """Measures the present."""
        arm, scene = self.scene.arm, self.scene
        t = self._steps * self._step_ns
        qpos = scene.qpos[arm.qpos]
        if self._noise > 0:
            qpos = qpos + self._rng.normal(0.0, self._noise, len(qpos))
        self._samples.append(
            RobotState(
                t_device=t * 1e-9,
                t_host=(self._origin + t) * 1e-9,
                seq=self._steps,
                qpos=self._rounded(qpos),
                qvel=scene.qvel[arm.qvel].copy(),
                effort=scene.force[arm.ctrl].copy(),
                gripper=float(np.clip(arm.opening(scene.qpos[arm.jaw]), 0.0, 1.0)),
            )
        )

    def _rounded(self, angle: Array) -> Array:
        """``angle`` (n,) rad in whole encoder steps."""
        if self._encoder <= 0:
            return np.array(angle, float)
        return np.round(np.asarray(angle, float) / self._encoder) * self._encoder
