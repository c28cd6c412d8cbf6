"""What a reward program means: the answer of Python and numpy to the same text, row by row.

Every literal, and pi, is a numpy number (Python's own ``~True`` is -2) and every function is called
from ``np``, since in Python a value hides a function of its name everywhere.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from reward_models.programs.lower import FUNCTIONS

# What numpy has not, for one row; written with numpy's own functions, not with ours.
MEANING: dict[str, Callable[..., Any]] = {
    "norm": np.linalg.norm,
    "vec": lambda *x: np.array(x, float),
    "so_far": lambda x: x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "near": lambda d, s: np.exp(-np.abs(d) / s),
    "inverse": lambda d, s: 1 / (1 + np.abs(d) / s),
    "bell": lambda x, s: np.exp(-(x**2) / (2 * s**2)),
    "reaching": lambda d, s: 1 - np.tanh(np.abs(d) / s),
    "ramp": lambda x, a, b: np.clip((x - a) / (b - a), 0, 1),
    "gate": lambda x, a, w: 1 / (1 + np.exp(-(x - a) / w)),
    "closed_gate": lambda x, a, w: 1 / (1 + np.exp((x - a) / w)),
    "outside": lambda x, a, b: np.where(x < a, a - x, np.where(x > b, x - b, 0.0)),
    "above": lambda x, a: np.maximum(a - x, 0),
    "below": lambda x, b: np.maximum(x - b, 0),
    "tolerance": lambda x, a, b, s: np.exp(
        -(np.where(x < a, a - x, np.where(x > b, x - b, 0.0)) ** 2) / (2 * s**2)
    ),
    "huber": lambda x, w: w * (np.sqrt(1 + (x / w) ** 2) - 1),
    "cosine": lambda a, b: np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)),
    "direction": lambda a: a / np.linalg.norm(a),
    "wrapped": lambda x: (x + np.pi) % (2 * np.pi) - np.pi,
    "lerp": lambda a, b, t: (1 - t) * a + t * b,
    "barrier": lambda x, b, s: -(np.maximum(x - b, 0) ** 2) / s**2,
    "effort": lambda a: -(a**2).mean(),
}
PI = np.float64(np.pi)
_NUMPY = types.SimpleNamespace(
    **{name: getattr(np, name) for name in FUNCTIONS if hasattr(np, name)} | MEANING,
    literal=np.float64,
    pi=PI,
)


class _AsNumpy(ast.NodeTransformer):
    """Literals as numpy numbers, functions from ``np``; indices and options as they are."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str | bool):
            return node
        return ast.parse(f"np.literal({node.value!r})", mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name):
            node.func = ast.parse(f"np.{node.func.id}", mode="eval").body
        node.args = [self.visit(a) for a in node.args]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)
        return node


def meaning(text: str, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The components of a text, row by row, by Python itself."""
    space: dict[str, Any] = {"np": _NUMPY, "pi": PI}
    tree = ast.fix_missing_locations(_AsNumpy().visit(ast.parse(text)))
    exec(compile(tree, "<meaning>", "exec"), space)
    code = space["reward"].__code__
    names = code.co_varnames[: code.co_argcount]
    with np.errstate(all="ignore"):
        results = [
            space["reward"](*(rows[name][i] for name in names))
            for i in range(len(next(iter(rows.values()))))
        ]
    return {name: np.array([float(r[name]) for r in results]) for name in results[0]}
