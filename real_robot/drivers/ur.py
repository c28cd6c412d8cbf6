"""UR e-Series: RobotDriver over ur_rtde, the gripper over Robotiq's text port.

The client (``ur_client.py``) can wait for minutes inside a call, which ends the process that owns
the port (``bus/client.py``); the controller's watchdog then ends the program and holds the arm. NaN
never reaches the client, which would pass it on; False after a command is a fault. What the
controller stops, a person starts again.

Such an arm never goes limp: when no program moves it, its controller holds it. ``relax`` ends our
program, and its acknowledgement says that nothing of ours moves the joint any more.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
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
    check_target,
)
from real_robot.drivers.controller_driver import ControllerDriver
from real_robot.drivers.robotiq import Robotiq
from real_robot.drivers.ur_client import UrClient

Array = np.ndarray

RATE = 500.0  # Hz, of the stream of measurements
LOOKAHEAD, GAIN = 0.05, 500.0  # s and 1, of servoj: the short end of what the maker allows
STALE = 3  # stream periods without a new measurement, plus PATIENCE
PATIENCE = 0.01  # s, for the host's own lateness
WATCHDOG = 10.0  # Hz: the controller stops the program after 1 / WATCHDOG s of silence
KICK = 0.02  # s without a target after which the watchdog is fed by hand
BRAKE = 4.0  # rad/s^2, of servoStop
RUNNING = 7  # robot mode: powered, brakes released
E_SERIES = 5  # first major version of its software; a CB3 controller's is 3
LIGHTEST = 0.3  # kg that the controller must count on where a gripper hangs on it
PER_AMPERE, BELIEVED = 10.0, 1.0  # N m/A, until measurements of this many A^2 say otherwise
NORMAL, REDUCED = 1, 2  # safety modes in which it moves
PROTECTIVE_BITS, EMERGENCY_BITS = 1 << 2, 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9


class UrDriver(ControllerDriver):
    """The controller at ``host``; ``gripper`` says whether a Robotiq gripper is on it.

    The controller stops the program after 1 / ``watchdog`` s without a word from us.
    """

    def __init__(
        self,
        host: str,
        *,
        robot: str = "ur5e",
        watchdog: float = WATCHDOG,
        stale: float = STALE / RATE + PATIENCE,
        patience: float = 1.5,
        **options: Any,  # of every ControllerDriver
    ):
        super().__init__(host, robot=robot, stale=stale, patience=patience, **options)
        self._watchdog = watchdog
        self._client: UrClient | None = None
        self._gripper: Robotiq | None = None
        self._connected = False
        self._spoke = 0.0  # monotonic s, when the controller last heard of us

    def describe(self) -> Description:
        """Names and limits of the arm; those set on its pendant may be narrower."""
        return Description.of(self._robot, self._period)

    @property
    def newest(self) -> float:
        """Controller's time of the newest measurement that has come, s; inf while there is none."""
        return self._call("newest") if self._connected else math.inf

    # Connecting.
    def connect(self) -> None:
        """Opens dashboard, stream and gripper; nothing moves.

        Raises:
            RobotFault: The controller or its gripper does not answer, or lacks a field of the
                stream.
        """
        if self._connected:
            return
        try:
            with self._connecting():
                self._client = UrClient(self._host, RATE)
                self._checked(self._client.connect)
                if self._has_gripper:
                    self._gripper = Robotiq(self._host)
        except RobotFault:
            self.close()
            raise
        self._connected = True
        self._forget()
        n = len(self._robot.joints)  # what is believed until the model has asked for some amperes
        self._shown = BELIEVED * np.outer((PER_AMPERE, 1.0), np.ones(n))

    def identify(self) -> Identity:
        """Model, serial number and software of the controller, if it is one that fits.

        Raises:
            RobotFault: It is another model or generation, or a gripper is mounted that the
                controller does not count on.
        """
        model, serial, software = self._call("identify")
        expected = self._robot.name
        # Of a UR5 and a UR5e it says "UR5": the software tells the generations apart.
        version = re.search(r"(\d+)\.\d+", software)
        if version is None or int(version[1]) < E_SERIES:
            raise RobotFault(
                Fault.CONFIG,
                f"{self._host} runs {software!r}; {expected} is an e-Series arm, which needs "
                f"software {E_SERIES} or newer. A CB3 arm has other limits and needs its own "
                "driver",
            )
        if model.lower().rstrip("e") != expected.rstrip("e"):
            raise RobotFault(Fault.CONFIG, f"{self._host} is a {model}, expected {expected}")
        payload = self._call("state")[6]
        if self._has_gripper and payload < LIGHTEST:
            raise RobotFault(
                Fault.CONFIG,
                f"the controller is configured for a payload of {payload:.2f} kg, but a gripper "
                "is mounted: its protective stops would be wrong. Set payload and centre of "
                "gravity on the pendant",
            )
        return Identity(model, serial, software, "")

    # Motion.
    def enable(self) -> None:
        """Uploads the client's program, which holds the arm where it is, and sets the watchdog.

        Raises:
            RobotFault: The controller reports a fault, is not running, or is in local control.
        """
        state = self.read()
        if state.fault is not Fault.NONE:
            raise RobotFault(state.fault, "reported by the controller; call clear_fault() first")
        mode = self._call("state")[3]
        if mode != RUNNING:
            raise RobotFault(
                Fault.CONFIG,
                f"robot mode {mode}, expected {RUNNING} (running); power it on and release the "
                "brakes",
            )
        if not self._call("remote"):
            raise RobotFault(Fault.CONFIG, "the pendant is in local control; set it to remote")
        here = self._call("start", self._watchdog, self._patience)
        self._spoke = time.monotonic()
        self._enabled = True
        self._servo(np.asarray(here))

    def read(self) -> RobotState:
        """The newest measurement, waited for where the last one was the newest; that one again
        where no other comes within ``wait``.

        Raises:
            RobotFault: No new measurement came in time, or the gripper does not answer.
        """
        measured = self._call("measure", None if math.isinf(self._seen) else self._seen, self._wait)
        if measured is None:
            silent = time.monotonic() - self._came
            if silent < self._stale and self._last is not None:
                return self._last
            raise RobotFault(Fault.STALE, f"{self._host}: no new measurement for {silent:.3f} s")
        self._came = time.monotonic()
        stamp, qpos, qvel, *loads, told = measured
        fault = self._fault(told)
        self._note_measurement(stamp)
        if self._enabled and time.monotonic() - self._spoke > KICK and fault is Fault.NONE:
            self._call("kick")
            self._spoke = time.monotonic()
        opening = 0.0
        if self._gripper is not None:
            opening = self._gripper.opening()
            if why := self._gripper.lost():
                raise RobotFault(Fault.GRIPPER, f"{why}; the gripper does not move")
        moment, outside = self._torques(*map(np.array, loads))
        self._last = RobotState(
            t_device=stamp,
            t_host=stamp + self._offset,
            seq=self._seq,
            qpos=np.array(qpos),
            qvel=np.array(qvel),
            effort=moment + outside,
            gripper=opening,
            fault=fault,
            derate=float(np.clip(told[5], 0.1, 1.0)),  # the slider on the pendant
            outside=outside,
        )
        return self._last

    def _torques(self, moment: Array, expected: Array, current: Array) -> tuple[Array, Array]:
        """What the controller's model asks of the joints, and what their motors do beyond it.

        All (n,): ``moment`` N m and ``expected`` A by the model, ``current`` A as measured. How
        many N m an ampere makes nobody publishes; the model itself tells, joint by joint.
        """
        self._shown += (moment * expected, expected**2)
        per_ampere = self._shown[0] / self._shown[1]
        return moment, per_ampere * (current - expected)

    def _fault(self, told: list[float]) -> Fault:
        """What the controller reports."""
        bits, mode, running = told[:3]
        if int(bits) & EMERGENCY_BITS:
            return Fault.ESTOP
        if int(bits) & PROTECTIVE_BITS or mode not in (NORMAL, REDUCED):
            return Fault.PROTECTIVE_STOP
        # A program that ended without us: by the pendant, by the watchdog, by an error in it.
        if self._enabled and not running:
            return Fault.PROTECTIVE_STOP
        return Fault.NONE

    def send(self, target: Target) -> Sent:
        """One servoj, one gripper position where it has changed.

        Raises:
            RobotFault: ``enable`` was not called, the target is not finite, or the controller did
                not take it.
        """
        self._open()
        check_target(target, self._enabled)
        qpos = np.clip(target.qpos, *self._robot.joint_range.T)
        opening = float(np.clip(target.gripper, 0.0, 1.0))
        self._servo(qpos)
        if self._gripper is not None:
            opening = self._gripper.move(opening)
        return Sent(qpos, opening, self._clock.now_ns() * 1e-9)

    def _servo(self, qpos: Array) -> None:
        if not self._call("servo", qpos.tolist(), self._period, LOOKAHEAD, GAIN):
            told = self._call("state")
            fault = self._fault(told)
            if fault is Fault.NONE:
                fault = Fault.PROTECTIVE_STOP if told[4] else Fault.DISCONNECTED
            raise RobotFault(fault, "the controller did not accept a target")
        self._spoke = time.monotonic()

    def hold(self) -> None:
        """Brakes to a halt; the controller holds the arm there.

        Raises:
            RobotFault: The controller did not take the stop command.
        """
        self._open()
        if not self._enabled:
            return
        stopped = self._call("brake", BRAKE)
        self._spoke = time.monotonic()
        # A controller that has stopped by itself already needs no stopping.
        if not stopped and self._fault(self._call("state")) is Fault.NONE:
            raise RobotFault(Fault.TORQUE, "the controller did not accept the stop command")

    def last_target(self) -> None:
        """Nothing: behind a stop its controller holds it where it is, and that is stiff."""

    def relax(self) -> dict[str, bool]:
        """Ends our program: nothing of ours moves any joint; the controller holds them all."""
        self._open()
        self._enabled = False
        ended = self._call("stop", self._patience / 2)
        return dict.fromkeys(self._robot.actuators, bool(ended))

    def clear_fault(self) -> None:
        """Unlocks a protective stop; an emergency stop is released at its button alone.

        Raises:
            RobotFault: The emergency stop is pressed.
        """
        bits = int(self._call("state")[0])
        if bits & EMERGENCY_BITS:
            raise RobotFault(
                Fault.ESTOP, "release the emergency stop button and restart safety at the arm"
            )
        if bits & PROTECTIVE_BITS:
            self._call("unlock")

    def close(self) -> None:
        """Ends our program and hangs up."""
        if self._client is not None:
            self._client.disconnect()
        if self._gripper is not None:
            self._gripper.disconnect()
        self._client = self._gripper = None
        self._connected = self._enabled = False

    # Below the contract.
    def _open(self) -> None:
        if not self._connected:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")

    def _call(self, verb: str, *args: object) -> Any:
        """What the client answers."""
        self._open()
        return self._checked(getattr(self._client, verb), *args)

    def _checked(self, call: Callable[..., Any], *args: object) -> Any:
        """What the client throws is a lost connection."""
        try:
            return call(*args)
        except RobotFault as error:
            text = str(error).removeprefix(f"{error.fault.value}: ")
            raise RobotFault(error.fault, f"{self._host}: {text}") from error
        except (RuntimeError, OSError, ValueError) as error:
            raise RobotFault(Fault.DISCONNECTED, f"{self._host}: {error}") from error
