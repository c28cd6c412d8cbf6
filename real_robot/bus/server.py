"""The process that owns an arm's port: it keeps the period, whatever becomes of everybody else.

In every period it sends the newest goal from the mailbox, asks for the next measurement right
after, and puts that into the mailbox. A goal that is more than 0.4 periods late is not waited for:
the last command brakes by one step, the quickest way, which the safety filter has made sure of; a
goal that does not follow from what was sent is thrown away, and whoever gives goals learns from the
next measurement what the command is now. So a bridge that dies or stalls is an arm that brakes at
once and holds.

What follows a hold needs a simulation, and another process: when the bridge has died while the arm
is stiff, or is silent for long (it is killed then, since two may not drive one arm), a helper is
started (``session/rescue_process.py``), which parks and relaxes the arm over this process, as the
bridge would. Loads no simulation, no filter, and writes no log.

``Bus`` starts it: ``python -m real_robot.bus.server JSON MEMORY FD``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from real_robot import arms, drivers
from real_robot.bus.mailbox import TEXT, Mailbox
from real_robot.core import child_process
from real_robot.core.arm_numbers import ArmNumbers, to_plain
from real_robot.core.child_process import child_socket
from real_robot.core.driver import Fault, MovingTarget, RobotDriver, RobotFault, target_change_text
from real_robot.core.pacing import VirtualClock, low_latency_interpreter
from real_robot.core.realtime import OWNER, realtime
from real_robot.safety.stages.braking import brake

PACKET = 1 << 16  # bytes, more than any call or answer
GRACE = 0.4  # periods that a goal may be late
LOOK = 0.0003  # s between two looks for it
HELPERS = 3  # that are started, one after the other, where one ends before the arm is limp
HELPER_S = 30.0  # s for a helper to be ready
FAULTS = tuple(Fault)
MOTION = ("qpos", "qvel", "qacc", "gripper")
_PF_EXITING = 4  # of Linux's sched.h
_REST = 1e-9  # rad/s and rad/s^2


class PortOwner:
    """The loop around ``driver``, whose calls come over ``end``."""

    def __init__(
        self,
        driver: RobotDriver,
        numbers: ArmNumbers,
        box: Mailbox,
        end: socket.socket,
        about: dict,
    ):
        self._driver, self._numbers, self._box, self._end = driver, numbers, box, end
        self._period: float = about["period"]
        self._silence: float = about["silence"]
        # On a compressed clock: it passes as calls say, and nothing is done that is not asked for.
        self._clock: VirtualClock | None = about["clock"]
        self._rescue: dict | None = about["rescue"]
        self._giver: int = about["bridge"]  # the process that gives the goals
        self._helper: subprocess.Popen | None = None
        self._helpers = 0
        self._let_go = False  # the device has answered that joints are to be limp
        self._heard = time.monotonic()  # s, of the last call
        self._measuring = self._stiff = self._over = False
        self._deadline = time.monotonic()
        self._taken = 0  # number of the last goal that was looked at
        self._command: dict[str, Any] | None = None  # qpos, qvel, qacc (n,), gripper, as sent last
        self._last = -1  # number of the last measurement
        self._braked = 0  # steps that the giver of goals did not ask for
        self._began = self._rested = 0.0  # monotonic s, of the last time it braked by itself
        self._told: dict[str, Any] = {}

    def describe(self) -> dict[str, Any]:
        """The arm's description, as JSON can hold it."""
        return to_plain(self._driver.describe())

    def run(self) -> int:
        """Until the arm is closed, or limp and nobody is left; 1 where it stays stiff."""
        while not self._over:
            self._wait()
            if self._over:
                break
            if self._measuring:
                failed = self._drive()
                self._measure(failed)
                now, period = time.monotonic(), self._period
                self._deadline += period
                if now - self._deadline > 0.5 * period:  # skipped, never made up for
                    self._deadline += period * round((now - self._deadline) / period)
        self._driver.close()
        if self._helper is not None:
            self._helper.wait()
        return int(self._stiff)

    # Who gives the goals.
    def _wait(self) -> None:
        """Answers calls until the next period begins."""
        while not self._over:
            left = self._deadline - time.monotonic() if self._measuring else 0.1
            if not select.select([self._end], [], [], max(0.0, left))[0]:
                self._listen()
                if self._measuring or self._over:
                    return
                continue
            try:
                packet = self._end.recv(PACKET)
            except OSError:
                packet = b""
            if packet:
                self._answer(packet)
            else:
                self._bereaved("died")

    def _listen(self) -> None:
        """A giver of goals that is silent for long while the arm is stiff is killed."""
        last = max(self._heard, self._box.beaten)
        stalls = self._stiff and self._clock is None
        if stalls and time.monotonic() - last > self._silence:
            dying = process_is_ending(
                self._giver
            )  # for seconds, where it has much memory to give back
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._giver, signal.SIGKILL)
            self._bereaved("died" if dying else "stalled and was killed")

    def _bereaved(self, why: str) -> None:
        """Nobody gives goals any more: the arm is limp, or somebody must bring it to rest."""
        self._end.close()
        if self._helper is not None:
            self._helper.kill()
            self._helper.wait()
        can = self._rescue is not None and self._helpers < HELPERS
        if not self._stiff or not can:
            self._brake_alone()
            if self._stiff:
                with contextlib.suppress(OSError):  # who would have read it may be gone, too
                    print(
                        f"bus: the bridge {why}; no process parks the arm: TORQUE IS STILL ON, "
                        "it holds its last target",
                        file=sys.stderr,
                        flush=True,
                    )
            self._over = True
            return
        self._told = self._told or {"bridge": why, "seen": time.monotonic()}
        self._helpers += 1
        self._let_go = False
        about = {**self._rescue, **self._told, "began": self._began, "bus": self._identity()}  # pyright: ignore[reportGeneralTypeIssues]  # one has a rescue
        self._helper, self._end = child_process.start_child(
            "real_robot.session.rescue_process",
            json.dumps(about),
            str(self._box.fd),
            packet=PACKET,
            share=[self._box.fd],
        )
        self._giver, self._heard = self._helper.pid, time.monotonic() + HELPER_S

    def _identity(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "about": self.describe()}

    def _brake_alone(self) -> None:
        """To rest, with nobody left to answer to."""
        while self._command is not None and is_moving(self._command):
            time.sleep(max(0.0, self._deadline - time.monotonic()))
            self._drive()
            self._deadline += self._period

    # Calls.
    def _answer(self, packet: bytes) -> None:
        now, verb, *args = json.loads(packet)
        if self._clock is not None:
            self._clock.sleep_until_ns(now)
        try:
            answer = {"value": getattr(self, f"do_{verb}")(*args)}
        except RobotFault as error:
            text = str(error).removeprefix(f"{error.fault.value}: ")
            answer = {"fault": error.fault.value, "text": text}
        self._heard = time.monotonic()
        self._deadline = max(self._deadline, self._heard)
        with contextlib.suppress(OSError):  # who asked is gone
            self._end.send(json.dumps(answer).encode())

    def do_connect(self) -> None:
        self._driver.connect()

    def do_identify(self) -> dict[str, Any]:
        identity = self._driver.identify()
        self._measuring = self._clock is None
        return {"identity": asdict(identity), "about": self.describe()}

    def do_enable(self) -> None:
        self._forget()
        self._stiff = True  # it may be from here on
        self._driver.enable()

    def do_read(self) -> None:
        self._measure(None)

    def do_send(self) -> None:
        self._driver.send(moving_target(self._box.goals.read()[1]))

    def do_newest(self) -> float:
        return self._driver.newest  # type: ignore[attr-defined]

    def do_hold(self) -> None:
        self._forget()
        self._driver.hold()

    def do_last_target(self) -> list[Any] | None:
        told = self._driver.last_target()
        return None if told is None else [told.qpos.tolist(), told.gripper]

    def do_joints_with_torque(self) -> list[str]:
        return list(self._driver.joints_with_torque())  # type: ignore[attr-defined]

    def do_relax(self) -> dict[str, bool]:
        self._forget()
        acks = self._driver.relax()
        self._stiff, self._let_go = not all(acks.values()), True
        return acks

    def do_clear_fault(self) -> None:
        self._driver.clear_fault()

    def do_close(self) -> None:
        if self._helper is not None and self._stiff and not self._let_go:
            return  # it could do nothing; another helper may
        self._driver.close()
        self._over = True

    def _forget(self) -> None:
        """The driver itself says where the arm goes: goals from before do not count any more."""
        self._command, self._taken = None, self._box.goals.read()[0]

    # The exchange of every period.
    def _drive(self) -> RobotFault | None:
        """Sends the goal that is due, or brakes; what went wrong."""
        goal = self._fresh()
        before = self._command
        going = before is not None and is_moving(before)
        until = self._deadline + GRACE * self._period
        while going and goal is None and time.monotonic() < until:
            time.sleep(LOOK)
            goal = self._fresh()
        if goal is not None:
            self._command = {k: np.array(goal[k]) for k in (*MOTION, "acceleration", "jerk")}
        elif going:
            assert before is not None
            limits = before["acceleration"], before["jerk"]
            stop = brake(before["qpos"], before["qvel"], before["qacc"], *limits, self._period)
            self._command = {**before, "qpos": stop.qpos, "qvel": stop.qvel, "qacc": stop.qacc}
            self._braked += 1
            if time.monotonic() - self._rested > 2 * self._period:
                self._began = time.monotonic()
            self._rested = time.monotonic()
        else:
            return None
        try:
            target = moving_target(self._command)
            sent = self._driver.send(target)
            if why := target_change_text(sent, target, self._numbers.joints):
                raise RobotFault(Fault.CONFIG, why)
        except RobotFault as error:
            # As far as is known it was not sent: what follows must not count from it.
            self._command, self._braked = before, self._braked + 1
            return error
        return None

    def _fresh(self) -> Any:
        """A goal that follows from the last command, if there is a new one."""
        number, goal = self._box.goals.read()
        if number == self._taken:
            return None
        follows = self._command is None or number == self._taken + 1
        self._taken = number
        if not follows:  # nor does any other before its giver has heard of it
            self._braked += 1
        return goal if goal["braked"] == self._braked else None

    def _measure(self, failed: RobotFault | None) -> None:
        """Asks for the next measurement and passes it on, or says what went wrong."""
        letter = np.zeros((), self._box.measured.kind)
        try:
            if failed is not None:
                raise failed
            state = self._driver.read()
            if state.seq == self._last:
                return  # nothing new yet
            self._last = state.seq
        except RobotFault as error:
            text = str(error).removeprefix(f"{error.fault.value}: ").encode()[:TEXT]
            letter["fault"] = FAULTS.index(error.fault)
            letter["text"][: len(text)] = np.frombuffer(text, "u1")
            letter["length"] = len(text)
        else:
            for name in ("seq", "t_device", "t_host", "gripper", "qpos", "qvel", "effort"):
                letter[name] = getattr(state, name)
            letter["derate"], letter["reported"] = state.derate, FAULTS.index(state.fault)
            if state.outside is not None:
                letter["outside"], letter["knows_outside"] = state.outside, 1
        letter["braked"], letter["commanded"] = self._braked, self._command is not None
        if self._command is not None:
            for name in MOTION:
                letter["command"][name] = self._command[name]
        letter["t"] = time.monotonic()
        self._box.measured.write(letter)


