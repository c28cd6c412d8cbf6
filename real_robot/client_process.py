"""The side of a vendor's client: a program that does one call after another for ``Apart``.

Calls come as JSON over the socket that started it, and are answered one by one. When the other side
hangs up, it ends, and the client's connections with it, which a device's own watchdog notices.
Loads nothing heavy, since it is started for every connection.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

PACKET = 1 << 16  # bytes, more than any call or answer


class Refused(Exception):
    """What ``Fault`` (by its value) a call ends in, and why."""

    def __init__(self, fault: str, text: str):
        super().__init__(text)
        self.fault = fault


def serve(verbs: Mapping[str, Callable[..., Any]], end: socket.socket) -> None:
    """Answers calls of ``verbs`` until the other side is gone.

    What a client throws (RuntimeError, OSError, ValueError) is a lost connection.
    """
    while packet := end.recv(PACKET):
        verb, *args = json.loads(packet)
        try:
            answer = {"value": verbs[verb](*args)}
        except Refused as error:
            answer = {"fault": error.fault, "text": str(error)}
        except (RuntimeError, OSError, ValueError) as error:
            answer = {"fault": "disconnected", "text": str(error)}
        end.send(json.dumps(answer).encode())
