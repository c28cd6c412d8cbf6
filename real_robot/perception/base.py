"""Perception: where objects are, apart from the driver, with the time at which it was true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

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
