"""Which stage the options of an arm session ask for: simulated, emulated, or a real arm."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from real_robot import arms
from real_robot.perception.base import MergedPerception, Perception
from real_robot.perception.camera import CameraModel, RecordedCamera, VideoDevice
from real_robot.perception.tags import TagLocator, TagPerception, load_tags
from robo_rl.arm.connected import ConnectedStage
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.simulated import SimStage
from robo_rl.arm.stage import ArmStage
from robo_rl.commands.arm_options import EMULATED, WIRED, ArmSessionOptions, changed_options
from sims.core.task import Task


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
    for name in changed_options(command, WIRED if command.emulate else EMULATED):
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
        for name in changed_options(command, ("rendered",)):
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
    for name in changed_options(command, ("calibration", "patience")):
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
