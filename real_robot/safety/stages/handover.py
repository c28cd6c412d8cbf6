"""Handover: when another takes the arm, targets go on from the last command, without a bump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from real_robot.safety.stages.stage import (
    Array,
    FilterContext,
    FilterStage,
    JointTrajectoryPoint,
    TargetSource,
)


class _Own(NamedTuple):
    source: TargetSource  # of the last target
    offset: Array  # (n,) rad between the last command and the new source's first target
    since: float  # s


@dataclass(frozen=True)
class Handover(FilterStage):
    """Shifts the targets of a new source so that its first equals the last command.

    The shift fades over ``seconds``; targets are then unchanged. A target that already counts from
    the last command, as a policy of small steps gives it, is not shifted at all.
    """

    name: ClassVar[str] = "handover"
    pressing: ClassVar[float] = np.inf  # it ends by itself
    seconds: float = 1.0

    def start(self, moment: FilterContext) -> _Own:
        return _Own(TargetSource.BRIDGE, np.zeros_like(moment.last.qpos), moment.now)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: _Own
    ) -> tuple[JointTrajectoryPoint, _Own]:
        if moment.wish.source is not own.source:
            counts_from_there = moment.wish.origin is not None
            jump = moment.last.qpos - motion.qpos
            offset = np.zeros_like(jump) if counts_from_there else jump
            own = _Own(moment.wish.source, offset, moment.now)
        left = 1.0 - (moment.now - own.since) / self.seconds
        if left <= 0.0 or not own.offset.any():
            return motion, own
        return motion._replace(qpos=motion.qpos + left * own.offset), own
