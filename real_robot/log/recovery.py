"""Recovery: a log whose writer was killed becomes a whole file again, index and all.

Readers that seek (most viewers) refuse a file without its end. What had been written is copied,
message by message, into a new file that takes the old one's place at once; its ``run`` message then
says ``recovered``, so that nobody takes it for a run that came to its end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
from pathlib import Path

import zstandard
from mcap.exceptions import McapError
from mcap.reader import NonSeekingReader
from mcap.writer import MCAP0_MAGIC, Writer

from real_robot.log.recorder import CHUNK, RECOVERED


def recover_all(folder: Path) -> list[Path]:
    """The logs of ``folder`` that were recovered now."""
    return [path for path in sorted(folder.glob("*.mcap")) if recover(path)]


def recover(path: Path) -> int:
    """Messages saved from the log at ``path``; 0 where it is whole, empty or being written.

    Raises:
        OSError: The recovered log cannot be written.
    """
    if not path.is_file():
        return 0
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        if _is_complete(path):
            return 0
        part = path.with_name(f".{path.name}.part")
        try:
            with open(part, "wb") as fresh:
                saved = _copy(NonSeekingReader(file), Writer(fresh, chunk_size=CHUNK))
                fresh.flush()
                os.fsync(fresh.fileno())
            if saved:
                part.replace(path)
        except OSError as error:
            raise OSError(
                error.errno, f"cannot recover the log: {error.strerror}", str(path)
            ) from error
        finally:
            part.unlink(missing_ok=True)
    return saved


def _is_complete(path: Path) -> bool:
    """Whether the file ends as it began."""
    size = len(MCAP0_MAGIC)
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) < 2 * size:
            return False
        file.seek(-size, os.SEEK_END)
        return file.read() == MCAP0_MAGIC


def _copy(reader: NonSeekingReader, writer: Writer) -> int:
    """Copies messages up to where the file ends; how many."""
    writer.start(profile="", library="robo-rl")
    schemas: dict[int, int] = {}
    channels: dict[int, int] = {}
    copied = 0
    with contextlib.suppress(McapError, struct.error, zstandard.ZstdError):
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            assert schema is not None  # the recorder gives every topic one
            if schema.id not in schemas:
                schemas[schema.id] = writer.register_schema(
                    schema.name, schema.encoding, schema.data
                )
            if channel.id not in channels:
                channels[channel.id] = writer.register_channel(
                    channel.topic, channel.message_encoding, schemas[schema.id]
                )
            data = message.data
            if channel.topic == "run":
                data = json.dumps(json.loads(data) | {RECOVERED: True}).encode()
            writer.add_message(channels[channel.id], message.log_time, data, message.publish_time)
            copied += 1
    writer.finish()
    return copied
