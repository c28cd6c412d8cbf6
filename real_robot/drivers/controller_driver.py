"""What drivers of arms with a controller of their own have in common.

Such an arm never goes limp: when no program moves it, its controller holds it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

from real_robot.core.arm_numbers import ArmNumbers
from real_robot.core.driver import Fault, RobotFault, RobotState
from real_robot.core.pacing import Clock, RealClock


class ControllerDriver:
    """The arm at ``host``; ``gripper`` says whether the maker's usual gripper is on it.

    A measurement that does not come within ``stale`` s is a fault, and one ``read`` waits for
    ``wait`` s of them. ``patience`` s is what the controller may take to begin or to end a motion.
    ``numbers`` are the arm's, where the caller has them already.
    """

    def __init__(
        self,
        host: str,
        *,
        robot: str,
        stale: float,
        patience: float,
        gripper: bool = True,
        clock: Clock | None = None,
        period: float | None = None,
        wait: float = math.inf,
        numbers: ArmNumbers | None = None,
    ):
        self._robot = numbers or ArmNumbers.of(robot)
        self._host, self._period = host, period or self._robot.period
        self._stale, self._wait, self._patience = stale, min(wait, stale), patience
        self._clock = clock or RealClock()
        self._has_gripper = gripper
        self._enabled = False
        self._seq = 0
        self._forget()

    def _forget(self) -> None:
        """A connection begins: nothing was measured yet."""
        self._seen = -math.inf  # s, timestamp of the last measurement handed out
        self._offset = math.inf  # s, host's clock less the controller's, as measured best
        self._came = time.monotonic()  # s, when the last measurement was there
        self._last: RobotState | None = None

    def _note_measurement(self, stamp: float) -> None:
        """A measurement of the controller's time ``stamp`` s has come: the clocks' difference."""
        now = self._clock.now_ns() * 1e-9
        # One that came faster than all others tells the difference best; it may grow by 100 ppm, as
        # clocks drift.
        self._offset = min(now - stamp, self._offset + 1e-4 * max(0.0, stamp - self._seen))
        if stamp < self._seen:  # the controller was restarted
            self._offset = now - stamp
        self._seen = stamp
        self._seq += 1

    @contextlib.contextmanager
    def _connecting(self) -> Iterator[None]:
        """What goes wrong inside is a lost connection, or a device that is set up otherwise."""
        try:
            yield
        except (OSError, ValueError) as error:
            fault = Fault.CONFIG if isinstance(error, ValueError) else Fault.DISCONNECTED
            raise RobotFault(fault, f"{self._host}: {error}") from error

    def joints_with_torque(self) -> tuple[str, ...]:
        """Returns no joint: the arm's controller supervises them all."""
        return ()
