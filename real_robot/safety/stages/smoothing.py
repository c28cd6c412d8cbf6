"""Smoothing: the low-pass that a bundle says its policy was trained with."""

from __future__ import annotations

import math
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
    source: TargetSource
    qpos: Array  # (n,) rad, the smoothed target


@dataclass(frozen=True)
class Smoothing(FilterStage):
    """A first-order low-pass on a policy's targets.

    It belongs to the policy, so it runs only where the policy was trained behind it: the bundle
    says so. Targets of other sources are not smoothed.
    """

    name: ClassVar[str] = "smoothing"
    pressing: ClassVar[float] = np.inf  # the policy knows it
    seconds: float = 0.0  # time constant; 0: none
    period: float = 0.01  # s

    def start(self, moment: FilterContext) -> _Own:
        return _Own(TargetSource.BRIDGE, moment.last.qpos)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: _Own
    ) -> tuple[JointTrajectoryPoint, _Own]:
        source = moment.wish.source
        if self.seconds == 0.0 or source is not TargetSource.POLICY:
            return motion, _Own(source, motion.qpos)
        # Who has just been given the arm begins where it is.
        qpos = own.qpos if own.source is source else moment.last.qpos
        qpos = qpos + (1.0 - math.exp(-self.period / self.seconds)) * (motion.qpos - qpos)
        return motion._replace(qpos=qpos), _Own(source, qpos)
