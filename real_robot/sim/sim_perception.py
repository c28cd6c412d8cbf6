"""SimPerception: object poses of a simulated scene with noise, latency, dropout and bias."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import mujoco
import numpy as np

from real_robot.core.pacing import Clock
from real_robot.perception.base import Pose

Array = np.ndarray


class SimPerception:
    """A perception that adds a camera's errors to the true poses of a simulated scene.

    ``poses`` returns the truth as {entity: (pos (3,), quat (4,))}. Latency is rounded up to whole
    calls of ``read``; an object that is not seen in a frame keeps its last pose and time.
    """

    def __init__(
        self,
        poses: Callable[[], Mapping[str, tuple[Array, Array]]],
        clock: Clock,
        *,
        noise: float = 0.0,  # m, standard deviation of each coordinate
        angle_noise: float = 0.0,  # rad, standard deviation of a turn about a random axis
        latency: float = 0.0,  # s between seeing and answering
        dropout: float = 0.0,  # chance that an object is not seen in a frame
        bias: float = 0.0,  # m, a constant error of each object in a random direction
        offset: Sequence[float] = (0.0, 0.0, 0.0),  # m, by which every position is off
        seed: int = 0,
    ):
        self._poses, self._clock = poses, clock
        self._noise, self._angle_noise = noise, angle_noise
        self._latency, self._dropout, self._offset = latency, dropout, np.array(offset)
        self._rng = np.random.default_rng(seed)
        self._bias, self._sides = bias, np.random.default_rng((seed, 1))  # apart from the noise
        self._off: dict[str, Array] = {}  # {entity: (3,) m}
        self._waiting: deque[tuple[float, dict[str, Pose]]] = deque()
        self._known: dict[str, Pose] = {}

    def read(self) -> Mapping[str, Pose]:
        """Returns {entity: newest pose}; an entity that was never seen is absent."""
        now = self._clock.now_ns() * 1e-9
        seen = {
            name: Pose(self._near(name, pos), self._turned(quat), now)
            for name, (pos, quat) in self._poses().items()
            if self._rng.random() >= self._dropout
        }
        self._waiting.append((now, seen))
        while self._waiting and self._waiting[0][0] <= now - self._latency + 1e-9:
            self._known.update(self._waiting.popleft()[1])
        return dict(self._known)

    def _near(self, name: str, pos: Array) -> Array:
        if name not in self._off:
            side = self._sides.normal(size=3)
            self._off[name] = self._offset + self._bias * side / np.linalg.norm(side)
        return pos + self._off[name] + self._rng.normal(0.0, self._noise, 3)

    def _turned(self, quat: Array) -> Array:
        axis = self._rng.normal(size=3)
        turn, out = np.empty(4), np.empty(4)
        angle = self._rng.normal(0.0, self._angle_noise)
        mujoco.mju_axisAngle2Quat(turn, axis / np.linalg.norm(axis), angle)
        mujoco.mju_mulQuat(out, turn, np.asarray(quat, float))
        return out
