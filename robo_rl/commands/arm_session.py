"""What ``deploy`` and ``teleop`` share: which arm, who may take it, and the episodes on it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from rich.console import Console
from rich.prompt import Confirm, Prompt

from real_robot import Clearance, Ended, Phase, PolicyBundle, PolicyProcess, Rescue, RunConfig, arms
from real_robot.core.arm_layout import robot_of
from real_robot.core.driver import Description, RobotFault
from real_robot.core.manifest import Manifest
from real_robot.core.pacing import RealClock
from real_robot.operator.devices import LIVE, DeviceContext, make, parse_device
from real_robot.operator.handover import Operator
from real_robot.operator.scripted import EXPERT, RememberingDriver, from_file
from real_robot.perception.base import MergedPerception, Perception
from real_robot.perception.camera import CameraModel, RecordedCamera, VideoDevice
from real_robot.perception.tags import TagLocator, TagPerception, load_tags
from real_robot.safety.fault_latch import FaultLatch, LatchedError
from real_robot.session.monitor import Monitor
from real_robot.session.rescue import rescue
from robo_rl.arm.connected import ConnectedStage
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.episodes import run_episodes
from robo_rl.arm.simulated import SimStage
from robo_rl.arm.stage import ArmStage, EpisodeSetup, closing
from robo_rl.commands.options import ArmName, Json
from robo_rl.evaluation.arm_conditions import STRAIGHT, ArmConditions, Offset
from robo_rl.runtime.progress_bars import stderr_console
from sims.core.task import Task
from sims.robots.robot import TARGET_DT

if TYPE_CHECKING:
    from robo_rl.on_robot_learning.session import OnRobotSession

# Options that say nothing elsewhere: of what is emulated here, and of what is at a port or a host.
EMULATED = ("noise", "bias", "offset", "latency", "stiffness", "rendered")
WIRED = (
    "clear_fault",
    "if_torque_on",
    "control",
    "tags",
    "camera",
    "device",
    "calibration",
    "patience",
    "silence",
)


@dataclass(frozen=True, kw_only=True)
class ArmSessionOptions:
    """The arm, its address, and the operator's devices."""

    emulate: bool = False  # simulate the arm; with --robot, through its emulated wire protocol
    robot: ArmName | None = None  # arm to drive with its vendor's client
    port: str | None = None  # servo arms: device path, or serial number of the USB adapter
    host: str | None = None  # arms with a controller: its address
    control: int | None = None  # emulator's control port: resets the scene, reports ground truth
    tags: Path | None = None  # real arm: file of the tags on the objects (robo-rl calibrate tags)
    camera: tuple[Path, ...] = ()  # real arm: calibration of each camera (robo-rl calibrate camera)
    device: tuple[str, ...] = ("0",)  # real arm: number, path or URL of each camera
    rendered: bool = False  # with --robot --emulate: poses from tags in two rendered cameras
    # operator's device: keyboard, gamepad[:PATH], leader:PORT, scripted:FILE or scripted:expert
    human: str = ""
    dial: float = 1.0  # speed limit as a share of full speed, above 0; keys + and - change it
    clear_fault: bool = False  # clear the latched fault, once you have inspected the arm, and run
    # what to do first with an arm whose torque is on
    if_torque_on: Literal["", "park", "relax"] = ""
    calibration: Path | None = None  # calibration file that the servos' registers must match
    patience: float | None = None  # s that a servo's reply may take beyond its time on the wire
    silence: float = 1.0  # s without a heartbeat of this process until the arm is stopped
    episodes: int = 20  # number of episodes, each from a new scene
    realtime: bool = False  # run in real time; without it, emulated time runs as fast as it can
    # s, latency between measurement or target and effect; None: that given in training, or 0
    latency: float | None = None
    noise: float = 0.002  # m, standard deviation of perceived object positions
    bias: float = 0.0  # m, error of each object's perceived position, sampled for an episode
    offset: Offset = STRAIGHT  # m, error of all perceived positions: x y z, as of a moved camera
    # servo stiffness in N m/rad; None: the stiffness given in training, or the model's own
    stiffness: float | None = None
    tool_speed: float = RunConfig.tool_speed  # m/s, speed limit of the tool
    # s, at least 0.02: limits the speed so that the arm can always brake to rest within this
    # time; detecting a lost controller takes another 10 to 20 ms
    stop_within: float | None = None
    seed: int = 0  # random seed of the scenes
    log: Path | None = None  # folder for one MCAP log per episode
    monitor: bool = True  # live monitor with keys that stop the arm (real time, in a terminal)
    as_json: Json = False  # print JSON

    @property
    def conditions(self) -> ArmConditions:
        """The noise, latency and stiffness that an emulated arm adds."""
        names = [field.name for field in dataclasses.fields(ArmConditions)]
        return ArmConditions(
            **{name: getattr(self, name) for name in names} | {"latency": self.latency or 0.0}
        )

    def on_the_arm_of(self, manifest: Manifest, task: Task[Any]) -> Self:
        """Returns the options with the latency and stiffness given in training where none is given;
        only of an emulated arm."""
        if not self.emulate:
            return self
        known = ArmConditions.known_in(manifest.training, task)
        return dataclasses.replace(
            self,
            latency=known.latency if self.latency is None else self.latency,
            stiffness=known.stiffness if self.stiffness is None else self.stiffness,
        )

    def check(self) -> None:
        """ValueError where an option is out of its range, or contradicts another."""
        for name in ("noise", "bias", "latency", "patience", "silence"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"--{name} must be finite and not below 0, got {value:g}")
        if self.silence <= RunConfig.max_gap:
            raise ValueError(
                f"--silence must be above {RunConfig.max_gap:g} s, the longest delay allowed to "
                f"the control loop; got {self.silence:g}"
            )
        RunConfig(tool_speed=self.tool_speed, stop_s=self.stop_within)  # which says what is wrong
        if not 0.0 < self.dial <= 1.0:
            raise ValueError(f"--dial must be above 0 and at most 1, got {self.dial:g}")
        if self.stiffness is not None and not 0 < self.stiffness < math.inf:
            raise ValueError(
                f"--stiffness must be finite and above 0, got {self.stiffness:g} N m/rad"
            )
        if self.human:
            parse_device(self.human)


