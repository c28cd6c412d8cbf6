"""PolicyRunner: what a policy wishes, period by period, from measurements and perceived objects."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from real_robot.core.config import RunConfig
from real_robot.core.driver import Description, Fault, RobotState, Target
from real_robot.core.manifest import BundleError
from real_robot.core.pacing import Clock
from real_robot.perception.base import Perception, Pose
from real_robot.perception.occlusion import OcclusionBound
from real_robot.perception.pose_filter import PoseKalmanFilter
from real_robot.policy.bundle import PolicyBundle
from real_robot.policy.process import PolicyLate, PolicyProcess
from real_robot.policy.twin import Twin
from real_robot.safety.filter import SafetyStop, TargetRequest, TargetSource
from sims.core.task import Task

Array = np.ndarray

LATE = 1  # ticks for which the last goal is kept where the policy does not answer
_FUTURE = -0.001  # s, two clocks read one after the other


class PolicyOutput(NamedTuple):
    """One answer of the policy."""

    obs: Array  # (obs_dim,) f32
    action: Array  # (act_dim,) f32
    begun: float  # s, before objects were perceived
    seen: float  # s, once the observation was known
    done: float  # s, once the action was known
    poses: Mapping[str, Pose] = MappingProxyType({})  # of the objects that it was about


class PolicyRunner:
    """A policy bundle and the twin it sees the world through; refuses what does not fit.

    Raises:
        BundleError: Bundle, task and arm do not fit, or perception is missing.
    """

    def __init__(
        self,
        bundle: PolicyBundle,
        task: Task[Any],
        robot: Description,
        perception: Perception | None,
        clock: Clock,
        config: RunConfig,
        policy: PolicyProcess | None = None,
    ):
        bundle.check_robot(robot)
        bundle.check_task(task.card())
        self._twin = Twin(task)
        bundle.check_columns(self._twin.columns)
        needed = bundle.manifest.needs_perception
        if needed and perception is None:
            raise BundleError(
                f"inputs: the policy needs the poses of {', '.join(self._twin.entities)}, but "
                "the robot has no perception; pass perception="
            )
        self.per_action = round(bundle.manifest.control_dt / robot.period)  # periods
        self.actions, self.start = 0, bundle.manifest.start
        self.calibration = bundle.manifest.calibration
        self._moves = bundle.manifest.action.kind != "none"
        self.thought: PolicyOutput | None = None  # of this period; None between actions
        self._watching = False  # somebody else drives
        self._policy, self._clock = policy or bundle, clock
        self._beat = getattr(policy, "beat", None) or (lambda: None)
        self._late = 0  # ticks in a row without an answer
        self._perception = perception if needed else None
        self._config = config
        self._steady = PoseKalmanFilter(config.pose_noise, config.pose_drift)
        self._hidden = OcclusionBound(task) if self._perception is not None else None
        self._poses: Mapping[str, Pose] = {}
        self._state: Array | None = None  # of a recurrent policy
        self._due = self._begun = 0  # periods: next action, last action
        self._period = robot.period

    def missing_objects(self, state: RobotState) -> str:
        """Reads all poses; says which object's nobody can vouch for, "" if there is none.

        A pose counts while it is young, and longer for an object that cannot have moved far from
        it, since the arm has not been near or has hardly moved there (``OcclusionBound``).
        """
        if self._perception is None or self._hidden is None:
            return ""
        self._poses, now = self._steady.take(self._perception.read()), self._now()
        self._hidden.observe(state.qpos, state.gripper, self._poses)
        config = self._config
        for name in self._twin.entities:
            if name not in self._poses:
                return f"{name} was never seen"
            age, doubt = now - self._poses[name].t, self._hidden.doubt.get(name, np.inf)
            known = doubt <= config.max_doubt and age <= config.max_hidden
            if age < _FUTURE or (age > config.max_pose_age and not known):
                return (
                    f"the pose of {name} is {age:.3f} s old, allowed is {config.max_pose_age} s; "
                    f"it may have moved by {doubt:.3f} m"
                )
        return ""

    def ages(self, now: float) -> dict[str, float]:
        """Returns {object: age s of the pose that was last acted on}."""
        return {name: now - pose.t for name, pose in self._poses.items()}

    def target(self, state: RobotState, index: int, goal: Array, gripper: float) -> TargetRequest:
        """The wish for period ``index``, when the arm is on its way to ``goal`` (n,) rad.

        Steps count from there, as in training: the goal is what the last action came to after
        every limit; the command is where shaping has brought the arm on the way to it.

        The policy is asked once every ``per_action`` periods, also where periods were skipped; in
        between, the wish goes to what it wants in equal parts.

        Raises:
            SafetyStop: No answer came in time, an object's pose is too old, or a number is not
                finite.
        """
        self.thought = None
        if index < self._due:
            self._beat()
            if self._watching:  # given back between two actions: it waits for the next
                return TargetRequest(goal, gripper, source=TargetSource.POLICY)
        else:
            self._watching = False
            self._twin.commit(goal, gripper)
            try:
                wanted = self._think(state)
                self._goal = wanted if self._moves else Target(goal, gripper)
            except PolicyLate:
                self._late += 1
                if self._late > LATE:
                    raise SafetyStop(
                        Fault.POLICY_LOST, f"no policy output for {self._late} ticks"
                    ) from None
                return TargetRequest(
                    goal, gripper, source=TargetSource.POLICY
                )  # asked anew in the next period
            self._late = 0
            self.actions += 1
            self._from, self._begun, self._measured = goal, index, state.t_host
            self._due = (index // self.per_action + 1) * self.per_action
        periods = self._due - self._begun
        part = min(1.0, (index - self._begun + 1) / periods)
        way = self._goal.qpos - self._from
        return TargetRequest(
            self._from + part * way,
            self._goal.gripper,
            qvel=way / (periods * self._period),
            source=TargetSource.POLICY,
            origin=self._from,
            t=self._measured,
        )

    def watch(self, state: RobotState, index: int, goal: Array, gripper: float) -> None:
        """Logs what the policy would do while the operator drives the arm to ``goal`` (n,) rad.

        The policy is asked as often as otherwise, and once more when it has the arm again.

        An object that is hidden then, and an answer that is late, leave a gap in the log.
        """
        self.thought, self._watching = None, True
        if index < self._due:
            self._beat()
            return
        self._due = (index // self.per_action + 1) * self.per_action
        self._twin.commit(goal, gripper)
        try:
            self._think(state)
        except PolicyLate:
            pass
        except SafetyStop as error:
            if error.fault is not Fault.STALE:
                raise
            self._beat()

    def _think(self, state: RobotState) -> Target:
        begun = self._now()
        problem = self.missing_objects(state)
        if problem:
            raise SafetyStop(Fault.STALE, problem)
        obs = self._twin.observe(state, self._poses)
        _finite(obs, "the observation")
        seen = self._now()
        action, self._state = self._policy.act(obs, self._state)
        done = self._now()
        _finite(action, "the action")
        self.thought = PolicyOutput(obs, action, begun, seen, done, self._poses)
        return self._twin.target(action)

    def _now(self) -> float:
        return self._clock.now_ns() * 1e-9


def _finite(values: Array, what: str) -> None:
    if not np.isfinite(values).all():
        raise SafetyStop(Fault.NONFINITE, f"{what} is {np.round(values, 3)}")
