"""SimStage: a MuJoCo arm behind the driver's contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from real_robot import RealClock, SimDriver, VirtualClock
from real_robot.perception.camera import RecordedCamera
from robo_rl.arm.camera_recording import CameraRecording
from robo_rl.arm.stage import EpisodeSetup
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from sims.core.task import Task


@dataclass
class SimStage:
    """A MuJoCo arm behind the driver's contract, with nothing in between."""

    task: Task[Any]
    realtime: bool = False
    conditions: ArmConditions = PLAIN
    filmed: bool = False  # record frames of the task's first camera at every control step
    name: str = "the simulated arm"

    def __post_init__(self) -> None:
        self._filming = CameraRecording(self.task, self._state) if self.filmed else None

    @property
    def film(self) -> list[RecordedCamera]:
        """Its camera, if it has one."""
        return [self._filming.camera] if self._filming else []

    @property
    def under(self) -> str:
        """What the policy is put to, for people."""
        return self.conditions.known_text()

    def scene(self, seed: int) -> EpisodeSetup:
        """A new simulation."""
        clock = RealClock() if self.realtime else VirtualClock(1000.0)
        half = self.conditions.latency / 2
        driver = SimDriver(
            self.task,
            clock=clock,
            command_delay=half,
            latency=half,
            stiffness=self.conditions.stiffness,
            seed=seed,
        )
        self._scene = driver.scene
        self._clock, poses = clock, driver.scene.poses
        eyes = self.conditions.perception(poses, clock, seed)
        if self._filming:
            eyes = self._filming.with_recording(eyes, clock)
        return EpisodeSetup(driver, eyes, clock, self.conditions.operator_view(poses, clock, seed))

    def _state(self) -> tuple[np.ndarray, float]:
        return self._scene.state(), self._clock.now_ns() * 1e-9

    def begin(self) -> None:
        """The simulation's judge begins."""
        self._scene.begin()

    def success(self) -> bool:
        """The simulation's truth."""
        return self._scene.success()

    def close(self) -> None:
        """The camera is let go of."""
        if self._filming:
            self._filming.close()