def run_arm_session(
    command: ArmSessionOptions,
    bundle: PolicyBundle,
    task: Task[Any],
    *,
    policy: Callable[[], PolicyProcess] | None = None,
    shadow: bool = False,
    first: int = 0,
    learning: OnRobotSession | None = None,
    filmed: bool = False,
) -> int:
    """Runs the episodes; 1 where a run was stopped by a fault or the safety filter, or there was
    no policy left for the next one.

    ``policy`` starts the process in which the bundle answers in real time; None: it answers here.
    Nobody but a person drives where the bundle's action is none. ``learning`` says between episodes
    what acts next; ``filmed``: what is emulated has a camera.
    """
    console, manifest = stderr_console(), bundle.manifest
    command = command.on_the_arm_of(manifest, task)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(
            closing(make_stage(command, task, manifest.needs_perception, console, filmed))
        )
        config = RunConfig(
            realtime=stage.realtime, tool_speed=command.tool_speed, stop_s=command.stop_within
        )
        latch = None
        if isinstance(stage, ConnectedStage):
            latch = claim_arm(command, stage, task, manifest, config, console)
        monitor = None
        terminal = stage.realtime and sys.stdin.isatty() and console.is_terminal
        if command.monitor and terminal:
            key_help = _keys_of(command.human, len(manifest.joints))
            monitor = stack.enter_context(Monitor(manifest.arm, command.dial, key_help))
        human = _operator(command, task, stage, monitor, manifest.action.kind == "none")
        if human is not None:
            human = stack.enter_context(human)
            human = human if learning is None else learning.operators(human)
        answering = None
        if stage.realtime and policy is not None:  # compressed time stands still while one thinks
            answering = stack.enter_context(policy())
        console.print(f"goal: {_goal_of(manifest, task)}", markup=False, highlight=False)
        _warn(command, manifest, task, console)
        result = run_episodes(
            bundle,
            task,
            stage,
            episodes=None if learning else command.episodes,  # its time ends it
            first=first,
            seed=command.seed,
            log=command.log,
            console=console,
            policy=answering,
            monitor=monitor,
            latch=latch,
            config=config,
            human=human,
            dial=(lambda: command.dial) if monitor is None else monitor.dial,
            shadow=shadow,
            **(_learning_options(learning, command, stage, latch, console) if learning else {}),
        )
    print(json.dumps(dataclasses.asdict(result), indent=1) if command.as_json else result.line())
    for remark in result.remarks:
        console.print(remark, markup=False)
    if result.unlogged:
        raise OSError(
            f"the log is incomplete: {result.unlogged}; free disk space there, or give "
            "another --log"
        )
    return 0 if set(result.ended) == {Ended.DONE.value} and not result.cut else 1


