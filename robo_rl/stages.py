"""Where ``deploy`` runs a bundle: a simulated arm, an emulated one, one on a wire. No torch.

A stage hands out, for each episode, a driver, eyes and a clock, and afterwards says whether the
goal was reached: read off the scene where there is one, asked of the operator where there is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.prompt import Confirm

from real_robot import RealClock, SimDriver, SimPerception, VirtualClock, drivers, emulators
from real_robot.driver import RobotDriver
from real_robot.emulators.camera import EmulatedCamera, TaggedScene, default_view
from real_robot.emulators.control import HOST, Control
from real_robot.emulators.device import EPOCH, LockstepClock, SteppedClock
from real_robot.late import LateDriver
from real_robot.pacing import Clock
from real_robot.perception import Perception, Pose, Together
from real_robot.tags import TagLocator, TagPerception
from sims.task import Task

LINUX = sys.platform == "linux"
# rad from the front, of two cameras: what hides an object from one seldom does from both. The
# UR5e's gripper is wide and stands in the way of one that looks from the front.
VIEWS = {"so101": (0.0, 1.2), "ur5e": (-0.8, 0.8)}
FRAME_S = 1 / 15  # s between two pictures of each
ALONE = 30.0  # s, for a reply on a compressed clock: nothing is late there, only starved


@dataclass(frozen=True)
class Scene:
    """One episode's arm and eyes."""

    driver: RobotDriver
    eyes: Perception | None
    clock: Clock


class Stage(Protocol):
    """A place where episodes happen."""

    name: str  # "the simulated arm", for people
    realtime: bool

    def scene(self, seed: int) -> Scene:
        """The arm and the objects of a new episode."""
        ...

    def success(self) -> bool:
        """Whether the goal holds, at the moment when the policy lets go."""
        ...


@dataclass
class SimStage:
    """A MuJoCo arm behind the driver's contract, with nothing in between."""

    task: Task[Any]
    realtime: bool = False
    latency: float = 0.0  # s, between a measurement or a target and its effect
    noise: float = 0.0  # m, of perceived positions
    name: str = "the simulated arm"

    def scene(self, seed: int) -> Scene:
        """A new simulation."""
        clock = RealClock() if self.realtime else VirtualClock(1000.0)
        half = self.latency / 2
        driver = SimDriver(self.task, clock=clock, command_delay=half, latency=half, seed=seed)
        self._scene = driver.scene
        eyes = SimPerception(driver.scene.poses, clock, noise=self.noise, seed=seed)
        return Scene(driver, eyes, clock)

    def success(self) -> bool:
        """The simulation's truth."""
        return self._scene.success()


class EmulatedStage:
    """An emulated arm with its vendor's client in between, time compressed.

    Latency comes on top of the wire's: half of it to a measurement, be it of joints or of objects,
    and half to a target.
    """

    realtime = False

    def __init__(
        self,
        task: Task[Any],
        *,
        noise: float = 0.0,
        latency: float = 0.0,
        tags: bool = False,
    ):
        self._robot, self._noise, self._latency = getattr(task, "robot", ""), noise, latency
        self.name = f"the emulated {self._robot}"
        self._cameras: list[tuple[EmulatedCamera, TagLocator]] = []
        if tags:
            turns = VIEWS.get(self._robot, VIEWS["so101"])
            scenes = [TaggedScene(task, default_view(task, turn)) for turn in turns]
            self._cameras = [
                (EmulatedCamera(s, self._state), TagLocator(s.camera, s.objects)) for s in scenes
            ]
            self.name += " with poses from its rendered cameras"
        self._end = ARM_ENDS[self._robot](task)

    def scene(self, seed: int) -> Scene:
        """The same arm, in a new scene."""
        self._end.reset(seed)
        driver, clock, half = self._end.driver(), self._end.clock, self._latency / 2
        if half:
            driver = LateDriver(driver, clock, delay=half, latency=half)
        eyes: Perception = SimPerception(
            self._end.poses, clock, noise=self._noise, latency=half, seed=seed
        )
        if self._cameras:
            eyes = Together([TagPerception(*c, clock=clock, period=FRAME_S) for c in self._cameras])
        return Scene(driver, eyes, clock)

    def _state(self) -> tuple[np.ndarray, float]:
        return self._end.state(), self._end.clock.now_ns() * 1e-9

    def success(self) -> bool:
        """The truth behind the wire."""
        return self._end.success()

    def close(self) -> None:
        """The emulator stops."""
        self._end.close()
        for camera, _ in self._cameras:
            camera.close()


