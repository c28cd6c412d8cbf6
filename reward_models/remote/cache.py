"""What was asked before is not asked again: answers on disk by the hash of what was asked.

A folder with a small JSON file per answer, written whole or not at all, so that many may read and
write at once and a crash leaves nothing half said. The hash is of model, words and pictures.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reward_models.remote.cassette import Message, ModelReply, Transport, key_of


class Cache:
    """Entries (JSON objects) by key."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._asking: dict[str, threading.Lock] = {}

    def only_one(self, key: str) -> threading.Lock:
        """Returns the lock of a key: the thread that holds it may send the request, and the others
        find its answer."""
        return self._asking.setdefault(key, threading.Lock())

    def get(self, key: str) -> dict[str, Any] | None:
        """Returns an entry; None without one.

        Raises:
            ValueError: The file is not an entry.
        """
        path = self._path(key)
        try:
            entry = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise ValueError(
                f"{path} is not a cached answer: delete it, and the model is queried again"
            )
        return entry

    def put(self, key: str, entry: dict[str, Any]) -> None:
        """Stores an entry, which is on the disk when this returns."""
        path = self._path(key)
        partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        with partial.open("wb") as file:
            file.write(json.dumps(entry).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


class CachingTransport:
    """A transport that passes on only what the cache has no answer to."""

    def __init__(self, inner: Transport, cache: Cache):
        self.inner, self.cache, self.model = inner, cache, inner.model

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Returns the cached reply, or asks the inner transport and stores its reply; see
        ``Transport``."""
        key = key_of(f"{self.model}, {max_tokens} tokens at most", messages, 0)
        with self.cache.only_one(key):
            if (kept := self.cache.get(key)) is not None:
                return ModelReply(**kept)
            reply = self.inner.complete(messages, max_tokens)
            self.cache.put(key, asdict(reply))
        return reply
