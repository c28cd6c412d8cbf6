"""`robo-rl emulate`: the device end of an arm's wire protocol, until Ctrl-C. Loads no torch."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from real_robot import VirtualClock, arms, emulators
from real_robot.core.realtime import realtime
from real_robot.core.stop_signals import StopSignals
from real_robot.emulators.emulator import EPOCH
from robo_rl.commands.options import ArmName, Json
from robo_rl.goals.reading import demonstrated_task


@dataclass(frozen=True, kw_only=True)
class EmulateCommand:
    """An emulated arm: wire protocol in front, MuJoCo behind. It proves a client, not an arm."""

    robot: tyro.conf.Positional[ArmName]  # arm to emulate
    task: str = "reach"  # task whose scene is on the table
    goal: str = ""  # goal, as a sentence or key, of the reported success; empty: the first
    seed: int = 0  # random seed of the scene, of the servos' mounting and of faults
    control: int = 0  # control port (loopback TCP) that resets and reports the scene; 0: any free
    host: str = "127.0.0.1"  # arms with a controller: loopback address that it listens on
    compressed: bool = False  # arms with a controller: time advances by control port only
    link: Path | None = None  # servo arms: symbolic link to the port, as in /dev/serial/by-id
    uncalibrated: bool = False  # servos with factory settings, not calibrated
    realtime: bool = False  # use a real-time priority, where permitted, so that replies are in time
    parent: int | None = None  # process ID of the parent: the emulator ends when that process ends
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Serves an emulated arm until Ctrl-C or SIGTERM and returns the exit code 0.

    Args:
        argv: The words after ``robo-rl emulate``.

    Raises:
        ValueError: the host is no loopback address, or an option does not apply to this arm's
            emulator.
    """
    command = tyro.cli(EmulateCommand, args=list(argv), prog="robo-rl emulate")
    if not _is_loopback(command.host):
        raise ValueError(
            "--host must be a loopback address, for example 127.0.0.2, got "
            f"{command.host!r}: the emulator has no authentication"
        )
    task = demonstrated_task(vars(command), command.goal)
    spec = arms.spec(command.robot)
    given = _given_options(command)
    usual = _given_options(EmulateCommand(robot=command.robot))
    for name, (flag, value) in given.items():
        if name not in spec.emulator_settings and value != usual[name][1]:
            raise ValueError(
                f"--{flag} does not apply to {command.robot}: its emulator has no such option"
            )
    options = {name: given[name][1] for name in spec.emulator_settings} | {"seed": command.seed}
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(StopSignals())
        arm = stack.enter_context(
            emulators.make(command.robot, task, **options).start(control=command.control)
        )
        gc.collect()
        gc.freeze()  # a collection of all that was imported would keep the wire waiting for 50 ms
        if command.realtime:
            for note in stack.enter_context(realtime()):
                print(note, file=sys.stderr)
        about = {"robot": command.robot, "where": arm.where, "control": arm.control_port}
        if command.as_json:
            print(json.dumps(about), flush=True)
        else:
            print(
                f"{command.robot} on {arm.where}, control port {arm.control_port}; Ctrl-C ends it\n"
                f"robo-rl deploy BUNDLE --robot {command.robot} --{spec.found_by} {arm.where} "
                f"--control {arm.control_port}",
                flush=True,
            )
        while arm.running and not signals.count and command.parent in (None, os.getppid()):
            time.sleep(0.2)
    return 0


def _is_loopback(host: str) -> bool:
    """Returns whether ``host`` can be reached from this machine only."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _given_options(command: EmulateCommand) -> dict[str, tuple[str, Any]]:
    """{argument of some emulator: (its option, what was given)}."""
    return {
        "link": ("link", command.link),
        "calibrated": ("uncalibrated", not command.uncalibrated),
        "host": ("host", command.host),
        "clock": ("compressed", VirtualClock(EPOCH) if command.compressed else None),
    }
