"""RobotDriver: what the bridge needs of an arm, and nothing else.

A driver does input and output only. It does not pace, limit, filter or retry: those are the loop's
and the safety filter's, so that they are the same for every arm. Arrays are (n,) in the order of
``Description.joints``; angles in rad, times in s on the host's monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:  # the process that owns an arm's port loads no simulation
    from real_robot.core.arm_numbers import ArmNumbers
    from sims.robots import Robot

Array = np.ndarray


ROUNDING = 0.01  # rad, a device may round a target by this much
LOST = 0.25  # rad between a joint and its goal: it does not follow, whatever its stiffness


def hold_position(measured: Array, goal: Array) -> Array:
    """Goals (n,) rad at which an arm stays as it is: those it has, but where tracking is lost.

    A soft servo hangs below its goal by its load over its stiffness (0.1 rad at 10 N m/rad). A goal
    set to where it hangs would lower it by as much again.
    """
    return np.where(np.abs(measured - goal) > LOST, measured, goal)


class FaultResponse(Enum):
    """What the loop does about a fault, mildest first."""

    NONE = "none"  # nothing is wrong
    RETRY = "retry"  # skip the tick; too many in a row become LATCH
    HOLD = "hold"  # stop on the spot, park, relax: the arm itself is well
    LATCH = "latch"  # stop on the spot and relax; only an operator may clear it


class Fault(Enum):
    """Everything that can go wrong, closed: a driver maps its vendor's codes onto these."""

    NONE = "none"
    COMM_TIMEOUT = "comm_timeout"  # no reply in time
    COMM_CORRUPT = "comm_corrupt"  # a reply that fails its checksum
    DISCONNECTED = "disconnected"  # port closed, cable pulled
    STALE = "stale"  # a measurement too old to act on
    OVERLOAD = "overload"
    OVERHEAT = "overheat"
    VOLTAGE = "voltage"
    ENCODER = "encoder"
    PROTECTIVE_STOP = "protective_stop"  # the arm's own controller stopped it
    ESTOP = "estop"
    TORQUE = "torque"  # a joint is not as stiff or as limp as it was told: it may have restarted
    LIMIT = "limit"  # no motion is allowed from here
    TRACKING = "tracking"  # the joint does not follow its target
    NONFINITE = "nonfinite"  # NaN or inf, wherever it came from
    STALL = "stall"  # full effort without motion
    GRIPPER = "gripper"  # it is silent or gone; the arm itself is well
    COLLISION = "collision"  # something pushes on the arm
    POLICY_LOST = "policy_lost"  # the policy is late, silent or dead
    BUS = "bus"  # the process that owns the arm's port is gone or stands still
    DEADLINE = "deadline"  # the loop was late for too long
    OPERATOR = "operator"  # a person asked to stop
    CONFIG = "config"  # the pieces do not fit together

    @property
    def response(self) -> FaultResponse:
        """What the loop does about it."""
        return _RESPONSE.get(self, FaultResponse.LATCH)


_RESPONSE = {
    Fault.NONE: FaultResponse.NONE,
    Fault.COMM_TIMEOUT: FaultResponse.RETRY,
    Fault.COMM_CORRUPT: FaultResponse.RETRY,
    Fault.STALE: FaultResponse.HOLD,
    Fault.LIMIT: FaultResponse.HOLD,
    Fault.TRACKING: FaultResponse.HOLD,
    Fault.NONFINITE: FaultResponse.HOLD,
    Fault.COLLISION: FaultResponse.HOLD,
    Fault.GRIPPER: FaultResponse.HOLD,
    Fault.BUS: FaultResponse.HOLD,  # the device keeps its last target; another process takes over
    Fault.POLICY_LOST: FaultResponse.HOLD,
    Fault.DEADLINE: FaultResponse.HOLD,
    Fault.OPERATOR: FaultResponse.HOLD,
    Fault.CONFIG: FaultResponse.HOLD,
}


class RobotFault(RuntimeError):
    """Raised by a driver; the only exception of a driver that the loop understands."""

    def __init__(self, fault: Fault, message: str):
        super().__init__(f"{fault.value}: {message}")
        self.fault = fault


@dataclass(frozen=True)
class RobotState:
    """One measurement. ``t_host`` says when it was true, as well as the driver can know."""

    t_device: float  # s, the device's own clock
    t_host: float  # s, monotonic
    seq: int  # rises with every new measurement; the same number is the same measurement
    qpos: Array  # (n,) rad
    qvel: Array  # (n,) rad/s
    effort: Array  # (n,) N m, of the motors
    gripper: float  # 0 closed, 1 open
    fault: Fault = Fault.NONE
    derate: float = 1.0  # share of full speed that the device still allows: below 1 when warm
    outside: Array | None = None  # (n,) N m of it that the arm's own model does not explain
    braked: Array | None = None  # (3, n) rad, rad/s, rad/s^2 of the last target, where who owns the
    # port had to brake since the last measurement, for want of a target in time


@dataclass(frozen=True)
class Target:
    """Where the joints should be one period from now."""

    qpos: Array  # (n,) rad
    gripper: float  # 0 closed, 1 open


