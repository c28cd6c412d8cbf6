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
    """Stops on an old measurement, one out of order, and a target computed from an old one."""

    name: ClassVar[str] = "provenance"
    max_age: float  # s, oldest measurement to act on
    max_wish_age: float  # s, oldest measurement that a target may come from

    def start(self, moment: FilterContext) -> None:
        self._check(moment)

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        self._check(moment)
        return motion, own

    def _check(self, moment: FilterContext) -> None:
        _check_age("measurement", moment.now - moment.state.t_host, self.max_age)
        seq = moment.state.seq
        if moment.seq is not None and seq < moment.seq:
            raise SafetyStop(
                Fault.STALE, f"measurement number {seq} came after number {moment.seq}"
            )
        if moment.wish.t is not None:
            what = f"measurement behind the {moment.wish.source.value}'s target"
            _check_age(what, moment.now - moment.wish.t, self.max_wish_age)


def _check_age(what: str, age: float, most: float) -> None:
    if age < _FUTURE:
        raise SafetyStop(
            Fault.STALE,
            f"the {what} is stamped {-age:.3f} s in the future: its clock is not the loop's",
        )
    if not age <= most:  # nan, too
        raise SafetyStop(Fault.STALE, f"the {what} is {age:.3f} s old, at most {most} s is allowed")
