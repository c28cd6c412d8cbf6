"""Apart: a vendor's client in a process of its own, so that no call into it can hold the loop.

Clients wait for minutes within a call when their device is silent, and some hold Python's lock
meanwhile, so a thread would not do. Every call here has a deadline. One that misses it is the last:
the process is killed, so that what it was about to tell the device is not told later.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
from typing import Any

from real_robot import child
from real_robot.client_process import PACKET
from real_robot.driver import Fault, RobotFault


class Apart:
    """The client that ``module`` serves (``client_process.serve``); begins when first called."""

    def __init__(self, module: str, *arguments: str):
        self._start = module, *arguments
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._lost = ""  # why nobody answers any more

    @property
    def pid(self) -> int:
        """The client's process, 0 if there is none."""
        return 0 if self._child is None else self._child.pid

    def call(self, verb: str, *args: Any, within: float) -> Any:
        """What ``verb`` answers; RobotFault where it refuses, dies or is not done ``within`` s."""
        if self._lost:
            raise RobotFault(Fault.DISCONNECTED, self._lost)
        if self._socket is None:
            self._child, self._socket = child.start(*self._start, packet=PACKET)
        try:
            self._socket.send(json.dumps([verb, *args]).encode(), socket.MSG_DONTWAIT)
            heard = bool(select.select([self._socket], [], [], max(0.0, within))[0])
            answer = self._socket.recv(PACKET) if heard else b""
        except OSError:
            heard, answer = True, b""
        if not answer:
            self.close(kill=True)  # after a call without an answer there is no other
            what = "has gone" if heard else f"did not answer within {within:g} s"
            self._lost = f"the client's process {what} (asked to {verb})"
            raise RobotFault(Fault.DISCONNECTED, self._lost)
        told = json.loads(answer)
        if "fault" in told:
            raise RobotFault(Fault(told["fault"]), told["text"])
        return told["value"]

    def close(self, kill: bool = False) -> None:
        """Ends the process, by force where it does not end at once. A new call begins a new one."""
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            if kill:
                self._child.kill()
            try:
                self._child.wait(0.5)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._child = self._socket = None
        self._lost = ""
