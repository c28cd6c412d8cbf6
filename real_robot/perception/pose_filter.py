"""PoseKalmanFilter: the poses that a perception tells, filtered as ``sims/core/pose_filter.py``
says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from real_robot.perception.base import Pose
from sims.core.pose_filter import kalman_update


class _Known(NamedTuple):
    pose: Pose
    variance: float  # m^2, of each axis


class PoseKalmanFilter:
    """Poses with less noise, for one episode."""

    def __init__(self, noise: float, drift: float):
        """``noise`` m, standard deviation of a seen position on each axis; ``drift`` m/sqrt(s), by
        which an object may wander unnoticed."""
        self._noise, self._drift = noise, drift
        self._known: dict[str, _Known] = {}

    def take(self, seen: Mapping[str, Pose]) -> dict[str, Pose]:
        """{entity: pose}, each as old as the look it was last seen in."""
        for name, pose in seen.items():
            known = self._known.get(name)
            if known is None:
                self._known[name] = _Known(pose, self._noise**2)
            elif pose.t > known.pose.t:
                self._known[name] = self._update(known, pose)
        return {name: known.pose for name, known in self._known.items()}

    def _update(self, known: _Known, pose: Pose) -> _Known:
        elapsed = pose.t - known.pose.t
        variance = np.array(known.variance)
        pos, variance, gain = kalman_update(
            known.pose.pos, variance, pose.pos, elapsed, self._noise, self._drift
        )
        # Two quaternions of one turn differ in sign alone.
        quat = np.asarray(pose.quat) * (1.0 if pose.quat @ known.pose.quat >= 0 else -1.0)
        quat = known.pose.quat + gain * (quat - known.pose.quat)
        return _Known(Pose(pos, quat / np.linalg.norm(quat), pose.t), float(variance))
