"""StalenessCheck: a target is made of measurements that are recent, and in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from real_robot.core.driver import Fault
from real_robot.safety.stages.stage import (
    CheckStage,
    FilterContext,
    JointTrajectoryPoint,
    SafetyStop,
)

_FUTURE = -0.001  # s: two clocks read one after the other; more than that is another clock


@dataclass(frozen=True)
class StalenessCheck(CheckStage):
    """Stops on an old measurement, one out of order, and a wish made of an old one."""

    name: ClassVar[str] = "provenance"
    max_age: float  # s, oldest measurement to act on
    max_wish_age: float  # s, oldest measurement that a wish may come from

    def start(self, moment: FilterContext) -> None:
        self._check(moment)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        self._check(moment)
        return motion, own

    def _check(self, moment: FilterContext) -> None:
        age = moment.now - moment.state.t_host
        if not _FUTURE <= age <= self.max_age:
            raise SafetyStop(
                Fault.STALE,
                f"the measurement is {age:.3f} s old, at most {self.max_age} s is allowed",
            )
        seq = moment.state.seq
        if moment.seq is not None and seq < moment.seq:
            raise SafetyStop(
                Fault.STALE, f"measurement number {seq} came after number {moment.seq}"
            )
        if moment.wish.t is not None:
            age = moment.now - moment.wish.t
            if not _FUTURE <= age <= self.max_wish_age:
                raise SafetyStop(
                    Fault.STALE,
                    f"the {moment.wish.source.value}'s target is based on a measurement of "
                    f"{age:.3f} s ago, at most {self.max_wish_age} s is allowed",
                )