def _goal_of(manifest: Manifest, task: Task[Any]) -> str:
    """Returns the goal's sentence from the bundle, or the task's own words for it."""
    own = task.goals().get(task.goal)
    return manifest.metrics.get("sentence") or (own.sentence if own else str(task.goal))


def _warn(
    command: ArmSessionOptions, manifest: Manifest, task: Task[Any], console: Console
) -> None:
    """Prints what the policy was trained for, and which conditions of this run exceed training."""
    if manifest.action.kind == "none":
        return
    met = ArmConditions.worst_trained(manifest.training, task)
    trained = (
        met.known_text(only=True) or "no noise, no latency and the model's own servo stiffness"
    )
    console.print(f"trained for {trained}", markup=False, highlight=False)
    if not command.emulate:
        return
    if beyond := command.conditions.beyond(met, tags=command.rendered):
        console.print(f"beyond that: {beyond}", markup=False, highlight=False)


def _learning_options(
    learning: OnRobotSession,
    command: ArmSessionOptions,
    stage: ArmStage,
    latch: FaultLatch | None,
    console: Console,
) -> dict[str, Callable[..., Any]]:
    """Returns the arguments of ``run_episodes`` for learning between episodes. An operator clears
    faults at the terminal; on an emulated arm they are cleared without one."""

    def cleared() -> bool:
        if latch is None or not isinstance(stage, ConnectedStage):
            return True
        try:
            if confirm_clear(dataclasses.replace(command, clear_fault=False), latch, console):
                clear(latch, stage)
        except LatchedError as error:
            console.print(str(error), markup=False)
            return False
        return True

    return {"before": learning.before, "after": learning.after, "cleared": cleared}


def _keys_of(human: str, joints: int) -> str:
    """Returns the panel's line on the keys of an operator's device."""
    if not human:
        return ""
    name = parse_device(human)[0]
    if name == "keyboard":
        from real_robot.operator.keyboard import HELP

        return f"{name}: {HELP.format(n=joints)}"
    return f"{name} · t: take, give back · y success, n failure, x throw away: ends the episode"


def _operator(
    command: ArmSessionOptions,
    task: Task[Any],
    stage: ArmStage,
    monitor: Monitor | None,
    alone: bool,
) -> (
    contextlib.AbstractContextManager[Callable[[EpisodeSetup, int], tuple[EpisodeSetup, Operator]]]
    | None
):
    """Returns the function that makes each episode's operator; ``alone``: no policy runs."""
    if not command.human:
        return None
    name, where = parse_device(command.human)
    if name in LIVE and not stage.realtime:
        raise ValueError(
            f"--human {name} is operated by a person, in real time: add --realtime to "
            "--emulate, or start robo-rl emulate and give its --port or --host"
        )
    if name == "scripted" and where != EXPERT:  # what is wrong with a file is said before the arm
        from_file(Path(where), robot_of(task).joints)
    if name == "leader" and monitor is None and not alone:
        raise ValueError(
            "--human leader takes over by a key of the monitor: run it in a terminal, "
            "without --no-monitor"
        )
    return _operators(command.human, task, monitor, alone)


@contextlib.contextmanager
def _operators(
    human: str, task: Task[Any], monitor: Monitor | None, alone: bool
) -> Iterator[Callable[[EpisodeSetup, int], tuple[EpisodeSetup, Operator]]]:
    robot = Description.of(robot_of(task), TARGET_DT)
    keys: dict[str, Any] = {}
    if monitor is not None:
        keys = {"typed": monitor.typed, "alive": lambda: monitor.alive}
    live: Operator | None = None
    if parse_device(human)[0] in LIVE:  # opened before the arm is touched, and kept
        live = make(human, DeviceContext(robot=robot, clock=RealClock(), **keys), taken=alone)

    def person(scene: EpisodeSetup, seed: int) -> tuple[EpisodeSetup, Operator]:
        if live is not None:
            return scene, live
        driver = RememberingDriver(scene.driver)
        around = DeviceContext(
            robot=robot,
            clock=scene.clock,
            task=task,
            driver=driver,
            eyes=scene.sight or scene.eyes,
            seed=seed,
            **keys,
        )
        return dataclasses.replace(scene, driver=driver), make(human, around, taken=alone)

    try:
        yield person
    finally:
        if hasattr(live, "close"):
            live.close()


