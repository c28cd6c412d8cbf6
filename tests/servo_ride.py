"""One run of a bundle on an emulated arm of servos, to which something happens on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arms import Arm

from real_robot import Phase, PolicyBundle, RunResult, SimPerception, run

GOOD = "CONNECTED ARMED ALIGN RUN HOLD PARK RELAX CONNECTED OFFLINE"


class Ride:
    """One run of the bundle; ``act`` happens in the period ``at`` of RUN, or in every one."""

    def __init__(
        self,
        arm: Arm,
        bundle: PolicyBundle,
        act: Callable[[], object],
        at: int = 20,
        every: bool = False,
        phase: str | None = None,  # or once this state is reached
        steps: int = 30,
    ):
        self.arm, self.struck, self.stopped = arm, 0.0, 0.0
        self._every, self._phase, self.steps = every, phase, steps
        self._act, self._at, self._ticks, self._running = act, at, 0, False
        emulator = arm.emulator
        self.success = False

        def poses() -> dict[str, Any]:
            with emulator.lock:
                return emulator.physics.scene.poses()

        self.result: RunResult = run(
            arm.driver,
            bundle,
            perception=SimPerception(poses, arm.clock, noise=0.001),
            steps=self.steps,
            clock=arm.clock,
            stop=self._tick,
            on_transition=self._heard,
        )

    def _now(self) -> float:
        return self.arm.clock.now_ns() * 1e-9

    def _tick(self) -> bool:
        if self._running:
            self._ticks += 1
            if self._ticks == self._at:
                self.struck = self._now()
            if self._ticks == self._at or self._every:
                self._act()
        return False

    def _heard(self, change: Any) -> None:
        self._running = change.after is Phase.RUN
        if change.after.name == self._phase:
            self._act()
        if change.before is Phase.RUN:
            self.stopped = self._now()
            with self.arm.emulator.lock:
                self.success = self.arm.emulator.success()

    @property
    def phases(self) -> str:
        return " ".join(t.after.name for t in self.result.history)

    @property
    def delay(self) -> float:
        """Arm's own s from the fault until the policy had been stopped."""
        return self.stopped - self.struck


def torque(arm: Arm) -> list[int]:
    return [servo.get("torque_enable") for servo in arm.emulator.bus.servos]