class _OwnProcess:
    """An emulator in this process, whose clock waits for what was written to it."""

    def __init__(self, task: Task[Any]):
        self.clock = LockstepClock(EPOCH)
        self._emulator = emulators.make(task.robot, task, clock=self.clock).start()

    def reset(self, seed: int) -> None:
        with self._emulator.lock:
            self._emulator.reset(seed)

    def driver(self) -> RobotDriver:
        emulator = self._emulator
        driver = drivers.make(
            emulator.physics.robot.name, emulator.where, clock=self.clock, patience=ALONE
        )
        self.clock.follow(lambda: driver.bytes_written, lambda: emulator.bytes_heard)
        return driver

    def state(self) -> np.ndarray:
        return self._now().physics.scene.state()

    def poses(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        return self._now().physics.scene.poses()

    def success(self) -> bool:
        return self._now().success()

    def _now(self) -> Any:
        with self._emulator.lock:
            self._emulator.advance()
        return self._emulator  # nothing moves while time stands still

    def close(self) -> None:
        self._emulator.stop()


class _OtherProcess:
    """An emulator in a process of its own, since its client holds the interpreter's lock."""

    def __init__(self, task: Task[Any]):
        self._robot = task.robot
        command = [sys.executable, "-m", "robo_rl.cli", "emulate", self._robot, "--compressed"]
        command += ["--host", _loopback(), "--parent", str(os.getpid()), "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ValueError(f"the emulator of {self._robot} did not start; see its message above")
        told = json.loads(line)
        self._where, self._control = told["where"], Control(told["control"])
        set_scene(self._control, task)
        self.clock = SteppedClock(lambda t: self._control.call("until", t=t))

    def reset(self, seed: int) -> None:
        self._control.call("reset", seed=seed)

    def driver(self) -> RobotDriver:
        driver = drivers.make(self._robot, self._where, clock=self.clock, stale=ALONE)
        self.clock.follow(lambda: driver.newest)
        return driver

    def state(self) -> np.ndarray:
        return np.array(self._control.call("state")["state"])

    def poses(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        seen = self._control.call("poses")["poses"]
        return {name: (np.array(pos), np.array(quat)) for name, (pos, quat) in seen.items()}

    def success(self) -> bool:
        return bool(self._control.call("success"))

    def close(self) -> None:
        self._control.close()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _loopback() -> str:
    """An address of this machine alone: a controller's ports have fixed numbers.

    Where all of 127/8 leads home (Linux) each process takes another, so that two can run at once.
    """
    pid = os.getpid()
    return f"127.{1 + pid // 65536 % 200}.{pid // 256 % 256}.{1 + pid % 254}" if LINUX else HOST


ARM_ENDS = {"so101": _OwnProcess, "ur5e": _OtherProcess}  # what stands at the end of the wire


def set_scene(control: Control, task: Task[Any]) -> None:
    """Has an emulator load the scene and the goal of ``task``."""
    params = {k: v for k, v in task.card()["params"].items() if k not in ("robot", "goal")}
    control.call("scene", task=task.name, goal=task.goal, params=params)


class WiredStage:
    """An arm at a port or a host, in real time.

    With the control port of an emulator behind it the scene is reset and judged there; without one,
    it is hardware, and the operator does both.
    """

    realtime = True

    def __init__(
        self,
        task: Task[Any],
        where: str,
        *,
        control: int | None = None,
        eyes: Perception | None = None,
        console: Console | None = None,
        **options: Any,  # of the driver
    ):
        self._robot, self._where = getattr(task, "robot", ""), where
        self._console, self._options = console or Console(stderr=True), options
        self._control = None if control is None else Control(control)
        self._clock, self._driver = RealClock(), None
        kind = "hardware" if control is None else "emulated"
        self.name = f"the {kind} {self._robot} at {where}"
        self._eyes = eyes
        if self._control is not None:
            set_scene(self._control, task)
            if eyes is None:
                self._eyes = self._watcher = ControlPoses(control)

    def scene(self, seed: int) -> Scene:
        """A new scene, set by the emulator or by the operator."""
        if self._control is not None:
            self._control.call("reset", seed=seed)
        else:
            self._console.input("Set the scene, step back, and press Enter; Ctrl-C stops. ")
        driver = drivers.make(self._robot, self._where, clock=self._clock, **self._options)
        return Scene(driver, self._eyes, self._clock)

    def success(self) -> bool:
        """The truth behind the wire, False until the operator was asked."""
        return bool(self._control is not None and self._control.call("success"))

    @property
    def asks(self) -> bool:
        """Whether only a person can tell."""
        return self._control is None

    def ask(self) -> bool:
        """The operator's word, once the arm is limp."""
        return Confirm.ask("Was the goal reached?", console=self._console)

    def close(self) -> None:
        """Hangs up."""
        if self._control is not None:
            self._control.close()
        if (watcher := getattr(self, "_watcher", None)) is not None:
            watcher.close()


class ControlPoses:
    """The true poses of an emulator's objects, asked for in a thread of its own."""

    def __init__(self, port: int, period: float = 0.02):
        self._control, self._period = Control(port), period
        self._poses: dict[str, Pose] = {}
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="poses")
        self._thread.start()

    def read(self) -> Mapping[str, Pose]:
        """{entity: newest pose}."""
        return self._poses

    def _watch(self) -> None:
        # A connection that ends leaves poses that grow old, which stops the run.
        with contextlib.suppress(OSError):
            while not self._stopping.is_set():
                seen = self._control.call("poses")
                self._poses = {
                    name: Pose(np.array(pos), np.array(quat), seen["t"])
                    for name, (pos, quat) in seen["poses"].items()
                }
                time.sleep(self._period)

    def close(self) -> None:
        """Stops asking."""
        self._stopping.set()
        self._thread.join()
        self._control.close()


@contextlib.contextmanager
def closing(stage: Stage) -> Iterator[Stage]:
    """Closes a stage that has something to close."""
    try:
        yield stage
    finally:
        if hasattr(stage, "close"):
            stage.close()