def make_stage(
    command: ArmSessionOptions,
    task: Task[Any],
    perceives: bool,
    console: Console,
    filmed: bool = False,
) -> ArmStage:
    """Returns the stage that the options name, with a recording camera of an emulated arm if
    wanted. Raises ValueError where options contradict each other."""
    where = command.port or command.host
    for name in _changed_options(command, WIRED if command.emulate else EMULATED):
        raise ValueError(
            f"--{name} applies only to an arm at a --port or --host, not to --emulate"
            if command.emulate
            else f"--{name} applies only to --emulate, not to an arm at a --port or --host"
        )
    if command.robot is None:
        if not command.emulate or where:
            raise ValueError(
                "no arm selected: give --emulate for a simulated arm, --robot NAME --emulate "
                "for its emulated wire protocol, or --robot NAME with --port PORT or --host "
                "HOST for a real arm"
            )
        for name in _changed_options(command, ("rendered",)):
            raise ValueError(f"--{name} needs an emulated arm: add --robot NAME")
        return SimStage(task, command.realtime, command.conditions, filmed)
    if command.robot != task.robot:
        raise ValueError(f"the bundle was trained for {task.robot}, got --robot {command.robot}")
    if command.emulate:
        if where or command.realtime:
            raise ValueError(
                "--robot with --emulate starts its own emulator, which does not run in real "
                "time; for real time start robo-rl emulate and give deploy its --port or --host"
            )
        return EmulatedStage(task, command.conditions, tags=command.rendered, filmed=filmed)
    spec = arms.spec(command.robot)
    given = getattr(command, spec.found_by)
    if given is None or (command.port and command.host):
        raise ValueError(
            f"{command.robot} needs --{spec.found_by} and no other address; or give --emulate"
        )
    for name in _changed_options(command, ("calibration", "patience")):
        if name.replace("-", "_") not in spec.settings:
            raise ValueError(
                f"--{name} applies only to arms with servos on a bus, not to {command.robot}"
            )
    options = _settings(command)
    eyes, film = _perception(command)
    if eyes is None and command.control is None and perceives:
        raise ValueError(
            "the policy needs object poses: give --tags and --camera, files that robo-rl "
            "calibrate writes"
        )
    return ConnectedStage(
        task,
        given,
        control=command.control,
        eyes=eyes,
        film=film,
        console=console,
        silence=command.silence,
        **options,
    )


def _changed_options(command: ArmSessionOptions, names: Sequence[str]) -> list[str]:
    """Which of the options ``names`` are not what they are by default, as they are typed."""
    others = (name for name in names if getattr(command, name) != getattr(ArmSessionOptions, name))
    return [name.replace("_", "-") for name in others]


def _settings(command: ArmSessionOptions) -> dict[str, Any]:
    """{option of the arm's driver: what was given}; it has defaults of its own."""
    names = arms.spec(str(command.robot)).settings
    return {name: value for name in names if (value := getattr(command, name)) is not None}


def _perception(command: ArmSessionOptions) -> tuple[Perception | None, list[RecordedCamera]]:
    """Perception by the tags and the cameras that were given, already looking, and the cameras."""
    if command.tags is None and not command.camera:
        return None, []
    if command.tags is None or len(command.camera) != len(command.device):
        raise ValueError(
            "--tags, --camera and --device must be given together, with one device per "
            f"camera; got {len(command.camera)} cameras and {len(command.device)} devices"
        )
    objects, family = load_tags(command.tags)
    looking, film = [], []
    for file, name in zip(command.camera, command.device, strict=True):
        camera = CameraModel.load(file)
        device = int(name) if name.isdigit() else name
        source = VideoDevice(device, camera.width, camera.height)
        film.append(RecordedCamera(source, file.stem))
        looking.append(TagPerception(film[-1], TagLocator(camera, objects, family)))
        try:
            looking[-1].look()
        except (OSError, ValueError) as error:
            raise ValueError(f"camera {name} ({file}): {error}") from error
    return MergedPerception([camera.start() for camera in looking]), film


