"""The guardian's side: waits for the bridge's end, then holds, parks and relaxes the arm.

When the other end of its socket closes (``kill -9``) or goes silent (``SIGSTOP``; then the bridge
is killed first, since two may not drive one arm) and the arm is stiff, the guardian opens the port
and holds the arm where it is, on the bridge's word for how it is calibrated. Then it asks the arm
itself, parks it slowly where the bundle says how, and relaxes it, joint by joint. What it did goes
to stderr and, as JSON, to the report file.

``Guardian`` starts it: ``python -m real_robot.guardian_process JSON FD``.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import cast

from real_robot import drivers
from real_robot.child import own_end
from real_robot.clearance import Clearance
from real_robot.config import RunConfig
from real_robot.driver import Bequeathing, RobotDriver, RobotFault
from real_robot.guardian import KNOWN, QUIT, READY, STIFF, GuardianConfig
from real_robot.latch import Latch
from real_robot.loop import rescue
from real_robot.realtime import realtime
from sims import make_task

_PACKET = 1 << 16  # bytes, more than is known of any arm
_PR_SET_PDEATHSIG, _PF_EXITING = 1, 4  # of Linux: prctl.h, sched.h


def watch(about: dict, end: socket.socket) -> int:
    """Waits for the bridge's end, and takes over if the arm is stiff."""
    bridge = about.pop("bridge")
    config = GuardianConfig(**about)
    driver = drivers.make(config.robot, config.where, **config.options)  # imported before needed
    clear = config.scene and Clearance.of(make_task(**config.scene), margin=RunConfig().clearance)
    with realtime():  # where that is permitted: it sleeps until it is needed at once
        death = _death_of_parent()
        end.send(READY)
        return _on_guard(driver, config, clear or None, bridge, end, death)


def _death_of_parent() -> socket.socket:
    """Becomes readable when the thread that started this process ends; elsewhere than Linux never.

    The bridge's end of the socket closes only with the last of its threads, which on a busy machine
    takes a third of a second: half a gigabyte of locked memory goes first.
    """
    death, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    signal.set_wakeup_fd(wake.detach())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGUSR1), 0, 0, 0)
    return death


def _ending(pid: int) -> bool:
    """Whether the main thread of a process has ended (Linux)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return bool(int(stat.rsplit(")", 1)[1].split()[6]) & _PF_EXITING)


def _on_guard(
    driver: RobotDriver,
    config: GuardianConfig,
    clear: Clearance | None,
    bridge: int,
    end: socket.socket,
    death: socket.socket,
) -> int:
    stiff, known = False, None
    while True:
        heard = select.select([end, death], [], [], config.silence if stiff else None)[0]
        why = "died"
        if end in heard:
            try:
                said = end.recv(_PACKET)
            except ConnectionResetError:
                said = b""
            if said == QUIT:
                return 0
            if said.startswith(KNOWN):
                known = json.loads(said[1:])
            elif said:
                stiff = said == STIFF
            if said:
                continue
        elif heard:
            death.recv(1)
            if not _ending(bridge):
                continue
        elif stiff:
            why = "stalled and was killed"
        if not stiff:
            return 0
        seen = time.monotonic()
        if not heard:
            os.kill(bridge, signal.SIGKILL)
        return take_over(driver, config, clear, why, seen, known)


def take_over(
    driver: RobotDriver,
    config: GuardianConfig,
    clear: Clearance | None,
    why: str,
    seen: float,
    known: dict | None = None,
) -> int:
    """Holds, parks and relaxes the arm of a bridge that is gone; 0 if every joint is limp."""
    held = None
    if known is not None:
        # What fails here is tried again below, where the arm itself is asked first.
        try:
            cast(Bequeathing, driver).inherit(known)
            driver.hold()
            held = time.monotonic()
        except RobotFault:
            driver.close()
    while True:
        try:
            driver.connect()
            break
        except RobotFault:
            if time.monotonic() - seen > config.patience:
                raise
            time.sleep(0.001)  # the port is still the dead bridge's
    first = held is not None
    latch = Latch(Path(config.latch)) if config.latch else None
    result = rescue(driver, config.park, latch=latch, clearance=clear)
    if held is None:
        held = next((t.t for t in result.history if t.after.value == "hold"), None)
    took = None if held is None else held - seen
    report = {
        "bridge": why,
        "seen": seen,  # s, monotonic
        "held": held,
        "held_first": first,  # before the arm was asked anything
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
    sys.exit(watch(json.loads(sys.argv[1]), own_end(sys.argv[2])))
