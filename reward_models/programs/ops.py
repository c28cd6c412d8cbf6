"""The operations of the reward language: one line each, with the rules for units and ranges.

An interval (low, high) bounds every number of a value. It is what proves that a program is finite:
an operation that is not defined everywhere on its interval is refused before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Range = tuple[float, float]
# How the unit of the result follows from those of the arguments.
UnitRule = Literal[
    "same",
    "alike",
    "product",
    "quotient",
    "square",
    "root",
    "plain",
    "angle_in",
    "angle_out",
    "ratio_angle",
    "bool",
]


class OutOfDomain(ValueError):
    """The operation is not defined, or not finite, somewhere on the intervals of its arguments."""

    def __init__(self, why: str, hint: str):
        super().__init__(why)
        self.hint = hint


@dataclass(frozen=True)
class Op:
    """One operation on arrays whose last axis runs over rows."""

    name: str
    arity: int
    unit: UnitRule
    span: Callable[..., Range]
    function: Callable[..., np.ndarray]
    boolean: bool = False  # gives a condition
    takes_boolean: bool = False  # its arguments are conditions
    infix: str = ""


def _increasing(f: Callable[[float], float]) -> Callable[[Range], Range]:
    def span(x: Range) -> Range:
        try:
            return f(x[0]), f(x[1])
        except OverflowError:
            raise OutOfDomain(
                f"the result may be too large: the argument reaches {x[1]:.3g}",
                "bound the argument with clip or minimum",
            ) from None

    return span


def _corners(f: Callable[[float, float], float]) -> Callable[[Range, Range], Range]:
    def span(x: Range, y: Range) -> Range:
        values = [f(a, b) for a in x for b in y]
        return min(values), max(values)

    return span


def _divide(x: Range, y: Range) -> Range:
    if y[0] <= 0.0 <= y[1]:
        raise OutOfDomain(
            f"the divisor may be 0: it is in [{y[0]:.3g}, {y[1]:.3g}]",
            "divide by maximum(divisor, 1e-6)",
        )
    return _corners(lambda a, b: a / b)(x, y)


def _log(x: Range) -> Range:
    if x[0] <= 0.0:
        raise OutOfDomain(
            f"the argument of log may be 0 or less: [{x[0]:.3g}, {x[1]:.3g}]",
            "log(maximum(x, 1e-6))",
        )
    return math.log(x[0]), math.log(x[1])


def _log1p(x: Range) -> Range:
    if x[0] <= -1.0:
        raise OutOfDomain(f"the argument of log1p may be {x[0]:.3g}", "log1p(maximum(x, 0.0))")
    return math.log1p(x[0]), math.log1p(x[1])


def _sqrt(x: Range) -> Range:
    if x[0] < 0.0:
        raise OutOfDomain(
            f"the argument of sqrt may be negative: [{x[0]:.3g}, {x[1]:.3g}]", "sqrt(maximum(x, 0))"
        )
    return math.sqrt(x[0]), math.sqrt(x[1])


def _unit_interval(name: str, low: float, high: float) -> Callable[[Range], Range]:
    def span(x: Range) -> Range:
        if x[0] < -1.0 or x[1] > 1.0:
            raise OutOfDomain(
                f"the argument of {name} may be {x[0]:.3g} or {x[1]:.3g}", f"{name}(clip(x, -1, 1))"
            )
        return low, high

    return span


def _tan(x: Range) -> Range:
    if x[0] <= -1.57 or x[1] >= 1.57:
        raise OutOfDomain(
            "the argument of tan may be a right angle", "clip the angle to (-1.5, 1.5)"
        )
    return math.tan(x[0]), math.tan(x[1])


def _mod(x: Range, y: Range) -> Range:
    if y[0] <= 0.0:
        raise OutOfDomain("the divisor of a remainder may be 0 or less", "use a positive constant")
    return 0.0, y[1]


def _abs(x: Range) -> Range:
    low = 0.0 if x[0] <= 0.0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return low, max(abs(x[0]), abs(x[1]))


def _square(x: Range) -> Range:
    low, high = _abs(x)
    return low * low, high * high


def _hypot(x: Range, y: Range) -> Range:
    (a, b), (c, d) = _abs(x), _abs(y)
    return math.hypot(a, c), math.hypot(b, d)


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x > -700 else 0.0


def expit(x: np.ndarray) -> np.ndarray:
    """Returns 1 / (1 + exp(-x)) of x (n,), without overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _fixed(low: float, high: float) -> Callable[..., Range]:
    return lambda *spans: (low, high)


def _bool_sub(x: Range, y: Range) -> Range:
    return x[0] - y[1], x[1] - y[0]


_TRUTH = _fixed(0.0, 1.0)

