"""Franka FR3: RobotDriver over franky (libfranka), the hand in a process of its own.

The robot wants a joint position every millisecond, within its limits of speed, acceleration and
jerk, and stops by a reflex where 20 in a row are missing or one breaks a limit. franky's thread
(C++, in the process that owns the port) sends them: it plans (Ruckig) from target to target. Each
of our targets, a hundred a second, replaces the motion under way by one that passes it at its speed
one period from now, and would brake behind it: so the arm neither stops at every target nor runs on
where no other comes. When this process dies, its connection ends, and the robot brakes and holds.

Two things of franky (2.0.0) are met. It plans with the limits of the maker's older arm, whose
acceleration and jerk an FR3 takes for a reflex: they are set to the FR3's. Its low-pass filter is
off: behind it, each new motion begins elsewhere than the last one was, which is a reflex, too.

Such an arm never goes limp: when no program moves it, its controller holds it. ``relax`` ends our
motion, and its acknowledgement says that nothing of ours moves the joint any more.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Iterator
from typing import Any

import franky
import numpy as np

from real_robot.driver import (
    Description,
    Fault,
    Identity,
    Moving,
    RobotFault,
    RobotState,
    Sent,
    Target,
    still,
)
from real_robot.drivers.franka_hand import FrankaHand
from real_robot.numbers import Numbers
from real_robot.pacing import Clock, RealClock
from real_robot.realtime import STREAM

Array = np.ndarray

STALE, PATIENCE = 0.003, 0.01  # s without a new state: periods of its own, and the host's lateness
LOOK = 0.0003  # s between two looks for a state
AHEAD = 10  # ms behind a target that a motion still knows how it goes on
# Of the maker's 10 rad/s^2 and 5000 rad/s^3, the same for all joints.
ACCELERATION, JERK = 5.0, 1000.0
FASTEST = np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61])  # rad/s that franky plans with
UNFILTERED = 1000.0  # Hz, of its low-pass filter: off
TORQUE, FORCE = 20.0, 30.0  # N m, N from outside that are a reflex, as franky has them
LIGHTEST = 0.3  # kg that the robot must count on where a hand hangs on it
STOPPED = "the user stop is pressed: release it"
SERVER = 10  # version of the robot's server that franky's wheel of this version speaks


class FrankaDriver:
    """The robot at ``host``; ``gripper`` says whether Franka's hand is on it.

    A state that does not come within ``stale`` s is a fault, and one ``read`` waits for ``wait`` s
    of them. ``patience`` s is what a motion may take to begin or to end, and an error recovery.
    ``numbers`` are the arm's, where the caller has them already.
    """

    def __init__(
        self,
        host: str,
        *,
        robot: str = "fr3",
        gripper: bool = True,
        clock: Clock | None = None,
        period: float | None = None,
        stale: float = STALE + PATIENCE,
        wait: float = math.inf,
        patience: float = 1.2,
        numbers: Numbers | None = None,
    ):
        self._numbers = numbers or Numbers.of(robot)
        self._host, self._period = host, period or self._numbers.period
        self._stale, self._wait, self._patience = stale, min(wait, stale), patience
        self._clock, self._stepped = clock or RealClock(), clock is not None
        self._has_hand = gripper
        self._robot: franky.Robot | None = None
        self._hand: FrankaHand | None = None
        self._enabled = False
        self._forget()

    def _forget(self) -> None:
        self._goal: Array | None = None  # (n,) rad, the last target of the motion under way
        self._over: RobotFault | None = None  # why that has ended
        self._opening = 0.0  # 0 closed, 1 open, as told last

    def describe(self) -> Description:
        """Names and limits of the arm, as far as its client goes."""
        speed = np.minimum(self._numbers.velocity_limit, FASTEST)
        return Description.of(self._numbers, self._period, velocity=speed)

    @property
    def newest(self) -> float:
        """The robot's time of the newest state that has come, s; inf while there is none."""
        if self._robot is None:
            return math.inf
        times = [self._seconds(self._ask("state"))]
        if self._hand is not None:
            times.append(self._hand.newest)
        return min(times)

    # Connecting.
    def connect(self) -> None:
        """Opens arm and hand; nothing moves."""
        if self._robot is not None:
            return
        try:
            with _as_before():
                robot = franky.Robot(
                    self._host, default_torque_threshold=TORQUE, default_force_threshold=FORCE,
                    realtime_config=franky.RealtimeConfig.Ignore,
                )  # fmt: skip
            for limit, most in (
                (robot.joint_acceleration_limit, ACCELERATION),
                (robot.joint_jerk_limit, JERK),
            ):
                limit.set(np.minimum(0.95 * np.array(limit.max), most))
            if self._has_hand:
                self._hand = FrankaHand(self._host)
        except franky.IncompatibleVersionException as error:
            text = re.sub(r"^libfranka: ", "", str(error)).replace("\n", " ")
            raise RobotFault(
                Fault.CONFIG,
                f"{self._host}: {text} This franky speaks version {SERVER} (system 5.9 and on); "
                "its maker has wheels for the others",
            ) from error
        except franky.CommandException as error:  # the joints are locked
            raise RobotFault(Fault.CONFIG, self._words(error)) from error
        except ValueError as error:
            raise RobotFault(Fault.CONFIG, f"{self._host}: {error}") from error
        except (franky.Exception, RuntimeError, OSError) as error:
            raise RobotFault(Fault.DISCONNECTED, self._words(error)) from error
        self._robot = robot
        self._came, self._last = time.monotonic(), None
        self._seen, self._offset, self._seq = -math.inf, math.inf, 0

    def identify(self) -> Identity:
        """Model and server of the robot, if it is one that fits; it tells no serial number."""
        self._open()
        model = re.search(r'<robot[^>]*\bname="([^"]*)"', self._robot.model_urdf)
        name, expected = model[1] if model else "?", self._numbers.name
        if name != expected:
            raise RobotFault(
                Fault.CONFIG,
                f"{self._host} is a {name!r} by its own model, expected {expected!r}: its limits "
                "are others",
            )
        mass = self._ask("state").m_ee
        if self._has_hand and mass < LIGHTEST:
            raise RobotFault(
                Fault.CONFIG,
                f"the robot counts on an end effector of {mass:.2f} kg, but a hand hangs on it: "
                "what it holds up would count as a push. Set the hand as end effector in Desk",
            )
        return Identity(name, "", f"FCI server {SERVER}", "")

    # Motion.
    def enable(self) -> None:
        """Begins a motion that holds the arm where it is; one that is under way goes on."""
        if self._enabled and self._over is None and self._robot is not None:
            return
        state = self._ask("state")
        if fault := self._refusal(state):
            raise RobotFault(fault[0], f"{fault[1]}; clear_fault() first")
        if state.robot_mode != franky.RobotMode.Idle:
            raise RobotFault(
                Fault.CONFIG,
                f"the robot's mode is {state.robot_mode.name}, expected Idle: unlock its joints, "
                "set it to Execution and activate FCI in Desk, and take your hands off it",
            )
        self._forget()
        self._opening = self._hand.opening() if self._hand is not None else 0.0
        self._goal = np.array(state.q_d)
        with _as_before(STREAM):
            self._move(franky.JointMotion(self._goal, return_when_finished=False))
        until = time.monotonic() + self._patience
        while self._ask("state").robot_mode != franky.RobotMode.Move:
            self._check()
            if time.monotonic() > until:
                self._ask("stop")
                raise RobotFault(Fault.CONFIG, "the robot does not begin to follow")
            time.sleep(LOOK)
        self._enabled = True

    def read(self) -> RobotState:
        """The newest state, waited for where the last one was the newest; that one again where no
        other comes within ``wait``."""
        self._open()
        self._check()
        begun = time.monotonic()
        while self._seconds(state := self._ask("state")) == self._seen:
            now = time.monotonic()
            if now - begun >= self._wait:
                if now - self._came < self._stale and self._last is not None:
                    return self._last
                silent = f"{self._host}: no new state for {now - self._came:.3f} s"
                raise RobotFault(Fault.STALE, silent)
            self._check()
            time.sleep(LOOK)
        if fault := self._refusal(state):
            raise RobotFault(*fault)
        self._came, stamp = time.monotonic(), self._seconds(state)
        now = self._clock.now_ns() * 1e-9
        # A state that came faster than all others tells the clocks' difference best; it may grow by
        # 100 ppm, as clocks drift.
        self._offset = min(now - stamp, self._offset + 1e-4 * max(0.0, stamp - self._seen))
        if stamp < self._seen:  # the robot was started anew
            self._offset = now - stamp
        self._seen = stamp
        self._seq += 1
        opening = 0.0
        if self._hand is not None:
            opening = self._hand.opening()
            if why := self._hand.lost():
                raise RobotFault(Fault.GRIPPER, f"{why}; its fingers stay as they are")
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
        """One motion past the target, one goal of the hand's where it has changed."""
        self._open()
        if not self._enabled:
            raise RobotFault(Fault.DISCONNECTED, "call enable() first")
        if not (np.isfinite(target.qpos).all() and np.isfinite(target.gripper)):
            raise RobotFault(Fault.NONFINITE, f"target {target} cannot be encoded")
        qpos = np.clip(target.qpos, *self._numbers.joint_range.T)
        opening = float(np.clip(target.gripper, 0.0, 1.0))
        self._check()
        self._move(self._past(qpos, target.qvel if isinstance(target, Moving) else None))
        self._goal, self._opening = qpos, opening
        if self._hand is not None:
            self._opening = opening = self._hand.move(opening)
        return Sent(qpos, opening, self._clock.now_ns() * 1e-9)

    def _past(self, qpos: Array, qvel: Array | None) -> Any:
        """A motion that is at ``qpos`` rad one period from now, at ``qvel`` rad/s if that is known,
        and comes to rest behind it."""
        period = round(1000 * self._period)
        if qvel is None or not np.abs(qvel).max() > 0.0:
            soon = franky.Duration(period)
            return franky.JointWaypointMotion(
                [franky.JointWaypoint(franky.JointState(qpos), minimum_time=soon)],
                return_when_finished=False,
            )
        low, high = self._numbers.joint_range.T
        limit = 0.99 * FASTEST
        qvel = np.clip(qvel, -limit, limit)
        on = np.clip(qpos + qvel * AHEAD / 1000, low, high)
        rest = np.clip(on + qvel * np.abs(qvel) / ACCELERATION, low, high)
        way = [
            franky.JointWaypoint(
                franky.JointState(on, qvel), minimum_time=franky.Duration(period + AHEAD)
            ),
            franky.JointWaypoint(franky.JointState(rest)),
        ]
        return franky.JointWaypointMotion(way, return_when_finished=False)

    def hold(self) -> None:
        """Stays at the last target; a robot that has stopped by itself holds the arm already."""
        self._open()
        if not self._enabled or self._over is not None:
            return
        self._check()
        assert self._goal is not None
        self._goal = still(np.array(self._ask("state").q), self._goal)
        self._move(self._past(self._goal, None))

    def told(self) -> Target | None:
        """The last target; None where no motion is under way: the robot holds the arm."""
        if not self._enabled or self._over is not None or self._goal is None:
            return None
        return Target(self._goal, self._opening)

    def stiff(self) -> tuple[str, ...]:
        """No joint: its controller answers for it."""
        return ()

    def relax(self) -> dict[str, bool]:
        """Ends our motion: nothing of ours moves any joint; the controller holds them all."""
        self._open()
        self._enabled = False
        if self._ask("is_in_control"):
            with contextlib.suppress(RobotFault):  # it has ended meanwhile
                self._ask("stop")
        until = time.monotonic() + self._patience
        while (moving := self._ask("is_in_control")) and time.monotonic() < until:
            time.sleep(LOOK)
        with contextlib.suppress(franky.Exception):  # that it was stopped is what was asked for
            self._robot.poll_motion()
        self._forget()
        return dict.fromkeys(self._numbers.actuators, not moving)

    def clear_fault(self) -> None:
        """The robot recovers from its errors; a user stop is released at its button alone."""
        state = self._ask("state")
        if state.robot_mode == franky.RobotMode.UserStopped:
            raise RobotFault(Fault.ESTOP, STOPPED)
        self._forget()
        if not self._refusal(state):
            return
        self._ask("recover_from_errors")
        until = time.monotonic() + self._patience
        while refusal := self._refusal(self._ask("state")):
            if time.monotonic() > until:
                raise RobotFault(*refusal)
            time.sleep(LOOK)

    def close(self) -> None:
        """Ends our motion and hangs up."""
        if self._hand is not None:
            self._hand.disconnect()
        self._robot = self._hand = None
        self._enabled = False
        self._forget()

    # Below the contract.
    def _open(self) -> None:
        if self._robot is None:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")

    def _ask(self, name: str) -> Any:
        """What the client answers, be it a property or a call."""
        self._open()
        try:
            answer = getattr(self._robot, name)
            return answer() if callable(answer) else answer
        except franky.CommandException as error:
            raise RobotFault(Fault.PROTECTIVE_STOP, self._words(error)) from error
        except (franky.Exception, RuntimeError) as error:
            raise RobotFault(Fault.DISCONNECTED, self._words(error)) from error

    def _move(self, motion: Any) -> None:
        """Hands a motion over."""
        try:
            self._robot.move(motion, asynchronous=True, limit_rate=True, cutoff_frequency=UNFILTERED)
        except (franky.Exception, RuntimeError) as error:
            raise self._ended(error) from error

    def _check(self) -> None:
        """Raises why the motion has ended, if it has."""
        if self._over is not None:
            raise self._over
        if not self._enabled and self._goal is None:
            return
        try:
            running = self._robot.is_in_control or not self._robot.poll_motion()
        except (franky.Exception, RuntimeError) as error:
            raise self._ended(error) from error
        if not running:
            raise self._ended(RuntimeError("the motion has ended"))

    def _ended(self, error: Exception) -> RobotFault:
        """The motion has ended by ``error``, and none begins before an operator has looked."""
        fault = Fault.PROTECTIVE_STOP
        if isinstance(error, franky.NetworkException):
            fault = Fault.DISCONNECTED
        elif "User Stop" in str(error):
            fault = Fault.ESTOP
        self._over = RobotFault(fault, self._words(error))
        return self._over

    def _refusal(self, state: Any) -> tuple[Fault, str] | None:
        """What the robot reports, and in its words."""
        mode, errors = state.robot_mode, str(state.current_errors)
        if mode == franky.RobotMode.UserStopped:
            return Fault.ESTOP, STOPPED
        if mode == franky.RobotMode.Reflex or errors != "[]":
            return Fault.PROTECTIVE_STOP, f"the robot has stopped by a reflex: {errors}"
        if mode == franky.RobotMode.AutomaticErrorRecovery:
            return Fault.PROTECTIVE_STOP, "the robot is recovering from its errors"
        if mode == franky.RobotMode.Guiding and self._enabled:
            return Fault.PROTECTIVE_STOP, "someone guides the robot by hand"
        return None

    def _words(self, error: Exception) -> str:
        """A client's message as one line."""
        text = re.sub(r"libfranka(?: robot)?: ", "", str(error))
        return f"{self._host}: {' '.join(text.split())}"

    @staticmethod
    def _seconds(state: Any) -> float:
        return state.time.to_msec() / 1000


@contextlib.contextmanager
def _as_before(priority: int = 0) -> Iterator[None]:
    """This thread's priority, which the client raises to the highest there is, is as it was
    afterwards; a thread that begins inside has ``priority``, where that is permitted (Linux)."""
    if not hasattr(os, "sched_getscheduler"):
        yield
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    if priority:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)
