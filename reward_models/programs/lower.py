"""Reward programs as typed values: every value has a shape, a unit and an interval.

The tree of ``language.parse`` becomes a list of nodes in order of computation. Equal
subexpressions are one node, constants are folded, primitives are opened. Whatever is known to go
wrong is found here, with the line it stands in: metres added to radians, a vector of three with one
of six, a division by what may be zero.

``size`` is 0 for one number per row and ``k`` for a vector of ``k``. No operation runs over rows,
so rows are independent by construction.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reward_models.base import CardSignal, TaskCard
from reward_models.programs import units
from reward_models.programs.diagnostics import Diagnostic, Refused, errors
from reward_models.programs.language import (
    CONSTANTS,
    constant_of,
    did_you_mean,
    function_name,
    index_of,
    parse,
)
from reward_models.programs.ops import ALIASES, OPS, REDUCTIONS, Op, OutOfDomain, Range, power_span
from reward_models.programs.primitives import PRIMITIVES
from reward_models.programs.units import Unit

WIDER = 2.0  # times the card's range, which is what a signal usually is and not a promise
UNBOUNDED = 1e6  # in place of a range without end
LARGEST = 1e15  # what a value may reach
MAX_VECTOR = 1024

# name -> (fewest, most arguments) of the functions that are neither OPS nor primitives.
SPECIAL = {
    "clip": (3, 3),
    "where": (3, 3),
    "dot": (2, 2),
    "vec": (1, 16),
    "power": (2, 2),
    "so_far": (1, 1),
    **dict.fromkeys(REDUCTIONS, (1, 1)),
}
FUNCTIONS = frozenset(OPS) | ALIASES.keys() | SPECIAL.keys() | PRIMITIVES.keys()
PREVIOUS = "prev_"

Constant = float | bool | tuple[float, ...] | tuple[bool, ...]  # a vector's numbers as a tuple

_BINARY = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Mod: "mod",
    ast.BitAnd: "logical_and",
    ast.BitOr: "logical_or",
}
_COMPARE = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}


@dataclass(frozen=True)
class Node:
    """One value. ``op`` is "input", "constant", "index", a name of OPS or of SPECIAL."""

    op: str
    args: tuple[int, ...]
    value: Any  # of a constant, an index, an exponent; the position of an input
    size: int  # 0: one number per row
    boolean: bool
    unit: Unit
    span: Range


@dataclass(frozen=True)
class Input:
    """An argument of the program and the signal that it reads."""

    name: str
    signal: str  # "action" for the action
    previous: bool  # before the action instead of after it
    size: int


@dataclass(frozen=True)
class Lowered:
    """A program that is known to be sound."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    components: dict[str, int]
    opened: dict[int, tuple[str, tuple[int, ...]]]  # node -> primitive and its arguments
    named: dict[int, str]  # node -> the name that the author gave it
    warnings: tuple[Diagnostic, ...]

    @property
    def remembers(self) -> bool:
        """Whether a reward depends on the episode so far."""
        return any(node.op == "so_far" for node in self.nodes)


class _Stop(Exception):
    """An expression whose value is not known because of a finding that is recorded already."""


def lower(text: Any, card: TaskCard) -> Lowered:
    """Checks a program and lowers it to a graph over the card's signals.

    Raises:
        Refused: The program is not accepted; it has every finding.
    """
    function = parse(text, FUNCTIONS)
    return _Lowering(card).run(function)


