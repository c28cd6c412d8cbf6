"""Guardian: a small process that stops the arm when the bridge itself dies or stalls.

It holds one end of a socket and nothing of the arm. The bridge says each tick whether the arm is
stiff, and once what it knows of the arm; what becomes of it when the bridge falls silent is told in
``guardian_process.py``. This is the bridge's side.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from real_robot import child

READY, STIFF, LIMP, KNOWN, QUIT = b"r", b"s", b"l", b"k", b"q"  # first bytes of what is said


@dataclass(frozen=True, kw_only=True)
class GuardianConfig:
    """What the guardian must know to take over; plain data, it goes to another process.

    Paths are absolute: that process works in another folder.
    """

    robot: str  # name of the driver
    where: str  # port or host
    options: dict  # of the driver
    park: tuple[float, ...] = ()  # (n,) rad; (): the arm is relaxed where it stands
    scene: dict | None = None  # ``make_task``'s arguments, of what the arm keeps clear of
    silence: float = 1.0  # s without a beat after which the bridge counts as stalled: longer than
    # the loop itself bears (RunConfig.max_gap), so that it can stop the arm by itself
    patience: float = 2.0  # s to go on trying to open the port
    report: str = ""  # JSON file
    latch: str = ""  # file of the arm's latched fault


class Guardian:
    """The bridge's side: tells the guardian that all is well."""

    def __init__(self, config: GuardianConfig):
        about = json.dumps(asdict(config) | {"bridge": os.getpid()})
        self._child, self._socket = child.start("real_robot.guardian_process", about)
        self._socket.settimeout(30.0)
        self._state = LIMP
        if self._socket.recv(1) != READY:
            raise RuntimeError("the guardian did not start; see its message above")
        self._socket.setblocking(False)

    @property
    def pid(self) -> int:
        """The guardian's process."""
        return self._child.pid

    def __enter__(self) -> Guardian:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether somebody is on guard."""
        return self._child.poll() is None

    def beat(self) -> None:
        """The bridge is alive; once a tick."""
        self._say(self._state)

    def stiff(self, stiff: bool, known: dict | None = None) -> None:
        """Whether the arm has torque, and so somebody to answer for it.

        ``known`` is what its driver bequeathes, so that the guardian need not ask the arm first.
        """
        if known is not None:
            self._say(KNOWN + json.dumps(known).encode())
        self._state = STIFF if stiff else LIMP
        self._say(self._state)

    def close(self) -> None:
        """The bridge ends in good order: nobody needs a guardian any more."""
        self._say(QUIT)
        self._socket.close()
        self._child.wait()

    def _say(self, what: bytes) -> None:
        try:
            self._socket.send(what)
        except OSError:
            pass  # it is gone or slow: the arm is still the bridge's
