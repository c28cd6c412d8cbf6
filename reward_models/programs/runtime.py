"""Prints a lowered program as our own numpy source, and runs that.

A value with ``k`` numbers per row is stored as (k, rows): each element is contiguous, numbers meet
vectors without a new axis, and a reduction over a row's vector adds whole columns. Rows go through
in blocks that stay in the cache. A block has two rows or more, so that a row's result does not
depend on how many there are, to the last bit.

In what is printed, names of ours begin with "_" and those of signals and components never do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reward_models.base import RewardOutput, Segment, TaskCard
from reward_models.programs.diagnostics import Diagnostic
from reward_models.programs.lower import Lowered, Node, lower
from reward_models.programs.ops import OPS

Array = np.ndarray

# Rows at a time. A signal of six numbers stays below the size (128 KiB) from which memory is asked
# of the system anew for every array, which costs more than the arithmetic.
BLOCK = 2048
_DEEP = 12  # nesting of one printed expression; deeper ones get a name


def _vec(*parts: Array | float) -> Array:
    return np.array(np.broadcast_arrays(*parts))


def _so_far(x: Array, steps: int) -> Array:
    return np.maximum.accumulate(x.reshape(steps, -1), axis=0).reshape(-1)


# What the printed source may call, each after a "_": functions alone, no module and no builtins.
_FUNCTIONS: dict[str, Any] = {
    **{op.name: op.function for op in OPS.values() if not op.infix and op.name != "sigmoid"},
    "total": np.add.reduce,
    "smallest": np.minimum.reduce,
    "largest": np.maximum.reduce,
    "every": np.logical_and.reduce,
    "some": np.logical_or.reduce,
    "where": np.where,
    "vec": _vec,
    "multiply": np.multiply,
    "so_far": _so_far,
}
_STANDALONE = {
    "total": "np.add.reduce",
    "smallest": "np.minimum.reduce",
    "largest": "np.maximum.reduce",
    "every": "np.logical_and.reduce",
    "some": "np.logical_or.reduce",
}
_REDUCED = {"min": "smallest", "max": "largest", "all": "every", "any": "some"}


class Program:
    """A checked reward program over a task's signals.

    ``text`` is what the author wrote, ``source`` what runs, ``hash`` names the text; ``key`` is the
    same for two texts that compute the same thing in the same way.
    """

    def __init__(self, text: str, lowered: Lowered):
        self.text, self.lowered = text, lowered
        printed = _print(lowered, "_")
        arguments = ", ".join([*(i.name for i in lowered.inputs), "_steps"])
        result = f"    return ({', '.join(printed.values)},)"
        self.source = "\n".join([f"def reward({arguments}):", *printed.lines, result])
        self.hash = hashlib.sha256(text.encode()).hexdigest()
        self.key = hashlib.sha256(
            "\n".join([self.source, repr(printed.constants), *lowered.components]).encode()
        ).hexdigest()
        space: dict[str, Any] = {"__builtins__": {}}
        space |= {f"_{name}": function for name, function in _FUNCTIONS.items()}
        constants = {name: np.array(v)[:, None] for name, v in printed.constants.items()}
        for array in constants.values():
            array.flags.writeable = False
        space |= constants
        exec(compile(self.source, "<reward program>", "exec"), space)
        self._run = space["reward"]
        self._arguments = [(i.signal, i.previous, i.size) for i in lowered.inputs]
        self._names = tuple(lowered.components)

    @property
    def components(self) -> tuple[str, ...]:
        """The names of the components, in the order of the text."""
        return tuple(self.lowered.components)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Findings that do not forbid the program."""
        return self.lowered.warnings

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that it reads, the action among them."""
        return tuple(dict.fromkeys(i.signal for i in self.lowered.inputs))

    def __call__(
        self,
        after: Mapping[str, Array],
        action: Array | None = None,
        before: Mapping[str, Array] | None = None,
        *,
        steps: int = 1,
    ) -> dict[str, Array]:
        """{component: (rows,)} of signals (rows, ...) after and before the action.

        ``steps`` is T where the rows are T steps of N columns, step after step; programs that
        remember (``so_far``) follow each column.
        """
        given = []
        for signal, previous, size in self._arguments:
            source = action if signal == "action" else None
            if source is None:
                source = ((before or {}) if previous else after).get(signal)
            if source is None:
                when = "before the action" if previous else "after the action"
                raise ValueError(f"the program reads {signal!r} {when}, which was not given")
            array = np.asarray(source)
            rows = len(array)
            shape = (rows, size) if size else (rows,)
            if array.shape != shape:
                if array.size != rows * max(1, size):
                    raise ValueError(
                        f"signal {signal!r} must have {max(1, size)} numbers per row, got shape "
                        f"{array.shape}"
                    )
                array = array.reshape(shape)
            given.append(array)
        rows = len(given[0])
        if any(len(g) != rows for g in given) or rows % steps:
            raise ValueError(f"signals have {[len(g) for g in given]} rows for {steps} steps")
        with np.errstate(all="ignore"):
            if rows == 1:
                return self._single(given)
            out = {name: np.empty(rows) for name in self._names}
            if self.lowered.remembers:
                self._by_columns(given, steps, rows, out)
            else:
                for start in range(0, rows, BLOCK):
                    part = slice(start, start + BLOCK)
                    self._block([g[part] for g in given], 1, [o[part] for o in out.values()])
        return out

    def _single(self, given: list[Array]) -> dict[str, Array]:
        """One row, computed as two equal ones: see the module's text."""
        doubled = []
        for g in given:
            columns = np.empty((*g.shape[1:], 2))
            columns[:] = g.T if g.ndim > 1 else g
            doubled.append(columns)
        values = self._run(*doubled, 1)
        # A number that depends on no signal is a number still; the others are two equal ones.
        return {
            n: np.array(v[:1] if np.ndim(v) else [v], np.float64)
            for n, v in zip(self._names, values, strict=True)
        }

    def _by_columns(self, given: list[Array], steps: int, rows: int, out: Any) -> None:
        columns = rows // steps
        shaped = [g.reshape(steps, columns, *g.shape[1:]) for g in given]
        outs = [o.reshape(steps, columns) for o in out.values()]
        width = max(2, BLOCK // steps)
        for start in range(0, columns, width):
            part = slice(start, start + width)
            block = [s[:, part].reshape(-1, *s.shape[2:]) for s in shaped]
            results = [np.empty(len(block[0])) for _ in outs]
            self._block(block, steps, results)
            for o, result in zip(outs, results, strict=True):
                o[:, part] = result.reshape(steps, -1)

    def _block(self, given: list[Array], steps: int, out: list[Array]) -> None:
        if len(given[0]) == 1:
            for o, value in zip(out, self._single(given).values(), strict=True):
                o[:] = value
            return
        values = self._run(*(np.ascontiguousarray(g.T, np.float64) for g in given), steps)
        for o, value in zip(out, values, strict=True):
            o[:] = value

    def standalone(self) -> str:
        """Returns a Python file that needs only numpy and computes the same."""
        printed = _print(self.lowered, "np.")
        names = ", ".join(i.name for i in self.lowered.inputs)
        lines = [
            f'"""Reward program {self.hash[:16]}, printed as plain numpy.',
            "",
            "reward(...) -> {component: (rows,)} of arguments (rows, k), (k,) for a single row.",
            *(
                f"{i.name}: {i.size or 'one'} number{'s' * (i.size > 1)}, signal {i.signal!r} "
                f"{'before' if i.previous else 'after'} the action"
                for i in self.lowered.inputs
                if i.signal != "action"
            ),
            *(["The rows are the steps of one episode."] if self.lowered.remembers else []),
            "The reward is the sum of the components.",
            '"""',
            "",
            "import numpy as np",
            "",
            *(f"{name} = np.array({list(v)!r})[:, None]" for name, v in printed.constants.items()),
            "",
            "",
            f"def reward({names}):",
        ]
        for entry in self.lowered.inputs:
            atleast = "np.atleast_2d" if entry.size else "np.atleast_1d"
            turn = ".T" if entry.size else ""
            lines.append(f"    {entry.name} = {atleast}(np.asarray({entry.name}, float)){turn}")
        lines += printed.lines
        rows = f"{self.lowered.inputs[0].name}.shape[-1]"
        entries = ", ".join(
            f'"{name}": np.broadcast_to({value}, {rows})'
            for name, value in zip(self.components, printed.values, strict=True)
        )
        lines.append(f"    return {{{entries}}}")
        return "\n".join(lines) + "\n"


def load(text: Any, card: TaskCard) -> Program:
    """Checks and compiles a reward program.

    Args:
        text: The program.
        card: The task's card, whose signals it may read.

    Returns:
        The program.

    Raises:
        Refused: The program is not accepted; it has every diagnostic.
    """
    return Program(text, lower(text, card))


class ProgramReward:
    """A reward program as a RewardModel: the sum of its components."""

    needs: frozenset[str] = frozenset({"signals"})
    causal = True
    version = 0

    def __init__(self, program: Program, *, episode_steps: int = 0):
        """Takes a checked program.

        Args:
            program: What is computed.
            episode_steps: Steps of an episode, which a program with memory looks back.

        Raises:
            ValueError: The program has memory and the episode length is missing.
        """
        self.program = program
        if program.lowered.remembers and not episode_steps:
            raise ValueError("a program with memory (so_far) needs the episode length")
        self.context = max(1, episode_steps) if program.lowered.remembers else 1

    def score(self, segment: Segment) -> RewardOutput:
        """Returns the summed components (T, N) of a segment; see ``RewardModel.score``.

        Raises:
            ValueError: A component is not finite, because a signal left its declared range.
        """
        steps, columns = segment.valid.shape

        def flat(array: Array) -> Array:
            return array.reshape(steps * columns, *array.shape[2:])

        read = {i.signal for i in self.program.lowered.inputs}
        earlier = {i.signal for i in self.program.lowered.inputs if i.previous}
        signals = {name: s for name, s in segment.signals.items() if name in read}
        values = self.program(
            {name: flat(s[1:]) for name, s in signals.items()},
            flat(segment.action),
            {name: flat(s[:-1]) for name, s in signals.items() if name in earlier},
            steps=steps,
        )
        reward = np.zeros(steps * columns)
        valid = segment.valid.reshape(-1)
        components = {}
        for name, value in values.items():
            value = np.where(valid, value, 0.0)
            if not np.isfinite(value).all():
                where = int(np.flatnonzero(~np.isfinite(value))[0])
                raise ValueError(
                    f"component {name!r} of the reward program is {value[where]} at step "
                    f"{where // columns} of column {where % columns}: a signal left the range "
                    "its card declares; bound it with clip"
                )
            reward += value
            components[name] = value.reshape(steps, columns).astype(np.float32)
        return RewardOutput(
            reward.reshape(steps, columns).astype(np.float32), segment.valid.copy(), components
        )


# Printing.
@dataclass(frozen=True)
class _Printed:
    """The lines before the return, the components' expressions, and constant vectors by name."""

    lines: list[str]
    values: list[str]
    constants: dict[str, tuple[float, ...]]


def _print(lowered: Lowered, prefix: Literal["_", "np."]) -> _Printed:
    """Source with functions called by their names after ``prefix``."""
    uses = [0] * len(lowered.nodes)
    for node in lowered.nodes:
        for arg in node.args:
            uses[arg] += 1
    for node in lowered.components.values():
        uses[node] += 1
    constants: dict[str, tuple[float, ...]] = {}
    text: list[str] = []
    depth: list[int] = []
    lines: list[str] = []
    for number, node in enumerate(lowered.nodes):
        expression = _expression(node, lowered, text, constants, prefix)
        deep = 1 + max((depth[a] for a in node.args), default=0)
        leaf = node.op in ("input", "constant")
        if not leaf and (uses[number] > 1 or deep > _DEEP):
            lines.append(f"    _v{number} = {expression}")
            expression, deep = f"_v{number}", 0
        text.append(expression)
        depth.append(deep)
    return _Printed(lines, [text[node] for node in lowered.components.values()], constants)


def _expression(
    node: Node, lowered: Lowered, text: list[str], constants: dict[str, Any], prefix: str
) -> str:
    standalone = prefix == "np."

    def call(name: str, *arguments: str) -> str:
        spelled = _STANDALONE.get(name) if standalone else None
        return f"{spelled or prefix + name}({', '.join(arguments)})"

    args = [text[a] for a in node.args]
    if node.op == "input":
        return lowered.inputs[node.value].name
    if node.op == "constant":
        if not isinstance(node.value, tuple):
            return repr(node.value) if node.value >= 0 else f"({node.value!r})"
        name = f"_c{len(constants)}"
        constants[name] = node.value
        return name
    if node.op == "index":
        if isinstance(node.value, tuple):
            start, stop, step = node.value
            return f"{args[0]}[{start}:{stop}:{step}]"
        return f"{args[0]}[{node.value}]"
    if node.op == "number":
        return call("multiply", args[0], "1.0")
    if node.op == "power":
        return f"({args[0]} ** {node.value!r})"
    if node.op == "clip":
        return call("minimum", call("maximum", args[0], args[1]), args[2])
    if node.op == "where":
        return call("where", *args)
    if node.op == "vec":
        joined = ", ".join(args)
        return f"np.array(np.broadcast_arrays({joined}))" if standalone else call("vec", *args)
    if node.op == "sigmoid":
        return f"(0.5 + 0.5 * {call('tanh', f'0.5 * {args[0]}')})"
    if node.op == "so_far":
        if standalone:
            return f"np.maximum.accumulate({args[0]})"
        return call("so_far", args[0], "_steps")
    if node.op in ("sum", "mean", "norm", *_REDUCED):
        return _reduction(node, args[0], lowered.nodes[node.args[0]].size, call)
    op = OPS[node.op]
    if op.name == "negative":
        return f"(-{args[0]})"
    if op.name == "logical_not":
        return f"(~{args[0]})"
    if op.infix:
        return f"({args[0]} {op.infix} {args[1]})"
    return call(op.name, *args)


def _reduction(node: Node, x: str, size: int, call: Any) -> str:
    keep = ", keepdims=True" if node.value else ""
    if node.op == "norm":
        return call("sqrt", call("total", call("square", x), f"axis=0{keep}"))
    if node.op == "mean":
        return f"({call('total', x, f'axis=0{keep}')} / {float(size)!r})"
    return call(_REDUCED.get(node.op, "total"), x, f"axis=0{keep}")
