"""Dial: the operator's share of full speed, and the share that a warm device asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.driver import Fault
from real_robot.filters.stage import Moment, Motion, SafetyStop, Stage


@dataclass(frozen=True)
class Dial(Stage):
    """Shortens each step of a policy or a person to that share of it.

    A step counts from the command it was made at, so a policy at half speed takes the same way in
    twice the time. The bridge's own ramps have a speed of their own and are left alone.
    """

    name: ClassVar[str] = "dial"
    pressing: ClassVar[float] = np.inf  # as the operator wants it

    def step(self, motion: Motion, moment: Moment, own: Any) -> tuple[Motion, Any]:
        share = moment.wish.dial * moment.state.derate
        if not 0.0 < share <= 1.0:
            raise SafetyStop(Fault.CONFIG, f"share of full speed must be in (0, 1], got {share}")
        if share == 1.0:
            return motion, own
        return shortened(motion, moment, share), own


def shortened(motion: Motion, moment: Moment, share: float) -> Motion:
    """That ``share`` of a step, counted from the command it was made at."""
    origin = moment.last.qpos if moment.wish.origin is None else moment.wish.origin
    qpos = origin + share * (motion.qpos - origin)
    return motion._replace(qpos=qpos, qvel=share * motion.qvel)
