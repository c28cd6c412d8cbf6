"""Runs a reward on probes before anything is trained with it.

A program of the language cannot do most of what is looked for here; it is looked for all the same,
because the checks know nothing of how a reward was made. ``Job(text, trusted=True)`` is any Python
source: a person's own numpy code.

Run as a program this judges jobs on behalf of another, which gives it limits and a deadline and
kills it (``robo_rl/runtime/sandbox.py``): an order comes through stdin, answers go to a pipe of
their own, with a word that the code under test is never shown, so what it prints is nobody's
result.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_models.base import TaskCard, from_dict
from reward_models.programs.diagnostics import Diagnostic, Refused
from reward_models.programs.lower import PREVIOUS, Input
from reward_models.programs.runtime import load

Array = np.ndarray
Call = Callable[[Mapping[str, Array]], Mapping[str, Array]]

ROWS = 256
MANY = 4096
TYPICAL = 16_384  # rows anywhere in the card's ranges
SWEEP = 65  # values of one number, the rest held
LARGEST = 1e6
MICROSECONDS = 20.0  # per row at MANY rows; hand-written numpy needs 0.1
SUPERLINEAR = 4.0  # times as slow per row at MANY rows as at ROWS


@dataclass(frozen=True)
class Job:
    """A reward to judge. ``trusted``: any Python with a function ``reward(signal, ...)``."""

    text: str
    trusted: bool = False


def check_job(job: Job, card: TaskCard) -> list[Diagnostic]:
    """Returns the findings of one job, checked in this process."""
    try:
        call, inputs = _trusted(job.text, card) if job.trusted else _restricted(job.text, card)
    except Refused as refused:
        return list(refused.diagnostics)
    except BaseException as error:
        return [_crash(error)]
    return check(call, inputs, card)


def _restricted(text: str, card: TaskCard) -> tuple[Call, tuple[Input, ...]]:
    program = load(text, card)
    inputs = program.lowered.inputs

    def call(given: Mapping[str, Array]) -> Mapping[str, Array]:
        after = {i.signal: given[i.name] for i in inputs if not i.previous}
        before = {i.signal: given[i.name] for i in inputs if i.previous}
        return program(after, after.get("action"), before)

    return call, inputs


def _trusted(text: str, card: TaskCard) -> tuple[Call, tuple[Input, ...]]:
    space: dict[str, Any] = {"__name__": "reward"}
    exec(compile(text, "<trusted reward>", "exec"), space)
    function = space["reward"]
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    sizes = {s.name: (int(np.prod(s.shape)) if s.shape else 0) for s in card.signals}
    sizes["action"] = card.act_dim
    inputs = []
    for name in names:
        source = name if name in sizes else name.removeprefix(PREVIOUS)
        if source not in sizes:
            raise Refused([Diagnostic("signal", f"task {card.task!r} has no signal {name!r}")])
        inputs.append(Input(name, source, source != name, sizes[source]))
    return lambda given: function(*(given[name] for name in names)), tuple(inputs)


def _crash(error: BaseException) -> Diagnostic:
    return Diagnostic("crashed", f"{type(error).__name__}: {str(error)[:200]}")


class _Found(Exception):
    def __init__(self, code: str, message: str, hint: str = ""):
        self.diagnostic = Diagnostic(code, message, hint=hint)


def check(call: Call, inputs: Sequence[Input], card: TaskCard) -> list[Diagnostic]:
    """Returns the findings of the first check that fails; later checks would repeat them."""
    probes = Probes(inputs, card)
    checks = (_types, _finite, _steady, _rows, _memory, _varies, _cost)
    for one in checks:
        try:
            one(call, probes)
        except _Found as found:
            return [found.diagnostic]
        except BaseException as error:
            if isinstance(error, ValueError) and "read-only" in str(error):
                return [
                    Diagnostic(
                        "mutation", "the program writes into an input", hint="compute a new array"
                    )
                ]
            return [_crash(error)]
    return []


class Probes:
    """States to try a reward on, {argument: (rows, ...)}."""

    def __init__(self, inputs: Sequence[Input], card: TaskCard):
        self.inputs = inputs
        self.rng = np.random.default_rng(0)
        ranges = {s.name: s.range for s in card.signals} | {"action": (-1.0, 1.0)}
        units = {s.name: s.unit for s in card.signals} | {"action": "1"}
        self.range = {i.name: _bounded(ranges[i.signal]) for i in inputs}
        self.unit = {i.name: units[i.signal] for i in inputs}

    def _made(self, make: Callable[[Input, tuple[int, ...]], Array], rows: int) -> dict[str, Array]:
        return {i.name: make(i, (rows, i.size) if i.size else (rows,)) for i in self.inputs}

    def typical(self, rows: int) -> dict[str, Array]:
        """Returns inputs {name: (rows, k)} that are uniform over the signals' ranges."""
        return self._made(lambda i, shape: self.rng.uniform(*self.range[i.name], shape), rows)

    def all(self) -> dict[str, dict[str, Array]]:
        """Returns every kind of probe by name, each inputs {name: (rows, k)}."""
        kinds = {
            "states anywhere in the ranges": self.typical(TYPICAL),
            "zeros": self._made(lambda i, shape: np.zeros(shape), 4),
            "the ends of the ranges": self._made(
                lambda i, shape: np.array(self.range[i.name])[self.rng.integers(0, 2, shape)], 1024
            ),
            "denormal numbers": self._made(lambda i, shape: np.full(shape, 5e-324), 4),
            "everything in one place": self._coincident(256),
            "one number swept": self._swept(),
        }
        return kinds

    def _coincident(self, rows: int) -> dict[str, Array]:
        states = self.typical(rows)
        first: dict[tuple[str, int], Array] = {}
        for i in self.inputs:
            states[i.name] = first.setdefault((self.unit[i.name], i.size), states[i.name]).copy()
        return states

    def _swept(self) -> dict[str, Array]:
        blocks = []
        for i in self.inputs:
            for element in range(max(1, min(i.size, 32))):
                block = {name: np.repeat(s, SWEEP, axis=0) for name, s in self.typical(2).items()}
                sweep = np.tile(np.linspace(*self.range[i.name], SWEEP), 2)
                if i.size:
                    block[i.name][:, element] = sweep
                else:
                    block[i.name] = sweep
                blocks.append(block)
        return {i.name: np.concatenate([b[i.name] for b in blocks]) for i in self.inputs}


