"""Options of ``deploy``, ``teleop`` and ``learn-on-arm``: which arm, where, and who may take it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from real_robot import RunConfig
from real_robot.core.manifest import Manifest
from real_robot.operator.devices import parse_device
from robo_rl.commands.options import ArmName, Json
from robo_rl.evaluation.arm_conditions import STRAIGHT, ArmConditions, Offset
from sims.core.task import Task

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


def changed_options(command: ArmSessionOptions, names: Sequence[str]) -> list[str]:
    """Which of the options ``names`` are not what they are by default, as they are typed."""
    others = (name for name in names if getattr(command, name) != getattr(ArmSessionOptions, name))
    return [name.replace("_", "-") for name in others]