def claim_arm(
    command: ArmSessionOptions,
    stage: ConnectedStage,
    task: Task[Any],
    manifest: Manifest,
    config: RunConfig,
    console: Console,
) -> FaultLatch:
    """Opens the fault latch of an arm whose torque is off. A latched fault is cleared last, because
    clearing turns the torque of every joint off, and an arm that is to be parked would fall."""
    latch = arm_fault_latch(command)
    cleared = confirm_clear(command, latch, console)
    stage.rescue = _rescue(command, manifest, latch)
    settle_torque(command, stage, task, manifest, config, latch, console)
    if cleared:
        clear(latch, stage)
    return latch


def arm_fault_latch(command: ArmSessionOptions) -> FaultLatch:
    """Returns the fault latch of the arm at the port or the host."""
    return FaultLatch.of(str(command.robot), str(command.port or command.host))


def confirm_clear(command: ArmSessionOptions, latch: FaultLatch, console: Console) -> bool:
    """Returns whether the operator wants the fault cleared. Raises LatchedError where there is a
    fault and nobody confirms."""
    why = latch.reason()
    confirmed = command.clear_fault
    if why and not confirmed and sys.stdin.isatty():
        console.print(f"This arm has a latched fault: {why}", markup=False)
        confirmed = Confirm.ask(
            "Have you inspected the arm, and is its surrounding clear of people? Clear the fault",
            console=console,
        )
    if not confirmed:
        latch.check()
    return confirmed


def clear(latch: FaultLatch, stage: ConnectedStage) -> None:
    """An operator has looked at the arm; LatchedError where it still reports its fault."""
    try:
        latch.clear(stage.driver())
    except RobotFault as error:
        raise LatchedError(f"the fault was not cleared: {error}") from error


def settle_torque(
    command: ArmSessionOptions,
    stage: ConnectedStage,
    task: Task[Any],
    manifest: Manifest,
    config: RunConfig,
    latch: FaultLatch,
    console: Console,
) -> None:
    """Parks or relaxes, as the operator chooses, an arm whose torque is on without a controller.
    Raises ValueError without a choice, or where torque stays on, and KeyboardInterrupt where
    parking was stopped: torque is off then, and no episode starts."""
    driver = stage.driver()
    try:
        driver.connect()
        driver.identify()
        stiff = driver.joints_with_torque()
    except RobotFault:
        return  # the run says it, and logs it
    finally:
        driver.close()
    if not stiff:
        return
    state = (
        f"torque is still on ({', '.join(stiff)}) but no controller is connected; the "
        "arm holds its last target"
    )
    how: str = command.if_torque_on
    if not how and sys.stdin.isatty():
        console.print(f"{state}. Inspect it: parking moves it slowly, relaxing lets it fall.")
        how = Prompt.ask("Park or relax the arm?", choices=["park", "relax"], console=console)
    if not how:
        raise ValueError(
            f"{state}. Inspect it; then add --if-torque-on park, which moves it slowly, or "
            "--if-torque-on relax, which lets it fall"
        )
    driver = stage.driver()
    try:
        driver.connect()
    except RobotFault as error:
        raise ValueError(f"{state}, and the arm does not answer: {error}") from error
    around = Clearance.of(task, margin=config.clearance)
    park = manifest.park if how == "park" else ()
    result = rescue(driver, park, config, latch=latch, clearance=around, heeds=True)
    if left := [joint for joint, limp in result.acks.items() if not limp]:
        raise ValueError(f"torque is still on: {', '.join(left)}; {result.reason or result.notes}")
    parked = Phase.PARK in {t.after for t in result.history} and not result.notes
    console.print(f"the arm was {'parked and ' * parked}relaxed, joint by joint")
    if result.signal:
        raise KeyboardInterrupt


def _rescue(command: ArmSessionOptions, manifest: Manifest, latch: FaultLatch) -> Rescue:
    """Returns what the rescue process must know to bring the arm to rest."""
    if command.log is not None:
        command.log.mkdir(parents=True, exist_ok=True)
    return Rescue(
        park=manifest.park,
        scene={**manifest.task_config, "name": manifest.task, "robot": manifest.arm, "goal": None},
        report="" if command.log is None else str(command.log.absolute() / "rescue.json"),
        latch=str(latch.path.absolute()),
        stop_s=command.stop_within,
        tool_speed=command.tool_speed,
    )
