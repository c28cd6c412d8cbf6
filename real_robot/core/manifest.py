"""Manifest: everything a bundle says about its policy, as typed data that survives JSON exactly."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np

from sims.core.task import ObsPart

SCHEMA = 1
SOURCES = ("joints", "perception", "camera")

RULE = (
    "obs holds the inputs one after the other, in their order; an input holds its parts one after "
    "the other; a part is scale * (plus - minus) + offset, of the first `size` values of what plus "
    "and minus name in sensed ('' is 0). All are float32, one row per arm. action is clipped to "
    "action.low and action.high. Where the graph has them, state is 0 at the start of an episode "
    "and next_state of the call before after that."
)

K = TypeVar("K")
Floats = tuple[float, ...]


class BundleError(ValueError):
    """A bundle that must not run here; the message shows both sides of what does not fit."""


@dataclass(frozen=True, kw_only=True)
class GraphSpec:
    """The names of the graph's tensors, and how they are filled."""

    obs: str = "obs"  # (rows, obs_dim)
    action: str = "action"  # (rows, action.dim)
    state: str = "state"  # (rows, k), of recurrent policies alone
    next_state: str = "next_state"  # (rows, k)
    rule: str = RULE


@dataclass(frozen=True, kw_only=True)
class SensedSpec:
    """One quantity that the parts of inputs are made of."""

    name: str  # "red_cube_pos"
    shape: tuple[int, ...]
    unit: str  # "m"
    frame: str  # "world" is that of the robot's base; "joint" in the order of ``joints``
    doc: str


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """One named column group of the observation, in the order of concatenation."""

    name: str  # key of Task.obs
    shape: tuple[int, ...]  # of one row
    unit: str  # of the value 1: "rad", "0.25 m"
    source: str  # joints: the driver's alone; perception: object poses too; camera: frames
    dtype: str = "float32"
    parts: tuple[ObsPart, ...] = ()  # what it is made of, in order; () if the task does not say

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            _refuse(f"inputs[{self.name}].source", f"one of {', '.join(SOURCES)}", self.source)
        if self.dtype != "float32":
            _refuse(f"inputs[{self.name}].dtype", "float32", self.dtype)
        if self.parts and sum(part.size for part in self.parts) != self.size:
            _refuse(f"inputs[{self.name}].parts", f"{self.size} values together", self.parts)

    @property
    def size(self) -> int:
        """Number of values in one row."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class ActionSpec:
    """What the policy puts out: ``kind`` "task" is an action of ``Task.control``, "none" moves
    nothing: of who only stands by while a person drives."""

    dim: int
    low: Floats  # (dim,)
    high: Floats  # (dim,)
    kind: str = "task"
    smoothing: float = 0.0  # s, time constant of the low-pass that training had on its targets
    meaning: tuple[str, ...] = ()  # (dim,) of each element, in words; () if the task does not say

    def __post_init__(self) -> None:
        if not 0.0 <= self.smoothing < math.inf:
            _refuse("action.smoothing", "a time of at least 0 s", self.smoothing)
        if self.kind not in ("task", "none"):
            _refuse("action.kind", "'task' or 'none'", self.kind)
        if len(self.low) != self.dim or len(self.high) != self.dim:
            _refuse("action.low and high", f"{self.dim} values each", (self.low, self.high))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits the policy was trained under; () leaves the robot's own."""

    velocity: Floats = ()  # (n,) rad/s
    acceleration: Floats = ()  # (n,) rad/s^2
    jerk: Floats = ()  # (n,) rad/s^3
    lag: Floats = ()  # (n,) rad between a target and its joint
    workspace: Floats = ()  # (6,) m, where the tool may be: low and high of x, y, z

    @property
    def box(self) -> tuple[Floats, ...]:
        """(3, 2) m, low and high of the tool; () if it may go anywhere."""
        return tuple(self.workspace[i : i + 2] for i in range(0, len(self.workspace), 2))


@dataclass(frozen=True, kw_only=True)
class StartSet:
    """Where a run may begin: a box of joint angles, and the gripper's opening."""

    centre: Floats  # (n,) rad
    tolerance: Floats  # (n,) rad to either side
    gripper: float | None = None  # 0 closed, 1 open; None: as it is


