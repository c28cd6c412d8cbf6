"""Tape: everything that reaches a run from outside, in order, so that the run can be had again.

A session is a function of what it is told: the clock, the driver's answers, objects' poses, the
policy's actions, a person's hand, signals. Recorded in a log, the same answers in the same order
take the same loop, filter and states through the same steps; where they do not, the program is no
longer the one that made the log, and ``ReplayDiverged`` says at which answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from real_robot.core.driver import (
    Description,
    Fault,
    Identity,
    RobotFault,
    RobotState,
    Sent,
    Target,
)
from real_robot.operator.handover import OperatorInput
from real_robot.perception.base import Pose
from real_robot.policy.process import PolicyLate
from real_robot.safety.stages.stage import SafetyStop

_STORED_AS = {"OperatorInput": "Hand"}  # classes by their names in logs
_CALLED_IN_LOGS = {"last_target": "told"}  # and calls


def _stored_name(kind: type) -> str:
    """The name of a class in logs."""
    return _STORED_AS.get(kind.__name__, kind.__name__)


_TYPES = {
    _stored_name(kind): kind
    for kind in (Description, Identity, RobotState, Sent, Target, Pose, OperatorInput)
}
_FAULTS = {kind.__name__: kind for kind in (RobotFault, SafetyStop)}
Entry = Sequence[Any]  # name of the call, outcome as JSON can hold it


class ReplayDiverged(RuntimeError):
    """A replay asks for something else than the run did."""


class TapeEnd(Exception):
    """The log ends here: its writer was killed."""


class Tape:
    """Notes what wrapped objects answer."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Any]] = []

    def call(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """What ``function`` returns or raises, noted under ``name``."""
        try:
            value = function(*args)
        except (RobotFault, SafetyStop, PolicyLate) as error:
            self._entries.append((name, error))
            raise
        self._entries.append((name, value))
        return value

    def take(self) -> list[tuple[str, Any]]:
        """What was noted since the last time: (name of the call, outcome)."""
        entries, self._entries = self._entries, []
        return entries


class TapePlayer:
    """A tape that is played: answers what was noted, whatever it is asked to call."""

    def __init__(self, entries: Iterable[Entry]):
        self._entries: Iterator[Entry] = iter(entries)
        self.played = 0

    def call(self, name: str, function: Callable[..., Any] | None, *args: Any) -> Any:
        """What was answered then.

        Raises:
            TapeEnd: The tape holds no further answer.
            ReplayDiverged: The tape holds the answer to another call.
        """
        try:
            noted, outcome = next(self._entries)
        except StopIteration:
            raise TapeEnd from None
        self.played += 1
        if noted != name:
            raise ReplayDiverged(
                f"driver answer {self.played}: the log has {noted}, the replay asks for {name}"
            )
        value = decode(outcome)
        if isinstance(value, Exception):
            raise value
        return value

    def take(self) -> list[tuple[str, Any]]:
        """Nothing: this tape is not recorded again."""
        return []


class TapedObject:
    """An object of which ``calls`` go through a tape; everything else is the object's own."""

    def __init__(self, tape: Tape | TapePlayer, name: str, behind: Any, calls: Iterable[str]):
        self._tape, self._name, self._behind = tape, name, behind
        self._calls = frozenset(calls)

    def __getattr__(self, verb: str) -> Any:
        function = getattr(self._behind, verb, None)
        if verb not in self._calls:
            return function
        noted = _CALLED_IN_LOGS.get(verb, verb)
        return lambda *args: self._tape.call(f"{self._name}.{noted}", function, *args)


DRIVER = (
    "describe",
    "connect",
    "identify",
    "enable",
    "read",
    "send",
    "hold",
    "last_target",
    "relax",
    "clear_fault",
    "close",
)
CALLS = {  # what can answer differently another time
    "clock": ("now_ns", "sleep_until_ns"),
    "driver": DRIVER,
    "eyes": ("read",),
    "policy": ("act", "beat"),
    "human": ("read",),
}


def encode(value: Any) -> Any:
    """``value`` as JSON can hold it, exactly."""
    if isinstance(value, np.ndarray):
        return {"$array": value.dtype.str, "v": [encode(x) for x in value.tolist()]}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Fault):
        return {"$fault": value.value}
    if isinstance(value, PolicyLate):
        return {"$late": True}
    if isinstance(value, RobotFault | SafetyStop):
        text = str(value).removeprefix(f"{value.fault.value}: ")
        return {"$raised": type(value).__name__, "fault": value.fault.value, "text": text}
    if _stored_name(type(value)) in _TYPES:
        own = value._asdict() if hasattr(value, "_asdict") else vars(value)
        return {"$": _stored_name(type(value))} | {k: encode(v) for k, v in own.items()}
    if isinstance(value, dict):
        return {"$dict": {str(k): encode(v) for k, v in value.items()}}
    if isinstance(value, tuple | list):
        return [encode(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def decode(value: Any) -> Any:
    """What ``encode`` was given; tuples come back as tuples."""
    if isinstance(value, list):
        return tuple(decode(v) for v in value)
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return np.array(_plain(value["v"]), np.dtype(value["$array"]))
    if "$float" in value:
        return float(value["$float"])
    if "$fault" in value:
        return Fault(value["$fault"])
    if "$late" in value:
        return PolicyLate()
    if "$raised" in value:
        return _FAULTS[value["$raised"]](Fault(value["fault"]), value["text"])
    if "$dict" in value:
        return {k: decode(v) for k, v in value["$dict"].items()}
    kind = _TYPES[value["$"]]
    return kind(**{k: decode(v) for k, v in value.items() if k != "$"})


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, list) else decode(value)
