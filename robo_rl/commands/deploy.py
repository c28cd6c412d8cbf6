"""`robo-rl deploy`: a policy bundle on an arm. Loads no torch.

``--emulate`` alone puts a simulation behind the RobotDriver contract; with ``--robot`` the vendor's
client and the arm's wire protocol come in between. ``--robot`` with ``--port`` or ``--host`` drives
what is there, an arm or ``robo-rl emulate``. Loop, safety filter and log are the same for all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.prompt import Confirm

from real_robot import Ended, Guardian, GuardianConfig, PolicyBundle, PolicyProcess, RunConfig, arms
from real_robot.camera import CameraModel, VideoDevice
from real_robot.driver import RobotFault
from real_robot.drivers.usb import serial_of
from real_robot.latch import Latch, LatchedError
from real_robot.monitor import Monitor
from real_robot.perception import Perception, Together
from real_robot.tags import TagLocator, TagPerception, load_tags
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.episodes import run_episodes, task_of
from robo_rl.arm.simulated import SimStage
from robo_rl.arm.stage import Stage, closing
from robo_rl.arm.wired import WiredStage
from robo_rl.commands.options import Json
from sims.task import Task

ArmName = Literal[arms.ARMS]


@dataclass(frozen=True, kw_only=True)
class DeployCommand:
    """Runs a policy bundle on an arm."""

    bundle: tyro.conf.Positional[Path]  # the bundle's folder
    emulate: bool = False  # on a simulated arm; with --robot, over its emulated wire
    robot: ArmName | None = None  # drive this arm over its vendor's client
    port: str | None = None  # servos on a bus: device path, or the USB adapter's serial number
    host: str | None = None  # a controller: its address
    control: int | None = None  # an emulator's control port: it sets the scene and tells the truth
    tags: Path | None = None  # hardware: file of the tags on the objects (robo-rl calibrate tags)
    camera: tuple[Path, ...] = ()  # hardware: calibration of each camera (robo-rl calibrate camera)
    device: tuple[str, ...] = ("0",)  # hardware: number, path or URL of each camera
    rendered: bool = False  # --robot --emulate: poses from tags in two rendered cameras
    clear_fault: bool = False  # you looked at the arm: clear the fault that stopped it, and go on
    calibration: Path | None = None  # what the servos' registers must agree with
    think: float = 0.01  # s that the policy may take; its process is asked again in the next period
    patience: float | None = None  # s that servos' replies may take beyond their time on the wire
    silence: float = 1.0  # s without a sign of this process after which its guardian stops the arm
    episodes: int = 20  # each from a new scene
    realtime: bool = False  # keep the wall clock; without, emulated time is compressed
    latency: float = 0.0  # s, between a measurement or a target and its effect
    noise: float = 0.002  # m, standard deviation of perceived object positions
    tool_speed: float = RunConfig.tool_speed  # m/s, at which the tool is slowed
    seed: int = 0  # of the scenes
    log: Path | None = None  # folder for one MCAP log per episode
    monitor: bool = True  # real time, in a terminal: show the run, with keys that stop the arm
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Runs the episodes; exits 1 where a run was stopped by a fault or the safety filter."""
    command = tyro.cli(DeployCommand, args=list(argv), prog="robo-rl deploy")
    for name in ("noise", "latency", "think", "patience", "silence"):
        value = getattr(command, name)
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"--{name} must be finite and not below 0, got {value:g}")
    console = Console(stderr=True)
    bundle = PolicyBundle.load(command.bundle)
    task = task_of(bundle.manifest)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(closing(_stage(command, bundle, task, console)))
        latch = _unlatched(command, stage, console) if isinstance(stage, WiredStage) else None
        policy = guardian = None
        if stage.realtime:  # compressed time stands still while somebody thinks
            policy = PolicyProcess(bundle, command.bundle, budget=command.think)
            stack.enter_context(policy)
        if isinstance(stage, WiredStage) and arms.spec(str(command.robot)).guarded:
            guardian = stack.enter_context(Guardian(_guard(command, bundle, latch)))
        monitor = None
        if command.monitor and stage.realtime and sys.stdin.isatty() and console.is_terminal:
            monitor = stack.enter_context(Monitor(bundle.manifest.arm))
        result = run_episodes(
            bundle,
            task,
            stage,
            episodes=command.episodes,
            seed=command.seed,
            log=command.log,
            console=console,
            policy=policy,
            guardian=guardian,
            monitor=monitor,
            latch=latch,
            config=RunConfig(realtime=stage.realtime, tool_speed=command.tool_speed),
        )
    print(json.dumps(dataclasses.asdict(result), indent=1) if command.as_json else result.line())
    if result.advice:
        console.print(result.advice, markup=False)
    for reason in result.reasons:
        console.print(reason, markup=False)
    if result.unlogged:
        raise OSError(
            f"the log is not whole: {result.unlogged}; free space there, or give another --log"
        )
    return 0 if set(result.ended) == {Ended.DONE.value} else 1


