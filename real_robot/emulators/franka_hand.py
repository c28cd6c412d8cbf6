"""Franka's hand: one command at a time, each answered when it is done; its server is a port apart.

Another command while one is under way ends that as aborted. ``move`` that meets something on its
way is unsuccessful, and pushes no more; ``grasp`` goes on pushing and succeeds where what it holds
is as wide as was said. That much is what the maker's documents and users' code agree on; how the
real hand slows down, and what it does with a motion that is interrupted, they do not say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from real_robot.emulators.fci import HAND_STATE, HandCommand, HandStatus
from real_robot.emulators.physics import ArmPhysics

HOMING_SPEED = 0.05  # m/s
ARRIVED = 0.001  # m
BLOCKED = 0.1  # s without motion, far from where it goes
STILL = 0.002  # m/s
HOLDING = 0.02  # m that a goal leads into what is held


@dataclass
class HandTask:
    """What it does now."""

    call: int  # its number
    command: HandCommand
    widths: list[float]  # m, where it goes, one after the other
    speed: float  # m/s
    inner: float = 0.0  # m by which what is grasped may be narrower or wider
    outer: float = 0.0


class EmulatedHand:
    """The hand on the arm of ``physics``; ``ended(call, status)`` hears what is done."""

    def __init__(self, physics: ArmPhysics, ended: Callable[[int, HandStatus], None]):
        self._physics, self._ended = physics, ended
        self.task: HandTask | None = None
        self.homed = True
        self.grasped = False
        self.count = 0  # commands that were taken
        self.rest()

    def rest(self) -> None:
        """Its fingers stay where the scene has them."""
        self.task, self.grasped = None, False
        self._goal = self.width  # m
        self._blocked = 0.0  # s

    @property
    def most(self) -> float:
        """How far it opens, m."""
        return 2.0 * self._physics.robot.gripper_range[1]

    @property
    def width(self) -> float:
        """Between its fingers, m."""
        return 2.0 * float(self._physics.qpos[-1])

    def begin(self, call: int, command: HandCommand, *given: float) -> None:
        """Takes a command up; ``given`` as on the wire."""
        if self.task is not None:
            self._goal = self.width
            self._end(HandStatus.ABORTED)
        self.count += 1
        if command is HandCommand.STOP:
            self.rest()
            self._ended(call, HandStatus.SUCCESS)
            return
        if command is HandCommand.HOMING:
            task = HandTask(call, command, [0.0, self.most], HOMING_SPEED)
        elif command is HandCommand.MOVE:
            task = HandTask(call, command, [given[0]], given[1])
        else:
            width, inner, outer, speed, _ = given
            task = HandTask(call, command, [width], speed, inner, outer)
        known = self.homed or command is HandCommand.HOMING
        if not known or not (task.speed > 0 and 0.0 <= task.widths[0] <= self.most + ARRIVED):
            self._ended(call, HandStatus.FAIL)
            return
        self.task, self.grasped, self._blocked = task, False, 0.0

    def cycle(self, dt: float) -> None:
        """``dt`` s pass."""
        task = self.task
        if task is not None:
            way = task.widths[0] - self._goal
            self._goal += float(np.clip(way, -task.speed * dt, task.speed * dt))
            # What is in the way is pushed by the servo's force, not by a goal that runs ahead.
            self._goal = float(np.clip(self._goal, self.width - HOLDING, self.width + HOLDING))
            moves = 2.0 * abs(float(self._physics.qvel[-1])) > STILL
            self._blocked = 0.0 if moves else self._blocked + dt
            if abs(self.width - task.widths[0]) < ARRIVED and not moves:
                self._arrived(task)
            elif self._blocked > BLOCKED:
                self._met(task)
        self._physics.goal[-1] = np.clip(self._goal / 2.0, *self._physics.robot.gripper_range)

    def _arrived(self, task: HandTask) -> None:
        del task.widths[0]
        if task.widths:
            return
        self.homed |= task.command is HandCommand.HOMING
        self.grasped = self._holds(task, self._goal)
        wrong = task.command is HandCommand.GRASP and not self.grasped
        self._end(HandStatus.UNSUCCESSFUL if wrong else HandStatus.SUCCESS)

    def _met(self, task: HandTask) -> None:
        """Something keeps it from going on."""
        self.grasped = self._holds(task, task.widths[0])
        if not self.grasped:
            self._goal = self.width
        self._end(HandStatus.SUCCESS if self.grasped else HandStatus.UNSUCCESSFUL)

    def _holds(self, task: HandTask, aim: float) -> bool:
        as_wide = aim - task.inner < self.width < aim + task.outer
        return task.command is HandCommand.GRASP and as_wide

    def _end(self, status: HandStatus) -> None:
        task, self.task = self.task, None
        if task is not None:
            self._ended(task.call, status)

    def state(self, time: int) -> bytes:
        """Everything, as it goes over the wire at ``time`` ms."""
        return HAND_STATE.pack(time & 0xFFFFFFFF, self.width, self.most, self.grasped, 30)
