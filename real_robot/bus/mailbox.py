"""Mailbox: memory that two processes share, in which the newest letter replaces the one before.

Nobody waits for anybody: who writes may be killed or stopped in the middle of a letter, and who
reads then still finds the one before. Each box has two places, written in turn. A letter bears its
number and a checksum, so that half a letter is none, on any processor.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import Any

import numpy as np

_HEAD = struct.Struct("<QI")  # number, checksum; numbers count from 1
TEXT = 240  # bytes of what went wrong, in words


class MailboxSlot:
    """One direction. ``write`` is for one process, ``read`` for the other."""

    def __init__(self, memory: mmap.mmap, at: int, kind: np.dtype):
        self._memory, self._at, self.kind = memory, at, kind
        self._place = _HEAD.size + kind.itemsize
        self.number = self._newest()[0]  # of the newest letter written

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return 2 * self._place

    def write(self, letter: Any) -> int:
        """Puts ``letter``, a record of ``kind``, in; its number."""
        body, self.number = letter.tobytes(), self.number + 1
        at = self._at + self.number % 2 * self._place
        check = zlib.crc32(body, self.number)
        self._memory[at : at + self._place] = _HEAD.pack(self.number, check) + body
        return self.number

    def read(self) -> tuple[int, Any]:
        """The newest whole letter and its number, which is 0 as long as there is none."""
        number, body = self._newest()
        return number, np.frombuffer(body, self.kind)[0] if number else None

    def _newest(self) -> tuple[int, bytes]:
        best = 0, b""
        for place in (0, 1):
            at = self._at + place * self._place
            raw = self._memory[at : at + self._place]
            number, check = _HEAD.unpack_from(raw)
            body = raw[_HEAD.size :]
            if number > best[0] and zlib.crc32(body, number) == check:
                best = number, body
        return best


def motion_fields(joints: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """Fields of where n ``joints`` go and how: rad, rad/s, rad/s^2, and the gripper's 0 to 1."""
    motion = [(name, "f8", (joints,)) for name in ("qpos", "qvel", "qacc")]
    return [*motion, ("gripper", "f8", ())]


class Mailbox:
    """Goals one way, measurements the other, of an arm of n ``joints``.

    ``fd`` is another process's; None makes memory of our own, which has no name and goes with the
    last process that has it.
    """

    def __init__(self, joints: int, fd: int | None = None):
        n = (joints,)
        stop = [("acceleration", "f8", n), ("jerk", "f8", n)]
        goal = np.dtype([("t", "f8"), ("braked", "u8"), *motion_fields(joints), *stop])
        measured = np.dtype(
            [
                ("t", "f8"),  # monotonic s, when it was written
                ("seq", "u8"),
                ("t_device", "f8"),
                ("t_host", "f8"),
                ("gripper", "f8"),
                ("qpos", "f8", n),
                ("qvel", "f8", n),
                ("effort", "f8", n),
                ("outside", "f8", n),
                ("knows_outside", "u1"),
                ("derate", "f8"),
                ("reported", "u1"),
                ("fault", "u1"),
                ("text", "u1", (TEXT,)),
                ("length", "u2"),  # raised instead
                ("braked", "u8"),
                ("commanded", "u1"),
                ("command", motion_fields(joints)),
            ]
        )
        size = 2 * (2 * _HEAD.size + goal.itemsize + measured.itemsize) + 8
        self.fd = _anonymous(size) if fd is None else fd
        memory = mmap.mmap(self.fd, size)
        self.goals = MailboxSlot(memory, 8, goal)
        self.measured = MailboxSlot(memory, 8 + self.goals.size, measured)
        self._memory = memory

    def beat(self, t: float) -> None:
        """Records that the sender of targets was alive at ``t`` s, monotonic."""
        self._memory[:8] = struct.pack("<d", t)

    @property
    def beaten(self) -> float:
        """When that was last so, s."""
        return struct.unpack("<d", self._memory[:8])[0]

    def close(self) -> None:
        """Gives the memory back, here."""
        self._memory.close()
        os.close(self.fd)


def _anonymous(size: int) -> int:
    """A file of ``size`` zero bytes without a name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("robo-rl")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
