"""What emulated arms with a controller of their own have in common: a host, and its silences."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from real_robot.core.pacing import Clock, VirtualClock
from real_robot.emulators.emulator import Emulator
from real_robot.emulators.physics import JointTargetHistory
from sims.core.task import Task


class Controller(Protocol):
    """The controller of an arm, as far as every emulator looks at it."""

    joint_targets: JointTargetHistory  # as received


class ControllerEmulator(Emulator):
    """The arm of ``task`` on the ports of a controller at ``host``."""

    controller: Controller

    def __init__(self, task: Task[Any], *, clock: Clock | None, seed: int, host: str):
        super().__init__(task, clock=clock, seed=seed)
        self._host = host
        self._muted = self._silent = 0.0  # monotonic s until which states or all ports are silent
        self._next = time.monotonic()  # monotonic s, of the next cycle

    @property
    def where(self) -> str:
        """The controller's address."""
        return self._host

    def advance(self) -> None:
        """Physics up to the present."""
        self.physics.advance(lambda dt: None)

    def _compressed(self) -> VirtualClock:
        """The clock that ``until`` sets; ValueError in real time."""
        if not isinstance(self.clock, VirtualClock):
            raise ValueError(
                "this emulator runs in real time; start it with --compressed to set its time"
            )
        return self.clock

    @abstractmethod
    def until(self, t: int) -> float:
        """Lets compressed time pass until ``t`` ns; the controller's own time then, s.

        Raises:
            ValueError: The emulator runs in real time.
        """

    def commands(self) -> dict[str, Callable[..., Any]]:
        """The stage, and what can happen to any controller."""
        verbs = self._offered(self.mute, self.silence, self.hang_up, self.heal, self.until)
        return super().commands() | verbs

    def mute(self, seconds: float) -> None:
        """No states are sent for ``seconds`` s; connections stay."""
        self._muted = time.monotonic() + seconds

    def silence(self, seconds: float) -> None:
        """Nothing is heard and nothing said on any port for ``seconds`` s; connections stay."""
        self._silent = time.monotonic() + seconds

    @abstractmethod
    def hang_up(self) -> None:
        """All connections are cut."""

    def heal(self) -> None:
        """Everything works again, except what a person must clear."""
        self._muted = self._silent = 0.0

    def heard(self, since: float = 0.0) -> list[float]:
        """Returns when the controller received targets after ``since``, monotonic s."""
        return self.controller.joint_targets.heard(since)
