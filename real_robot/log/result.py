"""RunResult: what a run did, how punctual it was, what was limited and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from real_robot.core.driver import Fault
from real_robot.core.states import PhaseTransition
from real_robot.policy.runner import PolicyOutput

Array = np.ndarray


class Ended(Enum):
    """Why a run is over."""

    DONE = "done"  # its time was up
    INTERRUPTED = "interrupted"  # a person or signal asked
    SAFETY_STOP = "safety_stop"  # nothing safe to send; the arm itself is well
    FAULT = "fault"  # the device; latched until an operator clears it


class DurationPercentiles(NamedTuple):
    """Percentiles of a duration, s."""

    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: list[float]) -> DurationPercentiles:
        """The spread of ``values``, zeros if there are none."""
        return cls(*(float(q) for q in np.percentile(values or [0.0], [50, 99, 100])))


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of a policy on an arm; figures cover the RUN state, not ALIGN and PARK."""

    ended: Ended
    fault: Fault
    reason: str  # a sentence; "" when done
    ticks: int
    actions: int
    missed: int  # periods skipped
    retries: int  # ticks without a measurement, over the whole session
    latency: Mapping[
        str, DurationPercentiles
    ]  # lateness of waking; observe; policy; work: wake to sent
    limited: Mapping[str, Array]  # {stage: (n,) share of ticks in which it limited}
    limited_long: tuple[str, ...]  # joints that were limited without a break for long
    acks: Mapping[str, bool]  # {joint: confirmed to be limp}; {} if it was never stiff
    history: tuple[PhaseTransition, ...]
    notes: tuple[str, ...]  # problems while stopping
    verdict: str = ""  # success label by the operator or the question afterwards; "": none
    signal: str = ""  # newest signal or key that asked to stop, also while parking; "": none
    unlogged: str = ""  # what the log lacks and why; "": it is complete, or none was asked for


@dataclass
class RunMeter:
    """Counts of the ticks in RUN."""

    ticks: int = 0
    missed: int = 0
    late: list[float] = field(default_factory=list)  # s
    work: list[float] = field(default_factory=list)  # s
    observe: list[float] = field(default_factory=list)  # s, poses and observation
    policy: list[float] = field(default_factory=list)  # s, the network alone
    limited: dict[str, Array] = field(default_factory=dict)  # {stage: (n,) ticks}

    def add(
        self, flags: Mapping[str, Array], late: float, work: float, thought: PolicyOutput | None
    ) -> None:
        """One tick with limiter flags {stage: (n,) bool}; times in s."""
        self.ticks += 1
        self.late.append(late)
        self.work.append(work)
        if thought is not None:
            self.observe.append(thought.seen - thought.begun)
            self.policy.append(thought.done - thought.seen)
        for stage, flag in flags.items():
            self.limited[stage] = self.limited.get(stage, 0) + flag

    def spreads(self) -> dict[str, DurationPercentiles]:
        """{what: percentiles}, s."""
        timed = {
            "lateness": self.late,
            "observe": self.observe,
            "policy": self.policy,
            "work": self.work,
        }
        return {name: DurationPercentiles.of(values) for name, values in timed.items()}

    def shares(self) -> dict[str, Array]:
        """{stage: (n,) share of ticks}."""
        return {
            stage: count / self.ticks
            for stage, count in self.limited.items()
            if stage != "limited_long"
        }
