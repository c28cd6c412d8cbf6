"""ArmStage: where ``deploy`` runs a bundle.

A stage hands out, for each episode, a driver, eyes and a clock, and afterwards says whether the
goal was reached: read off the scene where there is one, asked of the operator where there is none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from real_robot.core.driver import RobotDriver
from real_robot.core.pacing import Clock
from real_robot.perception.base import Perception


@dataclass(frozen=True)
class EpisodeSetup:
    """The arm and the perception of one episode."""

    driver: RobotDriver
    eyes: Perception | None
    clock: Clock
    sight: Perception | None = None  # a person's own eyes, where perception is off; None: as eyes


@dataclass(frozen=True)
class CommandedRange:
    """The range of commanded positions of a device, beside the allowed range of its joints."""

    fastest: float  # largest step between targets, as a share of the joint's speed limit
    margin: float  # rad, smallest distance of a target from an end of the joint's range

    def line(self) -> str:
        """For people."""
        return (
            f"targets that the device received: at most {100 * self.fastest:.0f} % of a "
            f"joint's speed limit, at least {self.margin:.3f} rad from an end of its range"
        )


class ArmStage(Protocol):
    """A place where episodes happen."""

    name: str  # "the simulated arm", for people
    realtime: bool

    @property
    def under(self) -> str:
        """Noise and latency, for people: "2 mm of noise, 40 ms of latency"; empty: unknown."""
        ...

    def scene(self, seed: int) -> EpisodeSetup:
        """Returns the arm and the objects of a new episode."""
        ...

    def begin(self) -> None:
        """Starts the policy's episode from the present state of the scene."""
        ...

    def success(self) -> bool:
        """Whether the goal holds, at the moment when the policy lets go."""
        ...


@contextlib.contextmanager
def closing(stage: ArmStage) -> Iterator[ArmStage]:
    """Closes a stage that has something to close."""
    try:
        yield stage
    finally:
        if hasattr(stage, "close"):
            stage.close()
