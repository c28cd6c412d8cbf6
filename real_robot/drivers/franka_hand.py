"""Franka's hand behind ``FrankaDriver``, whose client is a process of its own.

A call to the hand comes back when the fingers are where they were told, or never: where the hand
has hung up, the client (libfranka 0.21) looks for its answer without end, and without a pause. So
it is asked by another process, that can be killed. Goals are sent there ahead, and what the hand
tells is read when it is there; nothing here waits within a running loop.

In that process one thread moves the fingers and another hears of them. A goal far from the one
under way interrupts it. Where closing fingers meet something, they grasp it.

``python -m real_robot.drivers.franka_hand HOST FD``
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import franky

from real_robot.core import child_process

SPEED = 0.1  # m/s, of the maker's 0.05 to 0.2 between the fingers
FORCE = 30.0  # N, of the 70 that it holds for good
STEP = 0.001  # m: a goal that is nearer to the last is the same
AGAIN = 0.01  # m: a goal farther from the one under way interrupts it
MET = 0.002  # m before its goal at which a closing hand has met something
HOMED = 0.01  # m: a hand that says it opens less far was never homed
OLD = 0.1  # s without a question after which the answer is waited for
SILENT = 0.5  # s without a word after which it counts as lost
START_S = 10.0  # s for its process on a starved machine
PACKET = 1 << 12  # bytes


class FrankaHand:
    """The hand at ``host``; OSError where there is none, ValueError where it is not ready."""

    def __init__(self, host: str):
        self._child, self._socket = child_process.start_child(
            "real_robot.drivers.franka_hand", host, packet=PACKET
        )
        self._told, self._lost = -1.0, ""
        self._asked = self._came = time.monotonic()
        self._heard: dict[str, Any] = {}
        until = time.monotonic() + START_S
        while not self._heard and not self._lost and (left := until - time.monotonic()) > 0:
            self._hear(left)
        most = self._heard.get("most", 0.0)
        if not self._heard or self._lost:
            self.disconnect()
            raise OSError(f"the hand does not answer: {self._lost or 'silent'}")
        if most < HOMED:
            self.disconnect()
            raise ValueError(
                f"the hand reports a maximum width of {1000 * most:.0f} mm: home it in Desk, "
                "which opens and closes its fingers"
            )
        self._most = most

    @property
    def newest(self) -> float:
        """The hand's time of what was heard last, s."""
        self._hear(0.0)
        return self._heard["time"]

    def opening(self) -> float:
        """0 closed to 1 open, as last heard."""
        self._hear(0.0)
        asked, self._asked = self._asked, time.monotonic()
        if self._asked - asked > OLD:  # nobody was listening: what was heard is what had room
            self._hear(OLD)
        silent = time.monotonic() - self._came
        if silent > SILENT:
            self._lost = self._lost or f"silent for {silent:.2f} s"
        return min(1.0, max(0.0, self._heard["width"] / self._most))

    def move(self, opening: float) -> float:
        """Sends a goal where it is another; returns the opening as it is sent."""
        width = opening * self._most
        if abs(width - self._told) > STEP and not self._lost:
            try:
                self._socket.send(json.dumps(width).encode(), socket.MSG_DONTWAIT)
                self._told = width
            except OSError as error:
                self._lost = str(error)
        return opening

    def lost(self) -> str:
        """Why it was lost, told once; "" otherwise."""
        why, self._lost = self._lost, self._lost and "told"
        return "" if why == "told" else why

    def disconnect(self) -> None:
        """Ends the process: the fingers stay as they are."""
        self._socket.close()
        try:
            self._child.wait(0.1)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _hear(self, patience: float) -> None:
        """Takes in what has come, after up to ``patience`` s."""
        while not self._lost and select.select([self._socket], [], [], patience)[0]:
            try:
                packet = self._socket.recv(PACKET)
            except OSError:
                packet = b""
            told = json.loads(packet) if packet else {"lost": "its client process has ended"}
            if "lost" in told:
                self._lost = told["lost"]
            else:
                self._heard, self._came, patience = told, time.monotonic(), 0.0


class _Client:
    """The hand's client and its two threads; ``end`` leads to who gives goals."""

    def __init__(self, gripper: franky.Gripper, end: socket.socket):
        self._gripper, self._end = gripper, end
        self._wanted: float | None = None  # m, the newest goal
        self._under: float | None = None  # m, the goal under way
        self._interrupted = False  # that is ended for another
        self._held: float | None = None  # m, how wide what is grasped is
        self._width = 0.0  # m
        self._news = threading.Condition()

    def run(self) -> None:
        """Until nobody gives goals any more."""
        for work in (self._report, self._work):
            threading.Thread(target=work, daemon=True).start()
        while packet := self._end.recv(PACKET):
            with self._news:
                self._wanted = json.loads(packet)
                self._news.notify()

    def _report(self) -> None:
        """What the hand tells, and no more once it is gone."""
        try:
            while True:
                state = self._gripper.state
                self._width = state.width
                told = {"width": state.width, "most": state.max_width}
                self._tell(told | {"time": state.time.to_msec() / 1000})
                with self._news:  # no other begins, which would be stopped in place of this one
                    wanted, under = self._wanted, self._under
                    if wanted is None or under is None:
                        continue
                    if abs(wanted - under) > AGAIN:
                        self._interrupted = True
                        self._gripper.stop()
        except franky.Exception as error:
            self._tell({"lost": _plain(error)})

    def _work(self) -> None:
        """Moves the fingers to the newest goal, again and again."""
        last = None
        while True:
            with self._news:
                while self._wanted in (None, last) or self._squeezes(self._wanted):
                    self._news.wait()
                last, self._interrupted = self._wanted, False
                self._under = last
            try:
                self._go(last)
            except franky.Exception as error:
                self._tell({"lost": _plain(error)})
                return
            with self._news:
                self._under = None
                if self._interrupted:
                    last = None

    def _squeezes(self, width: float | None) -> bool:
        """Whether ``width`` asks for no more than to hold what is held."""
        return width is not None and self._held is not None and width < self._held + MET

    def _go(self, width: float) -> None:
        """To ``width`` m, or as far as something lets it."""
        self._held, closing = None, width < self._width
        try:
            done = self._gripper.move(width, SPEED)
        except franky.CommandException:
            if not closing and not self._interrupted:  # nothing is in the way of opening fingers
                raise
            done = False
        if closing and not done and not self._interrupted:
            most = self._gripper.max_width
            with contextlib.suppress(franky.CommandException):  # it may be interrupted, too
                if self._gripper.grasp(0.0, SPEED, FORCE, most, most):
                    self._held = self._gripper.width

    def _tell(self, told: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            self._end.send(json.dumps(told).encode(), socket.MSG_DONTWAIT)


def _plain(error: Exception) -> str:
    return str(error).removeprefix("libfranka gripper: ").removeprefix("libfranka: ")


def main(host: str, number: str) -> None:
    """The client's process, from its start to its end."""
    if hasattr(os, "sched_setscheduler"):  # it may spin: nobody shall wait for it
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    end = child_process.child_socket(number)
    try:
        client = _Client(franky.Gripper(host), end)
    except (franky.Exception, RuntimeError) as error:
        end.send(json.dumps({"lost": _plain(error)}).encode())
    else:
        with contextlib.suppress(OSError):
            client.run()
    os._exit(0)  # a call to the hand may never come back


if __name__ == "__main__":
    main(*sys.argv[1:])
