"""Shaping primitives: written in the reward language itself and opened where they are used.

Each is one expression over its parameters, so units, ranges and finiteness are checked through it,
and the printed program shows what it stands for. Adding one is one line.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Primitive:
    """A named expression; ``says`` is its plain-language reading, with the arguments filled in."""

    name: str
    parameters: tuple[str, ...]
    body: str
    says: str

    @property
    def tree(self) -> ast.expr:
        """The syntax tree of its body."""
        return _TREES[self.name]

    def signature(self) -> str:
        """Returns its call, such as ``near(distance, scale)``."""
        return f"{self.name}({', '.join(self.parameters)})"


PRIMITIVES: dict[str, Primitive] = {
    p.name: p
    for p in (
        Primitive(
            "near",
            ("distance", "scale"),
            "exp(-(abs(distance) / scale))",
            "1 where {0} is 0, falling to 1/e at {1}",
        ),
        Primitive(
            "inverse",
            ("distance", "scale"),
            "1.0 / (1.0 + abs(distance) / scale)",
            "1 where {0} is 0, a half at {1}, with a long tail",
        ),
        Primitive(
            "bell",
            ("x", "scale"),
            "exp(-0.5 * square(x / scale))",
            "1 where {0} is 0, bell-shaped with deviation {1}",
        ),
        Primitive(
            "reaching",
            ("distance", "scale"),
            "1.0 - tanh(abs(distance) / scale)",
            "1 where {0} is 0, nearly 0 beyond twice {1}",
        ),
        Primitive(
            "ramp",
            ("x", "low", "high"),
            "clip((x - low) / (high - low), 0.0, 1.0)",
            "rises from 0 to 1 as {0} goes from {1} to {2}",
        ),
        Primitive(
            "gate",
            ("x", "at", "width"),
            "sigmoid((x - at) / width)",
            "opens softly as {0} passes {1} (width {2})",
        ),
        Primitive(
            "closed_gate",
            ("x", "at", "width"),
            "sigmoid((at - x) / width)",
            "opens softly as {0} falls below {1} (width {2})",
        ),
        Primitive(
            "outside",
            ("x", "low", "high"),
            "maximum(low - x, 0.0) + maximum(x - high, 0.0)",
            "how far {0} is outside {1} to {2}",
        ),
        Primitive("above", ("x", "least"), "maximum(least - x, 0.0)", "how much {0} is below {1}"),
        Primitive("below", ("x", "most"), "maximum(x - most, 0.0)", "how much {0} is over {1}"),
        Primitive(
            "tolerance",
            ("x", "low", "high", "scale"),
            "exp(-0.5 * square((maximum(low - x, 0.0) + maximum(x - high, 0.0)) / scale))",
            "1 where {0} is within {1} to {2}, falling off over {3}",
        ),
        Primitive(
            "huber",
            ("x", "width"),
            "width * (sqrt(1.0 + square(x / width)) - 1.0)",
            "grows with {0}: as a square within {1}, then in proportion",
        ),
        Primitive(
            "cosine",
            ("a", "b"),
            "clip(dot(a, b) / maximum(norm(a) * norm(b), 0.000001), -1.0, 1.0)",
            "the cosine of the angle between {0} and {1}",
        ),
        Primitive("direction", ("a",), "a / maximum(norm(a), 0.000001)", "the direction of {0}"),
        Primitive(
            "wrapped",
            ("angle",),
            "arctan2(sin(angle), cos(angle))",
            "{0} brought into half a turn to either side",
        ),
        Primitive(
            "lerp",
            ("a", "b", "share"),
            "a + share * (b - a)",
            "between {0} and {1} by the share {2}",
        ),
        Primitive(
            "barrier",
            ("x", "limit", "scale"),
            "-square(maximum(x - limit, 0.0) / scale)",
            "a cost once {0} passes {1}, growing over {2}",
        ),
        Primitive("effort", ("action",), "-mean(square(action))", "minus the mean square of {0}"),
    )
}

_TREES = {p.name: ast.parse(p.body, mode="eval").body for p in PRIMITIVES.values()}
