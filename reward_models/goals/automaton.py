"""A formula as an automaton (reward machine): what has been done so far, row by row.

``docs/reference/goal-language.md`` says when a formula is done and when it has failed; this keeps
that account while an episode runs, from which predicates hold at each step. All rows advance at
once; a row's memory is a few named numbers, which policies observe, reward programs read and
checkpoints keep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from reward_models.base import CardSignal
from reward_models.goals.formula import Atom, Formula, Joined, formula_kind, sequence_path

Array = np.ndarray
Holds = Mapping[Atom, Array]  # (N,) bool
Verdict = tuple[Array, Array]  # done, failed: (N,) bool
Path = tuple[int, ...]  # from the whole formula to a part of a part

DONE, FAILED = "goal_done", "goal_failed"


@dataclass(frozen=True)
class MemorySlot:
    """One number of a row's memory; it begins at 0."""

    name: str
    most: float
    doc: str

    @property
    def signal(self) -> CardSignal:
        """It as something that a reward program may read."""
        return CardSignal(self.name, (1,), "1", "goal", (0.0, self.most), self.doc, False)


@dataclass
class Automaton:
    """The account of one formula at a control period of ``dt`` s."""

    formula: Formula
    dt: float
    slots: list[MemorySlot] = field(default_factory=list)
    names: dict[Path, dict[str, str]] = field(default_factory=dict)  # of the part there: its slots

    def __post_init__(self) -> None:
        self._lay_out(self.formula, ())
        self._whole = sequence_path(self.formula)
        self.slots += [
            MemorySlot(DONE, 1.0, "1 where the goal is done"),
            MemorySlot(FAILED, 1.0, "1 where the goal can no longer be done"),
        ]
        self._at = {slot.name: i for i, slot in enumerate(self.slots)}

    def begin(self, rows: int) -> Array:
        """Returns the memory (rows, slots) before the first step."""
        return np.zeros((rows, len(self.slots)))

    def update(self, memory: Array, holds: Holds, live: Array | None = None) -> None:
        """Enters one step into the memory, in place; the first is the state after the reset.

        Args:
            memory: (N, slots).
            holds: Which atoms hold.
            live: (N,) bool, the environments that made a step; all if missing.
        """
        live = np.ones(len(memory), bool) if live is None else live
        done, failed = self._step(self.formula, (), memory, holds, live)
        memory[live, self._at[DONE]] = (done & ~failed)[live]
        memory[live, self._at[FAILED]] = failed[live]

    def column(self, memory: Array, name: str) -> Array:
        """Returns the slot of that name, (N,), of a memory (N, slots)."""
        return memory[:, self._at[name]]

    @property
    def sequence(self) -> tuple[str, int] | None:
        """The slot of the outermost ``then`` and how many parts it has; None: there is none."""
        formula, path = self.formula, ()
        if isinstance(formula, Joined) and formula.operator == "and":
            found = [i for i, p in enumerate(formula.parts) if _is_then(p)]
            formula, path = (formula.parts[found[0]], (found[0],)) if found else (formula, ())
        if not _is_then(formula):
            return None
        assert isinstance(formula, Joined)
        return self.names[path]["part"], len(formula.parts)

    def parts_done(self, memory: Array) -> Array:
        """Returns how many parts of the outermost ``then`` are done, (N,); 0 without one. Unlike
        ``sequence``, it finds a ``then`` inside any operator."""
        if self._whole is None:
            return np.zeros(len(memory))
        return self.column(memory, self.names[self._whole]["part"])

    def steps(self, formula: Joined) -> int:
        """Returns how many steps a ``hold`` asks for or a ``within`` allows."""
        count = formula.seconds / self.dt
        if formula.operator == "within":
            return math.floor(count + 1e-6)
        return max(1, math.ceil(count - 1e-6))

    def _lay_out(self, formula: Formula, path: Path) -> None:
        if isinstance(formula, Atom) or formula_kind(formula) == "state":
            return
        own: dict[str, tuple[float, str]] = {}
        match formula.operator:
            case "then":
                own["part"] = float(len(formula.parts)), "parts done one after the other"
            case "hold":
                own["held"] = float(self.steps(formula)), "steps in a row"
            case "once":
                own["done"] = 1.0, "1 once it was so"
            case "within":
                own["since"] = self.steps(formula) + 1.0, "steps since it began"
                own["done"] = 1.0, "1 once it was done in time"
            case "while" | "until":
                own["done"] = 1.0, "1 once it was done"
                own["broken"] = 1.0, "1 once what was to hold until then did not"
            case "never" | "always":
                own["broken"] = 1.0, "1 once it was broken"
        number = 1 + len(self.names)
        self.names[path] = {}
        for name, (most, doc) in own.items():
            slot = MemorySlot(f"goal_{name}_{number}", most, f"{doc}: {formula}")
            self.names[path][name] = slot.name
            self.slots.append(slot)
        for i, part in enumerate(formula.parts):
            self._lay_out(part, (*path, i))

    def _step(
        self, formula: Formula, path: Path, memory: Array, holds: Holds, live: Array
    ) -> Verdict:
        """Enters the step for rows ``live`` (N,), in which the formula has begun."""
        if isinstance(formula, Atom) or formula_kind(formula) == "state":
            return state_formula_holds(formula, holds), np.zeros(len(memory), bool)
        parts = formula.parts
        own = {name: self._at[slot] for name, slot in self.names[path].items()}

        def write(name: str, value: Array) -> Array:
            memory[live, own[name]] = value[live]
            return memory[:, own[name]]

        match formula.operator:
            case "and" | "or":
                verdicts = [
                    self._step(part, (*path, i), memory, holds, live)
                    for i, part in enumerate(parts)
                ]
                done, failed = (np.stack(v) for v in zip(*verdicts, strict=True))
                if formula.operator == "and":
                    return done.all(axis=0), failed.any(axis=0)  # pyright: ignore[reportReturnType]  # numpy: a scalar too
                return done.any(axis=0), failed.all(axis=0)  # pyright: ignore[reportReturnType]  # numpy: a scalar too
            case "once":
                done = write(
                    "done", np.maximum(memory[:, own["done"]], state_formula_holds(parts[0], holds))
                )
                return done > 0, np.zeros(len(memory), bool)
            case "hold":
                most, before = self.steps(formula), memory[:, own["held"]]
                going_on = np.where(state_formula_holds(parts[0], holds), before + 1, 0)
                held = write("held", np.where(before >= most, most, going_on))
                return held >= most, np.zeros(len(memory), bool)
            case "then":
                at, failed = memory[:, own["part"]].copy(), np.zeros(len(memory), bool)
                for i, part in enumerate(parts):
                    turn = live & (at == i)
                    done, broken = self._step(part, (*path, i), memory, holds, turn)
                    failed |= turn & broken
                    memory[turn & done & ~broken, own["part"]] = i + 1
                return memory[:, own["part"]] >= len(parts), failed
            case "within":
                done, broken = self._step(parts[0], (*path, 0), memory, holds, live)
                before, most = memory[:, own["since"]], self.steps(formula)
                in_time = done & (before <= most)
                was = write("done", np.maximum(memory[:, own["done"]], in_time)) > 0
                late = before > most
                write("since", np.minimum(before + 1, most + 1))
                return was, (late | broken) & ~was
            case "while" | "until":
                i = 0 if formula.operator == "while" else 1
                which, guard = parts[i], parts[1 - i]
                done, broken = self._step(which, (*path, i), memory, holds, live)
                kept = state_formula_holds(guard, holds)
                was = memory[:, own["done"]] > 0
                over = memory[:, own["broken"]] > 0
                now = done & (kept if formula.operator == "while" else True)
                over = write("broken", over | ~was & ~now & (~kept | broken)) > 0
                was = write("done", was | now & ~over) > 0
                return was, over
            case _:  # never, always
                wrong = state_formula_holds(parts[0], holds) == (formula.operator == "never")
                broken = write("broken", np.maximum(memory[:, own["broken"]], wrong)) > 0
                return ~broken, broken


def _is_then(formula: Formula) -> bool:
    return isinstance(formula, Joined) and formula.operator == "then"


def state_formula_holds(formula: Formula, holds: Holds) -> Array:
    """Returns where a state formula holds, (N,) bool."""
    if isinstance(formula, Atom):
        return holds[formula]
    parts = [state_formula_holds(part, holds) for part in formula.parts]
    if formula.operator == "not":
        return ~parts[0]
    return (
        np.logical_and.reduce(parts) if formula.operator == "and" else np.logical_or.reduce(parts)
    )