def _bounded(span: tuple[float, float]) -> tuple[float, float]:
    low, high = (max(-1e6, min(1e6, float(x))) for x in span)
    return low, high


def _frozen(states: Mapping[str, Array]) -> dict[str, Array]:
    """Views of read-only arrays: whoever holds one cannot make it writable again."""
    given = {}
    for name, array in states.items():
        base = np.array(array)
        base.flags.writeable = False
        given[name] = base[:]
    return given


def _answer(call: Call, states: Mapping[str, Array]) -> dict[str, Array]:
    result = call(_frozen(states))
    if not isinstance(result, Mapping) or not result:
        raise _Found("keys", f"expected a dictionary of components, got {type(result).__name__}")
    return dict(result)


def _types(call: Call, probes: Probes) -> None:
    first: list[str] = []
    for rows in (ROWS, 7):
        result = _answer(call, probes.typical(rows))
        if any(not isinstance(name, str) for name in result):
            raise _Found("keys", "a component's name is not a string")
        if first and list(result) != first:
            raise _Found(
                "keys", f"components changed between calls: first {first}, then {list(result)}"
            )
        first = list(result)
        for name, value in result.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
                kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
                raise _Found("result_type", f"component {name!r} has type {kind}, expected float")
            if value.shape != (rows,):
                raise _Found(
                    "result_shape", f"component {name!r} must be ({rows},), got {value.shape}"
                )


def _finite(call: Call, probes: Probes) -> None:
    with np.errstate(all="ignore"):
        for kind, states in probes.all().items():
            for name, value in _answer(call, states).items():
                bad = ~np.isfinite(value)
                if bad.any():
                    share = f"{int(bad.sum())} of {len(bad)} probe states"
                    raise _Found(
                        "not_finite",
                        f"component {name!r} is not finite on {kind}: {share}",
                        _example(states, bad),
                    )
                if np.abs(value).max() > LARGEST:
                    raise _Found(
                        "magnitude",
                        f"component {name!r} reaches {np.abs(value).max():.1e} on {kind}",
                        "bound it with clip or tanh",
                    )