@dataclass(frozen=True, kw_only=True)
class RewardSpec:
    """The reward the policy was trained on."""

    model: str  # "clip"
    text: str  # the goal sentence, or the reward's source code
    hash: str = ""  # of weights or source


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What manifest.json holds; (n,) fields are in the order of ``joints``."""

    task: str  # "reach"
    task_config: Mapping[str, Any]  # parameters of the task: ``Task.card()["params"]``
    arm: str  # "so101"
    joints: tuple[str, ...]  # n names, base to tool
    goal: str  # the sentence the policy was trained for
    inputs: tuple[InputSpec, ...]
    action: ActionSpec
    control_dt: float  # s per action
    start: StartSet
    graph: GraphSpec = GraphSpec()
    sensed: tuple[SensedSpec, ...] = ()  # what the inputs' parts name
    calibration: str = ""  # of the one arm it is for, as its driver identifies it; "": any
    park: Floats = ()  # (n,) rad where the arm may go limp without falling; () if there is none
    limits: Limits = Limits()
    reward: RewardSpec = RewardSpec(model="", text="")
    training: Mapping[str, Any] = field(default_factory=dict)  # learner, steps, seed, randomisation
    metrics: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # name -> sha256, by write_manifest
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        n = len(self.joints)
        if not (self.control_dt > 0 and math.isfinite(self.control_dt)):
            _refuse("control_dt", "a time above 0 s", self.control_dt)
        poses = {"start.centre": self.start.centre, "start.tolerance": self.start.tolerance}
        optional = {f"limits.{k}": v for k, v in vars(self.limits).items()} | {"park": self.park}
        box = optional.pop("limits.workspace")
        if box and not (
            len(box) == 6 and np.isfinite(box).all() and (np.diff(self.limits.box) > 0).all()
        ):
            _refuse("limits.workspace", "6 values, low < high of x, y and z", box)
        for name, values in poses.items() | optional.items():
            if len(values) != n and (values or name in poses):
                _refuse(name, f"{n} values, one for each of {', '.join(self.joints)}", values)
            if not np.isfinite(np.array(values, float)).all():
                _refuse(name, "finite values", values)
            if not name.endswith(("centre", "park")) and min(values, default=1.0) <= 0:
                _refuse(name, "values above 0", values)
        for name in self.files:
            if name != name.strip("/.") or "/" in name or "\\" in name:
                _refuse("files", "plain names of files inside the bundle", name)
        named = {one.name for one in self.sensed} | {""}
        for one in self.inputs:
            if strange := {x for p in one.parts for x in (p.plus, p.minus)} - named:
                _refuse(f"inputs[{one.name}].parts", "entries of sensed", sorted(strange))
        # A camera needs a graph with an image input, which the bridge does not feed.
        cameras = [i.name for i in self.inputs if i.source == "camera"]
        if cameras:
            _refuse("inputs", "sources joints and perception", f"camera for {', '.join(cameras)}")

    @property
    def obs_dim(self) -> int:
        """Width of an observation."""
        return sum(i.size for i in self.inputs)

    @property
    def needs_perception(self) -> bool:
        """Whether any input depends on the pose of an object."""
        return any(i.source == "perception" for i in self.inputs)

    def with_files(self, files: Mapping[str, str]) -> Manifest:
        """This manifest with the hashes ``files`` {name: sha256}."""
        return dataclasses.replace(self, files=dict(files))

    def to_json(self) -> str:
        """The text of manifest.json."""
        return json.dumps(dataclasses.asdict(self), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """The manifest in ``text``; BundleError names the field that is wrong."""
        try:
            data = json.loads(text, parse_constant=lambda name: _refuse("a number", "finite", name))
        except json.JSONDecodeError as error:
            raise BundleError(f"manifest.json is not JSON: {error}") from error
        if not isinstance(data, dict):
            _refuse("manifest", "an object", data)
        if data.get("schema") != SCHEMA:
            _refuse("schema", f"{SCHEMA}, the version this program reads", data.get("schema"))
        parts = {
            "action": ActionSpec,
            "limits": Limits,
            "start": StartSet,
            "reward": RewardSpec,
            "graph": GraphSpec,
        }
        built: dict[str, Any] = {
            name: _build(kind, data[name], name) for name, kind in parts.items() if name in data
        }
        if "inputs" in data:
            built["inputs"] = tuple(
                _build(
                    InputSpec,
                    entry
                    if not isinstance(entry, dict) or "parts" not in entry
                    else entry | {"parts": _list_of(ObsPart, entry["parts"], f"inputs[{i}].parts")},
                    f"inputs[{i}]",
                )
                for i, entry in enumerate(_a_list(data["inputs"], "inputs"))
            )
        if "sensed" in data:
            built["sensed"] = _list_of(SensedSpec, data["sensed"], "sensed")
        return _build(cls, {**data, **built}, "manifest")


def _refuse(what: str, expected: str, got: object) -> NoReturn:
    raise BundleError(f"{what} must be {expected}, got {got!r}")


_CHECKS: dict[str, Any] = {
    "str": lambda v: isinstance(v, str),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "float | None": lambda v: v is None or _CHECKS["float"](v),
    "Floats": lambda v: isinstance(v, tuple) and all(_CHECKS["float"](x) for x in v),
    "tuple[int, ...]": lambda v: isinstance(v, tuple) and all(_CHECKS["int"](x) for x in v),
    "tuple[str, ...]": lambda v: isinstance(v, tuple) and all(isinstance(x, str) for x in v),
    "Mapping[str, Any]": lambda v: isinstance(v, dict),
    "Mapping[str, str]": lambda v: (
        isinstance(v, dict) and all(isinstance(x, str) for x in v.values())
    ),
}


def _a_list(data: Any, where: str) -> list[Any]:
    if not isinstance(data, list):
        _refuse(where, "a list", data)
    return data


def _list_of(kind: type[K], data: Any, where: str) -> tuple[K, ...]:
    """One ``kind`` for each entry of a JSON list."""
    entries = enumerate(_a_list(data, where))
    return tuple(_build(kind, entry, f"{where}[{i}]") for i, entry in entries)


def _build(kind: type[K], data: Any, where: str) -> K:
    """``kind`` from a JSON object whose keys and types are exactly its fields."""
    if not isinstance(data, dict):
        _refuse(where, "an object", data)
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(data) - set(fields))
    required = [
        name
        for name, f in fields.items()
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in required if name not in data]
    if unknown or missing:
        raise BundleError(f"{where}: unknown fields {unknown}, missing fields {missing}")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
    for name, value in values.items():
        check = _CHECKS.get(str(fields[name].type))
        if check is not None and not check(value):
            _refuse(f"{where}.{name}", str(fields[name].type), value)
    return kind(**values)
