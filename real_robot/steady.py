"""Steady: where objects are, from poses that tremble, since most objects mostly lie still.

A Kalman filter of a constant position for each object, one variance for its three axes. An object
that lies still is known better with every look. One that is seen farther away than noise explains
has moved: what was known of it is then worth as little as that look says, so that a push is
followed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from real_robot.perception import Pose

Array = np.ndarray

MOVED = 2.0  # standard deviations, root mean square of the axes, that noise does not explain


class _Known(NamedTuple):
    pose: Pose
    variance: float  # m^2, of each axis


class Steady:
    """Poses with less noise, for one episode."""

    def __init__(self, noise: float, drift: float):
        """``noise`` m, standard deviation of a seen position on each axis; ``drift`` m/sqrt(s), by
        which an object may wander unnoticed."""
        self._noise, self._drift = noise**2, drift**2
        self._known: dict[str, _Known] = {}

    def take(self, seen: Mapping[str, Pose]) -> dict[str, Pose]:
        """{entity: pose}, each as old as the look it was last seen in."""
        for name, pose in seen.items():
            known = self._known.get(name)
            if known is None:
                self._known[name] = _Known(pose, self._noise)
            elif pose.t > known.pose.t:
                self._known[name] = self._joined(known, pose)
        return {name: known.pose for name, known in self._known.items()}

    def _joined(self, known: _Known, pose: Pose) -> _Known:
        wandered = known.variance + self._drift * (pose.t - known.pose.t)
        away = pose.pos - known.pose.pos
        square = float(away @ away) / 3.0
        if square > MOVED**2 * (wandered + self._noise):
            wandered = square
        gain = wandered / (wandered + self._noise) if wandered else 0.0
        pos = known.pose.pos + gain * away
        # Two quaternions of one turn differ in sign alone.
        quat = np.asarray(pose.quat) * (1.0 if pose.quat @ known.pose.quat >= 0 else -1.0)
        quat = known.pose.quat + gain * (quat - known.pose.quat)
        return _Known(Pose(pos, quat / np.linalg.norm(quat), pose.t), gain * self._noise)
