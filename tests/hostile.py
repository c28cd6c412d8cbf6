"""What a broken or malicious policy may ask of an arm: in all kinds, without end."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from real_robot.safety.filter import TargetRequest
from sims.robots import Robot

KINDS = ("anywhere", "extremes", "huge", "small", "ramp")


class Hostile:
    """Wishes number 0, 1, ...: anywhere, alternating extremes, huge, jittering, running away.

    Every seventh is no target at all: NaN, infinite, or of the wrong shape.
    """

    def __init__(self, robot: Robot, seed: int):
        self._rng, self._n = np.random.default_rng(seed), len(robot.joints)
        self._low, self._high = robot.joint_range.T
        self._kind, self._wish = "", robot.home

    @staticmethod
    def bad(k: int) -> bool:
        """Whether number ``k`` is no target."""
        return k % 7 == 3

    def __call__(self, k: int, qpos: np.ndarray) -> TargetRequest:
        """Wish number ``k``, when the last command was ``qpos`` (n,) rad."""
        rng, n = self._rng, self._n
        if k % 25 == 0:
            self._kind = rng.choice(KINDS)
        if self._kind == "anywhere":
            self._wish = rng.uniform(self._low, self._high)
        elif self._kind == "extremes":
            self._wish = np.where(np.arange(n) % 2 == k % 2, self._low, self._high)
        elif self._kind == "huge":
            self._wish = rng.choice([-1e308, 1e9, -7.0, 1e-300], n)
        elif self._kind == "small":
            self._wish = qpos + rng.normal(0, 0.02, n)
        else:
            self._wish = self._wish + 0.03
        wish = TargetRequest(
            self._wish,
            float(rng.uniform(-1, 2)),
            qvel=rng.normal(0, 5, n),
            dial=rng.uniform(0.1, 1),
        )
        if not self.bad(k):
            return wish
        number = rng.choice([math.nan, math.inf, -math.inf])
        spoilt = np.where(np.arange(n) == k % n, number, self._wish)
        return dataclasses.replace(wish, qpos=self._wish[: n - 1] if k % 2 else spoilt)
