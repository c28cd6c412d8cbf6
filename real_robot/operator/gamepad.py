"""Gamepad: Linux's joystick interface (``/dev/input/js0``), read as it is; it needs no library.

A dead-man's button: the arm is the person's while it is held. The left stick moves the tool in the
plane, the right one up and down, the triggers close and open the gripper. Numbers of sticks and
buttons are those of the kernel's ``xpad`` driver, which most pads of that shape get.
"""

from __future__ import annotations

import os
import struct

import numpy as np

from real_robot.operator.devices import DeviceContext
from real_robot.operator.handover import OperatorInput

EVENT = struct.Struct("IhBB")  # ms, value, kind, number (linux/joystick.h)
BUTTON, AXIS, INITIAL = 1, 2, 0x80
AWAY, SIDE, HEIGHT = 1, 0, 4  # axes: left stick up and down, left and right; right stick
HOLD = (4, 5)  # either shoulder button: the dead-man's
CLOSE, OPEN = 2, 5  # axes of the triggers, at -32767 while nobody pulls them
ENDS = {0: "success", 1: "failure", 3: "discard"}  # A, B and Y
TOOL = 0.15  # m/s, with a stick pushed as far as it goes
DEAD = 0.1  # share of a stick's way that is none
PULLED = 0.2  # share of a trigger's way


class Gamepad:
    """The pad at ``where``; "": the first one.

    Raises:
        ValueError: There is no such pad.
    """

    def __init__(self, where: str, around: DeviceContext):
        self._path, self._now = where or "/dev/input/js0", around.now
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise ValueError(
                f"no gamepad at {self._path}: {error.strerror}; plug it in, or give its device: "
                "--human gamepad:/dev/input/jsN"
            ) from error
        self._axes: dict[int, float] = {}
        self._held: set[int] = set()
        self._t, self._gone = -np.inf, False
        self._verdict = ""
        self._gripper: float | None = None

    def read(self) -> OperatorInput:
        """Where the sticks are; a pad that is unplugged grows old."""
        self._take()
        if not self._gone:
            self._t = self._now()
        verdict, self._verdict = self._verdict, ""
        if not self._held & set(HOLD):
            self._gripper = None
            return OperatorInput(self._t, False, verdict=verdict)
        for axis, opening in ((CLOSE, 0.0), (OPEN, 1.0)):
            if (self._axes.get(axis, -1.0) + 1.0) / 2.0 > PULLED:
                self._gripper = opening
        tool = TOOL * np.array([-self._stick(AWAY), -self._stick(SIDE), -self._stick(HEIGHT)])
        return OperatorInput(self._t, True, tool=tool, gripper=self._gripper, verdict=verdict)

    def _stick(self, axis: int) -> float:
        value = self._axes.get(axis, 0.0)
        return 0.0 if abs(value) < DEAD else value

    def _take(self) -> None:
        """Every event that has come."""
        try:
            while events := os.read(self._file, 64 * EVENT.size):
                for _, value, kind, number in EVENT.iter_unpack(events):
                    self._event(value, kind, number)
            self._gone = True  # end of file
        except BlockingIOError:
            pass
        except OSError:  # it was unplugged
            self._gone = True

    def _event(self, value: int, kind: int, number: int) -> None:
        if kind & ~INITIAL == AXIS:
            self._axes[number] = value / 32767
        elif kind & ~INITIAL == BUTTON:
            (self._held.add if value else self._held.discard)(number)
            if value and not kind & INITIAL:
                self._verdict = ENDS.get(number, self._verdict)

    def close(self) -> None:
        """Lets go of the pad."""
        os.close(self._file)
