"""`robo-rl deploy`: a policy bundle on an arm. Loads no torch.

``--emulate`` alone puts a simulation behind the RobotDriver contract; with ``--robot`` the vendor's
client and the arm's wire protocol come in between. ``--robot`` with ``--port`` or ``--host`` drives
what is there, an arm or ``robo-rl emulate``. Loop, safety filter and log are the same for all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track

from real_robot import (
    Ended,
    Fault,
    Guardian,
    GuardianConfig,
    Phase,
    PolicyBundle,
    PolicyProcess,
    RunConfig,
    run,
)
from real_robot.camera import CameraModel, VideoDevice
from real_robot.monitor import Monitor
from real_robot.perception import Perception, Together
from real_robot.tags import TagLocator, TagPerception, load_tags
from reward_models.metrics import wilson
from robo_rl.stages import EmulatedStage, SimStage, Stage, WiredStage, closing
from sims import make_task
from sims.task import Task

UNWATCHED = ("so101",)  # arms that nothing stops when the bridge dies; UR's controller does it
ARM_SEED = 800_000_000  # scenes on the arm: disjoint from training, selection and test


@dataclass(frozen=True, kw_only=True)
class DeployCommand:
    """Runs a policy bundle on an arm."""

    bundle: tyro.conf.Positional[Path]  # the bundle's folder
    emulate: bool = False  # on a simulated arm; with --robot, over its emulated wire
    robot: Literal["so101", "ur5e"] | None = None  # drive this arm over its vendor's client
    port: str | None = None  # so101: device path, or the USB adapter's serial number
    host: str | None = None  # ur5e: address of the controller
    control: int | None = None  # an emulator's control port: it sets the scene and tells the truth
    tags: Path | None = None  # hardware: file of the tags on the objects (robo-rl calibrate tags)
    camera: tuple[Path, ...] = ()  # hardware: calibration of each camera (robo-rl calibrate camera)
    device: tuple[str, ...] = ("0",)  # hardware: number, path or URL of each camera
    rendered: bool = False  # --robot --emulate: poses from tags in two rendered cameras
    calibration: Path | None = None  # so101: file that the servos' registers must agree with
    think: float = 0.01  # s that the policy may take; its process is asked again in the next period
    patience: float = 0.006  # s, so101: what a reply may take beyond its time on the wire
    silence: float = 1.0  # s without a sign of this process after which its guardian stops the arm
    episodes: int = 20  # each from a new scene
    realtime: bool = False  # keep the wall clock; without, emulated time is compressed
    latency: float = 0.0  # s, between a measurement or a target and its effect
    noise: float = 0.002  # m, standard deviation of perceived object positions
    seed: int = 0  # of the scenes
    log: Path | None = None  # folder for one MCAP log per episode
    monitor: bool = True  # real time, in a terminal: show the run, with keys that stop the arm
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False  # print JSON


@dataclass(frozen=True)
class ArmResult:
    """Episodes of one bundle on an arm."""

    arm: str  # which
    episodes: int
    successes: int
    ended: dict[str, int]  # how the runs ended
    missed: int  # periods skipped
    late_p99_ms: float
    policy_p99_ms: float
    limited: dict[str, float]  # share of ticks in which a filter stage limited some joint
    reasons: tuple[str, ...]  # of the runs that did not end as planned

    def line(self) -> str:
        """One line for people."""
        low, high = (100 * x for x in wilson(self.successes, self.episodes))
        share = 100 * self.successes / self.episodes
        return (
            f"on {self.arm}: success {share:.1f} % ({low:.1f}-{high:.1f}, "
            f"n={self.episodes}); policy p99 {self.policy_p99_ms:.2f} ms, "
            f"missed periods {self.missed}"
        )


def main(argv: Sequence[str]) -> int:
    """Runs the episodes; exits 1 where a run was stopped by a fault or the safety filter."""
    command = tyro.cli(DeployCommand, args=list(argv), prog="robo-rl deploy")
    console = Console(stderr=True)
    bundle = PolicyBundle.load(command.bundle)
    task = task_of(bundle)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(closing(_stage(command, bundle, task, console)))
        policy = guardian = None
        if stage.realtime:  # compressed time stands still while somebody thinks
            policy = PolicyProcess(bundle, command.bundle, budget=command.think)
            stack.enter_context(policy)
        if isinstance(stage, WiredStage) and command.robot in UNWATCHED:
            guardian = stack.enter_context(Guardian(_guard(command, bundle)))
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
        )
    print(json.dumps(dataclasses.asdict(result), indent=1) if command.as_json else result.line())
    for reason in result.reasons:
        console.print(reason)
    return 0 if set(result.ended) == {Ended.DONE.value} else 1


def task_of(bundle: PolicyBundle) -> Task[Any]:
    """The task that a bundle was trained on, with its parameters and its goal."""
    manifest = bundle.manifest
    params = {k: v for k, v in manifest.task_config.items() if k not in ("robot", "goal")}
    return make_task(manifest.task, robot=manifest.arm, goal=manifest.goal or None, **params)


def _stage(
    command: DeployCommand, bundle: PolicyBundle, task: Task[Any], console: Console
) -> Stage:
    """Where the options say that the bundle runs; ValueError where they contradict each other."""
    where = command.port or command.host
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
    flag, given = ("--port", command.port) if command.robot == "so101" else ("--host", command.host)
    if given is None:
        raise ValueError(f"{command.robot} is found by {flag}; give it, or --emulate")
    options: dict[str, Any] = {}
    if command.robot == "so101":
        options = {"calibration": command.calibration, "patience": command.patience}
    eyes = _eyes(command)
    if eyes is None and command.control is None and bundle.manifest.needs_perception:
        raise ValueError(
            "the bundle needs the objects' poses: give --tags and --camera, both made by robo-rl "
            "calibrate"
        )
    return WiredStage(task, given, control=command.control, eyes=eyes, console=console, **options)


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


def _guard(command: DeployCommand, bundle: PolicyBundle) -> GuardianConfig:
    """What the guardian must know to stop the arm without us."""
    options: dict[str, Any] = {}
    if command.robot == "so101":
        calibration = None if command.calibration is None else str(command.calibration)
        options = {"calibration": calibration, "patience": command.patience}
    if command.log is not None:
        command.log.mkdir(parents=True, exist_ok=True)
    return GuardianConfig(
        robot=str(command.robot),
        where=str(command.port or command.host),
        options=options,
        park=bundle.manifest.park,
        silence=command.silence,
        report="" if command.log is None else str(command.log / "guardian.json"),
    )


def run_emulated(
    folder: Path,
    *,
    episodes: int = 20,
    realtime: bool = False,
    latency: float = 0.0,
    noise: float = 0.002,
    seed: int = 0,
    log: Path | None = None,
    console: Console | None = None,
) -> ArmResult:
    """Runs a bundle for ``episodes`` scenes on a simulated arm; success is read off the scene."""
    bundle = PolicyBundle.load(folder)
    task = task_of(bundle)
    stage = SimStage(task, realtime, latency, noise)
    return run_episodes(bundle, task, stage, episodes=episodes, seed=seed, log=log, console=console)


def run_episodes(
    bundle: PolicyBundle,
    task: Task[Any],
    stage: Stage,
    *,
    episodes: int = 20,
    first: int = 0,
    seed: int = 0,
    log: Path | None = None,
    console: Console | None = None,
    policy: PolicyProcess | None = None,
    guardian: Guardian | None = None,
    monitor: Monitor | None = None,
) -> ArmResult:
    """Runs a bundle for ``episodes`` scenes of ``stage``, from number ``first`` on."""
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}")
    steps = round(task.episode_s / task.control_dt)
    if log is not None:
        log.mkdir(parents=True, exist_ok=True)
    successes, ended, missed = 0, {}, 0
    late, thought, reasons, limited = [], [], [], []
    asks = getattr(stage, "asks", False)  # a person, between episodes: no bar then
    numbers = range(first, first + episodes)
    quiet = console is None or asks or monitor is not None
    for index in track(numbers, "arm     ", console=console, disable=quiet, transient=True):
        if monitor is not None and asks:
            monitor.hide()
        scene = stage.scene(ARM_SEED + 1000 * seed + index)
        if monitor is not None:
            monitor.begin(scene.driver.describe(), index - first + 1, episodes, successes)
        reached: list[bool] = []

        def judge(change: Any, reached: list[bool] = reached) -> None:
            if monitor is not None:
                monitor.note(phase=change.after.value)
            # The truth at the moment the policy lets go, before the arm is parked.
            if change.before is Phase.RUN:
                reached.append(stage.success())

        result = run(
            scene.driver,
            bundle,
            task=task,
            perception=scene.eyes,
            steps=steps,
            config=RunConfig(realtime=stage.realtime),
            clock=scene.clock,
            log=None if log is None else log / f"episode_{index:04d}.mcap",
            on_transition=judge,
            watch=None if monitor is None else monitor.tick,
            stop=None if monitor is None else monitor.stop,
            policy=policy,
            guardian=guardian,
        )
        scene.driver.close()
        name = result.ended.value
        ended[name] = ended.get(name, 0) + 1
        if result.ended is Ended.DONE:
            if monitor is not None and asks:
                monitor.hide()
            successes += bool(stage.ask() if asks else reached and reached[-1])
        else:
            reasons.append(f"episode {index}: {name}: {result.reason}")
        missed += result.missed
        late.append(result.latency["lateness"].p99)
        thought.append(result.latency["policy"].p99 if stage.realtime else _think_time(bundle))
        limited.append({name: float(np.max(share)) for name, share in result.limited.items()})
        if stage.realtime and console is not None and not console.is_terminal:
            console.print(
                f"episode {index - first + 1} of {episodes}: {name}, {successes} reached so far, "
                f"{result.missed} periods missed"
            )
        if result.ended is Ended.INTERRUPTED or (policy is not None and not policy.alive):
            break
        if result.fault is Fault.ESTOP:  # a person's to clear
            break
    done = sum(ended.values())
    stages = limited[0] if limited else {}
    return ArmResult(
        stage.name,
        done,
        successes,
        ended,
        missed,
        1000 * float(np.max(late)),
        1000 * float(np.median(thought)),
        {name: float(np.mean([x.get(name, 0.0) for x in limited])) for name in stages},
        tuple(reasons),
    )


def _think_time(bundle: PolicyBundle) -> float:
    """99th percentile s of the policy's answer, timed apart: compressed time stands still."""
    import time

    obs = np.zeros(bundle.manifest.obs_dim, np.float32)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        bundle.act(obs)
        times.append(time.perf_counter() - start)
    return float(np.quantile(times, 0.99))