def _example(states: Mapping[str, Array], bad: Array) -> str:
    row = int(np.flatnonzero(bad)[0])
    text = ", ".join(f"{n}={np.round(s[row], 4).tolist()}" for n, s in states.items())
    return f"such as {text}"[:300]


def _steady(call: Call, probes: Probes) -> None:
    states = probes.typical(ROWS)
    first = {name: value.copy() for name, value in _answer(call, states).items()}
    for fill in (7.7, -3.1, np.nan):
        dirt = [np.full(ROWS * k, fill) for k in (1, 2, 3, 6)]  # what new arrays may begin with
        del dirt
        again = _answer(call, states)
        for name in first:
            if not np.array_equal(first[name], again[name]):
                raise _Found("nondeterministic", f"component {name!r} differs from call to call")


def _rows(call: Call, probes: Probes) -> None:
    states = probes.typical(ROWS)
    with np.errstate(all="ignore"):
        whole = {name: value.copy() for name, value in _answer(call, states).items()}

        def compare(rows: Array, changed: Mapping[str, Array], at: Array, how: str) -> None:
            for name, value in _answer(call, changed).items():
                if not np.array_equal(whole[name][rows], value[at]):
                    raise _Found(
                        "row_mixing",
                        f"component {name!r} of one env changes {how}",
                        "a reward must use one env only; sum over axis -1",
                    )

        order = probes.rng.permutation(ROWS)
        everyone = np.arange(ROWS)
        compare(
            order, {n: s[order] for n, s in states.items()}, everyone, "with its index in the batch"
        )
        twice = np.repeat(everyone[:64], 2)
        compare(
            twice,
            {n: s[twice] for n, s in states.items()},
            np.arange(128),
            "with the number of envs",
        )
        for row in (0, 5, ROWS - 1):
            one = np.array([row])
            compare(one, {n: s[one] for n, s in states.items()}, np.array([0]), "when it is alone")
        broken = {n: s.copy() for n, s in states.items()}
        for array in broken.values():
            array[3] = np.nan
        others = np.delete(everyone, 3)
        compare(others, broken, others, "when another env has NaN")


def _memory(call: Call, probes: Probes) -> None:
    states = probes.typical(ROWS)
    given = _frozen(states)
    result = dict(call(given))
    for name, array in given.items():
        if not np.array_equal(array, states[name]):
            raise _Found(
                "mutation", f"the program changed its input {name!r}", "compute a new array"
            )
        for component, value in result.items():
            if np.shares_memory(value, array):
                raise _Found(
                    "aliasing",
                    f"component {component!r} is a view of {name!r}",
                    "return a new array",
                )


def _varies(call: Call, probes: Probes) -> None:
    result = _answer(call, probes.typical(TYPICAL))
    if all(np.ptp(value) == 0.0 for value in result.values()):
        raise _Found(
            "constant_reward",
            "the reward is the same for all test inputs",
            "let it depend on a signal",
        )


def _cost(call: Call, probes: Probes) -> None:
    seconds = {}
    for rows in (ROWS, MANY):
        given = _frozen(probes.typical(rows))
        times = []
        for _ in range(5):
            start = time.process_time()
            call(given)
            times.append(time.process_time() - start)
        seconds[rows] = min(times)
    per_row = 1e6 * seconds[MANY] / MANY
    if per_row > MICROSECONDS:
        raise _Found(
            "slow", f"{per_row:.0f} us per env with {MANY} envs, at most {MICROSECONDS:g} allowed"
        )
    grown = seconds[MANY] / max(seconds[ROWS], 5e-5)
    if grown > SUPERLINEAR * MANY / ROWS:
        raise _Found("slow", f"{MANY // ROWS} times as many envs take {grown:.0f} times as long")


def serve(pipe: int) -> None:
    """Judges the jobs of the order on stdin: "ready", then a line of JSON for each."""
    order = json.loads(sys.stdin.buffer.read())
    card, word = from_dict(order["card"]), order.pop("word")
    os.write(pipe, b"ready\n")
    for job in order["jobs"]:
        found = check_job(Job(**job), card)
        answer = {"word": word, "diagnostics": [d.as_dict() for d in found]}
        os.write(pipe, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
