"""One run of a bundle on an emulated stage, on its compressed clock, to which something happens."""

from __future__ import annotations

from collections.abc import Callable

from real_robot import Phase, PolicyBundle, RunResult, run
from real_robot.core.states import PhaseTransition
from robo_rl.arm.stage import EpisodeSetup


class Ride:
    """One run of the bundle in ``scene``; ``strike`` is called in the 20th period of RUN."""

    def __init__(
        self,
        scene: EpisodeSetup,
        bundle: PolicyBundle,
        strike: Callable[[], object],
        steps: int = 40,
    ):
        self._strike, self._clock = strike, scene.clock
        self._ticks, self._running = 0, False
        self.struck = self.left = 0.0  # s of the arm: when it happened, when RUN was left
        self.result: RunResult = run(
            scene.driver,
            bundle,
            perception=scene.eyes,
            steps=steps,
            clock=scene.clock,
            stop=self._tick,
            on_transition=self._heard,
        )

    @property
    def delay(self) -> float:
        """s of the arm from what happened until RUN was left."""
        return self.left - self.struck

    def _now(self) -> float:
        return self._clock.now_ns() * 1e-9

    def _tick(self) -> bool:
        self._ticks += self._running
        if self._running and self._ticks == 20:
            self.struck = self._now()
            self._strike()
        return False

    def _heard(self, change: PhaseTransition) -> None:
        self._running = change.after is Phase.RUN
        if change.before is Phase.RUN:
            self.left = self._now()
