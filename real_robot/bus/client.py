"""Bus: an arm whose port another process owns (``server.py``); this is the bridge's side.

A RobotDriver like any other. Goals and measurements go through shared memory; everything else is a
call with a deadline. A process that is gone, or does not answer in time, is killed and not asked
again, so that what it was about to tell the device is not told later: ``Fault.BUS``. The device
then keeps its last goal, and ``connect`` begins another process. No call into a vendor's client can
hold the loop, whatever it waits for.
"""

from __future__ import annotations

import json
import math
import os
import select
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from real_robot.bus.mailbox import Mailbox
from real_robot.bus.server import FAULTS, MOTION, PACKET
from real_robot.core import child_process
from real_robot.core.arm_numbers import ArmNumbers, description_from_plain, to_plain
from real_robot.core.config import RunConfig
from real_robot.core.driver import (
    Description,
    Fault,
    Identity,
    MovingTarget,
    RobotFault,
    RobotState,
    Sent,
    Target,
)
from real_robot.core.pacing import Clock

Array = np.ndarray

START_S = 20.0  # s for its process to begin on a starved machine
END_S = 0.5  # s for it to hang up, and to end
LOOK = 0.0002  # s between two looks for a measurement


@dataclass(frozen=True, kw_only=True)
class Rescue:
    """What brings an arm to rest whose bridge is gone must know; plain data.

    Paths are absolute: that happens in another folder.
    """

    park: tuple[float, ...] = ()  # (n,) rad; (): the arm is relaxed where it stands
    scene: dict | None = None  # ``make_task``'s arguments, of what the arm keeps clear of
    report: str = ""  # JSON file
    latch: str = ""  # file of the arm's latched fault
    stop_s: float | None = None  # s, ``RunConfig``'s
    tool_speed: float = RunConfig.tool_speed  # m/s


@dataclass(frozen=True, kw_only=True)
class BusConfig:
    """How an arm is found, and what becomes of it without us."""

    robot: str  # name of the driver
    where: str  # port or host
    options: dict = field(default_factory=dict)  # of the driver
    rescue: Rescue | None = None  # None: an arm that is left holds its last goal
    silence: float = 1.0  # s without a sign of the bridge after which it is killed: longer than
    # the loop itself bears (RunConfig.max_gap), so that it can stop the arm by itself
    deadline: float = 0.2  # s for a measurement, a hold
    patience: float = 1.2  # s for connecting, saying who it is, enabling, relaxing


