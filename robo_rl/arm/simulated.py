"""SimStage: a MuJoCo arm behind the driver's contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from real_robot import RealClock, SimDriver, SimPerception, VirtualClock
from robo_rl.arm.stage import Scene, under
from sims.task import Task


@dataclass
class SimStage:
    """A MuJoCo arm behind the driver's contract, with nothing in between."""

    task: Task[Any]
    realtime: bool = False
    latency: float = 0.0  # s, between a measurement or a target and its effect
    noise: float = 0.0  # m, of perceived positions
    name: str = "the simulated arm"

    @property
    def under(self) -> str:
        """The noise and the latency."""
        return under(self.noise, self.latency)

    def scene(self, seed: int) -> Scene:
        """A new simulation."""
        clock = RealClock() if self.realtime else VirtualClock(1000.0)
        half = self.latency / 2
        driver = SimDriver(self.task, clock=clock, command_delay=half, latency=half, seed=seed)
        self._scene = driver.scene
        eyes = SimPerception(driver.scene.poses, clock, noise=self.noise, seed=seed)
        return Scene(driver, eyes, clock)

    def begin(self) -> None:
        """The simulation's judge begins."""
        self._scene.begin()

    def success(self) -> bool:
        """The simulation's truth."""
        return self._scene.success()
