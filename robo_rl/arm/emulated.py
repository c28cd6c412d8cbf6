"""EmulatedStage: an arm's emulator with its vendor's client in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from real_robot import Bus, BusConfig, arms, drivers, emulators
from real_robot.arms import ArmSpec
from real_robot.core.driver import Description, RobotDriver
from real_robot.emulators.camera import EmulatedCamera, TaggedScene, default_view
from real_robot.emulators.control_port import HOST, Control
from real_robot.emulators.emulator import EPOCH, LockstepClock, SteppedClock
from real_robot.perception.base import MergedPerception
from real_robot.perception.camera import RecordedCamera
from real_robot.perception.tags import TagLocator, TagPerception
from real_robot.sim.latency_driver import DelayedDriver
from robo_rl.arm.camera_recording import CameraRecording
from robo_rl.arm.stage import CommandedRange, EpisodeSetup
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from sims.core.task import Task
from sims.utils import process
from sims.utils.plugins import VARIABLE

LINUX = sys.platform == "linux"
UNHURRIED = 30.0  # s for a call to the arm, where time waits
FRAME_S = 1 / 15  # s between two pictures of each camera


class EmulatedStage:
    """An emulated arm with its vendor's client in between, time compressed.

    ``conditions`` come on top of the wire's own; with ``tags`` positions are perceived from tags in
    two rendered cameras, and are as far off as these are. ``filmed``: by the task's first camera,
    once every control step.
    """

    realtime = False

    def __init__(
        self,
        task: Task[Any],
        conditions: ArmConditions = PLAIN,
        *,
        tags: bool = False,
        filmed: bool = False,
    ):
        self._robot, self._conditions = getattr(task, "robot", ""), conditions
        self._filming = CameraRecording(task, self._state) if filmed else None
        self.name = f"the emulated {self._robot}"
        self._drawn: list[EmulatedCamera] = []
        self._cameras: list[tuple[RecordedCamera, TagLocator]] = []
        spec = arms.spec(self._robot)
        if tags:  # what hides an object from one camera seldom does from both
            scenes = [TaggedScene(task, default_view(task, turn)) for turn in spec.views]
            self._drawn = [EmulatedCamera(s, self._state) for s in scenes]
            self._cameras = [
                (RecordedCamera(camera, f"watch{i}"), TagLocator(s.camera, s.objects))
                for i, (camera, s) in enumerate(zip(self._drawn, scenes, strict=True))
            ]
            self.name += " with poses from its rendered cameras"
        self.under = conditions.known_text(tags=tags)
        self._end = (_SubprocessEmulator if spec.apart else _InProcessEmulator)(task, spec)
        if conditions.stiffness is not None:
            self._end.soften(conditions.stiffness)

    @property
    def film(self) -> list[RecordedCamera]:
        """Its cameras."""
        own = [self._filming.camera] if self._filming else []
        return own + [camera for camera, _ in self._cameras]

    def scene(self, seed: int) -> EpisodeSetup:
        """The same arm, in a new scene."""
        self._end.reset(seed)
        driver, clock, half = self._end.driver(), self._end.clock, self._conditions.latency / 2
        if half:
            driver = DelayedDriver(driver, clock, delay=half, latency=half)
        eyes = self._conditions.perception(self._end.poses, clock, seed, half)
        if self._cameras:
            eyes = MergedPerception(
                [TagPerception(*c, clock=clock, period=FRAME_S) for c in self._cameras]
            )
        if self._filming:
            eyes = self._filming.with_recording(eyes, clock)
        return EpisodeSetup(
            driver, eyes, clock, self._conditions.operator_view(self._end.poses, clock, seed)
        )

    def commanded_range(self, about: Description) -> CommandedRange | None:
        """Returns the range of targets that the device recorded since its start, None without."""
        record = self._end.traffic()
        if record["goal_low"][0] is None:
            return None
        n = len(about.joints)  # the gripper comes last
        low, high, step = (
            np.array(record[f"goal_{name}"], float)[:n] for name in ("low", "high", "step")
        )
        fastest = step / (record["goal_cycle"] or about.period) / about.velocity
        margin = np.minimum(low - about.position[:, 0], about.position[:, 1] - high)
        return CommandedRange(float(fastest.max()), float(margin.min()))

    def _state(self) -> tuple[np.ndarray, float]:
        return self._end.state(), self._end.clock.now_ns() * 1e-9

    def begin(self) -> None:
        """The judge behind the wire begins."""
        self._end.begin()

    def success(self) -> bool:
        """The truth behind the wire."""
        return self._end.success()

    def close(self) -> None:
        """The emulator stops."""
        self._end.close()
        for camera in [*self._drawn, *([self._filming] if self._filming else [])]:
            camera.close()


class _InProcessEmulator:
    """An emulator in this process, whose clock waits for what was written to it."""

    def __init__(self, task: Task[Any], spec: ArmSpec):
        self.clock, self._spec = LockstepClock(EPOCH), spec
        self._emulator = emulators.make(task.robot, task, clock=self.clock).start()

    def soften(self, stiffness: float) -> None:
        self._emulator.soften(stiffness)

    def reset(self, seed: int) -> None:
        with self._emulator.lock:
            self._emulator.reset(seed)

    def driver(self) -> RobotDriver:
        emulator = self._emulator
        driver = drivers.make(
            emulator.physics.robot.name, emulator.where, clock=self.clock, **self._spec.unhurried
        )
        self.clock.follow(lambda: driver.bytes_written, lambda: emulator.bytes_heard)
        return driver

    def state(self) -> np.ndarray:
        return self._now().physics.scene.state()

    def poses(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        return self._now().physics.scene.poses()

    def begin(self) -> None:
        self._now().begin()

    def success(self) -> bool:
        return self._now().success()

    def traffic(self) -> Mapping[str, Any]:
        return self._now().traffic()

    def _now(self) -> Any:
        with self._emulator.lock:
            self._emulator.advance()
        return self._emulator  # nothing moves while time stands still

    def close(self) -> None:
        self._emulator.stop()


class _SubprocessEmulator:
    """An emulator in a process of its own, since its client holds the interpreter's lock."""

    def __init__(self, task: Task[Any], spec: ArmSpec):
        self._robot, self._spec = task.robot, spec
        self._process = process.start_module(
            "robo_rl.cli",
            "emulate",
            self._robot,
            "--compressed",
            "--host",
            _loopback(),
            "--parent",
            str(os.getpid()),
            "--json",
            keep=[VARIABLE],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ValueError(
                f"the emulator of {self._robot} did not start; see its error message above"
            )
        ready = json.loads(line)
        self._where, self._control = ready["where"], Control(ready["control"])
        set_scene(self._control, task)
        self.clock = SteppedClock(lambda t: self._control.call("until", t=t))

    def soften(self, stiffness: float) -> None:
        self._control.call("soften", stiffness=stiffness)

    def reset(self, seed: int) -> None:
        self._control.call("reset", seed=seed)

    def driver(self) -> RobotDriver:
        config = BusConfig(
            robot=self._robot,
            where=self._where,
            options=dict(self._spec.unhurried),
            deadline=UNHURRIED,
            patience=UNHURRIED,
        )
        driver = Bus(config, clock=self.clock)
        self.clock.follow(lambda: driver.newest)
        return driver

    def state(self) -> np.ndarray:
        return np.array(self._control.call("state")["state"])

    def poses(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        measured = self._control.call("poses")["poses"]
        return {name: (np.array(pos), np.array(quat)) for name, (pos, quat) in measured.items()}

    def begin(self) -> None:
        self._control.call("begin")

    def success(self) -> bool:
        return bool(self._control.call("success"))

    def traffic(self) -> Mapping[str, Any]:
        return self._control.call("traffic")

    def close(self) -> None:
        self._control.close()
        with self._process:  # its pipe is closed, too
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


def set_scene(control: Control, task: Task[Any]) -> None:
    """Has an emulator load the scene and the goal of ``task``."""
    params = {k: v for k, v in task.card()["params"].items() if k not in ("robot", "goal")}
    control.call("scene", task=task.name, goal=task.goal, params=params)
