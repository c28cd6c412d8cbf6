"""Franka FR3: RobotDriver over franky (libfranka), the hand in a process of its own.

The robot wants a joint position every millisecond, within its limits of speed, acceleration and
jerk, and stops by a reflex where more than 20 in a row are missing or one breaks a limit. franky's
thread (C++, in the process that owns the port) sends them: it plans (Ruckig) from target to target.
Each of our targets, a hundred a second, replaces the motion under way by one that passes it at its
speed one period from now, and would brake behind it: so the arm neither stops at every target nor
runs on where no other comes. When this process dies its connection ends, and the robot stops.

Such an arm never goes limp: when no program moves it, its controller holds it. ``relax`` ends our
motion, and its acknowledgement says that nothing of ours moves the joint any more.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from franky import RobotMode

from real_robot.core.driver import (
    Description,
    Fault,
    Identity,
    MovingTarget,
    RobotFault,
    RobotState,
    Sent,
    Target,
    check_target,
    hold_position,
)
from real_robot.drivers.controller_driver import ControllerDriver
from real_robot.drivers.franka_client import FASTEST, LOOK, SERVER, FrankaClient
from real_robot.drivers.franka_hand import FrankaHand

Array = np.ndarray

STALE, PATIENCE = 0.003, 0.01  # s without a new state: periods of its own, and the host's lateness
LIGHTEST = 0.3  # kg that the robot must count on where a hand hangs on it
STOPPED = "the user stop is pressed: release it"


class FrankaDriver(ControllerDriver):
    """The robot at ``host``; ``gripper`` says whether Franka's hand is on it."""

    def __init__(
        self,
        host: str,
        *,
        robot: str = "fr3",
        stale: float = STALE + PATIENCE,
        patience: float = 1.2,
        **options: Any,  # of every ControllerDriver
    ):
        super().__init__(host, robot=robot, stale=stale, patience=patience, **options)
        self._client: FrankaClient | None = None
        self._hand: FrankaHand | None = None
        self._goal = np.zeros(len(self._robot.joints))  # rad, of the motion under way
        self._opening = 0.0  # 0 closed, 1 open, as told last

    def describe(self) -> Description:
        """Names and limits of the arm, as far as its client goes."""
        speed = np.minimum(self._robot.velocity_limit, FASTEST)
        return Description.of(self._robot, self._period, velocity=speed)

    @property
    def newest(self) -> float:
        """The robot's time of the newest state that has come, s; inf while there is none."""
        if self._client is None:
            return math.inf
        arm = _seconds(self._client.state)
        return arm if self._hand is None else min(arm, self._hand.newest)

    # Connecting.
    def connect(self) -> None:
        """Opens arm and hand; nothing moves.

        Raises:
            RobotFault: Arm or hand does not answer, or speaks another version.
        """
        if self._client is not None:
            return
        client = FrankaClient(self._host)
        with self._connecting():
            self._hand = FrankaHand(self._host) if self._has_gripper else None
        self._client = client
        self._forget()

    def identify(self) -> Identity:
        """Model and server of the robot, if it is one that fits; it tells no serial number.

        Raises:
            RobotFault: It is another model, or a hand is mounted that the robot does not count on.
        """
        client, expected = self._open(), self._robot.name
        if client.model != expected:
            raise RobotFault(
                Fault.CONFIG,
                f"{self._host} reports model {client.model!r}, expected {expected!r}: its "
                "limits differ",
            )
        mass = client.state.m_ee
        if self._has_gripper and mass < LIGHTEST:
            raise RobotFault(
                Fault.CONFIG,
                f"the robot is configured for an end effector of {mass:.2f} kg, but a hand is "
                "mounted: its weight would be read as an external force. Select the hand as "
                "end effector in Desk",
            )
        return Identity(client.model, "", f"FCI server {SERVER}", "")

    # Motion.
    def enable(self) -> None:
        """Begins a motion that holds the arm where it is; one that is under way continues.

        Raises:
            RobotFault: The robot reports a fault, or is in a mode in which it takes no motion.
        """
        client = self._open()
        if self._enabled and client.running:
            return
        state = client.state
        if fault := self._refusal(state):
            raise RobotFault(fault[0], f"{fault[1]}; clear_fault() first")
        if state.robot_mode != RobotMode.Idle:
            raise RobotFault(
                Fault.CONFIG,
                f"robot mode {state.robot_mode.name}, expected Idle: in Desk unlock the joints, "
                "select Execution and activate FCI; do not guide the robot by hand",
            )
        self._goal = np.array(state.q_d)
        self._opening = self._hand.opening() if self._hand is not None else 0.0
        client.begin(self._goal, self._patience)
        self._enabled = True

    def read(self) -> RobotState:
        """The newest state, waited for where the last one was the newest; that one again where no
        other comes within ``wait``.

        Raises:
            RobotFault: The robot reports a fault, no state came in time, or the hand does not
                answer.
        """
        client, begun = self._open(), time.monotonic()
        client.check()
        while _seconds(state := client.state) == self._seen:
            now = time.monotonic()
            if now - begun >= self._wait:
                if now - self._came < self._stale and self._last is not None:
                    return self._last
                silent = f"{self._host}: no new state for {now - self._came:.3f} s"
                raise RobotFault(Fault.STALE, silent)
            client.check()
            time.sleep(LOOK)
        if fault := self._refusal(state):
            raise RobotFault(*fault)
        self._came, stamp = time.monotonic(), _seconds(state)
        self._note_measurement(stamp)
        opening = 0.0
        if self._hand is not None:
            opening = self._hand.opening()
            if why := self._hand.lost():
                raise RobotFault(Fault.GRIPPER, f"{why}; the hand does not move")
        self._last = RobotState(
            t_device=stamp,
            t_host=stamp + self._offset,
            seq=self._seq,
            qpos=np.array(state.q),
            qvel=np.array(state.dq),
            effort=np.array(state.tau_J),
            gripper=opening,
            outside=np.array(state.tau_ext_hat_filtered),
        )
        return self._last

    def send(self, target: Target) -> Sent:
        """One motion past the target, one goal of the hand's where it has changed.

        Raises:
            RobotFault: ``enable`` was not called, or the target is not finite.
        """
        client = self._open()
        check_target(target, self._enabled)
        bounds = self._robot.joint_range
        qpos = np.clip(target.qpos, *bounds.T)
        opening = float(np.clip(target.gripper, 0.0, 1.0))
        moves = (
            isinstance(target, MovingTarget)
            and np.isfinite(target.qvel).all()
            and target.qvel.any()
        )
        client.go(qpos, target.qvel if moves else None, self._period, bounds)
        if self._hand is not None:
            opening = self._hand.move(opening)
        self._goal, self._opening = qpos, opening
        return Sent(qpos, opening, self._clock.now_ns() * 1e-9)

    def hold(self) -> None:
        """Stays at the last target; a robot that has stopped by itself holds the arm already."""
        client = self._open()
        if self._enabled and client.running:
            self._goal = hold_position(np.array(client.state.q), self._goal)
            client.go(self._goal, None, self._period, self._robot.joint_range)

    def last_target(self) -> Target | None:
        """The last target; None where no motion is under way: the robot holds the arm."""
        if self._client is None or not (self._enabled and self._client.running):
            return None
        return Target(self._goal, self._opening)

    def relax(self) -> dict[str, bool]:
        """Ends our motion: nothing of ours moves any joint; the controller holds them all."""
        client, self._enabled = self._open(), False
        return dict.fromkeys(self._robot.actuators, client.end(self._patience))

    def clear_fault(self) -> None:
        """The robot recovers from its errors; a user stop is released at its button alone.

        Raises:
            RobotFault: The user stop is pressed, or the robot did not recover.
        """
        client = self._open()
        refusal = self._refusal(client.state)
        if refusal and refusal[0] is Fault.ESTOP:
            raise RobotFault(*refusal)
        if not refusal:
            if not client.running:
                client.end(self._patience)  # why it ended counts no more
            return
        client.recover()
        until = time.monotonic() + self._patience
        while refusal := self._refusal(client.state):
            if time.monotonic() > until:
                raise RobotFault(*refusal)
            time.sleep(LOOK)

    def close(self) -> None:
        """Ends our motion and hangs up."""
        if self._hand is not None:
            self._hand.disconnect()
        self._client = self._hand = None
        self._enabled = False

    # Below the contract.
    def _open(self) -> FrankaClient:
        if self._client is None:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")
        return self._client

    def _refusal(self, state: Any) -> tuple[Fault, str] | None:
        """What the robot reports, in its words."""
        mode, errors = state.robot_mode, str(state.current_errors)
        if mode == RobotMode.UserStopped:
            return Fault.ESTOP, STOPPED
        if mode == RobotMode.Reflex or errors != "[]":
            return Fault.PROTECTIVE_STOP, f"the robot stopped with a reflex: {errors}"
        if mode == RobotMode.AutomaticErrorRecovery:
            return Fault.PROTECTIVE_STOP, "the robot is recovering from its errors"
        if mode == RobotMode.Guiding and self._enabled:
            return Fault.PROTECTIVE_STOP, "the robot is being guided by hand"
        return None


def _seconds(state: Any) -> float:
    return state.time.to_msec() / 1000
