"""Cassettes: answers of a model kept in a file, so that a run can be had again anywhere.

A cassette is JSON lines, one per call: the key of the request (a hash of the model and messages),
the answer, its tokens, and where it came from. ``source`` says "recorded" of an answer that a model
gave and "by hand" of one that a person wrote for a test. There is no key, address or header in it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

Message = Mapping[str, Any]  # role, and content: a text, or parts {"type": "text" or "image_url"}


@dataclass(frozen=True)
class ModelReply:
    """One answer of a model."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finished: bool = True  # False: it stopped at the limit of tokens
    source: str = "recorded"


class Transport(Protocol):
    """Sends messages to a model."""

    model: str

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Sends messages and returns the reply.

        Args:
            messages: The conversation so far.
            max_tokens: The most that the reply may have.

        Raises:
            ModelError: The model did not answer.
            BudgetSpent: The call could exceed the budget.
        """
        ...


class CassetteError(ValueError):
    """A request that the cassette has no answer for."""


def key_of(model: str, messages: Sequence[Message], turn: int) -> str:
    """Returns the key of a request; ``turn`` separates equal requests of one run."""
    canonical = json.dumps([model, [dict(m) for m in messages], turn], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


class _RequestCounts:
    """How often each request came up, counted for several threads."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self.lock = threading.Lock()

    def next(self, plain: str) -> int:
        self._count[plain] = self._count.get(plain, -1) + 1
        return self._count[plain]


class CassetteRecorder:
    """Passes requests on to a transport and appends every answer to a file."""

    def __init__(self, inner: Transport, path: Path):
        self.inner, self.path, self.model = inner, path, inner.model
        self._turns = _RequestCounts()

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Returns the inner transport's reply and appends it to the file; see ``Transport``."""
        reply = self.inner.complete(messages, max_tokens)
        with self._turns.lock:
            turn = self._turns.next(key_of(self.model, messages, 0))
            key = key_of(self.model, messages, turn)
            entry = {"key": key, "model": self.model, **asdict(reply)}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        return reply


class CassettePlayer:
    """Answers from a file; CassetteError where the request is not in it."""

    def __init__(self, path: Path):
        self.path = path
        self._replies: dict[str, ModelReply] = {}
        self._turns = _RequestCounts()
        self.model = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                key, self.model = entry.pop("key"), entry.pop("model")
                self._replies[key] = ModelReply(**entry)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CassetteError(f"{path} line {number} is not an answer: {error}") from None

    def complete(self, messages: Sequence[Message], max_tokens: int) -> ModelReply:
        """Returns the recorded reply; see ``Transport``.

        Raises:
            CassetteError: The file has no reply to this request.
        """
        with self._turns.lock:
            turn = self._turns.next(key_of(self.model, messages, 0))
        reply = self._replies.get(key_of(self.model, messages, turn))
        if reply is None:
            raise CassetteError(
                f"{self.path} has no answer to this request (occurrence {turn + 1}): the task, "
                "prompts or order of calls have changed; record the cassette again"
            )
        return reply
