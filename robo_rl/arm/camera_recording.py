"""CameraRecording: the first camera of a task's scene, for logs and for rewards that look at
pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from real_robot.core.pacing import Clock
from real_robot.emulators.camera import EmulatedCamera, PlainScene
from real_robot.perception.base import Perception, Pose
from real_robot.perception.camera import RecordedCamera
from sims.core.task import Task

Array = np.ndarray


class CameraRecording:
    """Perception beside which a camera is read, as often as a policy acts.

    ``state`` returns the scene behind the arm, (row (nstate,), t s).
    """

    def __init__(self, task: Task[Any], state: Callable[[], tuple[Array, float]]):
        self._drawn = EmulatedCamera(PlainScene.of(task), state)
        self.camera = RecordedCamera(self._drawn, task.cameras[0].name)
        self._period, self._taken = task.control_dt, -np.inf

    def with_recording(self, eyes: Perception, clock: Clock) -> Perception:
        """``eyes``, whose every look has a picture taken where one is due."""
        self._eyes, self._clock, self._taken = eyes, clock, -np.inf
        return self

    def read(self) -> Mapping[str, Pose]:
        """{entity: newest pose}."""
        now = self._clock.now_ns() * 1e-9
        if now - self._taken > self._period - 1e-6:
            self._taken = now
            self.camera.read()
        return self._eyes.read()

    def close(self) -> None:
        """Frees the renderer."""
        self._drawn.close()