def _stage(
    command: DeployCommand, bundle: PolicyBundle, task: Task[Any], console: Console
) -> Stage:
    """Where the options say that the bundle runs; ValueError where they contradict each other."""
    where = command.port or command.host
    if command.clear_fault and command.emulate:
        raise ValueError("--clear-fault is for an arm at a port or a host; --emulate has a new one")
    if command.robot is None:
        if not command.emulate or where:
            raise ValueError(
                "say which arm: --emulate for a simulation, --robot NAME --emulate for its "
                "emulated wire, --robot NAME --port PORT or --host HOST for what is there"
            )
        return SimStage(task, command.realtime, command.latency, command.noise)
    if command.robot != bundle.manifest.arm:
        raise ValueError(f"the bundle is for {bundle.manifest.arm}, not for {command.robot}")
    if command.emulate:
        if where or command.realtime:
            raise ValueError(
                "--robot with --emulate starts its own emulator on a compressed clock; for the "
                "wall clock start robo-rl emulate and give deploy its --port or --host"
            )
        return EmulatedStage(
            task, noise=command.noise, latency=command.latency, tags=command.rendered
        )
    if command.latency:
        raise ValueError("--latency is for --emulate; what is at a port or a host has its own")
    spec = arms.spec(command.robot)
    given = getattr(command, spec.found_by)
    if given is None:
        raise ValueError(f"{command.robot} is found by --{spec.found_by}; give it, or --emulate")
    options = _settings(command)
    eyes = _eyes(command)
    if eyes is None and command.control is None and bundle.manifest.needs_perception:
        raise ValueError(
            "the bundle needs the objects' poses: give --tags and --camera, both made by robo-rl "
            "calibrate"
        )
    return WiredStage(task, given, control=command.control, eyes=eyes, console=console, **options)


def _settings(command: DeployCommand) -> dict[str, Any]:
    """{option of the arm's driver: what was given}; it has defaults of its own."""
    names = arms.spec(str(command.robot)).settings
    return {name: value for name in names if (value := getattr(command, name)) is not None}


def _eyes(command: DeployCommand) -> Perception | None:
    """Perception by the tags and the cameras that were given, already looking."""
    if command.tags is None and not command.camera:
        return None
    if command.tags is None or len(command.camera) != len(command.device):
        raise ValueError(
            f"--tags, --camera and --device belong together, one device for each camera; got "
            f"{len(command.camera)} cameras and {len(command.device)} devices"
        )
    objects, family = load_tags(command.tags)
    looking = []
    for file, name in zip(command.camera, command.device, strict=True):
        camera = CameraModel.load(file)
        device = int(name) if name.isdigit() else name
        source = VideoDevice(device, camera.width, camera.height)
        looking.append(TagPerception(source, TagLocator(camera, objects, family)).start())
    return Together(looking)


def _unlatched(command: DeployCommand, stage: WiredStage, console: Console) -> Latch:
    """The arm's latch, once it is open: cleared by the operator if a fault was kept in it."""
    where = str(command.port or command.host)
    latch = Latch.of(str(command.robot), serial_of(where) if command.port else where)
    clear, why = command.clear_fault, latch.reason()
    if why and not clear and sys.stdin.isatty():
        console.print(f"A fault of this arm is latched: {why}", markup=False)
        clear = Confirm.ask("Is the arm well, and is nobody near it? Clear it", console=console)
    if not clear:
        latch.check()
        return latch
    try:
        latch.clear(stage.driver())
    except RobotFault as error:
        raise LatchedError(f"the fault was not cleared: {error}") from error
    return latch


def _guard(command: DeployCommand, bundle: PolicyBundle, latch: Latch | None) -> GuardianConfig:
    """What the guardian must know to stop the arm without us."""
    given = _settings(command).items()
    options = {k: str(v.absolute()) if isinstance(v, Path) else v for k, v in given}
    if command.log is not None:
        command.log.mkdir(parents=True, exist_ok=True)
    where, manifest = str(command.port or command.host), bundle.manifest
    return GuardianConfig(
        robot=str(command.robot),
        where=os.path.abspath(where) if os.path.exists(where) else where,
        options=options,
        park=manifest.park,
        scene={**manifest.task_config, "name": manifest.task, "robot": manifest.arm, "goal": None},
        silence=command.silence,
        report="" if command.log is None else str(command.log.absolute() / "guardian.json"),
        latch="" if latch is None else str(latch.path.absolute()),
    )
