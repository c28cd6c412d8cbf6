"""Human: a person who may take the arm from the policy, and the dead-man's rule.

A device (keys, a gamepad, a leader arm) answers with what the person wants now. The answer is
dated: one that is too old means that the device is gone, and the arm is held. Nobody at the device
is an answer too, ``engaged`` false.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from real_robot.driver import Fault
from real_robot.filters.stage import SafetyStop, Source, Wish

Array = np.ndarray


@dataclass(frozen=True)
class Hand:
    """What a person wants."""

    t: float  # s, monotonic, when the device was read
    engaged: bool  # whether the person has the arm
    qvel: Array | None = None  # (n,) rad/s, to jog the joints; or
    qpos: Array | None = None  # (n,) rad, to lead them, as a leader arm does
    gripper: float | None = None  # 0 closed, 1 open; None: as it is


class Human(Protocol):
    """A device; returns at once with the newest it has, None while there was nothing yet."""

    def read(self) -> Hand | None:
        """What the person wants now."""
        ...


@dataclass(frozen=True)
class Grip:
    """Turns a hand into wishes."""

    period: float  # s
    max_age: float = 0.1  # s, of what an engaged hand said

    def engaged(self, hand: Hand | None, now: float, driving: bool) -> bool:
        """Whether the person has the arm; SafetyStop if the device is gone while they drive."""
        if hand is not None and now - hand.t <= self.max_age:
            return hand.engaged
        if driving:
            age = "never spoke" if hand is None else f"was silent for {now - hand.t:.2f} s"
            raise SafetyStop(Fault.OPERATOR, f"the hand's device {age} while it had the arm")
        return False

    def wish(self, hand: Hand, command: Array, gripper: float, dial: float) -> Wish:
        """What ``hand`` asks of an arm whose last command was ``command`` (n,) rad."""
        qvel = hand.qvel if hand.qpos is None else None
        qpos = command + qvel * self.period if qvel is not None else hand.qpos
        return Wish(
            command if qpos is None else qpos,
            gripper if hand.gripper is None else hand.gripper,
            qvel=qvel,
            source=Source.HUMAN,
            origin=None if qvel is None else command,  # a jog goes on from there by itself
            t=hand.t,
            dial=dial,
        )