def moving_target(command: Any) -> MovingTarget:
    """A goal as a driver takes it: some pass it on at its speed."""
    names = ("qpos", "qvel", "qacc", "acceleration", "jerk")
    return MovingTarget(
        gripper=float(command["gripper"]), **{k: np.array(command[k]) for k in names}
    )


def process_is_ending(pid: int) -> bool:
    """Whether a process has ended or is about to (Linux; False where that is not known)."""
    if not Path("/proc/self/stat").exists():
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return bool(int(stat.rsplit(")", 1)[1].split()[6]) & _PF_EXITING)


def is_moving(command: dict[str, Any]) -> bool:
    """Whether a command is not at rest."""
    return bool(np.abs(command["qvel"]).max() > _REST or np.abs(command["qacc"]).max() > _REST)


def main(config: str, mailbox: str, connection: str) -> int:
    """Opens the driver and owns its port until the bridge ends.

    Args:
        config: JSON of the arm, its driver's options and its numbers, from ``Bus``.
        mailbox: File descriptor of the shared memory.
        connection: File descriptor of the socket to ``Bus``.

    Returns:
        The exit status: 2 where the driver refuses an option.
    """
    end, about = child_socket(connection), json.loads(config)
    numbers = ArmNumbers.from_plain(about["numbers"])
    try:
        clock = VirtualClock() if about["stepped"] else None
        paced = {} if clock else arms.spec(about["robot"]).paced
        driver = drivers.make(
            about["robot"],
            about["where"],
            numbers=numbers,
            clock=clock,
            **{**paced, **about["options"]},
        )
    except (ValueError, TypeError) as error:  # an option that it does not take
        end.send(json.dumps({"refused": str(error)}).encode())
        return 2
    about |= {"period": driver.describe().period, "clock": clock}
    box = Mailbox(len(numbers.joints), int(mailbox))
    owner = PortOwner(driver, numbers, box, end, about)
    with contextlib.nullcontext() if clock else realtime(priority=OWNER), low_latency_interpreter():
        end.send(json.dumps({"about": owner.describe()}).encode())
        return owner.run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
