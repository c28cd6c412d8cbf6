"""Perception: where objects are, apart from the driver, with the time at which it was true."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import mujoco
import numpy as np

from real_robot.core.pacing import Clock

Array = np.ndarray


class Pose(NamedTuple):
    """An object's pose in the robot's world frame."""

    pos: Array  # (3,) m
    quat: Array  # (4,) w x y z
    t: float  # s, monotonic: when it was seen, not when it was computed


class Perception(Protocol):
    """A source of object poses; returns at once with the newest it has."""

    def read(self) -> Mapping[str, Pose]:
        """{entity: newest pose}; an entity that was never seen is absent."""
        ...


class MergedPerception:
    """Several sources as one: of each object the pose that was seen last."""

    def __init__(self, sources: Sequence[Perception]):
        self._sources = tuple(sources)

    def read(self) -> Mapping[str, Pose]:
        """{entity: newest pose}."""
        newest: dict[str, Pose] = {}
        for source in self._sources:
            for name, pose in source.read().items():
                if name not in newest or pose.t > newest[name].t:
                    newest[name] = pose
        return newest


class SimPerception:
    """The true poses of a simulated scene, made as bad as a camera's.

    ``poses`` returns the truth as {entity: (pos (3,), quat (4,))}. Latency is rounded up to whole
    calls of ``read``; a pose that drops out stays what it was and grows old.
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
        bias: float = 0.0,  # m, by which each object is off as long as it is watched
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
        """{entity: newest pose}."""
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
