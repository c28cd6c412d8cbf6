"""Devices by which a person drives an arm, one file each: ``HUMANS`` names what makes them.

``--human NAME`` or ``NAME:WHERE``. Keys pressed in the panel count for every device: t takes the
arm and gives it back, y, n and x end the episode as a success, a failure, or to be thrown away.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from real_robot.driver import Description, RobotDriver
from real_robot.human import Hand, Human
from real_robot.pacing import Clock
from real_robot.perception import Perception
from sims.names import unknown
from sims.task import Task

Array = np.ndarray

HUMANS = {
    "keyboard": "real_robot.humans.keyboard:Keyboard",
    "gamepad": "real_robot.humans.gamepad:Gamepad",
    "leader": "real_robot.humans.leader:Leader",
    "scripted": "real_robot.humans.scripted:scripted",
}
LIVE = ("keyboard", "gamepad", "leader")  # people, who need the wall's clock
VERDICT_KEYS = {"y": "success", "n": "failure", "x": "discard"}


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a device may look at."""

    robot: Description
    clock: Clock
    typed: Callable[[], bytes] | None = None  # keys pressed since last asked; None: no terminal
    alive: Callable[[], bool] = lambda: True  # whether somebody listens to keys
    task: Task[Any] | None = None
    driver: RobotDriver | None = None
    eyes: Perception | None = None
    seed: int = 0

    def now(self) -> float:
        """s."""
        return self.clock.now_ns() * 1e-9


def named(text: str) -> tuple[str, str]:
    """(name, where) of ``NAME`` or ``NAME:WHERE``; ValueError lists the known names."""
    name, _, where = text.partition(":")
    if name not in HUMANS:
        raise unknown(f"no device {name!r} for a person", name, HUMANS)
    if name in ("leader", "scripted") and not where:
        what = "PORT" if name == "leader" else "FILE, or scripted:expert"
        raise ValueError(f"--human {name} needs to be told where: {name}:{what}")
    return name, where


def make(text: str, around: Around, *, taken: bool = False) -> Human:
    """The device that ``text`` names; ``taken``: it has the arm without t being pressed."""
    name, where = named(text)
    module, kind = HUMANS[name].split(":")
    device = getattr(importlib.import_module(module), kind)(where, around)
    if around.typed is None or name == "keyboard":  # which hears its keys itself
        return device
    return Clutched(device, around.typed, taken or name != "leader")


class Clutched:
    """A device, and beside it the keys of whoever sits at the terminal."""

    def __init__(self, device: Human, typed: Callable[[], bytes], taken: bool):
        self._device, self._typed, self._taken = device, typed, taken
        self._verdict = ""

    def read(self) -> Hand | None:
        """What the device says, unless a key says otherwise."""
        for key in self._typed().decode("latin-1"):
            self._taken ^= key == "t"
            self._verdict = VERDICT_KEYS.get(key, self._verdict)
        hand, verdict = self._device.read(), self._verdict
        if hand is None and not verdict:
            return None
        self._verdict = ""
        hand = hand or Hand(-math.inf, False)
        engaged, verdict = hand.engaged and self._taken, verdict or hand.verdict
        return replace(hand, engaged=engaged, verdict=verdict)

    def close(self) -> None:
        """Lets go of the device."""
        if hasattr(self._device, "close"):
            self._device.close()
