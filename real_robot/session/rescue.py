"""Rescue: an arm with torque whose bridge is gone is brought to rest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from real_robot.core.clearance import Clearance
from real_robot.core.config import RunConfig
from real_robot.core.driver import Description, RobotDriver
from real_robot.core.pacing import Clock, RealClock
from real_robot.core.stop_signals import StopSignals
from real_robot.log.result import RunResult
from real_robot.safety.fault_latch import FaultLatch
from real_robot.safety.filter import SafetyFilter
from real_robot.safety.guarded_driver import GuardedDriver
from real_robot.session.session import Session, SessionCallbacks
from real_robot.session.stop_requests import StopRequests


def rescue(
    driver: RobotDriver,
    park: Sequence[float] = (),
    config: RunConfig | None = None,
    latch: FaultLatch | None = None,
    clock: Clock | None = None,
    clearance: Clearance | None = None,
    heeds: bool = False,
) -> RunResult:
    """Holds, parks and relaxes an arm with torque whose bridge is gone.

    Args:
        driver: The arm's, connected.
        park: (J,) rad, where to park; empty: the arm is relaxed where it stands.
        config: What the way allows.
        latch: Keeps a fault that latches on the way.
        clock: What the loop is timed by; None: the host's.
        clearance: Keeps the arm clear of the table and itself on the way; where that is not
            possible it is relaxed where it stands.
        heeds: Ctrl-C, SIGTERM and SIGHUP relax the arm where it stands. Else they do nothing,
            since no other process would bring the arm to rest.

    Returns:
        How it ended, and which joints let go.
    """
    clock, config = clock or RealClock(), config or RunConfig()

    def limits(robot: Description) -> SafetyFilter:
        return SafetyFilter.build(
            robot,
            clearance=clearance,
            margin=config.margin,
            lag=config.lag,
            tool_speed=config.tool_speed,
            stop_s=config.stop_s or math.inf,
        )

    arm = GuardedDriver(driver, limits(driver.describe()), clock, config)
    signals = StopSignals()
    requests = StopRequests(signals)
    if heeds:
        requests = StopRequests(signals, heard=lambda: (signals.count, signals.last), borne=0)
    callbacks = SessionCallbacks(requests=requests, limits=limits, latch=latch)
    session = Session(arm, None, park, config, clock, callbacks)
    return dataclasses.replace(session.result(*session.rescue()), signal=signals.last)
