"""ScriptedOperator: a file, a function or a task's expert in place of a person, for tests and
simulations.

The file is a CSV with a line of names: ``t`` s from when the arm is there to be taken, one column
in rad for each joint, and ``gripper`` (0 closed, 1 open) if it moves. Between two lines joints go
straight; behind the last line the arm is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from real_robot.core.driver import RobotState
from real_robot.operator.devices import DeviceContext
from real_robot.operator.handover import LEAD, Operator, OperatorInput
from real_robot.perception.base import Pose
from real_robot.policy.twin import Twin
from sims.envs.demonstrations import HELD

Array = np.ndarray

EXPERT = "expert"
SEEN = 0.75  # s for which it sees its goal reached, and stays there, before it stops
NOISE = 0.1  # of the expert's actions, as in ``robo-rl demos``


def make_scripted(where: str, around: DeviceContext) -> Operator:
    """``scripted:expert``, or ``scripted:FILE``."""
    if where == EXPERT:
        return ExpertOperator(around)
    return ScriptedOperator(from_file(Path(where), around.robot.joints), around)


class ScriptedOperator:
    """Answers with what ``script(t)`` says, ``t`` s after it was first asked; None: not engaged."""

    def __init__(self, script: Callable[[float], OperatorInput | None], around: DeviceContext):
        self._script, self._now = script, around.now
        self._begun: float | None = None

    def read(self) -> OperatorInput:
        """The script's present."""
        now = self._now()
        self._begun = now if self._begun is None else self._begun
        said = self._script(now - self._begun)
        return OperatorInput(now, False) if said is None else replace(said, t=now)


def from_file(path: Path, joints: tuple[str, ...]) -> Callable[[float], OperatorInput | None]:
    """The script in a CSV file; its hands are dated when they are asked for.

    Raises:
        ValueError: A column is missing, a number is not finite, or times do not increase.
    """
    names = path.read_text().partition("\n")[0].strip().split(",")
    wanted = ("t", *joints)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(f"{path}: its first line must name {', '.join(wanted)}; got {names}")
    rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    if not len(rows) or rows.shape[1] != len(names) or not np.isfinite(rows).all():
        raise ValueError(f"{path}: expected lines of {len(names)} finite numbers")
    column = dict(zip(names, rows.T, strict=True))
    if not (np.diff(column["t"]) > 0).all():
        raise ValueError(f"{path}: column t must increase from line to line")

    def script(t: float) -> OperatorInput | None:
        if not column["t"][0] <= t <= column["t"][-1]:
            return None
        at = {name: float(np.interp(t, column["t"], values)) for name, values in column.items()}
        return OperatorInput(
            t, True, qpos=np.array([at[j] for j in joints]), gripper=at.get("gripper")
        )

    return script


class ExpertOperator:
    """A leader arm in the hand of the task's expert, which sees the arm and the objects as the
    policy would: through a twin, fed with measurements and the poses that are perceived.

    Its actions are disturbed as those of ``robo-rl demos`` are, so that what it shows is not one
    path alone. Like a person it stays once it sees the goal reached, and ends there (what it came
    to is judged by others): one that leaned on what it touches would overload a motor.

    Raises:
        ValueError: No object poses are known.
    """

    def __init__(self, around: DeviceContext):
        task, driver = around.task, around.driver
        if task is None or driver is None or around.eyes is None:
            raise ValueError(
                "--human scripted:expert needs object poses: give --emulate or --control"
            )
        task.need_expert()
        self._task, self._driver, self._eyes, self._now = task, driver, around.eyes, around.now
        self._twin, self._period = _ExpertTwin(task), around.robot.period
        self._rng = np.random.default_rng(around.seed)
        self._drift = np.zeros(task.act_dim)
        self._due = self._begun = -np.inf
        self._short = around.now()  # when it last saw that something was missing
        self._from: Array | None = None

    def read(self) -> OperatorInput | None:
        """Where the leader is now, on its way to where the expert's last action leads."""
        now, state = self._now(), getattr(self._driver, "state", None)
        if state is None:
            return None
        if now >= self._due - 1e-6:
            self._decide(state, now)
        # It is where it leads to when the next is decided, as a policy's target is.
        part = min(1.0, (now - self._begun + self._period) / self._task.control_dt)
        assert self._from is not None  # set by _decide
        qpos = self._from + part * (self._goal - self._from)
        done = now - self._short > SEEN
        return OperatorInput(
            now, True, qpos=qpos, gripper=self._gripper, verdict="success" if done else ""
        )

    def _decide(self, state: RobotState, now: float) -> None:
        first = self._from is None
        self._from = state.qpos.copy() if first else self._goal
        gripper = state.gripper if first else self._gripper
        self._drift = HELD * self._drift + np.sqrt(1 - HELD**2) * self._rng.normal(
            size=self._drift.shape
        )
        wanted = self._twin.expert(state, self._eyes.read(), self._from, gripper, self._rng)
        if not self._twin.reached():
            self._short = now
        disturbed = np.clip(wanted + NOISE * self._drift, -1.0, 1.0)
        if self._twin.reached():
            disturbed[:] = 0.0
        target = self._twin.target(disturbed)
        # The hand stays with the arm, as a person's would.
        self._goal = np.clip(target.qpos, state.qpos - LEAD / 2, state.qpos + LEAD / 2)
        self._gripper, self._begun = target.gripper, now
        self._due = now + self._task.control_dt


class _ExpertTwin(Twin):
    """A twin that the task's expert looks at."""

    def expert(
        self,
        state: RobotState,
        poses: Mapping[str, Pose],
        goal: Array,
        gripper: float,
        rng: np.random.Generator,
    ) -> Array:
        """The expert's action (act_dim,), the arm being on its way to ``goal`` (n,) rad."""
        self.commit(goal, gripper)
        self.observe(state, poses)
        return np.array(self.task.expert(self._views, rng)[0], float)

    def reached(self) -> bool:
        """Whether the goal holds in what was last observed."""
        return bool(self.task.goals()[self.task.goal].success(self._views)[0])


class RememberingDriver:
    """A driver whose newest measurement others may look at."""

    def __init__(self, driver: Any):
        self._driver, self.state = driver, None

    def read(self) -> RobotState:
        """The measurement."""
        self.state = self._driver.read()
        return self.state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)