@dataclass
class _Lowering:
    card: TaskCard
    nodes: list[Node] = field(default_factory=list)
    found: list[Diagnostic] = field(default_factory=list)
    opened: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    named: dict[int, str] = field(default_factory=dict)
    line: int = 0

    def __post_init__(self) -> None:
        self._known: dict[tuple[Any, ...], int] = {}
        self._names: dict[str, int | None] = {}
        self._used: set[str] = set()

    def run(self, function: ast.FunctionDef) -> Lowered:
        inputs = self._inputs(function)
        assigned: dict[str, int] = {}
        *lines, last = function.body
        for line in lines:
            assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            self.line = line.lineno
            name = line.targets[0].id
            value = self._try(line.value)  # before the name is bound: it may be in it
            self._names[name] = value
            if value is not None and self.nodes[value].op not in ("input", "constant"):
                self.named.setdefault(value, name)
            assigned[name] = line.lineno
        assert isinstance(last, ast.Return) and isinstance(last.value, ast.Dict)
        components: dict[str, int] = {}
        for key, value in zip(last.value.keys, last.value.values, strict=True):
            assert isinstance(key, ast.Constant)
            self.line = value.lineno
            node = self._try(value)
            if node is None:
                continue
            node = self._number(node)
            if self.nodes[node].size:
                k = self.nodes[node].size
                self._find(
                    "shape",
                    f"component {key.value!r} is a vector of {k}",
                    "one number: an element x[0], norm(x), sum(x) or mean(x)",
                )
            components[key.value] = node
        if errors(self.found):
            raise Refused(self.found) from None
        self._lint(inputs, components, assigned)
        if errors(self.found):
            raise Refused(self.found) from None
        return self._pruned(inputs, components)

    # Findings.
    def _find(self, code: str, message: str, hint: str = "", severity: Any = "error") -> None:
        self.found.append(Diagnostic(code, message, self.line, hint, severity))

    def _stop(self, code: str, message: str, hint: str = "") -> _Stop:
        self._find(code, message, hint)
        return _Stop()

    def _try(self, tree: ast.expr) -> int | None:
        try:
            return self._value(tree)
        except _Stop:
            return None

    # Arguments.
    def _inputs(self, function: ast.FunctionDef) -> tuple[Input, ...]:
        self.line = function.lineno
        signals = {s.name: s for s in self.card.signals}
        inputs = []
        for argument in function.args.args:
            name = argument.arg
            self._names[name] = None
            previous = name not in signals and name.startswith(PREVIOUS)
            source = name.removeprefix(PREVIOUS) if previous else name
            signal = signals.get(source) or self._action(source)
            if signal is None or (previous and source == "action"):
                known = [*signals, "action"] if self.card.act_dim else list(signals)
                hint = did_you_mean(name, [*known, *(PREVIOUS + k for k in signals)])
                hint = hint or f"signals of {self.card.task}: {', '.join(known)}"
                self._find("signal", f"task {self.card.task!r} has no signal {name!r}", hint)
                continue
            size = math.prod(signal.shape) if signal.shape else 0
            if size > MAX_VECTOR:
                self._find("shape", f"signal {name!r} has {size} numbers, at most {MAX_VECTOR}")
                continue
            position = len(inputs)
            inputs.append(Input(name, source, previous, size))
            unit = units.parse_unit(signal.unit)
            self._names[name] = self._add(
                "input", (), position, size, False, unit, _usual(signal.range)
            )
        return tuple(inputs)

    def _action(self, name: str) -> CardSignal | None:
        if name != "action" or not self.card.act_dim:
            return None
        doc = "what the policy asked for"
        return CardSignal("action", (self.card.act_dim,), "1", "", (-0.5, 0.5), doc, True)

    # Nodes.
    def _add(
        self,
        op: str,
        args: tuple[int, ...],
        value: Any,
        size: int,
        boolean: bool,
        unit: Unit,
        span: Range,
    ) -> int:
        key = (op, args, repr(value))  # which tells True from 1.0, and 0.0 from -0.0
        if key in self._known:
            return self._known[key]
        low, high = float(span[0]), float(span[1])
        if not (-LARGEST <= low <= high <= LARGEST):
            raise self._stop(
                "finite",
                f"a value may be as large as {max(abs(low), abs(high)):.1e}",
                "bound it with clip, minimum or tanh",
            )
        self.nodes.append(Node(op, args, value, size, boolean, unit, (low, high)))
        self._known[key] = len(self.nodes) - 1
        return self._known[key]

    def _constant(self, value: Constant) -> int:
        size = len(value) if isinstance(value, tuple) else 0
        numbers = value if isinstance(value, tuple) else (value,)
        boolean = isinstance(numbers[0], bool)
        return self._add("constant", (), value, size, boolean, None, (min(numbers), max(numbers)))

    def _apply(
        self,
        op: str,
        args: tuple[int, ...],
        value: Any,
        size: int,
        boolean: bool,
        unit: Unit,
        span: Callable[[], Range],
        compute: Callable[..., Any],
    ) -> int:
        """A node, or a constant where every argument is one."""
        nodes = [self.nodes[a] for a in args]
        if args and all(n.op == "constant" for n in nodes):
            with np.errstate(all="ignore"):
                result = np.asarray(compute(*(_array(n.value) for n in nodes)))
            if not np.isfinite(result).all() or np.abs(result).max() > LARGEST:
                raise self._stop("finite", f"{op} of these constants is not a finite number")
            numbers = np.broadcast_to(result.ravel().astype(bool if boolean else float), size or 1)
            return self._constant(tuple(numbers.tolist()) if size else numbers.item())
        try:
            return self._add(op, args, value, size, boolean, unit, span())
        except OutOfDomain as error:
            raise self._stop("finite", str(error), error.hint) from None
        except ArithmeticError:
            raise self._stop("finite", "a value may be too large", "bound it with clip") from None

    # Expressions.
    def _value(self, tree: ast.expr) -> int:
        self.line = getattr(tree, "lineno", self.line)
        literal = constant_of(tree)
        if literal is not None:
            return self._constant(literal)
        if isinstance(tree, ast.Name):
            return self._name(tree.id)
        if isinstance(tree, ast.Attribute):
            return self._constant(CONSTANTS[tree.attr])
        if isinstance(tree, ast.BinOp):
            if isinstance(tree.op, ast.Pow):
                exponent = constant_of(tree.right)
                assert exponent is not None
                return self._power(self._value(tree.left), exponent)
            sides = self._value(tree.left), self._value(tree.right)
            self.line = tree.lineno
            return self._op(OPS[_BINARY[type(tree.op)]], sides)
        if isinstance(tree, ast.UnaryOp):
            operand = self._value(tree.operand)
            if isinstance(tree.op, ast.UAdd):
                return operand
            name = "negative" if isinstance(tree.op, ast.USub) else "logical_not"
            return self._op(OPS[name], (operand,))
        if isinstance(tree, ast.Compare):
            sides = self._value(tree.left), self._value(tree.comparators[0])
            return self._op(OPS[_COMPARE[type(tree.ops[0])]], sides)
        if isinstance(tree, ast.Subscript):
            index = index_of(tree.slice)
            assert index is not None
            return self._index(self._value(tree.value), index)
        assert isinstance(tree, ast.Call)
        return self._call(tree)

    def _name(self, name: str) -> int:
        self._used.add(name)
        if name in self._names:
            node = self._names[name]
            if node is None:
                raise _Stop  # what is wrong with it has been said
            return node
        if name in CONSTANTS:
            return self._constant(CONSTANTS[name])
        signals = [s.name for s in self.card.signals]
        if name in (*signals, "action") or name.removeprefix(PREVIOUS) in signals:
            hint = f"add it to the arguments: def reward(..., {name}):"
        else:
            hint = did_you_mean(name, self._names)
        raise self._stop("name", f"undefined name {name!r}", hint)

    def _number(self, node: int) -> int:
        """A condition as 0.0 or 1.0; a number as it is."""
        if not self.nodes[node].boolean:
            return node
        return self._apply(
            "number",
            (node,),
            None,
            self.nodes[node].size,
            False,
            None,
            lambda: (0.0, 1.0),
            lambda condition: condition * 1.0,
        )

    def _together(self, what: str, nodes: list[Node]) -> int:
        """The size of an operation on these: numbers meet vectors, vectors their equals."""
        sizes = {n.size for n in nodes} - {0}
        if len(sizes - {1}) > 1:
            found = " and ".join(f"a vector of {k}" for k in sorted(sizes))
            raise self._stop("shape", f"{what} of {found}", "use vectors of equal size")
        return max(sizes, default=0)

    def _op(self, op: Op, args: tuple[int, ...]) -> int:
        if op.takes_boolean:
            if any(not self.nodes[a].boolean for a in args):
                hint = "join conditions in brackets: (a < b) & (c > d)"
                raise self._stop(
                    "type", f"{op.infix or op.name} expects conditions, got numbers", hint
                )
        else:
            args = tuple(self._number(a) for a in args)
        if op.name in ("multiply",) and args[0] == args[1]:
            return self._op(OPS["square"], args[:1])
        if op.name == "abs" and self.nodes[args[0]].span[0] >= 0.0:
            return args[0]
        if op.name == "subtract" and args[0] == args[1]:
            size = self.nodes[args[0]].size
            return self._constant((0.0,) * size if size else 0.0)
        nodes = [self.nodes[a] for a in args]
        size = self._together(op.infix or op.name, nodes)
        unit = self._unit(op, nodes)
        if op.name == "subtract" and nodes[1].op == "constant" and nodes[1].value == 0.0:
            return args[0]  # as a gate at 0 does; the same to the last bit
        return self._apply(
            op.name,
            args,
            None,
            size,
            op.boolean,
            unit,
            lambda: op.span(*(n.span for n in nodes)),
            op.function,
        )

    def _unit(self, op: Op, nodes: list[Node]) -> Unit:
        first = nodes[0].unit
        if op.unit == "product":
            return units.product_unit(first, nodes[1].unit)
        if op.unit == "quotient":
            return units.product_unit(first, nodes[1].unit, -1.0)
        if op.unit == "square":
            return units.power_unit(first, 2.0)
        if op.unit == "root":
            return units.power_unit(first, 0.5)
        if op.unit in ("alike", "ratio_angle", "bool") and not op.takes_boolean:
            unit = self._alike(_DOES.get(op.name, f"{op.name} takes"), nodes)
            return units.ANGLE if op.unit == "ratio_angle" else None if op.boolean else unit
        if op.unit == "angle_in":
            if not units.compatible(first, units.ANGLE):
                raise self._stop(
                    "unit", f"{op.name} expects an angle, got {units.spell_unit(first)}", ""
                )
            return units.PLAIN
        if op.unit in ("plain", "angle_out"):
            if not units.compatible(first, units.PLAIN) and op.name != "sign":
                self._find(
                    "scale",
                    f"{op.name} of a quantity in {units.spell_unit(first)}",
                    "divide it by a scale of its unit",
                    "warning",
                )
            return units.ANGLE if op.unit == "angle_out" else units.PLAIN
        return first

    def _alike(self, does: str, nodes: list[Node]) -> Unit:
        unit = nodes[0].unit
        for node in nodes[1:]:
            if not units.compatible(unit, node.unit):
                a, b = units.spell_unit(unit), units.spell_unit(node.unit)
                raise self._stop(
                    "unit",
                    f"{does} {_PLURAL.get(a, a)} and {_PLURAL.get(b, b)}",
                    "divide each by a scale of its unit first",
                )
            unit = units.common_unit(unit, node.unit)
        return unit

    def _power(self, base: int, exponent: float) -> int:
        base = self._number(base)
        node = self.nodes[base]
        if exponent == 2.0:
            return self._op(OPS["square"], (base,))
        if exponent == 1.0:
            return base
        if exponent == 0.5:
            return self._op(OPS["sqrt"], (base,))
        return self._apply(
            "power",
            (base,),
            exponent,
            node.size,
            False,
            units.power_unit(node.unit, exponent),
            lambda: power_span(node.span, exponent),
            lambda x: x**exponent,
        )

    def _index(self, base: int, index: int | slice) -> int:
        node = self.nodes[base]
        if not node.size:
            raise self._stop(
                "shape", "a single number cannot be indexed", "only a vector has elements"
            )
        if isinstance(index, slice):
            picked = range(node.size)[index]
            if not picked:
                raise self._stop("index", f"the slice of a vector of size {node.size} is empty")
            size, value = len(picked), (picked.start, picked.stop, picked.step)
            if picked.step < 0:
                raise self._stop("index", "a slice must have a positive step")
        else:
            if not -node.size <= index < node.size:
                raise self._stop(
                    "index", f"index {index} is out of range for a vector of size {node.size}"
                )
            size, value = 0, index % node.size
        if node.op == "constant":
            return self._constant(node.value[index])
        return self._add("index", (base,), value, size, node.boolean, node.unit, node.span)

    # Calls.
    def _call(self, tree: ast.Call) -> int:
        name = function_name(tree.func) or ""
        name = ALIASES.get(name, name)
        line = tree.lineno
        if name in OPS:
            fewest = most = OPS[name].arity
        elif name in PRIMITIVES:
            fewest = most = len(PRIMITIVES[name].parameters)
        else:
            fewest, most = SPECIAL[name]
        if not fewest <= len(tree.args) <= most:
            expected = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            shape = f"; it is {PRIMITIVES[name].signature()}" if name in PRIMITIVES else ""
            hint = (
                f"the larger of two numbers is {name}imum(a, b)"
                if name in ("max", "min")
                else ("say axis=-1 by name" if name in REDUCTIONS else "")
            )
            raise self._stop(
                "argument", f"{name} takes {expected} arguments, got {len(tree.args)}{shape}", hint
            )
        if tree.keywords and name not in REDUCTIONS:
            raise self._stop("argument", f"{name} has no argument {tree.keywords[0].arg!r}")
        if name == "power":
            exponent = constant_of(tree.args[1])
            if exponent is None or abs(exponent) > 8:
                raise self._stop("power", "an exponent must be a constant of at most 8")
            return self._power(self._value(tree.args[0]), exponent)
        args = tuple(self._value(a) for a in tree.args)
        self.line = line
        if name in OPS:
            return self._op(OPS[name], args)
        if name in PRIMITIVES:
            return self._primitive(name, args)
        if name in REDUCTIONS:
            return self._reduce(name, args[0], tree.keywords)
        return getattr(self, f"_{name}")(*args)

    def _primitive(self, name: str, args: tuple[int, ...]) -> int:
        names, used = self._names, self._used
        self._names, self._used = dict(zip(PRIMITIVES[name].parameters, args, strict=True)), set()
        line = self.line
        body = PRIMITIVES[name].tree
        try:
            node = self._value(body)
        finally:
            self._names, self._used, self.line = names, used, line
        self.opened.setdefault(node, (name, args))
        return node

    def _reduce(self, name: str, base: int, keywords: list[ast.keyword]) -> int:
        keep = False
        for keyword in keywords:
            if keyword.arg == "axis":
                axis = constant_of(keyword.value)
                if axis == 0.0:
                    raise self._stop(
                        "rows",
                        f"{name} over axis 0, which is the batch of envs",
                        "use axis=-1, the vector of one env",
                    )
                if axis not in (-1.0, 1.0):
                    raise self._stop("argument", "axis must be -1, the vector of one env")
            else:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if not isinstance(value, bool):
                    raise self._stop("argument", "keepdims must be True or False")
                keep = value
        logical = name in ("all", "any")
        if logical and not self.nodes[base].boolean:
            raise self._stop("type", f"{name} expects conditions, got numbers", "")
        base = base if logical else self._number(base)
        node = self.nodes[base]
        if not node.size:
            raise self._stop(
                "shape", f"{name} expects a vector, got one number", f"leave {name} out, or use abs"
            )
        k, (low, high) = node.size, node.span

        def span() -> Range:
            if name == "sum":
                return k * low, k * high
            if name == "norm":
                least = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
                return math.sqrt(k) * least, math.sqrt(k) * max(abs(low), abs(high))
            return (0.0, 1.0) if logical else (low, high)

        unit = None if logical else node.unit
        return self._apply(name, (base,), keep, 1 if keep else 0, logical, unit, span, REDUCE[name])

    def _dot(self, a: int, b: int) -> int:
        a, b = self._number(a), self._number(b)
        x, y = self.nodes[a], self.nodes[b]
        if not x.size or not y.size:
            raise self._stop("shape", "dot expects two vectors, got one number", "")
        if a == b:
            return self._reduce("sum", self._op(OPS["square"], (a,)), [])
        return self._reduce("sum", self._op(OPS["multiply"], (a, b)), [])

    def _clip(self, x: int, low: int, high: int) -> int:
        args = tuple(self._number(n) for n in (x, low, high))
        nodes = [self.nodes[a] for a in args]
        size = self._together("clip", nodes)
        unit = self._alike("clip takes", nodes)
        (a, b), (c, d), (e, f) = (n.span for n in nodes)
        if c > f:
            raise self._stop("argument", "clip has a lower bound above its upper bound")
        return self._apply(
            "clip",
            args,
            None,
            size,
            False,
            unit,
            lambda: (min(max(a, c), e), min(max(b, d), f)),
            np.clip,
        )

    def _where(self, condition: int, a: int, b: int) -> int:
        if not self.nodes[condition].boolean:
            raise self._stop(
                "type", "the first argument of where must be a condition", "such as gap < 0.05"
            )
        a, b = self._number(a), self._number(b)
        nodes = [self.nodes[n] for n in (condition, a, b)]
        size = self._together("where", nodes)
        unit = self._alike("where chooses between", nodes[1:])
        (c, d), (e, f) = nodes[1].span, nodes[2].span
        return self._apply(
            "where",
            (condition, a, b),
            None,
            size,
            False,
            unit,
            lambda: (min(c, e), max(d, f)),
            np.where,
        )

    def _vec(self, *parts: int) -> int:
        args = tuple(self._number(p) for p in parts)
        nodes = [self.nodes[a] for a in args]
        if any(n.size for n in nodes):
            raise self._stop("shape", "vec expects single numbers, got a vector", "")
        unit = self._alike("vec joins", nodes)
        span = min(n.span[0] for n in nodes), max(n.span[1] for n in nodes)
        return self._apply(
            "vec",
            args,
            None,
            len(args),
            False,
            unit,
            lambda: span,
            lambda *x: np.stack([np.asarray(p, float).reshape(()) for p in x]),
        )

    def _so_far(self, x: int) -> int:
        x = self._number(x)
        node = self.nodes[x]
        if node.size:
            raise self._stop("shape", "so_far expects one number, got a vector", "")
        if node.op == "constant":
            return x
        return self._add("so_far", (x,), None, 0, False, node.unit, node.span)

    # What remains.
    def _lint(
        self, inputs: tuple[Input, ...], components: dict[str, int], assigned: dict[str, int]
    ) -> None:
        for name, line in assigned.items():
            if name not in self._used:
                self.line = line
                self._find("unused", f"{name!r} is not used", severity="warning")
        self.line = 0
        for given in inputs:
            if given.name not in self._used:
                self._find("unused", f"signal {given.name!r} is not used", severity="warning")
        widths = {}
        for name, node in components.items():
            low, high = self.nodes[node].span
            widths[name] = high - low
            if low == high:
                self._find(
                    "constant_component",
                    f"component {name!r} is always {low:g}",
                    severity="warning",
                )
        largest = max(widths.values())
        if largest == 0.0:
            self._find(
                "constant_reward", "the reward is the same everywhere", "let it depend on a signal"
            )
            return
        for name, width in widths.items():
            if 0.0 < width < 0.001 * largest:
                self._find(
                    "dominated",
                    f"component {name!r} varies by {width:.2g}, another by {largest:.2g}",
                    "bring their weights closer",
                    "warning",
                )

    def _pruned(self, inputs: tuple[Input, ...], components: dict[str, int]) -> Lowered:
        """Without the nodes that no component needs."""
        needed, stack = set(), list(components.values())
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += self.nodes[node].args
        order = {old: new for new, old in enumerate(sorted(needed))}
        nodes = []
        for old in sorted(needed):
            node = self.nodes[old]
            args = tuple(order[a] for a in node.args)
            nodes.append(
                Node(node.op, args, node.value, node.size, node.boolean, node.unit, node.span)
            )
        opened = {
            order[node]: (name, tuple(order.get(a, -1) for a in args))
            for node, (name, args) in self.opened.items()
            if node in order
        }
        opened = {node: entry for node, entry in opened.items() if -1 not in entry[1]}
        return Lowered(
            inputs,
            tuple(nodes),
            {name: order[node] for name, node in components.items()},
            opened,
            {order[node]: name for node, name in self.named.items() if node in order},
            tuple(self.found),
        )


