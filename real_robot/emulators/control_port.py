"""The control port: how tests and harnesses set the stage behind an emulated arm and ask for truth.

One JSON object per line over TCP on the loopback interface alone: ``{"call": name, ...arguments}``
is answered by ``{"result": ...}`` or ``{"error": text}``. A real arm has nothing of the kind, so
nothing that drives an arm may use it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

HOST = "127.0.0.1"


class ControlPort:
    """Serves ``commands`` {name: function} until closed."""

    def __init__(self, commands: Mapping[str, Callable[..., Any]], port: int = 0):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with contextlib.suppress(ConnectionError):
                    for line in self.rfile:
                        self.wfile.write(_answer(commands, line))

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server((HOST, port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Takes no more calls."""
        self._server.shutdown()
        self._server.server_close()


def _answer(commands: Mapping[str, Callable[..., Any]], line: bytes) -> bytes:
    try:
        request = json.loads(line)
        name = request.pop("call")
        if name not in commands:
            raise ValueError(f"unknown call {name!r}; available: {', '.join(sorted(commands))}")
        answer = {"result": commands[name](**request)}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    return json.dumps(answer, default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent to the emulator")


class Control:
    """The other end: ``control.call("reset", seed=3)``. One per thread.

    Raises:
        ConnectionError: No emulator answers on ``port``.
    """

    def __init__(self, port: int, timeout: float = 30.0):
        try:
            self._socket = socket.create_connection((HOST, port), timeout)
        except OSError as error:
            raise ConnectionError(
                f"no emulator answers on control port {port}: {error}; start one with "
                "robo-rl emulate"
            ) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def call(self, name: str, **arguments: Any) -> Any:
        """The result of command ``name``; ValueError with the emulator's words if it refuses.

        Raises:
            ConnectionError: The emulator closed the connection.
        """
        self._socket.sendall(json.dumps({"call": name, **arguments}).encode() + b"\n")
        line = self._file.readline()
        if not line:
            raise ConnectionError("the emulator closed the connection")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(f"emulator: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """Hangs up."""
        self._file.close()
        self._socket.close()
