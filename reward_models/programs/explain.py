"""A reward program in plain language: what each component rewards, from the same representation."""

from __future__ import annotations

from reward_models.programs.lower import Lowered
from reward_models.programs.ops import OPS
from reward_models.programs.primitives import PRIMITIVES
from reward_models.programs.runtime import Program
from reward_models.programs.units import spell_unit

_AXES = ("x", "y", "z")
_LONG = 400  # characters of one reading; beyond it the source says it better
_SAYS = {
    "norm": "the length of {0}",
    "sum": "the sum of {0}",
    "mean": "the mean of {0}",
    "min": "the least of {0}",
    "max": "the largest of {0}",
    "square": "{0} squared",
    "sqrt": "the root of {0}",
    "abs": "the size of {0}",
    "exp": "e to the power {0}",
    "tanh": "{0} saturated at 1",
    "sigmoid": "{0} squashed into 0 to 1",
    "maximum": "the larger of {0} and {1}",
    "minimum": "the smaller of {0} and {1}",
    "clip": "{0} held within {1} to {2}",
    "where": "{1} where {0}, else {2}",
    "so_far": "the best so far of ({0})",
    "number": "{0}",
    "hypot": "the length of ({0}, {1})",
    "logical_not": "not ({0})",
    "negative": "minus {0}",
    "all": "every one of {0}",
    "any": "any of {0}",
}


def explain(program: Program) -> str:
    """Returns one line per component, with the interval of its values."""
    lowered = program.lowered
    _, whole = _texts(lowered)
    lines = []
    for name, node in lowered.components.items():
        low, high = lowered.nodes[node].span
        unit = lowered.nodes[node].unit
        unit_text = f" {spell_unit(unit)}" if unit else ""
        lines.append(f"{name}: {_bare(whole[node])} ({low:.3g} to {high:.3g}{unit_text})")
    lines += [f"where {name} is {_bare(whole[node])}" for node, name in lowered.named.items()]
    memory = "; it remembers the episode so far" if lowered.remembers else ""
    lines.append(f"reward: the sum of {', '.join(lowered.components)}{memory}")
    return "\n".join(lines)


def _texts(lowered: Lowered) -> tuple[list[str], list[str]]:
    """Of every node how it is spoken of, by its author's name where it has one, and in full."""
    texts: list[str] = []
    whole: list[str] = []
    for number, node in enumerate(lowered.nodes):
        args = [texts[a] for a in node.args]
        if number in lowered.opened:
            name, given = lowered.opened[number]
            text = f"[{PRIMITIVES[name].says.format(*(_bare(texts[a]) for a in given))}]"
        elif node.op == "input":
            entry = lowered.inputs[node.value]
            text = f"{entry.signal} before" if entry.previous else entry.signal
        elif node.op == "constant":
            text = _number(node.value)
        elif node.op == "index":
            text = f"{args[0]}'s {_part(node.value, lowered.nodes[node.args[0]].size)}"
        elif node.op == "vec":
            text = f"({', '.join(args)})"
        elif node.op == "power":
            text = f"{args[0]} to the power {node.value:g}"
        elif node.op in _SAYS:
            text = _SAYS[node.op].format(*args)
        elif OPS[node.op].infix:
            text = f"({args[0]} {OPS[node.op].infix} {args[1]})"
        else:
            text = f"{node.op}({', '.join(args)})"
        whole.append(text if len(text) <= _LONG else text[: _LONG - 4] + " ...")
        texts.append(lowered.named.get(number, whole[-1]))
    return texts, whole


def _bare(text: str) -> str:
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" and text.count("[") == 1 else text


def _number(value: float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(f'{v:g}' for v in value)})"
    return f"{value:g}"


def _part(value: int | tuple[int, int, int], size: int) -> str:
    names = _AXES if size == 3 else tuple(f"[{i}]" for i in range(size))
    if isinstance(value, tuple):
        return "".join(names[i] for i in range(*value))
    return names[value]
