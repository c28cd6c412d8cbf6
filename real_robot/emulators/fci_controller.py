"""The controller of a Franka arm: its modes, the motion that a client streams, what stops it.

``cycle`` is a millisecond. A motion is a stream of joint positions or speeds, one a cycle, which
the arm's own impedance controller follows; the simulated arm's actuators stand for that. Commands
are held to the maker's necessary conditions. One that is missing is made up for with a constant
acceleration; more than 20 in a row are a reflex. Reflexes are ended by ``recover``, the user stop
by whoever releases it. Torque, Cartesian and asynchronous motions are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from real_robot.emulators.fci import (
    ACCELERATION,
    ENDS,
    ERRORS,
    JERK,
    JOINT_IMPEDANCE,
    NO_GENERATOR,
    OTHER_CONTROLLER,
    STATE,
    Generator,
    Mode,
    MoveStatus,
    Status,
    fastest,
)
from real_robot.emulators.physics import ArmPhysics, JointTargetHistory

Array = np.ndarray

CYCLE = 0.001  # s
LOST = 20  # commands missing in a row that are borne
START = 0.001  # rad by which a motion may begin elsewhere than where the arm is held
ROUNDING = 1.1  # of limits: positions are told in single precision
BRAKING = 8.0  # rad/s^2, of a stop by the controller itself
SMOOTH = 0.1  # a cycle, of what pushes on it from outside
RECOVERY = 200  # cycles that an error recovery takes
HAND_MASS, HAND_COM = 0.73, (-0.01, 0.0, 0.03)  # kg, m: the maker's settings for its hand
TURNED = np.sqrt(0.5)  # cosine and sine of the angle between flange and hand
REACH = 0.1034  # m from the flange to between the fingertips


@dataclass
class FciMotion:
    """What a Move has begun."""

    call: int  # its number
    generator: Generator
    commanded: bool = False  # a first command has come
    lost: int = 0  # in a row


class FciController:
    """One arm of n joints; ``ended(call, status)`` hears of motions that are over."""

    def __init__(self, physics: ArmPhysics, ended: Callable[[int, MoveStatus], None]):
        self.physics, self._ended = physics, ended
        self.n = len(physics.robot.joints)
        self.time = 0  # ms since it was switched on
        self.mode = Mode.IDLE
        self.motion: FciMotion | None = None
        self.errors: set[str] = set()  # that keep it from moving
        self.reasons: set[str] = set()  # of the last reflex
        self.manual = False  # errors must be cleared at the arm
        self.hand_mass = HAND_MASS  # kg, as set in Desk; 0: no hand
        self.contact = self.collision = np.full(self.n, 20.0)  # N m, thresholds
        self.stops: list[str] = []  # why motions ended, newest last
        self.joint_targets = JointTargetHistory(self.n, CYCLE)
        self.lost = 0  # commands, in all
        self._came: deque[bool] = deque(maxlen=100)
        self._recovered = 0  # time at which a recovery is over
        self._state = np.zeros((), STATE)
        self._state["F_T_EE"] = self._state["F_T_NE"] = _matrix(
            [[TURNED, TURNED, 0], [-TURNED, TURNED, 0], [0, 0, 1]], (0, 0, REACH)
        )
        self._state["NE_T_EE"] = self._state["EE_T_K"] = _matrix(np.eye(3), (0, 0, 0))
        self._state["F_x_Cee"], self._state["O_ddP_O"] = HAND_COM, (0.0, 0.0, -9.81)
        self.rest()

    def rest(self) -> None:
        """It holds the arm where it is, brakes released."""
        self.physics.torque[:] = 1.0
        self.q = self.physics.qpos[: self.n].copy()  # as commanded, with its derivatives
        self.dq, self.ddq = np.zeros(self.n), np.zeros(self.n)
        self.hardest = np.zeros(3)  # rad/s, rad/s^2, rad/s^3 of the commands since then
        self._outside = np.zeros(self.n)  # N m, what its model does not explain, smoothed

    # What it is asked for.
    def move(self, call: int, controller: int, generator: int, asynchronous: bool) -> MoveStatus:
        """The first answer to Move."""
        if self.mode is not Mode.IDLE or self.motion is not None:
            return MoveStatus.NOT_POSSIBLE
        known = tuple(Generator)
        if controller != JOINT_IMPEDANCE or generator not in known or asynchronous:
            return MoveStatus.INVALID
        self.motion, self.mode = FciMotion(call, Generator(generator)), Mode.MOVE
        self.reasons = set()
        return MoveStatus.STARTED

    def stop(self) -> Status:
        """The answer to StopMove; the arm brakes."""
        if self.motion is None:
            return Status.NOT_POSSIBLE
        self.end(MoveStatus.PREEMPTED, "stopped by its client")
        return Status.SUCCESS

    def recover(self) -> Status:
        """The answer to AutomaticErrorRecovery."""
        if self.mode is Mode.USER_STOPPED:
            return Status.RECOVERY_STOPPED
        if self.manual:
            return Status.RECOVERY_MANUAL
        if self.mode not in (Mode.REFLEX, Mode.IDLE):
            return Status.NOT_POSSIBLE
        self.mode, self._recovered = Mode.RECOVERY, self.time + RECOVERY
        return Status.SUCCESS

    def end(self, status: MoveStatus, why: str) -> None:
        """The motion is over, if there is one."""
        motion, self.motion = self.motion, None
        if self.mode is Mode.MOVE:
            self.mode = Mode.IDLE
        if motion is not None:
            self.stops.append(why)
            self._ended(motion.call, status)

    # What happens to it.
    def reflex(self, error: str) -> None:
        """It stops the arm by itself, and moves it no more until it is recovered.

        Raises:
            ValueError: The robot knows no such error.
        """
        if error not in ERRORS:
            raise ValueError(f"unknown error {error!r}; available: {', '.join(ERRORS)}")
        self.errors.add(error)
        self.reasons = {error}
        self.end(MoveStatus.REFLEX_ABORTED, error)
        self.mode = Mode.REFLEX

    def user_stop(self, pressed: bool) -> None:
        """Someone presses the button, or releases it."""
        if pressed:
            self.end(MoveStatus.EMERGENCY_ABORTED, "user stop")
            self.mode = Mode.USER_STOPPED
        elif self.mode is Mode.USER_STOPPED:
            self.mode = Mode.REFLEX if self.errors else Mode.IDLE

    def guide(self, guided: bool) -> None:
        """Someone takes the arm by its hand to guide it, or lets go."""
        if guided:
            self.end(MoveStatus.ABORTED, "guiding")
        self.mode = Mode.GUIDING if guided else Mode.IDLE

    # Its clock.
    def cycle(self, command: np.ndarray | None) -> None:
        """A millisecond; ``command`` (a record of shape ()) has come in it, or none."""
        self.time += 1
        motion = self.motion
        if self.mode is Mode.RECOVERY and self.time >= self._recovered:
            self.mode, self.errors = Mode.IDLE, set()
        if motion is None:
            self._brake()
        elif command is not None:
            self._take(motion, command)
        elif motion.commanded:
            self._miss(motion)
        self._outside += SMOOTH * (self.physics.outside[: self.n] - self._outside)
        if self.motion is not None and np.any(np.abs(self._outside) > self.collision):
            self.reflex("joint_reflex")
        self.physics.goal[: self.n] = self.q

    def _miss(self, motion: FciMotion) -> None:
        motion.lost += 1
        self.lost += 1
        self._came.append(False)
        if motion.lost > LOST:
            self.reflex("communication_constraints_violation")
            return
        self.dq = np.clip(self.dq + self.ddq * CYCLE, *fastest(self.q))
        self.q = self.q + self.dq * CYCLE

    def _take(self, motion: FciMotion, command: np.ndarray) -> None:
        motion.lost = 0
        self._came.append(True)
        if command["motion_generation_finished"]:
            still = np.abs(self.dq).max() < 0.05
            status = MoveStatus.SUCCESS if still else MoveStatus.REFLEX_ABORTED
            self.end(status, "finished by its client")
            return
        if motion.generator is Generator.JOINT_POSITION:
            q = command["q_c"].copy()
            dq = (q - self.q) / CYCLE
        else:
            dq = command["dq_c"].copy()
            q = self.q + dq * CYCLE
        ddq = (dq - self.dq) / CYCLE
        if error := self._wrong(motion, q, dq, ddq):
            self.reflex(error)
            return
        motion.commanded = True
        jerk = (ddq - self.ddq) / CYCLE
        hard = [float(np.abs(x).max()) for x in (dq, ddq, jerk)]
        self.hardest = np.maximum(self.hardest, hard)
        self.joint_targets.add(slice(None), q, self.q)
        self.q, self.dq, self.ddq = q, dq, ddq

    def _wrong(self, motion: FciMotion, q: Array, dq: Array, ddq: Array) -> str:
        """Which necessary condition a command breaks."""
        if not np.isfinite(q).all():
            return "joint_motion_generator_position_limits_violation"
        if not motion.commanded and np.abs(q - self.q).max() > START:
            return "joint_position_motion_generator_start_pose_invalid"
        if np.any((q < ENDS[:, 0]) | (q > ENDS[:, 1])):
            return "joint_motion_generator_position_limits_violation"
        low, high = fastest(self.q)
        if np.any((dq < low * ROUNDING - 0.01) | (dq > high * ROUNDING + 0.01)):
            return "joint_motion_generator_velocity_limits_violation"
        if np.abs(ddq).max() > ACCELERATION * ROUNDING:
            return "joint_motion_generator_velocity_discontinuity"
        if np.abs(ddq - self.ddq).max() > JERK * CYCLE * ROUNDING:
            return "joint_motion_generator_acceleration_discontinuity"
        return ""

    def _brake(self) -> None:
        if self.mode is Mode.GUIDING:
            self.q = self.physics.qpos[: self.n].copy()
        change = np.clip(-self.dq, -BRAKING * CYCLE, BRAKING * CYCLE)
        self.ddq = change / CYCLE
        self.dq = self.dq + change
        self.q = np.clip(self.q + self.dq * CYCLE, ENDS[:, 0], ENDS[:, 1])

    # What it tells.
    def state(self) -> bytes:
        """Everything, as it goes over the wire."""
        physics, state, n = self.physics, self._state, self.n
        state["message_id"] = self.time
        state["q"] = state["theta"] = physics.qpos[:n]
        state["dq"] = state["dtheta"] = physics.qvel[:n]
        state["q_d"], state["dq_d"], state["ddq_d"] = self.q, self.dq, self.ddq
        outside = self._outside
        state["tau_J"] = (physics.effort + physics.gravity)[:n]
        state["tau_J_d"] = state["tau_J"] - outside
        state["tau_ext_hat_filtered"] = outside
        state["joint_contact"] = np.abs(outside) > self.contact
        state["joint_collision"] = np.abs(outside) > self.collision
        state["O_T_EE"] = state["O_T_EE_d"] = state["O_T_EE_c"] = self._tool()
        state["m_ee"] = self.hand_mass
        running = self.motion is not None
        state["motion_generator_mode"] = self.motion.generator + 1 if running else NO_GENERATOR
        state["controller_mode"] = JOINT_IMPEDANCE if running else OTHER_CONTROLLER
        state["robot_mode"] = self.mode
        state["errors"][: len(ERRORS)] = [name in self.errors for name in ERRORS]
        state["reflex_reason"][: len(ERRORS)] = [name in self.reasons for name in ERRORS]
        state["control_command_success_rate"] = self._rate() if running else 0.0
        return state.tobytes()

    def _rate(self) -> float:
        return sum(self._came) / max(1, len(self._came))

    def _tool(self) -> Array:
        """The pose of the tool's frame (16,), column by column."""
        place, turn = self.physics.tool
        along, across, out = turn.T  # the simulated hand has its jaws along x, the maker's along y
        return _matrix(np.column_stack([-across, along, out]), place)


def _matrix(turn: Array, place: Array) -> Array:
    """A pose (16,), column by column."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn, place
    return pose.T.ravel()
