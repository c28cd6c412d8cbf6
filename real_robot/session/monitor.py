"""Monitor: the run in the terminal, with keys that stop the arm; a process beside the bridge's.

The bridge hands over small packets ten times a second and never waits; drawing and the keyboard are
the other process's, so a slow terminal delays no target. It reads keys from stdin and draws on
stderr (``panel.py``). Whoever of the two dies, the other puts the terminal back as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import termios
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from real_robot.core import child_process
from real_robot.core.driver import Description, Fault
from real_robot.log.recorder import Tick
from real_robot.session.panel import DONE, ESTOP, STOP, TYPED

EVERY = 10  # ticks from one packet to the next
WINDOW = 1000  # ticks that rate and lateness are taken of
DIALS = {"+": 1, "=": 1, "-": -1}  # keys; the one under + needs no shift
STEP = 0.1  # of full speed, that one of them turns the dial by
_HEARD = 80  # bytes, of what the panel says at once
_CURSOR = b"\x1b[?25h"  # show it


class Monitor:
    """The bridge's side. ``tick`` is the run's ``watch`` and ``stop`` its ``stop``."""

    def __init__(self, robot: str, dial: float = 1.0, device: str = ""):
        """``dial`` is the share of full speed to begin with, ``device`` what is said of a person's
        device and its keys."""
        self._dial, self._device, self._typed = dial, device, b""
        self._terminal = termios.tcgetattr(sys.stdin)
        self._child, self._socket = child_process.start_child(
            "real_robot.session.panel", robot, terminal=True
        )
        self._pressed = b""
        self._clear()

    def _clear(self) -> None:
        self._late: deque[float] = deque(maxlen=WINDOW)
        self._woke: deque[float] = deque(maxlen=WINDOW)
        self._ticks = self._missed = 0
        self._limited: dict[str, int] = {}
        self._recently: set[str] = set()
        self._policy = 0.0

    def begin(self, robot: Description, episode: int, episodes: int | None, successes: int) -> None:
        """A new run; figures count from here. The terminal is the monitor's from here on."""
        self._clear()
        self.note(
            joints=robot.joints,
            range=robot.position.tolist(),
            episode=episode,
            episodes=episodes,
            successes=successes,
            ages={},
            limited={},
            dial=self._dial,
            device=self._device,
            refused="",
        )
        self._ask(show=True)

    @property
    def alive(self) -> bool:
        """Whether somebody draws and listens to keys."""
        return self._child.poll() is None

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def tick(self, tick: Tick, ages: Mapping[str, float]) -> None:
        """One period; ``ages`` s of the objects' poses."""
        self._ticks += 1
        self._missed += tick.skipped
        self._late.append(tick.late)
        self._woke.append(tick.t)
        if tick.thought is not None:
            self._policy = tick.thought.done - tick.thought.seen
        for stage, flag in tick.flags.items():
            if flag.any():
                self._limited[stage] = self._limited.get(stage, 0) + 1
                self._recently.add(stage)
            else:
                self._limited.setdefault(stage, 0)
        if self._ticks % EVERY:
            return
        span = self._woke[-1] - self._woke[0]
        self.note(
            phase=tick.phase,
            rate=(len(self._woke) - 1) / span if span > 0 else 0.0,
            late=float(np.percentile(self._late, 99)),
            missed=self._missed,
            policy=self._policy,
            qpos=tick.state.qpos.tolist(),
            gripper=tick.state.gripper,
            limited={stage: n / self._ticks for stage, n in self._limited.items()},
            recently=sorted(self._recently),
            ages={name: float(age) for name, age in ages.items()},
            dial=self._dial,
            refused=tick.refused,
        )
        self._recently.clear()

    def note(self, **what: Any) -> None:
        """Anything else to be shown: ``phase``, ``episode``, ``episodes``, ``successes``."""
        with contextlib.suppress(OSError):  # slow or gone: the arm does not wait for a terminal
            self._socket.send(json.dumps(what).encode(), socket.MSG_DONTWAIT)

    def stop(self) -> bool | Fault:
        """Whether a key asked to stop; ESTOP if it asked for that."""
        self._listen()
        key, self._pressed = self._pressed, b""
        return Fault.ESTOP if key == ESTOP else key == STOP

    def dial(self) -> float:
        """The share of full speed that the keys + and - have come to."""
        return self._dial

    def typed(self) -> bytes:
        """Keys pressed since it was last asked, but for those that stop and those of the dial."""
        self._listen()
        keys, self._typed = self._typed, b""
        return keys

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while said := self._socket.recv(_HEARD, socket.MSG_DONTWAIT):
                self._hear(said)

    def _hear(self, said: bytes) -> None:
        """Keeps a key until somebody asks; nothing takes an emergency stop back."""
        if said[:1] == TYPED:
            turned = sum(DIALS.get(key, 0) for key in said[1:].decode("latin-1"))
            self._dial = float(np.clip(self._dial + STEP * turned, STEP, 1.0))
            self._typed += bytes(b for b in said[1:] if chr(b) not in DIALS)
        elif said in (STOP, ESTOP) and self._pressed != ESTOP:
            self._pressed = said

    def hide(self) -> None:
        """The terminal is the operator's, as it was; until ``begin``."""
        self._ask(show=False)

    def _ask(self, **what: Any) -> None:
        """Sends, and waits until it is done; a key pressed meanwhile counts."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(2.0)
            self._socket.send(json.dumps(what).encode())
            while (said := self._socket.recv(_HEARD)) not in (DONE, b""):
                self._hear(said)
        self._socket.setblocking(False)

    def close(self) -> None:
        """The terminal is as it was before."""
        self._socket.close()
        try:
            self._child.wait(2.0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if self._child.returncode:  # it could not clean up after itself
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._terminal)
                os.write(sys.stderr.fileno(), _CURSOR)
