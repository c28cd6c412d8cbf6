"""Recorder: an MCAP log written beside the loop, never in it.

The loop hands over references and goes on; a thread turns them into JSON messages. Chunks are
small and go to the operating system as they are finished, so after ``kill -9`` everything but the
last fraction of a second can be read back with ``read_log``, and made a whole file again with
``recovery.recover``. Foxglove opens the file. All times are on one clock, the loop's.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import math
import queue
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import zstandard
from mcap.exceptions import InvalidMagic, McapError
from mcap.reader import NonSeekingReader
from mcap.writer import Writer

from real_robot.core.driver import RobotState, Sent, Target
from real_robot.core.states import PhaseTransition
from real_robot.core.threads import join_or_leave
from real_robot.log.tape import encode
from real_robot.operator.handover import RunVerdict
from real_robot.policy.runner import PolicyOutput

Array = np.ndarray

MAGIC = b"\x89MCAP0\r\n"  # at the beginning of a log
CHUNK = 16 * 1024  # bytes of messages in a chunk: about 20 ticks
RECOVERED = "recovered"  # in ``run``: the writer was killed, and the file was made whole later
FLUSH = 30.0  # s, to write what is queued
QUEUE = 4096  # records the writer may lag behind before records are dropped


@dataclass(frozen=True, slots=True)
class Tick:
    """One period of the loop; times in s on the host's monotonic clock."""

    phase: str
    t: float  # woke up
    late: float  # s after the deadline
    skipped: int  # periods skipped before this tick
    thought: PolicyOutput | None  # obs, action, their times, poses; None between actions
    state: RobotState
    requested: Target
    filtered: Target
    sent: Sent
    flags: Mapping[str, Array]  # {stage: (n,) bool}
    t_sent: float
    goal: Array | None = None  # (n,) rad, where the arm is on its way to, after every limit
    refused: str = ""  # why a person may not take the arm now


