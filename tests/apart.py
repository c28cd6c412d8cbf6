"""Judges for processes of their own, for tests: light to import."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from point_mass import Nearness, PointMass, Window

from reward_models.base import RewardOutput, Segment
from robo_rl.rollout.trace import Transition

ROWS = 3
GATE = "ROBO_TEST_GATE"  # variable: the file without which ``Gated`` scores nothing


class Gated(Nearness):
    """A judge that scores while there is a file."""

    def score(self, segment: Segment) -> RewardOutput:
        while not Path(os.environ[GATE]).exists():
            time.sleep(0.01)
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


def steps_of(count: int) -> list[Transition]:
    """So many steps of one episode, all of them alike."""
    sim, no = PointMass(ROWS), np.zeros(ROWS, bool)
    sim.reset()
    look, action = sim.signals(), np.zeros((ROWS, 2))
    return [
        Transition(look, look, action, np.full(ROWS, number), no, no, no) for number in range(count)
    ]
