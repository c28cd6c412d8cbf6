"""Operators over the steps of an episode, as docs/reference/goal-language.md has them.

A goal is judged from the record of a whole episode: for each of its states, at which steps it held.
Every function here takes and gives arrays over steps and rows, ``(S, N)``; a formula that begins at
step ``a`` of a row says nothing of the steps before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Node = Sequence[Any]  # [name, [arguments], {numbers}]

OPERATORS = (
    "and",
    "or",
    "not",
    "once",
    "hold",
    "then",
    "within",
    "while",
    "until",
    "never",
    "always",
)
_NEVER = np.iinfo(np.int64).max  # a step that no episode has


class CompletionTimes(NamedTuple):
    """When a formula was done and when it had failed; False before it began."""

    done: Array  # (S, N) bool
    failed: Array  # (S, N) bool


@dataclass(frozen=True)
class EpisodeRecord:
    """What is known of an episode of each row."""

    held: Callable[[Node], Array]  # predicate -> (S, N) bool, at which steps it held
    last: Array  # (N,) int, the row's last step
    cut: Array  # (N,) bool, whether the task ended it there before its full length
    dt: float  # s, from step to step

    @property
    def step(self) -> Array:
        """Returns the number of each step, (S, 1)."""
        return np.arange(int(self.last.max()) + 1)[:, None]


def is_state(node: Node) -> bool:
    """Whether it is a predicate, or ``and``, ``or``, ``not`` of such: true or false of one step."""
    name, arguments, _ = node
    if name in ("and", "or", "not"):
        return all(is_state(part) for part in arguments)
    return name not in OPERATORS


def outermost_sequence(node: Node) -> Node | None:
    """The sequence that is not part of another; None where there is none, or one of several."""
    name, arguments, _ = node
    if name == "then":
        return node
    if name not in ("and", "within", "while", "until"):
        return None
    return next((found for part in arguments if (found := outermost_sequence(part))), None)


def holds(node: Node, of: EpisodeRecord) -> Array:
    """Returns the steps at which a state formula holds, (S, N) bool."""
    name, arguments, _ = node
    if name == "not":
        return ~holds(arguments[0], of)
    if name in ("and", "or"):
        parts = [holds(part, of) for part in arguments]
        return np.logical_and.reduce(parts) if name == "and" else np.logical_or.reduce(parts)
    return of.held(node)


def completion_times(node: Node, begin: Array, of: EpisodeRecord) -> CompletionTimes:
    """Returns when a formula that begins at steps ``begin`` (N,) is done and has failed."""
    begun = of.step >= begin
    if is_state(node):
        return CompletionTimes(holds(node, of) & begun, np.zeros_like(begun))
    name, arguments, numbers = node
    return _OPERATORS[name](arguments, numbers, begin, begun, of)


def first_step(when: Array) -> Array:
    """Returns the first step (N,) at which ``when`` (S, N) is True; else one beyond all."""
    return np.where(when.any(axis=0), when.argmax(axis=0), _NEVER)


def _ever(when: Array) -> Array:
    """(S, N) whether it was True at this step or one before."""
    return np.logical_or.accumulate(when, axis=0)


def _and(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    parts = [completion_times(part, begin, of) for part in arguments]
    return CompletionTimes(
        np.logical_and.reduce([part.done for part in parts]),
        np.logical_or.reduce([part.failed for part in parts]),
    )


def _or(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    parts = [completion_times(part, begin, of) for part in arguments]
    return CompletionTimes(
        np.logical_or.reduce([part.done for part in parts]),
        np.logical_and.reduce([part.failed for part in parts]),
    )


def _once(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    return CompletionTimes(_ever(holds(arguments[0], of) & begun), np.zeros_like(begun))


def _hold(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    wanted = max(1, math.ceil(steps(numbers["seconds"], of.dt)))
    held = holds(arguments[0], of) & begun
    # How many steps in a row up to here: steps so far less those up to the last that did not hold.
    count = np.arange(1, len(held) + 1)[:, None]
    in_a_row = count - np.maximum.accumulate(np.where(held, 0, count), axis=0)
    return CompletionTimes(_ever(in_a_row >= wanted), np.zeros_like(begun))


def _then(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    failed = np.zeros_like(begun)
    for part in arguments:
        under_way = completion_times(part, begin, of)
        end = first_step(under_way.done)
        failed |= under_way.failed & (of.step < end)
        begin = np.where(end < _NEVER, end + 1, _NEVER)
    return CompletionTimes(of.step >= end, _ever(failed))


def _within(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    part = completion_times(arguments[0], begin, of)
    allowed = math.floor(steps(numbers["seconds"], of.dt))
    late = of.step - np.minimum(begin, len(begun)) > allowed
    done = _ever(part.done & ~late)
    return CompletionTimes(done, ((late & begun) | part.failed) & ~done)


def _while(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    part = completion_times(arguments[0], begin, of)
    broken = _ever(~holds(arguments[1], of) & begun)
    done = _ever(part.done & ~broken & (of.step == first_step(part.done)))
    return CompletionTimes(done, (broken | part.failed) & ~done)


def _until(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    part = completion_times(arguments[1], begin, of)
    end = first_step(part.done)
    broken = _ever(~holds(arguments[0], of) & begun & (of.step < end))
    done = (of.step >= end) & ~broken
    return CompletionTimes(done, (broken | part.failed) & ~done)


def _never(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    broken = _ever(holds(arguments[0], of))
    return CompletionTimes(~broken, broken)


def _always(
    arguments: Any, numbers: Any, begin: Array, begun: Array, of: EpisodeRecord
) -> CompletionTimes:
    broken = _ever(~holds(arguments[0], of)) | (of.cut & (of.step >= of.last))
    return CompletionTimes(~broken, broken)


def steps(seconds: float, dt: float) -> float:
    """``seconds / dt``, whole where it is whole but for rounding."""
    count = seconds / dt
    return float(round(count)) if abs(count - round(count)) < 1e-6 else count


_OPERATORS: dict[str, Callable[[Any, Any, Array, Array, EpisodeRecord], CompletionTimes]] = {
    "and": _and,
    "or": _or,
    "once": _once,
    "hold": _hold,
    "then": _then,
    "within": _within,
    "while": _while,
    "until": _until,
    "never": _never,
    "always": _always,
}