_NUMBERS = {"type": "array", "items": {"type": ["number", "null"]}}
_TARGET = {
    "type": "object",
    "properties": {"qpos": _NUMBERS, "gripper": {"type": ["number", "null"]}},
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "run": {"type": "object"},
    "tape": {"type": "object", "properties": {"entries": {"type": "array"}}},
    "transition": {
        "type": "object",
        "properties": {
            "t": {"type": "number"},
            "before": {"type": "string"},
            "after": {"type": "string"},
            "reason": {"type": "string"},
        },
    },
    "tick": {
        "type": "object",
        "properties": {
            "phase": {"type": "string"},
            "t": {"type": "number"},
            "late": {"type": "number"},
            "skipped": {"type": "integer"},
            "thought": {"type": ["object", "null"]},
            "state": {"type": "object"},
            "requested": _TARGET,
            "filtered": _TARGET,
            "sent": _TARGET,
            "flags": {"type": "object"},
            "t_sent": {"type": "number"},
            "goal": {"type": ["array", "null"], "items": {"type": "number"}},
            "refused": {"type": "string"},
        },
    },
    "verdict": {
        "type": "object",
        "properties": {"what": {"type": "string"}, "by": {"type": "string"}},
    },
}
# What Foxglove shows as a picture; its topics are camera/NAME, its time is when it was taken.
FRAME = {
    "type": "object",
    "properties": {
        "timestamp": {
            "type": "object",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
        },
        "frame_id": {"type": "string"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "format": {"type": "string"},
    },
}
CAMERA = "camera/"


class Recorder:
    """Writes ``run`` (once, first), ``tick``, ``transition`` and ``verdict`` messages to ``path``,
    and the pictures of cameras.

    ``t`` s on the loop's clock is when the run begins. ``dropped`` counts records the disk was too
    slow for; ``error`` says why writing ended early. Neither stops the arm; ``lost`` says of both
    in words. OSError, naming the file, where not even its head can be written, or where there is
    one already: what was recorded is not written over. The file is locked
    while it is written, so that nobody takes it for one whose writer was killed.
    """

    def __init__(self, path: str | Path, run: Mapping[str, Any], t: float):
        self.path, self.dropped, self.error = Path(path), 0, ""
        self._failure: BaseException | None = None
        new = self.path.is_file() or not self.path.exists()  # and no pipe, no device
        self._file = open(self.path, "xb" if new else "wb")  # the thread closes it
        with contextlib.suppress(OSError):  # not every file system can
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._writer = Writer(self._file, chunk_size=CHUNK)
        try:
            self._writer.start(profile="", library="robo-rl")
            self._file.flush()
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.close()
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._queue: queue.Queue[tuple[str, float, Any] | None] = queue.Queue(QUEUE)
        self._queue.put(("run", t, dict(run)))
        self._thread = threading.Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def tick(self, tick: Tick) -> None:
        """Hands over a tick; its arrays must not be written to afterwards."""
        self._put("tick", tick.t, tick)

    def tape(self, entries: list[tuple[str, Any]], t: float) -> None:
        """Hands over what the loop was told since the last time, for ``replay``."""
        self._put("tape", t, entries)

    def transition(self, transition: PhaseTransition) -> None:
        """Hands over a change of state."""
        self._put("transition", transition.t, transition)

    def frame(self, camera: str, jpeg: bytes, t: float) -> None:
        """Hands over a picture that was taken at ``t`` s; from any thread."""
        self._put(CAMERA + camera, t, jpeg)

    def verdict(self, verdict: RunVerdict, t: float) -> None:
        """Hands over what the run came to."""
        self._put("verdict", t, verdict)

    def close(self) -> None:
        """Writes what is queued and the file's index; a bug in the writer comes out here.

        Raises:
            RuntimeError: The writer had failed.
        """
        if self._thread.is_alive():
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=FLUSH)
            if not join_or_leave(self._thread, f"the log writer of {self.path}", FLUSH):
                self.error = self.error or "the disk did not answer"
        if self._failure is not None:
            raise RuntimeError(f"the log writer of {self.path} failed") from self._failure

    @property
    def lost(self) -> str:
        """What of the log was not written, and why; "" where all of it was. After ``close``."""
        why = self.error or ("the disk was too slow" if self.dropped else "")
        return why and f"{self.path}: {why} ({self.dropped} records lost)"

    def _put(self, topic: str, t: float, record: Any) -> None:
        try:
            self._queue.put_nowait((topic, t, record))
        except queue.Full:
            self.dropped += 1

    def _write(self) -> None:
        try:
            with self._file:
                self._drain(self._writer)
            return
        except OSError as error:  # disk full, file system gone: the arm matters more
            self.error = error.strerror or str(error)
        except BaseException as error:  # shown to whoever closes it, not lost with the thread
            self._failure = error
        while self._queue.get() is not None:
            self.dropped += 1

    def _drain(self, writer: Writer) -> None:
        channels: dict[str, int] = {}

        def channel(topic: str, name: str, schema: dict[str, Any]) -> None:
            channels[topic] = writer.register_channel(
                topic=topic,
                message_encoding="json",
                schema_id=writer.register_schema(
                    name=name, encoding="jsonschema", data=json.dumps(schema).encode()
                ),
            )

        for name, schema in SCHEMAS.items():
            channel(name, name, schema)
        while (item := self._queue.get()) is not None:
            topic, t, record = item
            ns = round(t * 1e9)
            if topic == "tape":  # exact, for a replay; the rest is for people and plots
                record = {"entries": [[name, encode(value)] for name, value in record]}
            elif topic.startswith(CAMERA):
                if topic not in channels:
                    channel(topic, "foxglove.CompressedImage", FRAME)
                record = {
                    "timestamp": {"sec": ns // 10**9, "nsec": ns % 10**9},
                    "frame_id": topic.removeprefix(CAMERA),
                    "data": base64.b64encode(record).decode(),
                    "format": "jpeg",
                }
            else:
                record = _plain(record)
            data = json.dumps(record, allow_nan=False).encode()
            writer.add_message(channels[topic], log_time=ns, data=data, publish_time=ns)
            self._file.flush()
        writer.finish()


@dataclass
class Log:
    """What could be read of a log; messages are dicts, numbers that were not finite are None."""

    run: dict[str, Any] = field(default_factory=dict)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    transitions: list[dict[str, Any]] = field(default_factory=list)
    tape: list[list[Any]] = field(default_factory=list)
    verdict: dict[str, str] = field(default_factory=dict)  # success label and who gave it; {}: none
    frames: dict[str, list[tuple[float, bytes]]] = field(default_factory=dict)  # (t s, JPEG)
    complete: bool = False  # False: the writer was killed; the end is missing


def read_log(path: str | Path, *, frames: bool = False) -> Log:
    """The log at ``path``, as much of it as was written, with its cameras' ``frames`` if asked;
    ValueError where it is no log."""
    log, path = Log(), Path(path)
    if path.is_dir():
        logs = sorted(one.name for one in path.glob("*.mcap"))
        raise ValueError(
            f"{path} is a folder; give one of its logs: {', '.join(logs) or 'it has none'}"
        )
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"{path} is empty: nothing was written to it. Was the disk full?")
    with open(path, "rb") as file:
        if not MAGIC.startswith(file.read(len(MAGIC))):
            raise ValueError(f"{path} is not a robo-rl robot log (*.mcap)")
        file.seek(0)
        messages = NonSeekingReader(file).iter_messages(log_time_order=False)
        try:
            for _, channel, message in messages:
                if channel.topic.startswith(CAMERA):
                    if frames:
                        picture = base64.b64decode(json.loads(message.data)["data"])
                        seen = log.frames.setdefault(channel.topic.removeprefix(CAMERA), [])
                        seen.append((message.log_time * 1e-9, picture))
                    continue
                record = json.loads(message.data)
                if channel.topic in ("run", "verdict"):
                    setattr(log, channel.topic, record)
                elif channel.topic == "tape":
                    log.tape += record["entries"]
                else:
                    (log.ticks if channel.topic == "tick" else log.transitions).append(record)
            log.complete = not log.run.get(RECOVERED)
        except InvalidMagic as error:
            raise ValueError(f"{path} is not a robo-rl robot log: {error}") from error
        except (McapError, struct.error, zstandard.ZstdError):
            pass  # the file ends in the middle of a record
    return log


def _plain(value: Any) -> Any:
    """``value`` as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if hasattr(value, "__dataclass_fields__"):
        value = {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
