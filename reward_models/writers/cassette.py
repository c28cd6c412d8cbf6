"""Cassettes: answers of a language model kept in a file, so that a run can be had again anywhere.

A cassette is JSON lines, one per call: the key of the request (a hash of the model and messages),
the answer, its tokens, and where it came from. ``source`` says "recorded" of an answer that a model
gave and "by hand" of one that a person wrote for a test. There is no key, address or header in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

Message = Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """One answer of a model."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finished: bool = True  # False: it stopped at the limit of tokens
    source: str = "recorded"


class Transport(Protocol):
    """Sends messages to a model."""

    model: str

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Reply: ...


class CassetteError(ValueError):
    """A request that the cassette has no answer for."""


def key_of(model: str, messages: Sequence[Message], turn: int) -> str:
    """The name of a request; ``turn`` tells equal requests of one run apart."""
    canonical = json.dumps([model, [dict(m) for m in messages], turn], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


class Recorder:
    """Passes requests on to a transport and appends every answer to a file."""

    def __init__(self, inner: Transport, path: Path):
        self.inner, self.path, self.model = inner, path, inner.model
        self._turns: dict[str, int] = {}

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        reply = self.inner.complete(messages, max_tokens)
        plain = key_of(self.model, messages, 0)
        turn = self._turns[plain] = self._turns.get(plain, -1) + 1
        entry = {"key": key_of(self.model, messages, turn), "model": self.model, **asdict(reply)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return reply


class Player:
    """Answers from a file; CassetteError where the request is not in it."""

    def __init__(self, path: Path):
        self.path = path
        self._replies: dict[str, Reply] = {}
        self._turns: dict[str, int] = {}
        self.model = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                key, self.model = entry.pop("key"), entry.pop("model")
                self._replies[key] = Reply(**entry)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CassetteError(f"{path} line {number} is not an answer: {error}") from None

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        plain = key_of(self.model, messages, 0)
        turn = self._turns[plain] = self._turns.get(plain, -1) + 1
        reply = self._replies.get(key_of(self.model, messages, turn))
        if reply is None:
            raise CassetteError(
                f"{self.path} has no answer to this request (time {turn + 1} of it): the task, "
                "prompts or order of calls have changed; record it again"
            )
        return reply
