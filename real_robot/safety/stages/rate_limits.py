"""RateLimits: from the last command on, as fast as velocity, acceleration and jerk allow (Ruckig).

A target that moves is reached in its own frame, where it rests: one that keeps within the limits is
followed exactly, without the delay of one that is planned to stop at every tick. Whatever is done,
the arm must be able to stop afterwards, within its range and in the clear all the way: a step
after which it could not is not taken, and it brakes instead, which the step before made sure of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import ruckig

from real_robot.safety.stages.braking import Stop, brake, max_stopping_speed
from real_robot.safety.stages.stage import (
    EPS,
    Array,
    FilterContext,
    FilterStage,
    JointTrajectoryPoint,
)
from sims.robots.rate_limits import ALMOST, BEHIND

_APART = 0.1  # rad between two places on the way to a stop that are looked at
_PLACES = 6  # looked at on one way
# Of the tool's speed: from where it is looked at closely, what it is brought to, from where the
# arm brakes.
_NEAR, _AIM, _MOST = 0.6, 0.98, 1.05
_CREEP = 0.01  # rad/s: to plan a way that takes hours is an error
_SHARES = (1.0, 0.998, 0.99)  # of acceleration and jerk, tried in turn
_AT = 0.8  # of a speed that a person set: who is faster is held back by it, and not stuck


@dataclass(frozen=True, eq=False)
class RateLimits(FilterStage):
    """Limits of every joint, of the tool, and of the time that a stop takes; ``admit`` says whether
    the arm may stop along some poses, ``travel`` how far (m) the tool moves to one.

    ``admit(poses (n,) rad, the last to rest in, gripper, last command)``; the gripper is light and
    stops at once. A tool that would be too fast slows all joints alike, so it stays on its way.

    From every command the quickest stop takes ``stop_s`` at most: ways are planned so slowly that
    it does (``max_stopping_speed``), and a step after which it would not is not taken either.
    """

    name: ClassVar[str] = "shaping"
    pressing: ClassVar[float] = BEHIND  # rad, to fall behind by that much is more than smoothing
    wanted: ClassVar[frozenset[str]] = frozenset({"tool_speed", "stop_time"})
    velocity: Array  # (n,) rad/s
    acceleration: Array  # (n,) rad/s^2
    jerk: Array  # (n,) rad/s^3
    position: Array  # (n, 2) rad, low and high
    period: float  # s
    gripper_speed: float  # 1/s
    admit: Callable[[list[Array], float, JointTrajectoryPoint], bool] = lambda way, gripper, last: (
        True
    )
    travel: Callable[[Array, float, JointTrajectoryPoint], float] = lambda pose, gripper, last: 0.0
    tool_speed: float = math.inf  # m/s
    stop_s: float = math.inf  # s
    cruise: Array = field(init=False)  # (n,) rad/s that ways are planned with
    building: Array = field(init=False)  # (n,) rad/s^2, the same
    _otg: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cruise, building = max_stopping_speed(ALMOST * self.stop_s, self.acceleration, self.jerk)
        object.__setattr__(self, "cruise", np.minimum(cruise, self.velocity))
        object.__setattr__(self, "building", building)
        object.__setattr__(self, "_otg", ruckig.Ruckig(len(self.velocity), self.period))

    def step(
        self, motion: JointTrajectoryPoint, moment: FilterContext, own: Any
    ) -> tuple[JointTrajectoryPoint, Any]:
        return self.towards(motion, moment), own

    def towards(self, wish: JointTrajectoryPoint, moment: FilterContext) -> JointTrajectoryPoint:
        """The next command on the way to ``wish``, counted from the last one."""
        last = moment.last
        most = self.gripper_speed * self.period
        gripper = min(max(wish.gripper, last.gripper - most), last.gripper + most)
        # A moving target, the same as if it rested, joint by joint as each is quickest; straight
        # to it, which a joint ahead of the others may not be; and the way out that is always there.
        fastest = ALMOST * self.cruise
        moving, rests = np.minimum(np.maximum(wish.qvel, -fastest), fastest), np.zeros_like(fastest)
        ways = [(moving, False), (rests, False), (rests, True)]
        for qvel, straight in ways if moving.any() else ways[1:]:
            step = self._paced(last, wish.qpos, qvel, straight)
            for opening in dict.fromkeys((gripper, last.gripper)):
                if step is not None and self._may_stop(step._replace(gripper=opening), last):
                    return step._replace(gripper=opening)
        return self.brake(last)

    def brake(self, last: JointTrajectoryPoint) -> JointTrajectoryPoint:
        """The next command of the quickest stop."""
        stop = self._stop(last)
        return JointTrajectoryPoint(stop.qpos, stop.qvel, stop.qacc, last.gripper, stop.end)

    def flags(
        self, before: JointTrajectoryPoint, after: JointTrajectoryPoint, moment: FilterContext
    ) -> dict[str, Array]:
        """{limit: (n,) bool}: which limit keeps each joint from where it is wanted."""
        behind = np.abs(after.qpos - before.qpos) > EPS
        velocity = (before.qpos - moment.last.qpos) / self.period  # that it would take
        acceleration = (velocity - moment.last.qvel) / self.period
        way = self.travel(after.qpos, moment.last.gripper, moment.last)
        paced = behind & (way > _AT * self.tool_speed * self.period)
        behind &= ~paced
        going = np.abs(after.qpos - moment.last.qpos) > _AT * self.cruise * self.period
        slow = behind & going & (self.cruise < self.velocity)
        behind &= ~slow
        fast = behind & (np.abs(velocity) > self.velocity)
        sudden = behind & ~fast & (np.abs(acceleration) > self.acceleration)
        jerky = behind & ~fast & ~sudden
        return {
            "tool_speed": paced,
            "stop_time": slow,
            "velocity": fast,
            "acceleration": sudden,
            "jerk": jerky,
        }

    def _stop(self, motion: JointTrajectoryPoint) -> Stop:
        return brake(*motion[:3], self.acceleration, self.jerk, self.period)

    def _may_stop(self, motion: JointTrajectoryPoint, last: JointTrajectoryPoint) -> bool:
        """Whether the arm, braking after ``motion``, stays in range and stops in time and in the
        clear."""
        stop = self._stop(motion)
        if stop.seconds > self.stop_s:
            return False
        # Who starts outside may not go further out.
        low = np.minimum(self.position[:, 0], last.qpos) - EPS
        high = np.maximum(self.position[:, 1], last.qpos) + EPS
        if (stop.low < low).any() or (stop.high > high).any():
            return False
        return self.admit([*self._way(motion, stop), stop.end], motion.gripper, last)

    def _way(self, motion: JointTrajectoryPoint, stop: Stop) -> Iterator[Array]:
        """Poses (n,) rad about equally far apart on the way from ``motion`` to its stop."""
        yield motion.qpos
        places = min(_PLACES, math.ceil(float(np.abs(stop.end - motion.qpos).max()) / _APART))
        for place in range(1, places):
            # Joints that slow down evenly have come that part of their way after this time.
            seconds = stop.seconds * (1.0 - math.sqrt(1.0 - place / places))
            yield brake(*motion[:3], self.acceleration, self.jerk, seconds).qpos

    def _paced(
        self, last: JointTrajectoryPoint, qpos: Array, qvel: Array, straight: bool
    ) -> JointTrajectoryPoint | None:
        """The plan's next command, with the tool no faster than it may be; None where there is
        none."""
        step = self._plan(last, qpos, qvel, self.cruise, straight)
        most = self.tool_speed * self.period
        if step is None or self.travel(step.qpos, last.gripper, last) <= _NEAR * most:
            return step
        coming, way = self._coming(step, last)
        if way <= most:
            return step
        slower = np.maximum(np.abs(coming) * (_AIM * most / way), _CREEP)
        cruise = np.minimum(slower, self.cruise)
        step = self._plan(last, qpos, np.zeros_like(qvel), cruise, straight)
        return None if step is None or self._coming(step, last)[1] > _MOST * most else step

    def _coming(
        self, step: JointTrajectoryPoint, last: JointTrajectoryPoint
    ) -> tuple[Array, float]:
        """Joint speeds (n,) rad/s at which the acceleration of ``step`` can be gone, and m that the
        tool moves in a period then."""
        qvel = step.qvel + step.qacc * np.abs(step.qacc) / (2.0 * self.jerk)
        return qvel, self.travel(last.qpos + qvel * self.period, last.gripper, last)

    def _plan(
        self, last: JointTrajectoryPoint, qpos: Array, qvel: Array, velocity: Array, straight: bool
    ) -> JointTrajectoryPoint | None:
        """The next command of the quickest way to a target at ``qpos`` that moves at ``qvel``, with
        ``velocity`` rad/s at most (all (n,)); ``straight`` to it where the joints' speeds allow it.

        None where Ruckig finds no way. For want of digits it misses some that lie exactly between
        two kinds of profile; a little less acceleration is another profile.
        """
        was = qpos - qvel * self.period  # where the target was at the last command
        task = ruckig.InputParameter(len(qpos))
        kind = ruckig.Synchronization
        task.synchronization = kind.Phase if straight else kind.No
        task.current_position = (last.qpos - was).tolist()
        task.current_velocity = (last.qvel - qvel).tolist()
        task.current_acceleration = last.qacc.tolist()
        task.max_velocity = (velocity - qvel).tolist()
        task.min_velocity = (-velocity - qvel).tolist()
        way = ruckig.Trajectory(len(qpos))
        for share in _SHARES:
            task.max_acceleration = (share * self.building).tolist()
            task.max_jerk = (share * self.jerk).tolist()
            try:
                # Not ``update``: it goes on along its last answer where the question is the same.
                self._otg.calculate(task, way)
                break
            except ruckig.RuckigError:
                continue
        else:
            return None
        ahead = np.array(way.at_time(self.period))
        if not np.isfinite(ahead).all():
            return None
        return JointTrajectoryPoint(ahead[0] + qpos, ahead[1] + qvel, ahead[2], last.gripper, qpos)
