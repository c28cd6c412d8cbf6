"""Every arm that the driver contract is tested on: all that ``real_robot.arms`` names."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
import pytest

import sims
from real_robot import (
    Bus,
    BusConfig,
    RobotDriver,
    SimDriver,
    VirtualClock,
    arms,
    drivers,
    emulators,
)
from real_robot.core.pacing import Clock, RealClock
from real_robot.drivers import servo_port
from real_robot.drivers.servo_port import ServoPort
from real_robot.emulators.control_port import Control
from real_robot.emulators.emulator import Emulator, LockstepClock

DEVICE = 70  # priority of an emulator's threads, above the bridge's and the bus's
PATIENCE = 1.0  # s for a reply: on a compressed clock nothing is late, but a test may be starved
UNANSWERED = 0.03  # s that an answer takes at most through the pseudo-terminal


def without(robot: str) -> pytest.MarkDecorator:
    """Skips what needs the vendor's client of ``robot`` where it is not installed."""
    spec = arms.spec(robot) if robot in arms.ARMS else None
    lacks = spec is not None and find_spec(spec.client) is None
    reason = f"pip install 'robo-rl[{spec.extra}]'" if spec else ""
    return pytest.mark.skipif(lacks, reason=reason)


@dataclass
class Arm:
    """A driver, the clock it lives on, and the truth behind it."""

    driver: RobotDriver
    clock: Clock
    truth: Callable[[], np.ndarray]  # joint angles now (n + 1,) rad, gripper last
    emulator: Emulator | None
    resolution: float  # rad, of a measured angle
    control: Control | None = None  # where the emulator is another process
    control_port: int = 0
    late: float = 0.0  # s by which a starved machine may bring measurements late

    def wait(self, seconds: float) -> None:
        """Time passes on the arm's clock."""
        self.clock.sleep_until_ns(self.clock.now_ns() + round(seconds * 1e9))

    def up(self) -> Arm:
        """Connected and stiff."""
        self.driver.connect()
        self.driver.identify()
        self.driver.enable()
        return self


@contextlib.contextmanager
def sim(**options: Any) -> Iterator[Arm]:
    """The simulated arm without a wire."""
    clock = VirtualClock(100.0)
    driver = SimDriver(sims.make_task("reach", robot="so101"), clock=clock, **options)
    scene = driver.scene

    def truth() -> np.ndarray:
        return np.array([*scene.qpos[scene.arm.qpos], scene.qpos[scene.arm.jaw]])

    yield Arm(driver, clock, truth, None, 2 * np.pi / 4096)
    driver.close()


@contextlib.contextmanager
def starved(emulator: Any, waits: bool) -> Iterator[None]:
    """For a machine that is busy: a device that takes nothing for a while is no stuck adapter. And
    a request times out once its device has heard it and owes no reply, however long the port's
    patience is, so a lost reply costs no wait; unless the port ``waits`` as it is made to."""
    written, usual_write, usual_read = [0], ServoPort.writePort, ServoPort.readPort

    def write(port: ServoPort, packet: list[int]) -> int:
        written[0] += (done := usual_write(port, packet))
        return done

    def silent() -> bool:
        with emulator.lock:
            return emulator.bytes_heard >= written[0] and not emulator._out

    def read(port: ServoPort, length: int) -> bytes:
        since = None  # when the device was first seen to owe nothing
        with port._cable():
            while length > 0 and port.getTimeSinceStart() < port.packet_timeout:
                if select.select([port.ser.fileno()], [], [], 0.005)[0]:
                    break
                since = (since or time.monotonic()) if silent() else None
                if since and time.monotonic() - since > UNANSWERED:
                    port.packet_timeout = -1.0
        return usual_read(port, length)

    with contextlib.ExitStack() as patches:
        patches.enter_context(mock.patch.object(servo_port, "WRITE_S", 5.0))
        if not waits:
            patches.enter_context(mock.patch.object(ServoPort, "writePort", write))
            patches.enter_context(mock.patch.object(ServoPort, "readPort", read))
        yield


@contextlib.contextmanager
def here(
    name: str,
    *,
    seed: int = 0,
    patience: float = PATIENCE,
    waits: bool = False,
    driver: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[Arm]:
    """An arm whose emulator lives in this process, time compressed."""
    clock = LockstepClock(100.0)
    task = sims.make_task("reach", robot=name, goal="above_red_cube")
    with emulators.make(name, task, clock=clock, seed=seed, **options).start() as emulator:
        arm = drivers.make(name, emulator.where, clock=clock, patience=patience, **driver or {})
        clock.follow(lambda: arm.bytes_written, lambda: emulator.bytes_heard)

        def truth() -> np.ndarray:
            with emulator.lock:
                emulator.advance()
                return emulator.physics.qpos

        with starved(emulator, waits):
            yield Arm(arm, clock, truth, emulator, 2 * np.pi / 4096)
            arm.close()


def punctual(emulator: subprocess.Popen[Any]) -> None:
    """A device is late for nobody: its threads come first, where that is permitted (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        for thread in os.listdir(f"/proc/{emulator.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(DEVICE))


@contextlib.contextmanager
def apart(
    name: str, *, host: str = "127.0.0.1", bus: dict[str, Any], **options: Any
) -> Iterator[Arm]:
    """An arm whose emulator is another process, and the owner of its port a third, ``bus`` of which
    are the settings. The wall clock rules here."""
    command = [sys.executable, "-m", "robo_rl.cli", "emulate", name, "--goal", "above the red cube"]
    if arms.spec(name).found_by == "host":
        command += ["--host", host]
    process = subprocess.Popen(
        [*command, "--json", "--parent", str(os.getpid())], stdout=subprocess.PIPE, text=True
    )
    try:
        told = json.loads(process.stdout.readline())
        punctual(process)
        control = Control(told["control"])
        arm = Bus(BusConfig(robot=name, where=told["where"], options=options, **bus))

        def truth() -> np.ndarray:
            return np.array(control.call("joints")["qpos"])

        yield Arm(arm, RealClock(), truth, None, 1e-9, control, told["control"], 0.5)
        arm.close()
        control.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stdout.close()


so101 = partial(here, "so101")
# As a bridge drives them, but with the patience of a starved machine.
SLOW = {"deadline": 2.0, "patience": 20.0, "silence": 20.0}
ur5e = partial(apart, "ur5e", bus=SLOW, watchdog=0.5, stale=1.0, patience=20.0)
fr3 = partial(apart, "fr3", bus=SLOW, stale=1.0, patience=20.0)
so101_bus = partial(apart, "so101", bus=SLOW, patience=0.2)
# What is tested waits for longer than a bus may be silent.
koch = partial(here, "koch", driver={"watchdog": 2.5})
ARMS: dict[str, Callable[..., contextlib.AbstractContextManager[Arm]]] = {
    "sim": sim,
    **{name: partial(here, name) for name in arms.ARMS if not arms.spec(name).apart},
    "ur5e": ur5e,
    "fr3": fr3,
    "koch": koch,
    "so101 bus": so101_bus,
}
