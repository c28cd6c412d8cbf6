"""Operator: a person who may take the arm from the policy, and the dead-man's rule.

A device (keys, a gamepad, a leader arm; ``real_robot/operator``) answers with what the person wants
now. The answer is dated: one that is too old means that the device is gone, and the arm is held.
Nobody at the device is an answer too, ``engaged`` false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import mujoco
import numpy as np

from real_robot.core.arm_layout import ArmLayout, robot_of
from real_robot.core.driver import Fault
from real_robot.safety.stages.stage import SafetyStop, TargetRequest, TargetSource
from sims.core.task import Task

Array = np.ndarray

DISCARD, FILTER = "discard", "filter"  # thrown away; the safety filter, which stopped it
VERDICTS = ("success", "failure", DISCARD)
LEAD = 0.5  # rad between a leading arm and the one it takes
DAMPING, TURNING = 0.01, 0.02  # m; m/rad, what a turn of the jogged tool weighs


class RunVerdict(NamedTuple):
    """What a run came to."""

    what: str  # one of VERDICTS; "": none given
    by: str  # "operator", "simulator", FILTER


@dataclass(frozen=True)
class OperatorInput:
    """What a person wants."""

    t: float  # s, monotonic, when the device was read
    engaged: bool  # whether the operator has control
    qvel: Array | None = None  # (n,) rad/s, to jog the joints; or
    qpos: Array | None = None  # (n,) rad, to lead them, as a leader arm does; or
    gripper: float | None = None  # 0 closed, 1 open; None: as it is
    tool: Array | None = None  # (3,) m/s in the world, to jog the tool
    verdict: str = ""  # one of VERDICTS, which ends the run; "": the run continues


class Operator(Protocol):
    """A device; returns at once with the newest it has, None while there was nothing yet."""

    def read(self) -> OperatorInput | None:
        """What the person wants now."""
        ...


class ToolJog:
    """How joints move the tool of an arm: damped least squares that keep its direction if it can be
    kept (Nakamura and Hanafusa 1986)."""

    def __init__(self, task: Task[Any]):
        model, robot = task.spec().compile(), robot_of(task)
        arm = ArmLayout(model, robot)
        self._model, self._data, self._qpos, self._dofs = (
            model,
            mujoco.MjData(model),
            arm.qpos,
            arm.qvel,
        )
        self._site = model.site(robot.tool_site).id
        self._fastest = robot.velocity_limit

    def qvel(self, qpos: Array, wanted: Array) -> Array:
        """(n,) rad/s that move the tool by ``wanted`` (3,) m/s from ``qpos`` (n,) rad."""
        model, data = self._model, self._data
        data.qpos[self._qpos] = qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        moves, turns = np.empty((2, 3, model.nv))
        mujoco.mj_jacSite(model, data, moves, turns, self._site)
        jacobian = np.concatenate([moves[:, self._dofs], TURNING * turns[:, self._dofs]])  # (6, n)
        normal = jacobian.T @ jacobian + DAMPING**2 * np.eye(len(qpos))
        qvel = np.linalg.solve(normal, jacobian[:3].T @ np.asarray(wanted, float))
        return qvel / max(1.0, float((np.abs(qvel) / self._fastest).max()))


@dataclass(frozen=True)
class OperatorHandover:
    """Turns operator input into target requests, and checks who has control of the arm."""

    period: float  # s
    max_age: float = 0.1  # s, oldest input of an operator in control to act on
    tool: ToolJog | None = None

    def engaged(self, given: OperatorInput | None, now: float, driving: bool) -> bool:
        """Returns whether the operator has control.

        Raises:
            SafetyStop: The device is silent while the operator had control (``driving``).
        """
        if given is not None and now - given.t <= self.max_age:
            return given.engaged
        if driving:
            age = (
                "has sent no input"
                if given is None
                else f"has sent no input for {now - given.t:.2f} s"
            )
            raise SafetyStop(
                Fault.OPERATOR, f"the operator's device {age} while the operator had control"
            )
        return False

    def refused(self, given: OperatorInput, command: Array, joints: Sequence[str]) -> str:
        """Returns why an operator may not take an arm whose last command was ``command`` (n,) rad;
        "" if they may. A leader arm has to be within ``LEAD`` of it, or the arm would jump."""
        if given.qpos is None:
            return ""
        apart = np.abs(given.qpos - command)
        if apart.max() <= LEAD:  # a NaN is not near
            return ""
        i = int(apart.argmax())
        return (
            f"no handover: the leader arm's {joints[i]} is {apart[i]:.2f} rad from the robot's, "
            f"allowed is {LEAD} rad; bring it to {command[i]:+.2f} rad"
        )

    def target_request(
        self, given: OperatorInput, command: Array, gripper: float, dial: float
    ) -> TargetRequest:
        """Returns the target request of an arm whose last command was ``command`` (n,) rad."""
        qvel = given.qvel if given.qpos is None else None
        if given.tool is not None and self.tool is not None:
            qvel = self.tool.qvel(command, given.tool)
        qpos = command + qvel * self.period if qvel is not None else given.qpos
        return TargetRequest(
            command if qpos is None else qpos,
            gripper if given.gripper is None else given.gripper,
            qvel=qvel,
            source=TargetSource.HUMAN,
            origin=None if qvel is None else command,  # a jog goes on from there by itself
            t=given.t,
            dial=dial,
        )
