"""franky (libfranka) behind ``FrankaDriver``: what it answers, and what it throws as a fault.

A motion is handed to franky's own thread, which answers the robot every millisecond. Three things
of franky 2.0.0 are met. It plans with the limits of the maker's older arm, whose acceleration and
jerk an FR3 takes for a reflex: they are set lower. A motion that replaces another begins with the
mean speed of the last millisecond, so half an acceleration is lost or won at once, which an FR3
takes for jerk: acceleration and jerk are so low that both together are allowed. And its low-pass
filter, behind which each new motion would begin elsewhere than the last one was, is off. Rates are
limited by libfranka, which changes nothing while all is well, and makes the way back smooth where
the robot had to go on by itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from typing import Any

import franky
import numpy as np

from real_robot.core.driver import Fault, RobotFault
from real_robot.core.realtime import STREAM

Array = np.ndarray

ACCELERATION, JERK = 5.0, 1000.0  # rad/s^2, rad/s^3: half the first and 0.001 s of the second are
# 3.5 rad/s^2 in a millisecond, of the 5 that an FR3 bears
FASTEST = np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61])  # rad/s that franky plans with
AHEAD = 10  # ms behind a target that a motion still knows how it goes on
UNFILTERED = 1000.0  # Hz, of its low-pass filter: off
# What pushes from outside, as a touch and as a reflex: N m (of 87 and 12), N. franky's own reflexes
# (20 N m, 30 N) end tasks that press on things; the bridge holds at half of what a joint can do.
TOUCH, FORCE_TOUCH = 20.0, 30.0
REFLEX, FORCE_REFLEX = [60.0] * 4 + [10.0] * 3, 100.0
SERVER = 10  # version of the robot's server that franky's wheel of this version speaks
LOOK = 0.0003  # s between two looks for a state


class FrankaClient:
    """The robot at ``host``, connected; RobotFault where that fails."""

    def __init__(self, host: str):
        self._host = host
        try:
            with _as_before():
                self._robot = franky.Robot(host, realtime_config=franky.RealtimeConfig.Ignore)
            self._robot.set_collision_behavior(
                np.minimum(TOUCH, REFLEX), REFLEX, [FORCE_TOUCH] * 6, [FORCE_REFLEX] * 6
            )
            for limit, most in (
                (self._robot.joint_acceleration_limit, ACCELERATION),
                (self._robot.joint_jerk_limit, JERK),
            ):
                limit.set(np.minimum(np.array(limit.max), most))
        except franky.IncompatibleVersionException as error:
            raise RobotFault(
                Fault.CONFIG,
                f"{self._words(error)} The installed franky speaks FCI version {SERVER} (system "
                "5.9 or newer); its maker has wheels for other versions",
            ) from error
        except franky.CommandException as error:  # the joints are locked
            raise RobotFault(Fault.CONFIG, self._words(error)) from error
        except (franky.Exception, RuntimeError) as error:
            raise RobotFault(Fault.DISCONNECTED, self._words(error)) from error
        self._over: RobotFault | None = None  # why the motion has ended
        self._begun = False
        self._silent = False  # the robot does not answer, and a further call would never come back

    @property
    def model(self) -> str:
        """What the robot's own model is called."""
        found = re.search(r'<robot[^>]*\bname="([^"]*)"', self._robot.model_urdf)
        return found[1] if found else "?"

    @property
    def state(self) -> Any:
        """The newest state, waited for while no motion is under way."""
        return self._ask("state")

    @property
    def running(self) -> bool:
        """Whether a motion is under way, and nothing has ended it."""
        return self._begun and self._over is None

    def begin(self, qpos: Array, patience: float) -> None:
        """A motion begins that holds the joints at ``qpos`` (n,) rad, as they are."""
        self._over, self._begun = None, True
        with _as_before(STREAM):
            self._move(franky.JointMotion(qpos, return_when_finished=False))
        until = time.monotonic() + patience
        while self.state.robot_mode != franky.RobotMode.Move:
            self.check()
            if time.monotonic() > until:
                self._silent = True
                self._over = RobotFault(
                    Fault.DISCONNECTED,
                    f"{self._host}: the robot did not follow its targets within {patience:g} s",
                )
                raise self._over
            time.sleep(LOOK)

    def go(self, qpos: Array, qvel: Array | None, soon: float, bounds: Array) -> None:
        """To ``qpos`` rad ``soon`` s from now, to pass it at ``qvel`` rad/s and come to rest within
        ``bounds`` (n, 2) rad behind it; without ``qvel``, to rest there."""
        self.check()
        duration = round(1000 * soon)
        if qvel is None:
            aim = franky.JointState(qpos)
            way = [franky.JointWaypoint(aim, minimum_time=franky.Duration(duration))]
        else:
            qvel = np.clip(qvel, -0.99 * FASTEST, 0.99 * FASTEST)
            on = np.clip(qpos + qvel * AHEAD / 1000, *bounds.T)
            rest = np.clip(on + qvel * np.abs(qvel) / ACCELERATION, *bounds.T)
            passed = franky.JointState(on, qvel)
            way = [
                franky.JointWaypoint(passed, minimum_time=franky.Duration(duration + AHEAD)),
                franky.JointWaypoint(franky.JointState(rest)),
            ]
        self._move(franky.JointWaypointMotion(way, return_when_finished=False))

    def end(self, patience: float) -> bool:
        """Ends the motion; whether it has ended ``patience`` s later."""
        if self._silent:
            return False
        if self._ask("is_in_control"):
            with contextlib.suppress(RobotFault):  # it has ended meanwhile
                self._ask("stop")
        until = time.monotonic() + patience
        while (moving := self._ask("is_in_control")) and time.monotonic() < until:
            time.sleep(LOOK)
        if not moving:
            with contextlib.suppress(franky.Exception):  # that it was stopped is what was asked for
                self._robot.poll_motion()
        self._begun, self._over = False, None
        return not moving

    def recover(self) -> None:
        """The robot recovers from its errors, if it can by itself."""
        self._begun, self._over = False, None
        self._ask("recover_from_errors")

    def check(self) -> None:
        """Raises why the motion has ended, if it has; nothing moves the arm from then on."""
        if self._over is not None:
            raise self._over
        if not self._begun:
            return
        try:
            running = self._robot.is_in_control or not self._robot.poll_motion()
        except (franky.Exception, RuntimeError) as error:
            raise self._ended(error) from error
        if not running:
            raise self._ended(RuntimeError("the motion has ended"))

    def _ask(self, name: str) -> Any:
        """What the client answers, be it a property or a call."""
        try:
            answer = getattr(self._robot, name)
            return answer() if callable(answer) else answer
        except franky.CommandException as error:
            raise RobotFault(Fault.PROTECTIVE_STOP, self._words(error)) from error
        except (franky.Exception, RuntimeError) as error:
            raise RobotFault(Fault.DISCONNECTED, self._words(error)) from error

    def _move(self, motion: Any) -> None:
        try:
            self._robot.move(
                motion, asynchronous=True, limit_rate=True, cutoff_frequency=UNFILTERED
            )
        except (franky.Exception, RuntimeError) as error:
            raise self._ended(error) from error

    def _ended(self, error: Exception) -> RobotFault:
        fault = Fault.PROTECTIVE_STOP
        if isinstance(error, franky.NetworkException):
            fault = Fault.DISCONNECTED
        elif "User Stop" in str(error):
            fault = Fault.ESTOP
        self._over = RobotFault(fault, self._words(error))
        return self._over

    def _words(self, error: Exception) -> str:
        """A client's message as one line."""
        text = re.sub(r"libfranka(?: robot)?: ", "", str(error))
        return f"{self._host}: {' '.join(text.split())}"


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
