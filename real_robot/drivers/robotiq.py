"""Robotiq: the gripper's text port on a UR controller; nothing here waits within a running loop.

Questions are asked ahead, and answers read when they are there. A gripper that is silent for long
or hangs up is lost, which ``lost`` says once; the arm can go on without it, its jaws as they were.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time

PORT = 63352
CONNECT_S = 0.5  # s for a connection and for each answer before the arm moves
SILENT = 0.5  # s without an answer after which it counts as lost
AGAIN = 0.05  # s: a question without an answer is asked anew
PATIENCE = 0.02  # s for an answer where the last is older than that
ACTIVE = 3  # its STA once it knows how far its jaws go


class Robotiq:
    """The gripper at ``host``; OSError where there is none, ValueError where it is not ready."""

    def __init__(self, host: str):
        self._socket = socket.create_connection((host, PORT), CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input, self._told, self._values = b"", -1, dict.fromkeys(("STA", "FLT", "POS"), -1)
        self._lost, self._waiting = "", 0
        self._asked = self._since = time.monotonic()  # the last and the first open question
        for name in self._values:
            self._ask(name)
            until = time.monotonic() + CONNECT_S
            while self._waiting and (left := until - time.monotonic()) > 0:
                self._hear(left)
            if self._values[name] < 0:
                self._socket.close()
                raise OSError(f"the gripper does not answer: {self._lost or 'silent'}")
        if self._values["STA"] != ACTIVE or self._values["FLT"]:
            self._socket.close()
            raise ValueError(
                f"the gripper is not ready (STA {self._values['STA']}, FLT {self._values['FLT']}); "
                "activate it on the pendant, which opens and closes its jaws"
            )

    def opening(self) -> float:
        """0 closed to 1 open, as last heard; asks for the next."""
        self._hear(0.0)
        now = time.monotonic()
        if self._waiting and now - self._since > SILENT:
            self._lost = self._lost or f"silent for {now - self._since:.2f} s"
        if not self._lost and now - self._asked > AGAIN:
            answered = not self._waiting
            self._ask("POS")
            if answered:  # nobody was reading: what was heard last is old
                self._hear(PATIENCE)
        elif not self._lost and not self._waiting:
            self._ask("POS")
        return 1.0 - self._values["POS"] / 255.0

    def move(self, opening: float) -> float:
        """Sends a new position; returns the opening as it is encoded."""
        steps = round(255 * (1.0 - opening))
        if steps != self._told and not self._lost:
            self._send(b"SET POS %d\n" % steps)
            self._told = steps
        return 1.0 - steps / 255.0

    def lost(self) -> str:
        """Why it was lost, told once; "" otherwise."""
        why, self._lost = self._lost, self._lost and "told"
        return "" if why == "told" else why

    def disconnect(self) -> None:
        """Hangs up."""
        self._socket.close()

    def _ask(self, name: str) -> None:
        self._send(f"GET {name}\n".encode())
        self._asked = time.monotonic()
        self._since = self._since if self._waiting else self._asked
        self._waiting += 1

    def _send(self, line: bytes) -> None:
        try:
            self._socket.send(line, socket.MSG_DONTWAIT)
        except OSError as error:
            self._lost = self._lost or str(error)

    def _hear(self, patience: float) -> None:
        """Takes in what has come, after up to ``patience`` s."""
        try:
            while select.select([self._socket], [], [], patience)[0]:
                data = self._socket.recv(4096)
                if not data:
                    raise OSError("the gripper closed the connection")
                self._take(data)
                patience = 0.0
        except OSError as error:
            self._lost = self._lost or str(error)

    def _take(self, data: bytes) -> None:
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            name, _, value = line.decode("ascii", "replace").strip().partition(" ")
            with contextlib.suppress(ValueError):
                if name in self._values:
                    self._values[name] = int(value)
                    self._waiting = 0
