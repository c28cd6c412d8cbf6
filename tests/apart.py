"""Judges for processes of their own, for tests: light to import."""

from __future__ import annotations

import time

from point_mass import Nearness, PointMass, Window

from reward_models.base import RewardOutput, Segment

ROWS = 3


class Slow(Nearness):
    """A judge that takes its time, however much it is shown."""

    def score(self, segment: Segment) -> RewardOutput:
        time.sleep(0.4)
        return super().score(segment)


class Far(Window):
    """Looks four steps back."""

    def __init__(self) -> None:
        super().__init__(4)


class Broken(Nearness):
    """A judge that fails at what it sees."""

    def score(self, segment: Segment) -> RewardOutput:
        raise ValueError("this judge is broken")


def made(kind: type):  # in the judge's process
    return kind(), PointMass(ROWS)
