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

from real_robot.core.driver import Description, RobotDriver
from real_robot.core.pacing import Clock
from real_robot.operator.handover import Operator, OperatorInput
from real_robot.perception.base import Perception
from sims.core.task import Task
from sims.utils.did_you_mean import unknown_name_error

Array = np.ndarray

HUMANS = {
    "keyboard": "real_robot.operator.keyboard:Keyboard",
    "gamepad": "real_robot.operator.gamepad:Gamepad",
    "leader": "real_robot.operator.leader_arm:LeaderArm",
    "scripted": "real_robot.operator.scripted:make_scripted",
}
LIVE = ("keyboard", "gamepad", "leader")  # people, who need the wall's clock
VERDICT_KEYS = {"y": "success", "n": "failure", "x": "discard"}


@dataclass(frozen=True, kw_only=True)
class DeviceContext:
    """What a device may look at."""

    robot: Description
    clock: Clock
    typed: Callable[[], bytes] | None = None  # keys pressed since the last call; None: no terminal
    alive: Callable[[], bool] = lambda: True  # whether a terminal reads the keys
    task: Task[Any] | None = None
    driver: RobotDriver | None = None
    eyes: Perception | None = None
    seed: int = 0

    def now(self) -> float:
        """s."""
        return self.clock.now_ns() * 1e-9


def parse_device(text: str) -> tuple[str, str]:
    """(name, where) of ``NAME`` or ``NAME:WHERE``; ValueError lists the known names."""
    name, _, where = text.partition(":")
    if name not in HUMANS:
        raise unknown_name_error(f"unknown operator device {name!r}", name, HUMANS)
    if name in ("leader", "scripted") and not where:
        what = "PORT" if name == "leader" else "FILE, or scripted:expert"
        raise ValueError(f"--human {name} needs an address: --human {name}:{what}")
    return name, where


def make(text: str, around: DeviceContext, *, taken: bool = False) -> Operator:
    """The device that ``text`` names; ``taken``: it has the arm without t being pressed."""
    name, where = parse_device(text)
    module, kind = HUMANS[name].split(":")
    device = getattr(importlib.import_module(module), kind)(where, around)
    if around.typed is None or name == "keyboard":  # which hears its keys itself
        return device
    return ClutchedDevice(device, around.typed, taken or name != "leader")


class ClutchedDevice:
    """A device, and beside it the keys of whoever sits at the terminal."""

    def __init__(self, device: Operator, typed: Callable[[], bytes], taken: bool):
        self._device, self._typed, self._taken = device, typed, taken
        self._verdict = ""

    def read(self) -> OperatorInput | None:
        """What the device says, unless a key says otherwise."""
        for key in self._typed().decode("latin-1"):
            self._taken ^= key == "t"
            self._verdict = VERDICT_KEYS.get(key, self._verdict)
        hand, verdict = self._device.read(), self._verdict
        if hand is None and not verdict:
            return None
        self._verdict = ""
        hand = hand or OperatorInput(-math.inf, False)
        engaged, verdict = hand.engaged and self._taken, verdict or hand.verdict
        return replace(hand, engaged=engaged, verdict=verdict)

    def close(self) -> None:
        """Lets go of the device."""
        if hasattr(self._device, "close"):
            self._device.close()
