"""The reward language against Python: what is accepted means what Python and numpy make of it.

Programs are grown from a tape of numbers: conditions and vectors, subterms without any signal,
literals of every spelling, signals and values called as the printed source calls its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reward_meaning import meaning

from reward_models.base import TaskCard, from_dict
from reward_models.programs import Program, Refused, load

ROWS = 16

# ----------------------------------------------------------------------------- programs of a tape

# Signals are called as things of the printed source were and are, values as functions too.
SIGNALS = ("v0", "v1", "v2", "v4", "v7", "c0", "c1", "a_", "v3_", "steps", "total", "every", "tip")
VALUES = (*SIGNALS, "near", "norm", "effort", "where", "minimum", "prev_tip")
LITERALS = (
    "0.5",
    "3",
    "-2.0",
    "1e-3",
    "0.0",
    "-0.0",
    "0x1F",
    "1_0.5",
    "0b11",
    ".25",
    "7.",
    "pi",
    "np.pi",
    "1e6",
)
HUGE = ("1e12", "1e13", "0x" + "f" * 300, "-0b1" + "0" * 1100, "9" * 40, "1e400")
_UNARY = (
    "abs",
    "sign",
    "floor",
    "ceil",
    "square",
    "sqrt",
    "exp",
    "log",
    "log1p",
    "tanh",
    "sin",
    "cos",
    "arctan",
    "arcsin",
    "sigmoid",
    "-",
    "+",
    "1.0 *",
)
_TWO = (
    "minimum",
    "maximum",
    "hypot",
    "arctan2",
    "near",
    "bell",
    "inverse",
    "above",
    "below",
    "huber",
    "reaching",
)


class _Grower:
    """An author who draws every choice from a tape; when it has run out, the value named last."""

    def __init__(self, tape: Sequence[int], vectors: Sequence[str], numbers: Sequence[str]):
        self.tape, self.vectors, self.numbers = list(tape), list(vectors), list(numbers)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[(self.tape.pop() if self.tape else 0) % len(choices)]

    def call(self, function: str, *arguments: str) -> str:
        hidden = function in (*self.vectors, *self.numbers)
        return f"{'np.' * hidden}{function}({', '.join(arguments)})"

    def number(self, deep: int) -> str:
        if deep <= 0 or not self.tape:
            return self.leaf()
        a = self.number(deep - 1)
        kind = self.pick(range(13))
        if kind < 3:
            return f"({a} {self.pick('+-*/%')} {self.number(deep - 1)})"
        if kind < 5:
            return self.call(self.pick(_UNARY), a)
        if kind == 5:
            return self.call(self.pick(_TWO), a, self.number(deep - 2))
        if kind < 8:
            return self.call("where", self.condition(deep - 1), a, self.number(deep - 1))
        if kind == 8:
            return f"({a} + {self.condition(deep - 1)} * 1.0)"
        if kind == 9:
            over = self.pick(("norm", "sum", "mean", "min", "max"))
            return self.call(over, self.vector(deep - 1))
        if kind == 10:
            return self.call("dot", self.vector(deep - 1), self.vector(deep - 1))
        if kind == 11:
            return self.call("clip", a, *sorted(self.pick(LITERALS[:3]) for _ in range(2)))
        return f"({a})**{self.pick(('2', '3', '0.5', '-1', '2.0', '0'))}"

    def leaf(self) -> str:
        if not self.tape:
            return self.numbers[-1] if self.numbers else f"{self.vectors[-1]}[0]"
        kind = self.pick(range(60))
        if kind < 20 and self.vectors:
            return f"{self.pick(self.vectors)}[{self.pick(('0', '-1', '2'))}]"
        return self.pick(self.numbers if kind < 40 else LITERALS if kind < 59 else HUGE)

    def vector(self, deep: int) -> str:
        kind = self.pick(range(5)) if deep > 0 else 0
        if kind == 0:
            return self.pick(self.vectors)
        if kind == 1:
            return self.call("vec", *(self.number(deep - 2) for _ in range(3)))
        if kind == 2:
            return f"({self.vector(deep - 1)} {self.pick('+-*')} {self.number(deep - 1)})"
        if kind == 3:
            chosen = self.vector(deep - 1), self.number(deep - 1)
            return self.call("where", self.conditions(deep - 1), *chosen)
        return f"({self.vector(deep - 1)} {self.pick('+-*')} {self.vector(deep - 1)})"

    def condition(self, deep: int) -> str:
        kind = self.pick(range(8)) if deep > 0 else 0
        if kind in (4, 5):
            return f"({self.condition(deep - 1)} {self.pick('&|')} {self.condition(deep - 1)})"
        if kind == 6:
            return self.call(self.pick(("all", "any")), self.conditions(deep - 1))
        known = kind in (1, 2)  # before anything runs
        sides = [self.pick(LITERALS) if known else self.number(deep - 1) for _ in range(2)]
        compared = f"({sides[0]} {self.pick(('<', '<=', '>', '>=', '==', '!='))} {sides[1]})"
        return f"~{compared}" if kind in (2, 3) else compared

    def conditions(self, deep: int) -> str:
        return f"({self.vector(deep - 1)} {self.pick('<>')} {self.number(deep - 1)})"

    def program(self, arguments: Sequence[str]) -> str:
        lines = []
        for _ in range(self.pick((0, 1, 2))):
            name = self.pick([n for n in VALUES if n not in arguments])
            if name in self.vectors or self.pick((0, 0, 1)):
                lines.append(f"    {name} = {self.vector(3)}")
                known, other = self.vectors, self.numbers
            else:
                lines.append(f"    {name} = {self.number(3)}")
                known, other = self.numbers, self.vectors
            known += [name] * (name not in known)
            if name in other:
                other.remove(name)
        terms = [f"        {c!r}: {self.number(4)}," for c in ("a", "v3", "c0")]
        body = [f"def reward({', '.join(arguments)}):", *lines, "    return {", *terms, "    }"]
        return "\n".join(body) + "\n"


def _card(vectors: Sequence[str], numbers: Sequence[str]) -> TaskCard:
    signals = [
        {
            "name": name,
            "shape": shape,
            "unit": "1",
            "frame": "",
            "range": (-1.0, 1.0),
            "doc": "",
            "on_robot": True,
        }
        for names, shape in ((vectors, (3,)), (numbers, ()))
        for name in names
    ]
    return from_dict(
        {
            "task": "fuzz",
            "signals": signals,
            "entities": [],
            "goals": {},
            "cameras": [],
            "control_dt": 0.05,
            "episode_s": 2.5,
            "act_dim": 0,
        }
    )


def grown(names: Sequence[str], tape: Sequence[int]) -> tuple[str, TaskCard]:
    """A text and the card of its signals: three vectors and two numbers called ``names``."""
    vectors, numbers = names[:3], names[3:]
    return _Grower(tape, vectors, numbers).program(names), _card(vectors, numbers)


def states(card: TaskCard, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {s.name: rng.uniform(-1, 1, (ROWS, *s.shape)) for s in card.signals}


def standalone(program: Program, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    space: dict[str, Any] = {}
    exec(program.standalone(), space)
    with np.errstate(all="ignore"):
        return space["reward"](*(rows[i.signal] for i in program.lowered.inputs))


def agree(text: str, card: TaskCard) -> bool:
    """Whether the program is accepted; AssertionError where it does not mean what Python says."""
    try:
        program = load(text, card)
    except Refused:
        return False
    rows = states(card, len(text))
    got, expected, file = program(rows), meaning(text, rows), standalone(program, rows)
    zeros = program({name: 0.0 * array for name, array in rows.items()})
    for name, node in program.lowered.components.items():
        low, high = program.lowered.nodes[node].span
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        for some in (got[name], zeros[name]):
            assert np.isfinite(some).all(), (text, name, some)
            assert (some >= low - slack).all() and (some <= high + slack).all(), (text, name)
        # Close to a jump, or divided by almost nothing, one rounding decides.
        scale = 1e-6 * max(1.0, np.abs(expected[name]).max())
        exact = np.isclose(got[name], expected[name], rtol=1e-6, atol=scale)
        assert exact.mean() > 0.7, (text, name, got[name][~exact][:3], expected[name][~exact][:3])
        np.testing.assert_array_equal(file[name], got[name], err_msg=text)
    return True


NAMED = st.lists(st.sampled_from(SIGNALS), min_size=5, max_size=5, unique=True)
TAPES = st.lists(st.integers(0, 10_000), min_size=20, max_size=90)


@settings(max_examples=150, deadline=None)
@given(names=NAMED, tape=TAPES)
@example(["v0", "v1", "v2", "v4", "v7"], [*[0] * 8, 1, 95, 235, 2, 1176, 0, 0, 789, *[0] * 4])
def test_accepted_programs_match_python_semantics(names: list[str], tape: list[int]) -> None:
    agree(*grown(names, tape))


def test_fuzzed_programs_are_often_accepted() -> None:
    """Else nothing would be compared."""
    rng = np.random.default_rng(0)
    accepted = [
        agree(*grown(rng.permutation(SIGNALS)[:5].tolist(), rng.integers(0, 10_000, 60).tolist()))
        for _ in range(50)
    ]
    assert np.mean(accepted) > 0.25
