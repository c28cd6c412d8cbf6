"""What a bundle's manifest says of a task and its arm; loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from real_robot.core.arm_layout import ArmLayout, robot_of
from real_robot.core.clearance import Clearance
from real_robot.core.driver import RobotState
from real_robot.core.manifest import InputSpec, Limits, SensedSpec, StartSet
from real_robot.perception.base import Pose
from real_robot.policy.twin import Twin
from sims.core.task import ObsPart, Task
from sims.envs.batch_env import BatchEnv
from sims.robots import Robot

Array = np.ndarray

EXPORT_SEED = 600_000_000  # of the episodes that this is read off
_UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])  # w x y z
_PARK_ROOM = 0.01  # m, under the tool of a parked arm
_LEAST_TOLERANCE = 0.02  # rad, an arm cannot be put down more exactly


def limits_of(robot: Robot, workspace: tuple[float, ...]) -> Limits:
    """Returns the limits within which the arm was driven in training."""
    jerk = () if robot.jerk_limit is None else tuple(robot.jerk_limit.tolist())
    lag = (float(robot.lag_limit),) * len(robot.joints) if np.isfinite(robot.lag_limit) else ()
    return Limits(
        velocity=tuple(robot.velocity_limit.tolist()),
        acceleration=tuple(robot.acceleration_limit.tolist()),
        jerk=jerk,
        lag=lag,
        workspace=workspace,
    )


def park_of(task: Task[Any]) -> tuple[float, ...]:
    """(n,) rad: from home the tool is lowered until little room is left under it.

    A limp arm sinks from there by that much and no more.
    """
    robot = robot_of(task)
    clearance, twin = Clearance.of(task, margin=_PARK_ROOM), Twin(task)
    zero, pose = np.zeros(len(robot.joints)), np.array(robot.home)
    down = np.zeros(task.act_dim)
    down[2] = -1.0
    for _ in range(100):
        state = RobotState(0.0, 0.0, 0, pose, zero, zero, 0.0)
        twin.commit(pose, 0.0)
        twin.observe(state, {})
        lower = twin.target(down).qpos
        if clearance.near(lower, 0.0).room < _PARK_ROOM or np.abs(lower - pose).max() < 1e-6:
            break
        pose = lower
    return tuple(pose.tolist())


def starts_of(task: Task[Any]) -> StartSet:
    """The box of joint angles that episodes begin in, from many resets."""
    env = BatchEnv(task, 1024, seed=EXPORT_SEED)
    env.reset()
    layout = ArmLayout(env.model, robot_of(task))
    qpos = env.batch.qpos[:, layout.qpos]
    low, high = qpos.min(axis=0), qpos.max(axis=0)
    opening = np.array([layout.opening(angle) for angle in env.batch.qpos[:, layout.jaw]])
    env.close()
    return StartSet(
        centre=tuple(((low + high) / 2).tolist()),
        tolerance=tuple(np.maximum((high - low) / 2, _LEAST_TOLERANCE).tolist()),
        gripper=float(opening.mean()) if np.ptp(opening) < 0.01 else None,
    )


def inputs_of(task: Task[Any]) -> tuple[InputSpec, ...]:
    """The observation's columns; those that move with an object alone need perception."""
    twin = Twin(task)
    robot = robot_of(task)
    zero = np.zeros(len(robot.joints))
    state = RobotState(0.0, 0.0, 0, robot.home, zero, zero, 0.0)

    rng = np.random.default_rng(EXPORT_SEED)

    def observe() -> Array:
        anywhere = {name: Pose(rng.normal(size=3), _UPRIGHT, 0.0) for name in twin.entities}
        return twin.observe(state, anywhere)

    moved = observe() != observe()
    units = {"": ""} | {doc.name: doc.unit for doc in task.sensed_docs()}
    parts = task.obs_parts()
    inputs, at = [], 0
    for name, width in twin.columns.items():
        source = "perception" if moved[at : at + width].any() else "joints"
        made_of = tuple(parts.get(name, ()))
        unit = _unit(made_of, units)
        inputs.append(InputSpec(name=name, shape=(width,), unit=unit, source=source, parts=made_of))
        at += width
    return tuple(inputs)


def _unit(parts: Sequence[ObsPart], units: Mapping[str, str]) -> str:
    """What the value 1 of a column is worth; "" where its parts differ in that."""
    worth = {(part.scale, units[part.plus]) for part in parts}
    if len(worth) != 1:
        return ""
    ((scale, unit),) = worth
    return unit if scale == 1.0 else f"{1 / scale:g} {unit}"


def sensed_of(task: Task[Any]) -> tuple[SensedSpec, ...]:
    """Returns the sensed signals from which the parts of the observation are computed."""
    named = {x for parts in task.obs_parts().values() for p in parts for x in (p.plus, p.minus)}
    return tuple(
        SensedSpec(name=d.name, shape=d.shape, unit=d.unit, frame=d.frame, doc=d.doc)
        for d in task.sensed_docs()
        if d.name in named
    )
