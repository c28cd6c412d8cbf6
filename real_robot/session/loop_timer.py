"""LoopTimer: the periods of a session, and when too many of them were missed."""

from __future__ import annotations

from real_robot.core.config import RunConfig
from real_robot.core.driver import Fault
from real_robot.core.pacing import Clock, Pacer
from real_robot.safety.filter import SafetyStop
from real_robot.safety.guarded_driver import FailureRate


class LoopTimer:
    """Wakes the loop once in every ``period`` s of ``clock``, within what ``config`` allows."""

    def __init__(self, period: float, clock: Clock, config: RunConfig):
        self.period = period
        self._clock, self._max_gap = clock, config.max_gap
        self.woke = self.now()  # s, when the newest period began
        self._missed = FailureRate(config.window, config.max_missed, period)
        self.start()

    def now(self) -> float:
        """The clock, s."""
        return self._clock.now_ns() * 1e-9

    def start(self) -> None:
        """Deadlines count from now."""
        self._pacer = Pacer(self.period, self._clock)
        self.skipped, self.late, self._behind = 0, 0.0, 0  # periods, s, periods

    def wake(self) -> float:
        """The clock, s, noted as the beginning of a period."""
        self.woke = self.now()
        return self.woke

    def wait(self, *, stopping: bool) -> int:
        """Waits until the next period.

        Args:
            stopping: The arm is on its way back to rest, which missed periods do not stop.

        Returns:
            The periods that were skipped.

        Raises:
            SafetyStop: Too many periods of a window were missed, or one delay was too long.
        """
        self.skipped, self.late = self._pacer.wait()
        self._behind = self._behind + self.skipped if self.skipped else 0
        if (missed := self._missed.add(self.now(), self.skipped)) and not stopping:
            raise SafetyStop(
                Fault.DEADLINE,
                f"the control loop missed {missed} periods in the last {self._missed.seconds:g} "
                f"s, at most {self._missed.most} are allowed; is another program using the "
                "processor?",
            )
        if self._behind * self.period > self._max_gap:
            raise SafetyStop(
                Fault.DEADLINE,
                f"the control loop fell {self._behind * self.period:.2f} s behind, at most "
                f"{self._max_gap} s is allowed; is another program using the processor?",
            )
        return self.skipped
