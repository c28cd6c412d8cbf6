"""SafetyFilter: a pure function between any policy and the motors.

``step`` takes a wish through the stages of ``real_robot.safety.stages`` and returns a target that
is safe to send, or raises SafetyStop. It keeps nothing: what a stage must know of the last tick is
in the memory that callers pass along. Each stage says which joints it limited; one that limits a
joint for longer than ``patience`` says so, and stops the arm at twice that: the policy asks for
what this arm cannot do.

The change between targets is limited, not the distance to the measured joint: a narrow window
about the measurement acts as a torque limit and freezes a soft arm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from real_robot.core.clearance import Clearance
from real_robot.core.driver import Description, Fault, RobotState, Target
from real_robot.core.manifest import Limits
from real_robot.safety.escape_path import plan_escape
from real_robot.safety.stages.collision import CollisionStage
from real_robot.safety.stages.effort import Effort
from real_robot.safety.stages.final_check import FinalCheck
from real_robot.safety.stages.finite import Finite
from real_robot.safety.stages.handover import Handover
from real_robot.safety.stages.joint_range import JointRange
from real_robot.safety.stages.lag import Lag
from real_robot.safety.stages.rate_limits import RateLimits
from real_robot.safety.stages.smoothing import Smoothing
from real_robot.safety.stages.speed_scale import SpeedScale
from real_robot.safety.stages.stage import (
    FilterContext,
    FilterStage,
    JointTrajectoryPoint,
    SafetyStop,
    TargetRequest,
    TargetSource,
)
from real_robot.safety.stages.staleness import StalenessCheck
from real_robot.safety.stages.stopping_time import StoppingTime
from sims.robots.rate_limits import ALMOST

Array = np.ndarray

__all__ = [
    "FilterMemory",
    "JointTrajectoryPoint",
    "SafetyFilter",
    "SafetyStop",
    "TargetSource",
    "TargetRequest",
]

START_SLACK = 0.1  # rad, a run may begin this far outside the range
SHORTEST = 2  # periods: one of braking at least, and one in which it ends


@dataclass(frozen=True, eq=False)
class FilterMemory:
    """What the next step must know of the last; (n,) in joint order."""

    seq: int  # of the last measurement
    command: JointTrajectoryPoint  # the last one
    own: tuple[Any, ...]  # of each stage
    pressed: Array  # (stages, n) s, since when each stage limits each joint; inf: it does not

    @property
    def qpos(self) -> Array:
        """(n,) rad, the last target."""
        return self.command.qpos

    @property
    def goal(self) -> Array:
        """(n,) rad, where the command is on its way to."""
        return self.command.goal

    @property
    def gripper(self) -> float:
        """The last target of the gripper."""
        return self.command.gripper

    @property
    def moving(self) -> bool:
        """Whether the targets are under way."""
        return bool(self.command.qvel.any() or self.command.qacc.any())


@dataclass(frozen=True, eq=False, kw_only=True)
class SafetyFilter:
    """The stages of one arm, in order."""

    joints: tuple[str, ...]
    position: Array  # (n, 2) rad, low and high, margin taken off
    stages: tuple[FilterStage, ...]
    shaping: RateLimits  # one of them: it also makes stops
    period: float  # s between targets
    patience: float = 2.5  # s, a stage that limits a joint for longer is reported

    @classmethod
    def build(
        cls,
        robot: Description,
        limits: Limits | None = None,
        *,
        clearance: Clearance | None = None,
        margin: float = 0.02,
        lag: float = 0.6,
        max_age: float = 0.1,
        max_wish_age: float = 0.3,
        patience: float = 2.5,
        handover: float = 1.0,
        smoothing: float = 0.0,
        stall: float = 0.5,
        leaning: float = 3.0,
        tool_speed: float = np.inf,
        stop_s: float = np.inf,
        simulated: Array | None = None,
    ) -> SafetyFilter:
        """The filter of a robot, narrowed by the limits a policy was trained under.

        ``margin`` (rad) is kept from the ends of the joint range; ``lag`` (rad) holds where
        ``limits`` says nothing, ``tool_speed`` (m/s) where ``clearance`` knows the arm; the others
        are s, ``stop_s`` of them what the quickest stop may take. An empty ``limits`` field means
        the robot's own. ``simulated`` (n, 2) rad is the joint range that a policy was trained in:
        to lean on its ends, where they are the arm's own, is not to ask for what the arm cannot do.

        Raises:
            ValueError: A limit is out of its range, or leaves a joint no room.
        """
        limits, n = limits or Limits(), len(robot.joints)
        position = robot.position + np.array([margin, -margin])
        velocity = _smaller_limits("velocity", robot.velocity, limits.velocity)
        window = _smaller_limits("lag", np.full(n, lag), limits.lag)
        for name, value in {
            "margin": margin,
            "max_age": max_age,
            "max_wish_age": max_wish_age,
            "patience": patience,
            "handover": handover,
            "stall": stall,
            "leaning": leaning,
        }.items():
            if not 0 < value < np.inf:
                raise ValueError(f"{name} must be above 0 and finite, got {value}")
        if not 0 <= smoothing < np.inf:
            raise ValueError(f"smoothing must be at least 0 and finite, got {smoothing}")
        if not stop_s > (SHORTEST - 0.01) * robot.period:
            raise ValueError(
                f"stop_s must be at least {SHORTEST * robot.period:g} s, {SHORTEST} periods of "
                f"{robot.name}, got {stop_s}"
            )
        if (position[:, 0] >= position[:, 1]).any():
            raise ValueError(f"position must have low < high for every joint, got {position}")
        leeway: Array | float = 0.0
        if simulated is not None:
            beyond = np.array([1.0, -1.0]) * (position - simulated)
            leeway = np.where((beyond > 0) & (beyond <= 2 * margin), beyond, 0.0)
        clear = CollisionStage(clearance)
        shaping = RateLimits(
            velocity=velocity,
            acceleration=_smaller_limits("acceleration", robot.acceleration, limits.acceleration),
            jerk=_smaller_limits("jerk", robot.jerk, limits.jerk),
            position=position,
            period=robot.period,
            gripper_speed=robot.gripper_speed,
            admit=clear.admit,
            travel=clear.travel,
            tool_speed=tool_speed,
            stop_s=stop_s,
        )
        fastest = ALMOST * shaping.cruise if np.isfinite(stop_s) else np.full(n, np.inf)
        effort, overload = (
            np.full(n, np.inf) if known is None else known
            for known in (robot.effort, robot.overload)
        )
        stages = (
            StalenessCheck(max_age, max_wish_age),
            Finite(robot.joints),
            Handover(seconds=handover),
            Smoothing(seconds=smoothing, period=robot.period),
            SpeedScale(),
            StoppingTime(fastest),
            JointRange(position, leeway),
            clear,
            shaping,
            Lag(robot.joints, window, shaping, overload),
            # Who leans on motors that protect themselves is eased (``Lag``), and may for longer.
            Effort(robot.joints, effort, np.where(np.isfinite(overload), leaning, stall)),
            FinalCheck(robot.joints, position, velocity, robot.period),
        )
        return cls(
            joints=robot.joints,
            position=position,
            stages=stages,
            shaping=shaping,
            period=robot.period,
            patience=patience,
        )

    def start(self, state: RobotState, now: float) -> FilterMemory:
        """Memory of an arm that holds still where it was measured.

        Raises:
            SafetyStop: A joint stands too far outside its range.
        """
        zero = np.zeros(len(self.joints))
        gripper = float(np.clip(state.gripper, 0.0, 1.0))
        still = JointTrajectoryPoint(state.qpos, zero, zero, gripper, state.qpos)
        moment = FilterContext(state, TargetRequest(state.qpos, gripper), now, still, None)
        own = tuple(stage.start(moment) for stage in self.stages)
        outside = np.abs(np.clip(state.qpos, *self.position.T) - state.qpos)
        if outside.max() > START_SLACK:
            i = int(outside.argmax())
            raise SafetyStop(
                Fault.LIMIT,
                f"{self.joints[i]} stands at {state.qpos[i]:.3f} rad, outside "
                f"{self.position[i, 0]:.3f} to {self.position[i, 1]:.3f} rad by more than "
                f"{START_SLACK} rad; move it inside by hand",
            )
        return FilterMemory(state.seq, still, own, np.full((len(self.stages), zero.size), np.inf))

    def escape_path(self, start: Array, goal: Array, gripper: float) -> list[Array]:
        """Poses (n,) rad to go to in turn from ``start`` to ``goal``, so that no stage need hold
        the arm on the way; ``goal`` alone where nothing is known of the surroundings."""
        known = next(stage.clearance for stage in self.stages if isinstance(stage, CollisionStage))
        return [goal] if known is None else plan_escape(known, start, goal, gripper, self.position)

    def step(
        self, state: RobotState, wish: Target, now: float, memory: FilterMemory
    ) -> tuple[Target, FilterMemory, Mapping[str, Array]]:
        """The target to send, the next memory, and {limit: (n,) bool} of what was limited.

        ``now`` is on the clock of ``state.t_host``. A plain Target is a wish of the bridge itself.
        ``flags["limited_long"]`` marks joints that one stage has limited for ``patience``.
        """
        if not isinstance(wish, TargetRequest):
            wish = TargetRequest(wish.qpos, wish.gripper)
        zero = np.zeros(len(self.joints))
        qvel = zero if wish.qvel is None else wish.qvel
        motion = JointTrajectoryPoint(wish.qpos, qvel, zero, wish.gripper, wish.qpos)
        moment = FilterContext(state, wish, now, memory.command, memory.seq)
        flags: dict[str, Array] = {}
        kept, pressed = [], np.full_like(memory.pressed, np.inf)
        for i, stage in enumerate(self.stages):
            before = motion
            motion, own = stage.step(before, moment, memory.own[i])
            kept.append(own)
            limited = stage.flags(before, motion, moment)
            for name, which in limited.items():  # two stages see to one limit
                flags[name] = flags[name] | which if name in flags else which
            if motion.qpos is before.qpos or stage.pressing == np.inf:
                continue
            pressing = stage.presses(before, motion)
            if pressing.any():
                faults = [which for name, which in limited.items() if name not in stage.wanted]
                pressing &= np.any(faults, axis=0)
                since = np.minimum(memory.pressed[i], now)
                pressed[i] = np.where(pressing, since, np.inf)
        flags["limited_long"] = self._long(pressed, now)
        # Steps that count from the goal must not run away from an arm that falls behind.
        low, high = motion.qpos - RateLimits.pressing, motion.qpos + RateLimits.pressing
        motion = motion._replace(goal=np.minimum(np.maximum(motion.goal, low), high))
        after = FilterMemory(state.seq, motion, tuple(kept), pressed)
        return Target(motion.qpos, motion.gripper), after, flags

    def brake(self, memory: FilterMemory) -> tuple[Target, FilterMemory]:
        """The next target of the quickest stop, which needs no measurement, and the memory."""
        motion = self.shaping.brake(memory.command)
        after = dataclasses.replace(memory, command=motion)
        return Target(motion.qpos, motion.gripper), after

    def _long(self, pressed: Array, now: float) -> Array:
        """(n,) bool, joints limited for ``patience``; SafetyStop at twice that."""
        seconds = now - pressed
        if seconds.max() > 2 * self.patience:
            stage, joint = np.unravel_index(seconds.argmax(), seconds.shape)
            raise SafetyStop(
                Fault.LIMIT,
                f"{self.joints[joint]} was limited by {self.stages[stage].name} for "
                f"{seconds.max():.1f} s: the policy's targets exceed what this arm can do",
            )
        return (seconds > self.patience).any(axis=0)  # pyright: ignore[reportReturnType]  # numpy: a scalar too


def _smaller_limits(name: str, own: Array, other: tuple[float, ...]) -> Array:
    """The smaller of two limits (n,), both above 0."""
    values = np.minimum(own, other) if len(other) else np.array(own, float)
    if values.shape != own.shape or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"{name} must be above 0 and finite for every joint, got {values}")
    return values
