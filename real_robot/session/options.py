"""RunOptions: the settings of ``real_robot.run`` besides the arm and the bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from real_robot.core.config import RunConfig
from real_robot.core.driver import Fault
from real_robot.core.pacing import Clock, RealClock
from real_robot.core.states import PhaseTransition
from real_robot.log.recorder import Tick
from real_robot.log.result import RunResult
from real_robot.log.tape import Tape, TapePlayer
from real_robot.operator.handover import Operator, RunVerdict
from real_robot.perception.base import Perception
from real_robot.perception.camera import RecordedCamera
from real_robot.policy.process import PolicyProcess
from real_robot.safety.fault_latch import FaultLatch
from sims.core.task import Task


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Settings of one run: its scene and operator, its limits, and where results go.

    Raises:
        ValueError: ``steps`` and ``seconds`` are both given, or one is not above 0.
    """

    # What runs, and for how long: until asked to stop where neither steps nor seconds are given.
    task: Task[Any] | None = None  # None: made from the manifest
    perception: Perception | None = None
    steps: int | None = None  # actions
    seconds: float | None = None
    config: RunConfig = field(default_factory=RunConfig)
    clock: Clock = field(default_factory=RealClock)
    # The policy is asked and its targets are filtered and logged, but the arm holds still.
    shadow: bool = False

    # Who has a say.
    policy: PolicyProcess | None = None  # answers in place of the bundle, from its own process
    # May take the arm, give it back, and end the run with a verdict; meanwhile the policy is asked
    # all the same, for the log.
    human: Operator | None = None
    dial: Callable[[], float] = lambda: 1.0  # every period: the share of full speed
    # Asked every period, on the way to the park pose too, where only ``Fault.ESTOP`` counts: it
    # latches, and the arm is relaxed where it stands.
    stop: Callable[[], bool | Fault] | None = None
    latch: FaultLatch | None = None  # keeps a fault that latches; one that is kept refuses the run

    # Results.
    log: str | Path | None = None  # MCAP file to write
    film: Sequence[RecordedCamera] = ()  # cameras whose pictures the log gets
    judge: Callable[[RunResult], RunVerdict] | None = None  # asked once the arm is limp
    on_transition: Callable[[PhaseTransition], None] | None = None  # every change of state
    # Every tick, and the ages (s) of the poses acted on, both within the loop.
    watch: Callable[[Tick, Mapping[str, float]], None] | None = None
    tape: Tape | TapePlayer | None = None  # ``replay``'s

    def __post_init__(self) -> None:
        steps, seconds = self.steps, self.seconds
        if steps is not None and seconds is not None:
            raise ValueError(f"give steps or seconds, not both; got {steps} and {seconds} s")
        if not all(given > 0 for given in (steps, seconds) if given is not None):
            raise ValueError(f"steps and seconds must be above 0, got {steps} and {seconds} s")
