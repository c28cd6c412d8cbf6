"""GuardedDriver: a driver behind the safety filter, the only way by which targets are sent."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from real_robot.core.config import RunConfig
from real_robot.core.driver import (
    Fault,
    FaultResponse,
    MovingTarget,
    RobotDriver,
    RobotFault,
    RobotState,
    Sent,
    Target,
    hold_position,
    target_change_text,
)
from real_robot.core.pacing import Clock
from real_robot.safety.filter import FilterMemory, SafetyFilter, SafetyStop
from real_robot.safety.stages.lag import LEANING

Array = np.ndarray


class Exchange(NamedTuple):
    """One measurement and what was sent in answer to it."""

    state: RobotState
    requested: Target
    filtered: Target
    sent: Sent
    flags: Mapping[str, Array]  # {stage: (n,) bool}
    t: float  # s, when it was sent
    goal: Array  # (n,) rad, where the arm is on its way to, after every limit


class GuardedDriver:
    """Reads with patience, filters, sends, and remembers the last target."""

    sent: Sent  # the last target as the device took it
    state: RobotState  # the last measurement

    def __init__(self, driver: RobotDriver, safety: SafetyFilter, clock: Clock, config: RunConfig):
        self.driver, self.safety = driver, safety
        self._memory: FilterMemory | None = None
        self.retries = 0  # ticks without a measurement so far
        self._clock, self._max_retries = clock, config.max_retries
        self._lost = FailureRate(config.window, config.max_lost, safety.period)
        self._silent = 0  # the same, in a row
        self._spoilt: deque[float] = deque()  # s, when within the last second one came in spoilt
        self._allowed = max(2, int(config.max_spoilt / safety.period))

    @property
    def memory(self) -> FilterMemory:
        """The filter's, from ``seed`` on."""
        assert self._memory is not None
        return self._memory

    @memory.setter
    def memory(self, memory: FilterMemory) -> None:
        self._memory = memory

    def seed(self, *, stiff: bool = False) -> None:
        """The next target counts from where the arm is now.

        That of a ``stiff`` arm counts from what it was told, where the device can say: a soft joint
        hangs below its goal, and lower with every goal that is set to where it hangs.
        """
        while (state := self._read()) is None:
            pass
        memory = self.safety.start(state, self._now())
        if stiff and (told := self.driver.last_target()) is not None:
            qpos = hold_position(state.qpos, np.clip(told.qpos, *self.safety.position.T))
            command = memory.command._replace(qpos=qpos, gripper=told.gripper, goal=qpos)
            memory = dataclasses.replace(memory, command=command)
        self.memory = memory
        self.sent = Sent(self.memory.qpos, self.memory.gripper, state.t_host)

    @property
    def in_contact(self) -> Array:
        """(n,) bool: joints that push as hard as their motors give up at."""
        overload = self.driver.describe().overload
        return np.abs(self.state.effort) > LEANING * (np.inf if overload is None else overload)

    def compliant_start(self) -> Array:
        """Where a way begins, (n,) rad: at the last command, but where the arm is for joints that
        lean: what they lean on would be in the way."""
        return np.where(self.in_contact, self.state.qpos, self.memory.qpos)

    def exchange(
        self, wish: Callable[[RobotState], Target], *, move: bool = True
    ) -> Exchange | None:
        """Reads, asks ``wish`` for a target, and sends what is safe of it.

        None when no measurement came but a retry in the next period may still help: nothing is
        sent then, and the device keeps its last target. Without ``move`` the last command is sent
        again, whatever the filter would have made of the wish.
        """
        if (state := self._read()) is None:
            return None
        requested = wish(state)
        filtered, memory, flags = self.safety.step(state, requested, self._now(), self.memory)
        if move:
            self._send(filtered, memory)
        else:
            self.memory = dataclasses.replace(self.memory, seq=state.seq)
            self._send(Target(self.memory.qpos, self.memory.gripper), self.memory)
        goal = self.memory.goal
        return Exchange(state, requested, filtered, self.sent, flags, self._now(), goal)

    def brake(self) -> Exchange:
        """Sends the next target of the quickest stop; needs no new measurement."""
        filtered, memory = self.safety.brake(self.memory)
        self._send(filtered, memory)
        goal = self.memory.goal
        return Exchange(self.state, filtered, filtered, self.sent, {}, self._now(), goal)

    def _send(self, filtered: Target, memory: FilterMemory) -> None:
        command, stop = memory.command, self.safety.shaping
        target = MovingTarget(
            filtered.qpos,
            filtered.gripper,
            command.qvel,
            command.qacc,
            stop.acceleration,
            stop.jerk,
        )
        self.sent = self.driver.send(target)
        self.memory = memory
        if why := target_change_text(self.sent, target, self.safety.joints):
            raise SafetyStop(Fault.CONFIG, why)

    def _read(self) -> RobotState | None:
        """The newest measurement, None where the next try may still help."""
        try:
            state = self.driver.read()
            if state.fault is not Fault.NONE:
                raise RobotFault(
                    state.fault, "reported by the device; clear the fault before the next run"
                )
        except RobotFault as error:
            if error.fault.response is not FaultResponse.RETRY or self._silent >= self._max_retries:
                raise
            self.retries += 1
            self._silent += 1
            if lost := self._lost.add(self._now(), 1):
                raise SafetyStop(
                    error.fault,
                    f"{lost} measurements were lost in the last {self._lost.seconds:g} s, at most "
                    f"{self._lost.most} are allowed; check cable, plugs and power. Last error: "
                    f"{error}",
                ) from error
            if error.fault is Fault.COMM_CORRUPT:
                self._count_spoilt(str(error))
            return None
        self._silent, self.state = 0, state
        if state.braked is not None and self._memory is not None:
            # What follows goes on from there.
            qpos, qvel, qacc = state.braked
            command = self.memory.command._replace(qpos=qpos, qvel=qvel, qacc=qacc, goal=qpos)
            self.memory = dataclasses.replace(self.memory, command=command)
        return state

    def _count_spoilt(self, last: str) -> None:
        """A wire that spoils every now and then stops the arm before it spoils everything."""
        now = self._now()
        self._spoilt.append(now)
        while now - self._spoilt[0] > 1.0:
            self._spoilt.popleft()
        if len(self._spoilt) > self._allowed:
            raise SafetyStop(
                Fault.COMM_CORRUPT,
                f"{len(self._spoilt)} measurements were corrupt within one second, at most "
                f"{self._allowed} are allowed; check cable, plugs and power. Last error: {last}",
            )

    def _now(self) -> float:
        return self._clock.now_ns() * 1e-9


