"""ConnectedStage: what is at a port or a host, an arm or an emulator, in real time."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.prompt import Prompt

from real_robot import Bus, BusConfig, RealClock, Rescue
from real_robot.core.threads import join_or_leave
from real_robot.emulators.control_port import Control
from real_robot.operator.devices import VERDICT_KEYS
from real_robot.perception.base import Perception, Pose
from real_robot.perception.camera import RecordedCamera
from robo_rl.arm.emulated import set_scene
from robo_rl.arm.stage import EpisodeSetup
from robo_rl.runtime.progress_bars import stderr_console
from sims.core.task import Task


class ConnectedStage:
    """An arm at a port or a host, in real time.

    With the control port of an emulator behind it the scene is reset and judged there; without one,
    it is hardware, and the operator does both.
    """

    realtime = True
    under = ""  # whatever is there

    def __init__(
        self,
        task: Task[Any],
        where: str,
        *,
        control: int | None = None,
        eyes: Perception | None = None,
        film: Sequence[RecordedCamera] = (),
        console: Console | None = None,
        silence: float = BusConfig.silence,
        **options: Any,  # of the driver
    ):
        self._robot, self._where = getattr(task, "robot", ""), where
        self._console, self._options = console or stderr_console(), options
        self._control = None if control is None else Control(control)
        self._clock, self._silence = RealClock(), silence
        self.rescue: Rescue | None = None  # what brings the arm to rest must know, without us
        kind = "hardware" if control is None else "emulated"
        self.name = f"the {kind} {self._robot} at {where}"
        self._eyes, self.film = eyes, tuple(film)
        if self._control is not None:
            set_scene(self._control, task)
            if eyes is None:
                self._eyes = self._watcher = ControlPoses(control)

    def scene(self, seed: int) -> EpisodeSetup:
        """A new scene, set by the emulator or by the operator."""
        if self._control is not None:
            self._control.call("reset", seed=seed)
        else:
            self._console.input("Set the scene, step back, and press Enter; Ctrl-C stops. ")
        return EpisodeSetup(self.driver(), self._eyes, self._clock)

    def driver(self) -> Bus:
        """The arm, not yet connected, at the end of a process that owns its port."""
        where = self._where
        options = {k: v.absolute() if isinstance(v, Path) else v for k, v in self._options.items()}
        return Bus(
            BusConfig(
                robot=self._robot,
                where=os.path.abspath(where) if os.path.exists(where) else where,
                options=options,
                rescue=self.rescue,
                silence=self._silence,
                deadline=BusConfig.deadline + self._options.get("patience", 0.0),
            )
        )

    def begin(self) -> None:
        """The judge behind the wire begins, where there is one."""
        if self._control is not None:
            self._control.call("begin")

    def success(self) -> bool:
        """The truth behind the wire, False until the operator was asked."""
        return bool(self._control is not None and self._control.call("success"))

    @property
    def asks(self) -> bool:
        """Whether only a person can tell."""
        return self._control is None

    def ask(self) -> str:
        """The operator's verdict, once the arm is limp."""
        question = "Was the goal reached? (y)es, (n)o, x: discard the episode"
        key = Prompt.ask(question, choices=[*VERDICT_KEYS], console=self._console)
        return VERDICT_KEYS[key]

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
                poses = self._control.call("poses")
                self._poses = {
                    name: Pose(np.array(pos), np.array(quat), poses["t"])
                    for name, (pos, quat) in poses["poses"].items()
                }
                time.sleep(self._period)

    def close(self) -> None:
        """Stops asking."""
        self._stopping.set()
        join_or_leave(self._thread, "the thread that asks for poses")
        self._control.close()
