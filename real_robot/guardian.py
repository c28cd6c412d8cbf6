"""Guardian: a small process that stops the arm when the bridge itself dies or stalls.

It holds one end of a socket and nothing of the arm. The bridge sends a byte each tick and says
when the arm is stiff. When the other end closes (``kill -9``) or goes silent (``SIGSTOP``; then the
bridge is killed first, since two may not drive one arm) and the arm is stiff, the guardian opens
the port, holds the arm where it is, parks it slowly where the bundle says how, and relaxes it,
joint by joint. What it did goes to stderr and, as JSON, to the report file.

Run as a program (``python -m real_robot.guardian JSON FD``) this is the guardian's side.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from real_robot import drivers
from real_robot.driver import RobotFault
from real_robot.realtime import realtime

_BEAT, _STIFF, _LIMP, _QUIT = b".", b"s", b"l", b"q"


@dataclass(frozen=True, kw_only=True)
class GuardianConfig:
    """What the guardian must know to take over; plain data, it goes to another process."""

    robot: str  # name of the driver
    where: str  # port or host
    options: dict  # of the driver
    park: tuple[float, ...] = ()  # (n,) rad; (): the arm is relaxed where it stands
    silence: float = 1.0  # s without a beat after which the bridge counts as stalled: longer than
    # the loop itself bears (RunConfig.max_gap), so that it can stop the arm by itself
    patience: float = 2.0  # s to go on trying to open the port
    report: str = ""  # JSON file


class Guardian:
    """The bridge's side: tells the guardian that all is well."""

    def __init__(self, config: GuardianConfig):
        ours, theirs = socket.socketpair()
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        about = json.dumps(asdict(config) | {"bridge": os.getpid()})
        self._child = subprocess.Popen(
            [sys.executable, "-m", "real_robot.guardian", about, str(theirs.fileno())],
            pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._socket = ours
        ours.settimeout(30.0)
        if ours.recv(1) != _BEAT:
            raise RuntimeError("the guardian did not start; see its message above")
        ours.setblocking(False)

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
        self._say(_BEAT)

    def stiff(self, stiff: bool) -> None:
        """Whether the arm has torque, and so somebody to answer for it."""
        self._say(_STIFF if stiff else _LIMP)

    def close(self) -> None:
        """The bridge ends in good order: nobody needs a guardian any more."""
        self._say(_QUIT)
        self._socket.close()
        self._child.wait()

    def _say(self, what: bytes) -> None:
        try:
            self._socket.send(what)
        except OSError:
            pass  # it is gone or slow: the arm is still the bridge's


def watch(about: dict, end: socket.socket) -> int:
    """The guardian's side: waits for the bridge's end, and takes over if the arm is stiff."""
    bridge = about.pop("bridge")
    config = GuardianConfig(**about)
    driver = drivers.make(config.robot, config.where, **config.options)  # imported before needed
    import real_robot.loop  # noqa: F401

    with realtime():  # where that is permitted: it sleeps until it is needed at once
        end.send(_BEAT)
        return _on_guard(driver, config, bridge, end)


def _on_guard(
    driver: drivers.RobotDriver, config: GuardianConfig, bridge: int, end: socket.socket
) -> int:
    stiff = False
    while True:
        heard = select.select([end], [], [], config.silence if stiff else None)[0]
        try:
            said = end.recv(4096) if heard else None
        except ConnectionResetError:
            said = b""
        if said:
            if _QUIT in said:
                return 0
            for what in said:
                stiff = stiff if what == _BEAT[0] else what == _STIFF[0]
            continue
        if not stiff:
            return 0
        seen = time.monotonic()
        why = "died" if said is not None else "stalled and was killed"
        if said is None:
            os.kill(bridge, signal.SIGKILL)
        return take_over(driver, config, why, seen)


def take_over(driver: drivers.RobotDriver, config: GuardianConfig, why: str, seen: float) -> int:
    """Holds, parks and relaxes the arm of a bridge that is gone; 0 if every joint is limp."""
    from real_robot.loop import rescue

    while True:
        try:
            driver.connect()
            break
        except RobotFault:
            if time.monotonic() - seen > config.patience:
                raise
            time.sleep(0.001)  # the port is still the dead bridge's
    result = rescue(driver, config.park)
    held = next((t.t for t in result.history if t.after.value == "hold"), None)
    took = None if held is None else held - seen
    report = {
        "bridge": why,
        "held_after_s": took,
        "fault": result.fault.value,
        "reason": result.reason,
        "limp": dict(result.acks),
        "states": [t.after.value for t in result.history],
        "notes": list(result.notes),
    }
    stiff = [joint for joint, limp in result.acks.items() if not limp]
    when = "not held" if took is None else f"held after {1000 * took:.0f} ms"
    print(
        f"guardian: the bridge {why}; arm {when}; "
        + (f"STILL STIFF: {', '.join(stiff)}" if stiff else "every joint is limp"),
        file=sys.stderr,
    )
    if config.report:
        part = Path(config.report + ".part")
        part.write_text(json.dumps(report, indent=1))
        part.replace(config.report)
    return bool(stiff)


if __name__ == "__main__":
    sys.exit(watch(json.loads(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))))
