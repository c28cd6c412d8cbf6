"""One run of a bundle on an emulated arm in real time, to which something happens on the way."""

from __future__ import annotations

import time

from arms import Arm

from real_robot import Phase, PolicyBundle, RunConfig, RunResult, run
from robo_rl.arm.connected import ControlPoses


class Ride:
    """One run of the bundle; ``call`` of the emulator happens in the period ``at`` of RUN."""

    def __init__(
        self,
        arm: Arm,
        bundle: PolicyBundle,
        call: str = "",
        at: int = 60,
        phase: Phase | None = None,  # or once this state is reached
        before: bool = False,  # or before it all
        **given: object,
    ):
        self._arm, self._call, self._given, self._at = arm, call, given, at
        self._phase = phase
        self._ticks, self._running, self.struck, self.stopped = 0, False, 0.0, 0.0
        self.success = False
        arm.control.call("reset", seed=1)
        eyes = ControlPoses(arm.control_port)
        if before:
            self._strike()
        try:
            self.result: RunResult = run(
                arm.driver,
                bundle,
                perception=eyes,
                steps=50,
                # A starved machine is not what these tests are about.
                config=RunConfig(
                    realtime=True,
                    max_age=2.0,
                    max_pose_age=3.0,
                    max_gap=5.0,
                    max_missed=1.0,
                    settle=20.0,
                ),
                stop=self._tick,
                on_transition=self._heard,
            )
        finally:
            eyes.close()
        self.returned = time.monotonic()

    def _strike(self) -> None:
        self._arm.control.call(self._call, **self._given)
        self.struck = time.monotonic()

    def _tick(self) -> bool:
        if self._running and self._call:
            self._ticks += 1
            if self._ticks == self._at:
                self._strike()
        return False

    def _heard(self, change: object) -> None:
        self._running = change.after is Phase.RUN
        if change.after is self._phase:
            self._strike()
        if change.before is Phase.RUN:
            self.stopped = time.monotonic()
            self.success = self._arm.control.call("success")

    @property
    def delay(self) -> float:
        return self.stopped - self.struck
