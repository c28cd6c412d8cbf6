"""Effort: an arm that pushes hard without moving, or is hit, is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from real_robot.core.driver import Fault
from real_robot.safety.stages.stage import (
    Array,
    CheckStage,
    FilterContext,
    JointTrajectoryPoint,
    SafetyStop,
)
from sims.robots.robot import PUSH

_HARD = 0.9  # share of the limit that counts as pushing hard
_STILL = 0.05  # rad/s, a joint slower than this does not move
_WANTED = 0.02  # rad between target and joint: it is told to move
_PLACE = 0.03  # rad, a joint that leaves its place by more is not blocked
_PAUSE = 1 / 6  # of the time allowed: one that was eased so long and pushes again has gone on


class _Push(NamedTuple):
    """Of each joint (n,): since when and where it pushes, and when it last did."""

    since: Array  # s, inf where it does not
    place: Array  # rad
    last: Array  # s


@dataclass(frozen=True, eq=False)
class Effort(CheckStage):
    """Stops on a stall of ``seconds``, and at once on a hit where the arm can tell one."""

    name: ClassVar[str] = "effort"
    joints: tuple[str, ...]
    effort: Array  # (n,) N m that the joints can do
    seconds: Array  # (n,) s

    def start(self, moment: FilterContext) -> _Push:
        never = np.full(len(self.joints), np.inf)
        return _Push(never, moment.state.qpos, -never)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: _Push
    ) -> tuple[JointTrajectoryPoint, _Push]:
        """Lets the motion pass.

        Raises:
            SafetyStop: A joint has pushed for too long, or was hit.
        """
        state, now = moment.state, moment.now
        if state.outside is not None:
            self._check_hit(state.outside)
        wanted = np.abs(motion.qpos - state.qpos) > _WANTED
        hard = (np.abs(state.effort) > _HARD * self.effort) & (np.abs(state.qvel) < _STILL) & wanted
        stays = (np.abs(state.qpos - own.place) < _PLACE) & (now - own.last < _PAUSE * self.seconds)
        since = np.where(stays, own.since, np.where(hard, now, np.inf))
        stalled = np.where(hard, now - since, 0.0) - self.seconds
        if stalled.max() > 0.0:
            i = int(stalled.argmax())
            raise SafetyStop(
                Fault.STALL,
                f"{self.joints[i]} has pushed with {state.effort[i]:.1f} N m for "
                f"{self.seconds[i]:g} s without moving: it is blocked",
            )
        place = np.where(stays, own.place, state.qpos)
        return motion, _Push(since, place, np.where(hard, now, own.last))

    def _check_hit(self, outside: Array) -> None:
        share = np.abs(outside) / self.effort
        if share.max() > PUSH:
            i = int(share.argmax())
            raise SafetyStop(
                Fault.COLLISION,
                f"external torque of {outside[i]:.1f} N m on {self.joints[i]}, more than "
                f"{PUSH:g} of its limit of {self.effort[i]:.1f} N m: did it collide?",
            )