class FailureRate:
    """Counts what goes wrong now and then: in more than a ``share`` of the last ``seconds``?"""

    def __init__(self, seconds: float, share: float, period: float):
        self.seconds, self.most = seconds, max(1, int(share * seconds / period))
        self._times: deque[float] = deque()

    def add(self, now: float, count: int) -> int:
        """How many there were, ``count`` now, if that is too many; else 0."""
        self._times.extend([now] * count)
        while self._times and now - self._times[0] > self.seconds:
            self._times.popleft()
        return len(self._times) if len(self._times) > self.most else 0


class Ramp:
    """Wishes along a straight line in joint space from ``start`` to ``pose`` (n,) rad."""

    def __init__(self, start: Array, pose: Array, gripper: float, step: float):
        self._reference, self._pose = start, pose
        self._gripper, self._step = gripper, step
        # Of the measured joint that is farthest from the pose, once that is wished for: which it
        # is, and by how many rad.
        self.joint, self.away = 0, float("inf")

    def __call__(self, state: RobotState) -> Target:
        """The next point, at most ``step`` rad further for the joint with the longest way."""
        way = self._pose - self._reference
        farthest = np.abs(way).max()
        if farthest == 0.0:
            off = np.abs(state.qpos - self._pose)
            self.joint = int(off.argmax())
            self.away = float(off[self.joint])
        near = farthest <= self._step
        self._reference = self._pose if near else self._reference + way * (self._step / farthest)
        return Target(self._reference, self._gripper)
