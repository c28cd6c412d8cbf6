"""StopRequests: Ctrl-C, other signals and the operator's stop, as one session heeds them."""

from __future__ import annotations

from collections.abc import Callable

from real_robot.core.driver import Fault
from real_robot.core.stop_signals import StopSignals
from real_robot.safety.filter import SafetyStop


class Interrupted(Exception):
    """Someone asked the loop to stop."""


class StopRequests:
    """Who may stop the loop.

    Args:
        signals: The signals of this process; entered and left with the session.
        heard: How many signals came so far and the name of the last, from ``signals`` or a tape.
        stop: The operator's stop, asked every period.
        borne: How many signals are borne on the way back to rest before they stop that too.
    """

    def __init__(
        self,
        signals: StopSignals,
        *,
        heard: Callable[[], tuple[int, str]] = lambda: (0, ""),
        stop: Callable[[], bool | Fault] | None = None,
        borne: int = 1,
    ):
        self.signals = signals
        self._heard, self._stop = heard, stop
        self._borne, self._borne_later = 0, borne
        self.stopping = False  # the arm is on its way back to rest
        self.asked = False  # to stop, when the arm was on its way back already

    def come_to_rest(self) -> None:
        """From now on the arm is on its way back to rest."""
        self._borne, self.stopping = self._borne_later, True

    def check(self) -> None:
        """Returns if there is no request to stop the loop.

        Raises:
            Interrupted: A signal came, or the operator asked to stop.
            SafetyStop: The operator's emergency stop.
        """
        count, last = self._heard()
        if count > self._borne:
            raise Interrupted(last)
        if self._stop is not None and (asked := self._stop()):
            if asked is Fault.ESTOP:
                raise SafetyStop(Fault.ESTOP, "the operator's emergency stop")
            if not self._borne:
                raise Interrupted("asked to stop")
            self.asked = True
