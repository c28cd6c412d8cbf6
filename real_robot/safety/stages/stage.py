"""What the stages of the safety filter share: a wish, a motion, a moment, and the Stage itself.

A stage takes the motion that the stage before it lets through and lets through one that is safer.
It has no hidden state: what it must know of the last tick it returns, and gets back at the next.
Arrays are (n,) in the order of the arm's joints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import numpy as np

from real_robot.core.driver import Fault, RobotState, Target

Array = np.ndarray

EPS = 1e-9  # rad, rounding


class SafetyStop(RuntimeError):
    """No target is safe: the loop must stop the arm."""

    def __init__(self, fault: Fault, message: str):
        super().__init__(f"{fault.value}: {message}")
        self.fault = fault


class TargetSource(Enum):
    """What gives a target."""

    BRIDGE = "bridge"  # its own ramps and stops
    POLICY = "policy"
    HUMAN = "human"


@dataclass(frozen=True)
class TargetRequest(Target):
    """A target that somebody wants; ``qpos`` (n,) rad and ``gripper`` may be anything at all."""

    qvel: Array | None = None  # (n,) rad/s at which the target itself moves; None: it rests
    source: TargetSource = TargetSource.BRIDGE
    origin: Array | None = None  # (n,) rad, command it counts from; None: the last command
    t: float | None = None  # s, when what it was made from was measured; None: now
    dial: float = 1.0  # share of full speed


class JointTrajectoryPoint(NamedTuple):
    """Where the joints go and how; behind the shaping stage it is what will be sent."""

    qpos: Array  # (n,) rad
    qvel: Array  # (n,) rad/s
    qacc: Array  # (n,) rad/s^2
    gripper: float  # 0 closed, 1 open
    goal: Array  # (n,) rad, where it is on its way to, after every limit


@dataclass(frozen=True)
class FilterContext:
    """What every stage may look at."""

    state: RobotState  # the measurement
    wish: TargetRequest  # as it was made
    now: float  # s, on the clock of ``state.t_host``
    last: JointTrajectoryPoint  # the last command
    seq: int | None  # of the last measurement; None before the first


class FilterStage(ABC):
    """One stage; stages are immutable."""

    name: ClassVar[str]  # of its flag
    # rad, by which it must change a target to count as limiting too long
    pressing: ClassVar[float] = 0.0
    # of its limits, those that a person set: to be as slow as that is no fault, however long
    wanted: ClassVar[frozenset[str]] = frozenset()

    def start(self, moment: FilterContext) -> Any:
        """What ``step`` gets as ``own`` the first time, with the arm at rest."""
        return None

    @abstractmethod
    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        """The motion this stage lets through, and its ``own`` for the next tick; or SafetyStop."""

    def flags(
        self, before: JointTrajectoryPoint, after: JointTrajectoryPoint, moment: FilterContext
    ) -> dict[str, Array]:
        """{limit: (n,) bool} of the joints that it limited."""
        if after.qpos is before.qpos:
            return {self.name: np.zeros(len(after.qpos), bool)}
        return {self.name: np.abs(after.qpos - before.qpos) > EPS}

    def presses(self, before: JointTrajectoryPoint, after: JointTrajectoryPoint) -> Array:
        """(n,) bool of the joints whose limiting counts, if it goes on."""
        return np.abs(after.qpos - before.qpos) > self.pressing


class CheckStage(FilterStage):
    """A stage that changes nothing: it lets pass, or stops."""

    def flags(
        self, before: JointTrajectoryPoint, after: JointTrajectoryPoint, moment: FilterContext
    ) -> dict[str, Array]:
        """Nothing: it limits no joint, {limit: (n,) bool} is empty."""
        return {}