class Bus:
    """The arm of ``config``; ``given`` is the end of a process that is there already, its memory's
    file and what it says of the arm.

    On a compressed ``clock`` time passes when its owner says so: goals are sent and measurements
    taken when they are asked for, and whoever gives goals may be silent for as long as it likes.
    """

    def __init__(
        self,
        config: BusConfig,
        given: tuple[socket.socket, int, dict[str, Any]] | None = None,
        clock: Clock | None = None,
    ):
        self._config, self._clock = config, clock
        self._numbers = ArmNumbers.of(config.robot)
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._box: Mailbox | None = None
        self._about: Description | None = None
        self._gone = ""  # why nobody answers any more
        self._seen = self._braked = 0  # number of the last measurement, steps braked until then
        self._connected = self._identified = given is not None
        self._enabled = False
        if given is not None:
            self._socket, memory, about = given
            self._box = Mailbox(len(self._numbers.joints), memory)
            self._about = description_from_plain(about)

    @property
    def pid(self) -> int:
        """Its process, 0 if there is none of ours."""
        return 0 if self._child is None else self._child.pid

    @property
    def braked(self) -> int:
        """Periods in which the arm was braked, so far, since no goal had come in time."""
        return self._braked

    @property
    def newest(self) -> float:
        """The device's time of the newest measurement that has come, s; inf while there is none."""
        return self._call("newest") if self._connected else math.inf

    def describe(self) -> Description:
        """Names and limits, by its driver."""
        if self._about is None:
            self._begin()
        assert self._about is not None
        return self._about

    def connect(self) -> None:
        """Opens the port, with a process for it where there is none."""
        if self._socket is None:
            self._begin()
        self._connected = True
        try:
            self._call("connect", patient=True)
        except RobotFault:
            self._connected = False
            raise

    def identify(self) -> Identity:
        """Its driver's; from here on it measures in every period."""
        told = self._call("identify", patient=True)
        self._about, self._identified = description_from_plain(told["about"]), True
        return Identity(**told["identity"])

    def enable(self) -> None:
        """Stiffens the arm where it is."""
        self._call("enable", patient=True)
        self._enabled = True

    def read(self) -> RobotState:
        """The newest measurement, waited for where the last one was the newest, or is old.

        Raises:
            RobotFault: ``identify`` was not called, the device reports a fault, or it is silent.
        """
        box, period = self._opened(), self.describe().period
        if not self._identified:
            raise RobotFault(
                Fault.CONFIG, "call identify() first: the arm's description is not known"
            )
        if self._clock is not None:
            self._call("read")
            return self._state(box.measured.read()[1])
        begun = time.monotonic()
        while True:
            now = time.monotonic()
            box.beat(now)
            number, letter = box.measured.read()
            if number > self._seen:
                # One that is old already is followed by another within the period.
                if now - letter["t"] <= 0.5 * period or now - begun > period:
                    self._seen = number
                    return self._state(letter)
            if now - begun > self._config.deadline:
                self._lose(f"has sent no measurement for {now - begun:.2f} s")
            if number <= self._seen and select.select([self._socket], [], [], LOOK)[0]:
                self._lose("has gone")  # it speaks only when it is asked

    def _state(self, letter: Any) -> RobotState:
        """A letter as a measurement; raises what it says instead."""
        if (fault := FAULTS[letter["fault"]]) is not Fault.NONE:
            text = letter["text"][: letter["length"]].tobytes().decode(errors="replace")
            raise RobotFault(fault, text)
        braked = None
        if letter["braked"] != self._braked:
            self._braked = int(letter["braked"])
            if letter["commanded"]:
                braked = np.stack([letter["command"][name] for name in MOTION[:3]])
        return RobotState(
            t_device=float(letter["t_device"]),
            t_host=float(letter["t_host"]),
            seq=int(letter["seq"]),
            qpos=np.array(letter["qpos"]),
            qvel=np.array(letter["qvel"]),
            effort=np.array(letter["effort"]),
            gripper=float(letter["gripper"]),
            fault=FAULTS[letter["reported"]],
            derate=float(letter["derate"]),
            outside=np.array(letter["outside"]) if letter["knows_outside"] else None,
            braked=braked,
        )

    def send(self, target: Target) -> Sent:
        """Puts a goal into the mailbox; it is sent when its period begins.

        Raises:
            RobotFault: ``enable`` was not called, or the target is not finite.
        """
        box = self._opened()
        if not self._enabled:
            raise RobotFault(Fault.DISCONNECTED, "call enable() first")
        if not (np.isfinite(target.qpos).all() and np.isfinite(target.gripper)):
            raise RobotFault(Fault.NONFINITE, f"target {target} is not finite and cannot be sent")
        letter, now = np.zeros((), box.goals.kind), time.monotonic()
        qpos = np.clip(target.qpos, *self.describe().position.T)
        opening = float(np.clip(target.gripper, 0.0, 1.0))
        letter["qpos"], letter["gripper"] = qpos, opening
        if isinstance(target, MovingTarget):
            for name in ("qvel", "qacc", "acceleration", "jerk"):
                letter[name] = getattr(target, name)
        letter["braked"], letter["t"] = self._braked, now
        box.goals.write(letter)
        if self._clock is not None:
            self._call("send")
            now = self._clock.now_ns() * 1e-9
        box.beat(time.monotonic())
        return Sent(qpos, opening, now)

    def hold(self) -> None:
        """Has the driver hold the arm; see ``RobotDriver.hold``."""
        self._call("hold")

    def last_target(self) -> Target | None:
        """Returns the driver's last target; see ``RobotDriver.last_target``."""
        told = self._call("last_target")
        return None if told is None else Target(np.array(told[0]), told[1])

    def joints_with_torque(self) -> tuple[str, ...]:
        """Returns the joints whose torque is enabled and that no controller supervises."""
        return tuple(self._call("joints_with_torque", patient=True))

    def relax(self) -> dict[str, bool]:
        """Has the driver turn torque off; returns {joint: whether it confirmed}."""
        self._enabled = False
        return self._call("relax", patient=True)

    def clear_fault(self) -> None:
        """Has the driver clear the device's fault."""
        self._call("clear_fault", patient=True)

    def close(self) -> None:
        """Closes the port; its process ends, by force where it does not end at once."""
        if self._socket is not None and not self._gone:
            try:
                self._call("close", within=END_S)
            except RobotFault:
                pass
        self._end(kill=False)
        self._gone = ""

    # Its process.
    def _begin(self) -> None:
        config = self._config
        self._end(kill=True)
        self._box, self._gone = Mailbox(len(self._numbers.joints)), ""
        self._seen = self._braked = 0
        options = {k: str(v) if isinstance(v, Path) else v for k, v in config.options.items()}
        rescue = None if config.rescue is None else {**vars(config.rescue), **self._same(options)}
        about = {
            "robot": config.robot,
            "where": config.where,
            "options": options,
            "numbers": to_plain(self._numbers),
            "stepped": self._clock is not None,
            "silence": config.silence,
            "bridge": os.getpid(),
            "rescue": rescue,
        }
        self._child, self._socket = child_process.start_child(
            "real_robot.bus.server",
            json.dumps(about),
            str(self._box.fd),
            packet=PACKET,
            share=[self._box.fd],
        )
        told = self._hear(START_S)
        if not told or "refused" in told:
            self._end(kill=True)
            if told:
                raise ValueError(told["refused"])
            how = "died" if told == {} else f"did not start within {START_S:g} s"
            raise RobotFault(Fault.BUS, f"the port's driver process {how}")
        self._about = description_from_plain(told["about"])

    def _same(self, options: dict[str, Any]) -> dict[str, Any]:
        """What a helper needs to be a Bus of the same arm."""
        config = self._config
        return {"robot": config.robot, "where": config.where, "options": options}

    def _opened(self) -> Mailbox:
        if self._gone:
            raise RobotFault(Fault.BUS, self._gone)
        if self._box is None or not self._connected:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")
        return self._box

    def _call(self, verb: str, *args: Any, patient: bool = False, within: float = 0.0) -> Any:
        """What the process answers; RobotFault where it refuses, dies or is late."""
        box = self._opened()
        within = within or (self._config.patience if patient else self._config.deadline)
        assert self._socket is not None
        box.beat(time.monotonic())
        now = 0 if self._clock is None else self._clock.now_ns()
        try:
            self._socket.send(json.dumps([now, verb, *args]).encode(), socket.MSG_DONTWAIT)
            told = self._hear(within)
        except OSError:
            told = {}
        if not told:
            self._lose(
                f"has exited (call: {verb})"
                if told == {}
                else f"did not answer within {within:g} s (call: {verb})"
            )
        assert told
        self._seen = box.measured.read()[0]  # what was measured before is no news
        if "fault" in told:
            raise RobotFault(Fault(told["fault"]), told["text"])
        return told["value"]

    def _hear(self, within: float) -> dict[str, Any] | None:
        """The next answer; {} where nobody is there, None where it is late."""
        assert self._socket is not None
        if not select.select([self._socket], [], [], max(0.0, within))[0]:
            return None
        packet = self._socket.recv(PACKET)
        return json.loads(packet) if packet else {}

    def _lose(self, how: str) -> None:
        """The process is not asked again."""
        self._end(kill=True)
        self._gone = f"the port's driver process {how}"
        raise RobotFault(Fault.BUS, self._gone)

    def _end(self, kill: bool) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            if kill:
                self._child.kill()
            try:
                self._child.wait(END_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        if self._box is not None:
            self._box.close()
        self._child = self._socket = self._box = None
        self._connected = self._identified = self._enabled = False
