"""Emulator: what every emulated arm has behind its wire: a scene, its truth, and a thread."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from real_robot.core.pacing import Clock, RealClock, VirtualClock
from real_robot.core.threads import join_or_leave
from real_robot.emulators.control_port import ControlPort
from real_robot.emulators.physics import ArmPhysics
from sims import make_task
from sims.core.task import Task

EPOCH = 1000.0  # s, where compressed time begins
SLOW = 0.0075  # s that ``serve`` takes only if the machine keeps it: a device is late for nobody


class Emulator(ABC):
    """An arm that answers on its own wire from ``start`` to ``stop``.

    On a compressed clock physics follows the clock and the wire takes no time. Hold ``lock`` to
    look at the physics from another thread.
    """

    def __init__(self, task: Task[Any], *, clock: Clock | None = None, seed: int = 0):
        self.clock = clock or RealClock()
        self.instant = not isinstance(self.clock, RealClock)
        self.physics = ArmPhysics(task, self.clock, seed)
        self.lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._slow: deque[tuple[float, float]] = deque(maxlen=10_000)  # monotonic s: begin, end
        self.control: ControlPort | None = None

    # What a protocol fills in.
    @property
    @abstractmethod
    def where(self) -> str:
        """What a driver is given to find it: a port or a host."""

    @abstractmethod
    def open(self) -> None:
        """Opens the wire."""

    @abstractmethod
    def serve(self) -> None:
        """Does what is due and returns within a few ms; called in a loop."""

    @abstractmethod
    def shut(self) -> None:
        """Closes the wire."""

    @abstractmethod
    def advance(self) -> None:
        """Physics up to the present."""

    @abstractmethod
    def traffic(self) -> dict[str, Any]:
        """What the device has seen since it was started."""

    @abstractmethod
    def heard(self, since: float = 0.0) -> list[float]:
        """Returns when targets came with torque enabled after ``since``, monotonic s."""

    def slow(self) -> list[tuple[float, float]]:
        """When it was slower itself than a device is: from, until, monotonic s."""
        return list(self._slow)

    # Life.
    def start(self, *, control: int | None = None) -> Emulator:
        """Serves in a thread; ``control`` opens the control port, on any free port if 0."""
        self.open()
        self._thread = threading.Thread(target=self._run, daemon=True, name="emulator")
        self._thread.start()
        if control is not None:
            self.control = ControlPort(self.commands(), control)
        return self

    @property
    def running(self) -> bool:
        """Whether it still answers."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def control_port(self) -> int:
        """The control port's number, 0 while it has none."""
        return 0 if self.control is None else self.control.port

    def stop(self) -> None:
        """The wire is closed; a failure within is raised here.

        Raises:
            RuntimeError: The serving thread had failed.
        """
        if self.control is not None:
            self.control.close()
            self.control = None
        self._stopping.set()
        if self._thread is not None:
            join_or_leave(self._thread, "the emulator's thread")
            self._thread = None
            self.shut()
        if self._failure is not None:
            raise RuntimeError(
                "the emulator's thread failed; see the error above"
            ) from self._failure

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                begun = time.monotonic()
                self.serve()
                if (now := time.monotonic()) - begun > SLOW:
                    self._slow.append((begun, now))
        except BaseException as error:  # shown to whoever stops it, not lost with the thread
            self._failure = error

    # The stage and the truth.
    def commands(self) -> dict[str, Callable[..., Any]]:
        """What the control port offers; every call holds the lock."""
        return self._offered(
            self.scene,
            self.reset,
            self.begin,
            self.success,
            self.distance,
            self.poses,
            self.state,
            self.joints,
            self.hand,
            self.let_go,
            self.soften,
            self.block,
            self.traffic,
            self.heard,
            self.slow,
        )

    def _offered(self, *verbs: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        """Methods by name, for the control port; each holds the lock."""
        return {verb.__name__: self._locked(verb) for verb in verbs}

    def _locked(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            with self.lock:
                self.advance()
                return verb(**arguments)

        return call

    def scene(
        self,
        task: str,
        goal: str | None = None,
        seed: int = 0,
        params: dict[str, Any] | None = None,
    ) -> None:
        """Another task of the same arm."""
        robot = self.physics.robot.name
        self.physics.load(make_task(task, robot=robot, goal=goal, **(params or {})), seed)
        self.rest()

    def reset(self, seed: int) -> None:
        """The start of the scene for ``seed``; call it while the arm is limp."""
        self.physics.reset(seed)
        self.rest()

    def rest(self) -> None:  # noqa: B027  a device that keeps nothing beside has nothing to do
        """The arm stands where the scene has it: what a device keeps beside that follows."""

    def begin(self) -> None:
        """An episode begins as things stand now."""
        self.physics.scene.begin()

    def success(self) -> bool:
        """Whether the task's goal holds now."""
        return self.physics.scene.success()

    def distance(self) -> float:
        """The true distance to the goal, m."""
        return self.physics.scene.distance()

    def poses(self) -> dict[str, Any]:
        """The objects now: {"t": s monotonic, "poses": {entity: [pos (3,), quat (4,)]}}."""
        poses = {name: list(pose) for name, pose in self.physics.scene.poses().items()}
        return {"t": self.clock.now_ns() * 1e-9, "poses": poses}

    def state(self) -> dict[str, Any]:
        """The state row (nstate,) of the scene, to be rendered elsewhere, and its time."""
        return {"t": self.clock.now_ns() * 1e-9, "state": self.physics.scene.state()}

    def joints(self) -> dict[str, Any]:
        """The true joints, base to tool and gripper: angles, speeds, goals, torque share, hand."""
        physics = self.physics
        return {
            "names": physics.joints,
            "qpos": physics.qpos,
            "qvel": physics.qvel,
            "goal": physics.goal,
            "torque": physics.torque,
            "effort": physics.effort,
            "held": physics.held,
            "highest_speed": physics.highest_speed,
        }

    def hand(self, qpos: list[float]) -> None:
        """Someone moves the limp arm to ``qpos`` (n,) rad, the gripper last."""
        self.physics.move_by_hand(np.asarray(qpos, float))

    def soften(self, stiffness: float | None) -> None:
        """The servos' stiffness, N m/rad; None: as the simulated arm has it."""
        self.physics.soften(stiffness)

    def block(self, joint: int | None) -> None:
        """A joint (from 0) is held by something; None: none is."""
        self.physics.block(joint)

    def let_go(self) -> None:
        """The hand that holds the limp arm after a reset is taken away."""
        self.physics.let_go()


class SteppedClock(VirtualClock):
    """Compressed time of an emulator in another process: it passes there first, by ``until``.

    ``until(t)`` lets it pass to ``t`` ns and returns the device's own time then, s.
    """

    def __init__(self, until: Callable[[int], float]):
        super().__init__(EPOCH)
        self._until = until
        self._newest: Callable[[], float] = lambda: np.inf

    def follow(self, newest: Callable[[], float]) -> None:
        """From now on time has passed once a measurement of then has come: ``newest``, s."""
        self._newest = newest

    def sleep_until_ns(self, t: int) -> None:
        """Time jumps to ``t`` ns, here and there."""
        if t <= self.now_ns():
            return
        then = self._until(t)
        super().sleep_until_ns(t)
        patience = time.monotonic() + 5.0  # beyond it the wire is cut, which the driver will say
        while self._newest() < then and time.monotonic() < patience:
            time.sleep(1e-4)


class LockstepClock(VirtualClock):
    """Compressed time that passes only once the emulator has heard all that was written to it.

    A target written now then takes effect now, as over a real wire, and not after the jump in time.
    """

    def __init__(self, start: float = 0.0):
        super().__init__(start)
        self._written: Callable[[], int] = lambda: 0
        self._heard: Callable[[], int] = lambda: 0
        self._ahead = 0  # bytes heard that were written before we followed

    def follow(self, written: Callable[[], int], heard: Callable[[], int]) -> None:
        """Waits, before time passes, until all that is ``written`` from now on is ``heard``."""
        self._written, self._heard = written, heard
        self._ahead = heard() - written()

    def sleep_until_ns(self, t: int) -> None:
        """Time jumps to ``t`` ns."""
        patience = time.monotonic() + 5.0
        while self._heard() - self._written() < self._ahead:
            if time.monotonic() > patience:
                # Bytes were lost: a cable was pulled.
                self._ahead = self._heard() - self._written()
                break
            time.sleep(0)
        super().sleep_until_ns(t)
