"""The journal of a search: one JSON line per event, appended and synced, never rewritten.

What a search knows is what its journal says, so a search that was killed continues from there.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from robo_rl.runs.run_dir import jsonable


class JournalError(ValueError):
    """A journal that cannot be continued."""


class SearchJournal:
    """Events in a file; a line that a crash cut short is dropped when the file is opened.

    One process at a time: the file is locked until ``close``, or until its holder is gone.
    """

    def __init__(self, path: Path):
        self.path = path
        self.events: list[dict[str, Any]] = []
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise JournalError(
                f"another process is writing {path}; wait for it or stop it"
            ) from None
        try:
            self._read()
        except JournalError:
            self._file.close()
            raise

    def _read(self) -> None:
        self._file.seek(0)
        whole = self._file.read()
        complete = whole[: whole.rfind(b"\n") + 1]
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                event = json.loads(line)
                assert isinstance(event, dict) and "event" in event
            except (ValueError, AssertionError):
                raise JournalError(f"{self.path} line {number} is not a journal event") from None
            self.events.append(event)
        if len(complete) < len(whole):
            self._file.truncate(len(complete))

    def append(self, event: str, **facts: Any) -> dict[str, Any]:
        """Adds an event; it is on the disk when this returns."""
        entry = {"event": event, **jsonable(facts)}
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.events.append(entry)
        return entry

    def of(self, event: str) -> list[dict[str, Any]]:
        """The events of one kind, in order."""
        return [e for e in self.events if e["event"] == event]

    def close(self) -> None:
        """Lets another process continue."""
        self._file.close()
