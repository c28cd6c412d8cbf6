"""SafetyFilter: a pure function between any policy and the motors.

``step`` looks at one measurement, one wish and the memory of what was sent before, and returns a
target that is safe to send, or raises SafetyStop. In order:

provenance    the measurement is recent and newer than the last one
finite        every number is one, and there is one for each joint
range         the wish is clipped into the joint range, less a margin
velocity      a target differs from the LAST TARGET by at most velocity * period
acceleration  that difference changes by at most acceleration * period^2, braking included: a
              target neither shoots past a resting wish nor past the range
lag           a target stays within ``lag`` of the measured joint, which bounds the force

Limiting the change between targets, and not the distance to the measured joint, lets a soft arm
lean on its own position error: a narrow window about the measurement acts as a torque limit and
freezes it. The lag window is therefore wide. Where it meets the acceleration limit the latter
yields, since a target that stops at once is the safe one; where it meets range or velocity there
is nothing safe to send.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from real_robot.driver import Description, Fault, RobotState, Target
from real_robot.manifest import Limits

Array = np.ndarray

STAGES = ("range", "velocity", "acceleration", "lag")
_EPS = 1e-9  # rad, rounding


class SafetyStop(RuntimeError):
    """No target is safe: the loop must stop the arm."""

    def __init__(self, fault: Fault, message: str):
        super().__init__(f"{fault.value}: {message}")
        self.fault = fault


@dataclass(frozen=True, eq=False)
class FilterMemory:
    """What the next step must know of the last; (n,) in joint order."""

    seq: int  # of the last measurement
    qpos: Array  # (n,) rad, last target
    step: Array  # (n,) rad, last change between targets
    request: Array  # (n,) rad, last wish, inside the range
    gripper: float  # last gripper target
    limited_since: Array  # (n,) s; inf where the last target was not limited


@dataclass(frozen=True, eq=False, kw_only=True)
class SafetyFilter:
    """Limits in the order of ``joints``; all state is in the memory that callers pass along."""

    joints: tuple[str, ...]
    position: Array  # (n, 2) rad, low and high, margin taken off
    velocity: Array  # (n,) rad/s
    acceleration: Array  # (n,) rad/s^2
    lag: Array  # (n,) rad between target and measured joint
    period: float  # s between targets
    max_age: float = 0.1  # s, oldest measurement to act on
    start_slack: float = 0.1  # rad, a run may begin this far outside the range
    patience: float = 2.0  # s, a joint limited for longer is reported as limited_long
    gripper_speed: float = 5.0  # 1/s

    def __post_init__(self) -> None:
        n = len(self.joints)
        for name in ("position", "velocity", "acceleration", "lag"):
            values = np.array(getattr(self, name), float)
            shape = (n, 2) if name == "position" else (n,)
            if values.shape != shape or not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite with shape {shape}, got {values}")
            if name == "position" and (values[:, 0] >= values[:, 1]).any():
                raise ValueError(f"position must have low < high for every joint, got {values}")
            if name != "position" and (values <= 0).any():
                raise ValueError(f"{name} must be above 0 for every joint, got {values}")
            object.__setattr__(self, name, values)
        for name in ("period", "max_age", "start_slack", "patience", "gripper_speed"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be above 0 and finite, got {value}")

    @classmethod
    def build(
        cls,
        robot: Description,
        limits: Limits | None = None,
        *,
        margin: float = 0.02,
        lag: float = 0.6,
        max_age: float = 0.1,
        patience: float = 2.0,
    ) -> SafetyFilter:
        """The filter of a robot, narrowed by the limits a policy was trained under.

        ``margin`` (rad) is kept from the ends of the joint range; ``lag`` (rad) holds where
        ``limits`` says nothing. A zero ``limits`` field means the robot's own limit.
        """
        limits = limits or Limits()

        def narrowed(own: Array, other: tuple[float, ...]) -> Array:
            return np.minimum(own, other) if other else own

        return cls(
            joints=robot.joints,
            position=robot.position + np.array([margin, -margin]),
            velocity=narrowed(robot.velocity, limits.velocity),
            acceleration=narrowed(robot.acceleration, limits.acceleration),
            lag=narrowed(np.full(len(robot.joints), lag), limits.lag),
            period=robot.period,
            max_age=max_age,
            patience=patience,
            gripper_speed=robot.gripper_speed,
        )

    def start(self, state: RobotState, now: float) -> FilterMemory:
        """Memory of an arm that holds still where it was measured."""
        self._check_state(state, now)
        qpos = np.clip(state.qpos, *self.position.T)
        outside = np.abs(qpos - state.qpos)
        if outside.max() > self.start_slack:
            i = int(outside.argmax())
            raise SafetyStop(
                Fault.LIMIT,
                f"{self.joints[i]} stands at {state.qpos[i]:.3f} rad, outside "
                f"{self.position[i, 0]:.3f} to {self.position[i, 1]:.3f} rad by more than "
                f"{self.start_slack} rad; move it inside by hand",
            )
        still = np.zeros_like(qpos)
        gripper = float(np.clip(state.gripper, 0.0, 1.0))
        return FilterMemory(state.seq, qpos, still, qpos, gripper, still + np.inf)

    def step(
        self, state: RobotState, target: Target, now: float, memory: FilterMemory
    ) -> tuple[Target, FilterMemory, dict[str, Array]]:
        """The nearest safe target, the next memory, and {stage: (n,) bool} of what was limited.

        ``now`` is on the clock of ``state.t_host``. ``flags["limited_long"]`` marks joints limited
        without a break for ``patience`` seconds: the policy asks for what this arm cannot do.
        """
        self._check_state(state, now, memory.seq)
        wish = self._numbers(target.qpos, "target")
        if not np.isfinite(target.gripper):
            raise SafetyStop(Fault.NONFINITE, f"target of the gripper is {target.gripper}")
        low, high = self.position.T
        fastest, change = self.velocity * self.period, self.acceleration * self.period**2

        request = np.clip(wish, low, high)
        whole = request - memory.qpos
        # Towards a request that moves by itself, brake relative to its motion and not to rest.
        drift = np.clip(request - memory.request, -fastest, fastest)
        gap = whole - drift
        smooth = drift + np.sign(gap) * _stoppable(np.abs(gap), change)
        smooth = np.clip(smooth, memory.step - change, memory.step + change)
        room = low - memory.qpos, high - memory.qpos
        lower = np.maximum(-fastest, np.where(room[0] > 0, room[0], -_stoppable(-room[0], change)))
        upper = np.minimum(fastest, np.where(room[1] < 0, room[1], _stoppable(room[1], change)))
        smooth = np.clip(smooth, lower, upper)
        near = state.qpos - self.lag - memory.qpos, state.qpos + self.lag - memory.qpos
        lower, upper = np.maximum(lower, near[0]), np.minimum(upper, near[1])
        if (lower > upper + _EPS).any():
            i = int(np.argmax(lower - upper))
            raise SafetyStop(
                Fault.TRACKING,
                f"{self.joints[i]} is at {state.qpos[i]:.3f} rad, its target at "
                f"{memory.qpos[i]:.3f} rad: no target is within {self.lag[i]:.3f} rad of the joint "
                "and within the speed limit and range. Is it blocked or pushed?",
            )
        step = np.clip(smooth, lower, np.maximum(lower, upper))
        qpos = np.clip(memory.qpos + step, low, high)

        capped = np.clip(whole, -fastest, fastest)
        flags = {
            "range": np.abs(request - wish) > _EPS,
            "velocity": np.abs(capped - whole) > _EPS,
            "acceleration": np.abs(smooth - capped) > _EPS,
            "lag": np.abs(step - smooth) > _EPS,
        }
        limited = np.any(list(flags.values()), axis=0)
        since = np.where(limited, np.minimum(memory.limited_since, now), np.inf)
        flags["limited_long"] = now - since >= self.patience
        most = self.gripper_speed * self.period
        gripper = float(np.clip(target.gripper, 0.0, 1.0))
        gripper = float(np.clip(gripper, memory.gripper - most, memory.gripper + most))
        after = FilterMemory(state.seq, qpos, qpos - memory.qpos, request, gripper, since)
        return Target(qpos, gripper), after, flags

    def _check_state(self, state: RobotState, now: float, seq: int | None = None) -> None:
        age = now - state.t_host
        # A little of the future is two clocks read one after the other; more is another clock.
        if not -0.001 <= age <= self.max_age:
            raise SafetyStop(
                Fault.STALE, f"the measurement is {age:.3f} s old, allowed is {self.max_age} s"
            )
        if seq is not None and state.seq < seq:
            raise SafetyStop(Fault.STALE, f"measurement {state.seq} came after number {seq}")
        self._numbers(state.qpos, "measured position")

    def _numbers(self, values: Array, what: str) -> Array:
        """``values`` as (n,) finite float64."""
        try:
            values = np.asarray(values, float)
        except (TypeError, ValueError) as error:
            raise SafetyStop(Fault.NONFINITE, f"{what} is not numbers: {error}") from error
        if values.shape != (len(self.joints),):
            raise SafetyStop(
                Fault.CONFIG,
                f"{what} must have shape ({len(self.joints)},) for {', '.join(self.joints)}; "
                f"got {values.shape}",
            )
        finite = np.isfinite(values)
        if not finite.all():
            i = int(np.argmin(finite))
            raise SafetyStop(Fault.NONFINITE, f"{what} of {self.joints[i]} is {values[i]}")
        return values


def _stoppable(distance: Array, change: Array) -> Array:
    """Largest step (n,) from which steps shrinking by ``change`` cover at most ``distance`` (n,).

    With m whole shrinkings left the steps sum to (m + 1) step - change m (m + 1) / 2.
    """
    distance = np.maximum(distance, 0.0)
    m = np.floor((np.sqrt(1.0 + 8.0 * distance / change) - 1.0) / 2.0)
    return (distance + change * m * (m + 1.0) / 2.0) / (m + 1.0)