OPS: dict[str, Op] = {
    op.name: op
    for op in (
        Op("add", 2, "alike", lambda x, y: (x[0] + y[0], x[1] + y[1]), np.add, infix="+"),
        Op("subtract", 2, "alike", _bool_sub, np.subtract, infix="-"),
        Op("multiply", 2, "product", _corners(lambda a, b: a * b), np.multiply, infix="*"),
        Op("divide", 2, "quotient", _divide, np.divide, infix="/"),
        Op("mod", 2, "alike", _mod, np.mod, infix="%"),
        Op("negative", 1, "same", lambda x: (-x[1], -x[0]), np.negative),
        Op("abs", 1, "same", _abs, np.abs),
        Op("sign", 1, "plain", _increasing(lambda a: float(np.sign(a))), np.sign),
        Op("floor", 1, "same", _increasing(math.floor), np.floor),
        Op("ceil", 1, "same", _increasing(math.ceil), np.ceil),
        Op("square", 1, "square", _square, np.square),
        Op("sqrt", 1, "root", _sqrt, np.sqrt),
        Op("exp", 1, "plain", _increasing(math.exp), np.exp),
        Op("expm1", 1, "plain", _increasing(math.expm1), np.expm1),
        Op("log", 1, "plain", _log, np.log),
        Op("log1p", 1, "plain", _log1p, np.log1p),
        Op("tanh", 1, "plain", _increasing(math.tanh), np.tanh),
        Op("sigmoid", 1, "plain", _increasing(_expit), expit),
        Op("sin", 1, "angle_in", _fixed(-1.0, 1.0), np.sin),
        Op("cos", 1, "angle_in", _fixed(-1.0, 1.0), np.cos),
        Op("tan", 1, "angle_in", _tan, np.tan),
        Op("arcsin", 1, "angle_out", _unit_interval("arcsin", -1.6, 1.6), np.arcsin),
        Op("arccos", 1, "angle_out", _unit_interval("arccos", 0.0, 3.2), np.arccos),
        Op("arctan", 1, "angle_out", _increasing(math.atan), np.arctan),
        Op("arctan2", 2, "ratio_angle", _fixed(-math.pi, math.pi), np.arctan2),
        Op("hypot", 2, "alike", _hypot, np.hypot),
        Op("minimum", 2, "alike", lambda x, y: (min(x[0], y[0]), min(x[1], y[1])), np.minimum),
        Op("maximum", 2, "alike", lambda x, y: (max(x[0], y[0]), max(x[1], y[1])), np.maximum),
        Op("less", 2, "bool", _TRUTH, np.less, boolean=True, infix="<"),
        Op("less_equal", 2, "bool", _TRUTH, np.less_equal, boolean=True, infix="<="),
        Op("greater", 2, "bool", _TRUTH, np.greater, boolean=True, infix=">"),
        Op("greater_equal", 2, "bool", _TRUTH, np.greater_equal, boolean=True, infix=">="),
        Op("equal", 2, "bool", _TRUTH, np.equal, boolean=True, infix="=="),
        Op("not_equal", 2, "bool", _TRUTH, np.not_equal, boolean=True, infix="!="),
        Op("logical_and", 2, "bool", _TRUTH, np.logical_and, True, True, "&"),
        Op("logical_or", 2, "bool", _TRUTH, np.logical_or, True, True, "|"),
        Op("logical_not", 1, "bool", _TRUTH, np.logical_not, True, True, "~"),
    )
}

# Other spellings that numpy users know.
ALIASES = {
    "absolute": "abs",
    "fabs": "abs",
    "amax": "max",
    "amin": "min",
    "true_divide": "divide",
    "remainder": "mod",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "fmax": "maximum",
    "fmin": "minimum",
}

# Over the numbers of one row's vector; ``keepdims`` leaves a vector of one.
REDUCTIONS = ("sum", "mean", "min", "max", "norm", "all", "any")


def power_span(x: Range, exponent: float) -> Range:
    """Returns the interval of ``x ** exponent``.

    Args:
        x: The interval of the base.
        exponent: A constant.

    Returns:
        (low, high).

    Raises:
        OutOfDomain: The power is not defined on all of the interval.
    """
    if exponent < 0.0 and x[0] <= 0.0 <= x[1]:
        raise OutOfDomain("the base of a negative power may be 0", "use maximum(x, 1e-6)")
    if not float(exponent).is_integer() and x[0] < 0.0:
        raise OutOfDomain("the base of a fractional power may be negative", "use maximum(x, 0.0)")
    ends = [x[0] ** exponent, x[1] ** exponent]
    if x[0] < 0.0 < x[1] and exponent > 0:
        ends.append(0.0)
    return min(ends), max(ends)
