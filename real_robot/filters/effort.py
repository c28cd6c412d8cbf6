"""Effort: an arm that pushes hard without moving, or is hit, is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from real_robot.driver import Fault
from real_robot.filters.stage import Array, Check, Moment, Motion, SafetyStop

_HARD = 0.9  # share of the limit that counts as pushing hard
_STILL = 0.05  # rad/s, a joint slower than this does not move
_WANTED = 0.02  # rad between target and joint: it is told to move
_SPIKE = 1.1  # of the limit: more than the motor itself can do comes from outside


@dataclass(frozen=True, eq=False)
class Effort(Check):
    """Stops on a stall of ``seconds``, and at once on a spike."""

    name: ClassVar[str] = "effort"
    joints: tuple[str, ...]
    effort: Array  # (n,) N m that the joints can do
    seconds: float = 0.5  # s

    def start(self, moment: Moment) -> Array:
        """(n,) s since when each joint stalls, inf where it does not."""
        return np.full(len(self.joints), np.inf)

    def step(self, motion: Motion, moment: Moment, own: Array) -> tuple[Motion, Array]:
        state = moment.state
        pushed = np.abs(state.effort) / self.effort
        if pushed.max() > _SPIKE:
            i = int(pushed.argmax())
            raise SafetyStop(
                Fault.COLLISION,
                f"{self.joints[i]} measures {state.effort[i]:.1f} N m, the motor can do "
                f"{self.effort[i]:.1f} N m: was it hit?",
            )
        wanted = np.abs(motion.qpos - state.qpos) > _WANTED
        stalled = (pushed > _HARD) & (np.abs(state.qvel) < _STILL) & wanted
        since = np.where(stalled, np.minimum(own, moment.now), np.inf)
        if (moment.now - since).max() > self.seconds:
            i = int((moment.now - since).argmax())
            raise SafetyStop(
                Fault.STALL,
                f"{self.joints[i]} has pushed with {state.effort[i]:.1f} N m for "
                f"{self.seconds} s without moving: it is blocked",
            )
        return motion, since
