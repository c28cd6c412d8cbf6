"""Keyboard: jogs the tool or one joint by the keys of the panel's terminal.

A terminal tells when a key is pressed, never when it is let go; it repeats a key that is held down.
So a key counts for ``HELD`` s from when it came: held down it goes on, let go it ends, and the
first press alone is a nudge, until the repeats begin. Then the arm stands, and stays the person's
until it is given back.
"""

from __future__ import annotations

import re

import numpy as np

from real_robot.operator.devices import VERDICT_KEYS, DeviceContext
from real_robot.operator.handover import OperatorInput

HELD = 0.15  # s that a key counts for; terminals repeat 25 to 30 times a second
TOOL, JOINT = 0.08, 0.4  # m/s, rad/s
WAYS = {  # x is away from the arm's base, y to its left
    "up": (1, 0, 0),
    "down": (-1, 0, 0),
    "left": (0, 1, 0),
    "right": (0, -1, 0),
    "u": (0, 0, 1),
    "j": (0, 0, -1),
}
TURNS = {"left": 1.0, "right": -1.0, "up": 1.0, "down": -1.0}
GRIPS = {"o": 1.0, "c": 0.0}
HELP = "arrows u j: jog · 0: tool, 1-{n}: a joint · o c: gripper · t: take, give back · y n x: ends"
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;]*([@-~])|O(.))")  # what arrows and function keys send


def key_names(pressed: bytes) -> list[str]:
    """The keys that a terminal's bytes mean, in order; function keys are none."""
    keys, at = [], 0
    for found in _SEQUENCE.finditer(pressed):
        keys += list(pressed[at : found.start()].decode("latin-1"))
        arrow = _ARROWS.get(found[1] or found[2])
        keys += [arrow] if arrow else []
        at = found.end()
    return keys + list(pressed[at:].decode("latin-1"))


class Keyboard:
    """A jog takes the arm, as t does.

    Raises:
        ValueError: There is no monitor to read keys from.
    """

    def __init__(self, where: str, around: DeviceContext):
        if around.typed is None:
            raise ValueError(
                "--human keyboard reads keys from the monitor: run it in a terminal, in real "
                "time, without --no-monitor"
            )
        self._typed, self._alive, self._now = around.typed, around.alive, around.now
        self._n = len(around.robot.joints)
        self._joint = 0  # 0: the tool
        self._key, self._until = "", -np.inf
        self._engaged, self._t = False, -np.inf
        self._gripper: float | None = None

    def read(self) -> OperatorInput:
        """What the newest keys mean."""
        now, verdict = self._now(), ""
        if self._alive():
            self._t = now
        for key in key_names(self._typed()):
            verdict = VERDICT_KEYS.get(key, verdict)
            if key.isdigit():
                self._joint = int(key) if int(key) <= self._n else self._joint
            elif key == "t":
                self._engaged = not self._engaged
            elif key in GRIPS:
                self._engaged, self._gripper = True, GRIPS[key]
            elif key in (TURNS if self._joint else WAYS):
                self._engaged, self._key, self._until = True, key, now + HELD
        if not self._engaged:
            self._gripper = None
            return OperatorInput(self._t, False, verdict=verdict)
        key = self._key if now < self._until else ""
        if self._joint:
            qvel = np.zeros(self._n)
            qvel[self._joint - 1] = JOINT * TURNS.get(key, 0.0)
            return OperatorInput(self._t, True, qvel=qvel, gripper=self._gripper, verdict=verdict)
        tool = TOOL * np.array(WAYS.get(key, (0, 0, 0)), float)
        return OperatorInput(self._t, True, tool=tool, gripper=self._gripper, verdict=verdict)