_DOES = {"add": "adds", "subtract": "subtracts", "mod": "takes the remainder of"} | {
    name: "compares" for name, op in OPS.items() if op.unit == "bool" and not op.takes_boolean
}
_PLURAL = {
    "m": "metres",
    "rad": "radians",
    "s": "seconds",
    "kg": "kilograms",
    "N": "newtons",
    "a plain number": "plain numbers",
}

# Over axis 0: a value is stored as (k, rows), so that each element is contiguous.
REDUCE: dict[str, Callable[..., np.ndarray]] = {
    "sum": lambda x: np.add.reduce(x, axis=0),
    "mean": lambda x: np.add.reduce(x, axis=0) / len(x),
    "min": lambda x: np.minimum.reduce(x, axis=0),
    "max": lambda x: np.maximum.reduce(x, axis=0),
    "norm": lambda x: np.sqrt(np.add.reduce(np.square(x), axis=0)),
    "all": lambda x: np.logical_and.reduce(x, axis=0),
    "any": lambda x: np.logical_or.reduce(x, axis=0),
}


def _array(value: Constant) -> Any:
    return np.array(value)[:, None] if isinstance(value, tuple) else np.array(value)[()]


def _usual(declared: tuple[float, float]) -> Range:
    """The interval that is assumed of a signal: wider than the card's, and never without end."""
    low, high = (max(-UNBOUNDED, min(UNBOUNDED, float(x))) for x in declared)
    middle, half = (low + high) / 2, WIDER * max((high - low) / 2, 1e-6)
    return middle - half, middle + half