@dataclass(frozen=True)
class MovingTarget(Target):
    """A target, and how the command moves there: who must go on from it alone can brake."""

    qvel: Array  # (n,) rad/s
    qacc: Array  # (n,) rad/s^2
    acceleration: Array  # (n,) rad/s^2, of a stop from there
    jerk: Array  # (n,) rad/s^3, the same


@dataclass(frozen=True)
class Sent:
    """The target that the device received, after its own rounding and clipping."""

    qpos: Array  # (n,) rad
    gripper: float  # 0 closed, 1 open
    t_host: float  # s, monotonic


def check_target(target: Target, enabled: bool) -> None:
    """Returns where ``target`` can be sent.

    Raises:
        RobotFault: The arm is not ``enabled``, or the target is not finite.
    """
    if not enabled:
        raise RobotFault(Fault.DISCONNECTED, "call enable() first")
    if not (np.isfinite(target.qpos).all() and np.isfinite(target.gripper)):
        raise RobotFault(Fault.NONFINITE, f"target {target} is not finite and cannot be sent")


def target_change_text(sent: Sent, target: Target, joints: tuple[str, ...]) -> str:
    """What the device made of a target, in words, where its rounding does not explain that."""
    by = np.abs(sent.qpos - target.qpos)
    if by.max() <= ROUNDING:
        return ""
    i = int(by.argmax())
    return (
        f"{joints[i]}: sent {target.qpos[i]:.3f} rad, the device took {sent.qpos[i]:.3f} rad: its "
        "limits differ from those that its driver describes"
    )


@dataclass(frozen=True, eq=False)
class Description:
    """What is known of an arm before it is connected.

    Raises:
        ValueError: An array has another shape or is not finite, or the period is not above 0.
    """

    name: str  # "so101"
    joints: tuple[str, ...]  # n names, base to tool
    position: Array  # (n, 2) rad, low and high
    velocity: Array  # (n,) rad/s
    acceleration: Array  # (n,) rad/s^2
    period: float  # s between two targets
    gripper_speed: float = 5.0  # 1/s, of the 0..1 range
    jerk: Array | None = None  # (n,) rad/s^3; None: the acceleration builds up in 20 ms
    effort: Array | None = None  # (n,) N m that the joints can do; None: unknown
    overload: Array | None = None  # (n,) measured N m that motors give up at; None: they do not

    @classmethod
    def of(cls, robot: Robot | ArmNumbers, period: float, **known: Any) -> Description:
        """What is known of ``robot`` (sims/robots), with what is ``known`` otherwise."""
        return cls(
            **{
                "name": robot.name,
                "joints": robot.joints,
                "position": robot.joint_range,
                "velocity": robot.velocity_limit,
                "acceleration": robot.acceleration_limit,
                "jerk": robot.jerk,
                "effort": robot.effort_limit,
                "overload": robot.overload * robot.effort_limit if robot.overload else None,
                "period": period,
            }
            | known
        )

    def __post_init__(self) -> None:
        n = len(self.joints)
        if self.jerk is None:
            from sims.robots.robot import JERK_S

            object.__setattr__(self, "jerk", np.asarray(self.acceleration, float) / JERK_S)
        shapes = {"position": (n, 2), "velocity": (n,), "acceleration": (n,), "jerk": (n,)}
        if self.effort is not None:
            shapes["effort"] = (n,)
        if self.overload is not None:
            shapes["overload"] = (n,)
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), float)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(
                    f"{self.name}: {name} must be finite with shape {shape} for the joints "
                    f"{', '.join(self.joints)}; got shape {array.shape}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if not self.period > 0:
            raise ValueError(f"{self.name}: period must be above 0 s, got {self.period}")


@dataclass(frozen=True)
class Identity:
    """Which device answered."""

    model: str
    serial: str
    firmware: str
    calibration: str  # hash of the calibration in use; "" where the arm has none


@runtime_checkable
class RobotDriver(Protocol):
    """One arm. Every method may raise RobotFault, and nothing else, for what the device does."""

    def describe(self) -> Description:
        """Names and limits; answers before ``connect``."""
        ...

    def connect(self) -> None:
        """Opens the port. Torque stays off."""
        ...

    def identify(self) -> Identity:
        """The device at the other end."""
        ...

    def enable(self) -> None:
        """Stiffens the arm where it is: targets are set to the measured pose first.

        A joint that is stiff already keeps its target, as by ``hold``.
        """
        ...

    def read(self) -> RobotState:
        """The newest measurement."""
        ...

    def send(self, target: Target) -> Sent:
        """Hands over one target and returns at once with what was really sent."""
        ...

    def hold(self) -> None:
        """Stays stiff at the last target; a joint that is ``LOST`` stops where it is.

        May be called again, and moves nothing then.
        """
        ...

    def last_target(self) -> Target | None:
        """Returns the target that the device last took; None where it holds its own position."""
        ...

    def relax(self) -> dict[str, bool]:
        """Turns torque off; returns {joint: whether it confirmed}, and continues past a failure."""
        ...

    def clear_fault(self) -> None:
        """Clears a latched fault of the device; an operator's decision, never the loop's."""
        ...

    def close(self) -> None:
        """Closes the port. May be called again."""
        ...
