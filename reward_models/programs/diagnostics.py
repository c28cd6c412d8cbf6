"""What was wrong with a reward program, as data: for a person, a writer and a search alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

# code -> what it stands for. A refusal always carries the code of its reason, never another's.
CODES = {
    "source": "not a plain text of acceptable size",
    "ascii": "a character outside ASCII",
    "syntax": "not Python",
    "structure": "not exactly one function reward(signal, ...)",
    "import": "an import",
    "statement": "a statement other than `name = expression`",
    "target": "an assignment to something other than one new name",
    "expression": "a kind of expression that the language does not have",
    "attribute": "an attribute",
    "string": "a text outside the names of components",
    "constant": "a number that is not finite and moderate",
    "operator": "an operator that the language does not have",
    "compare": "a comparison of more than two things, or not of numbers",
    "power": "a power whose exponent is not a small constant",
    "index": "an index that is not constant, or outside the vector",
    "call": "a call of something that is not in the list of functions",
    "argument": "wrong arguments of a function",
    "name": "an undefined name",
    "signal": "an argument that is not a signal of the task",
    "rows": "an operation across environments",
    "return": "not a dictionary of named components at the end",
    "shape": "vectors that do not fit",
    "unit": "quantities of different units",
    "type": "a condition where a number is expected, or the reverse",
    "finite": "a value that may not be finite",
    "constant_reward": "a reward that is the same everywhere",
    # warnings
    "scale": "a quantity with a unit where a plain number is usual",
    "unused": "something that nothing depends on",
    "dominated": "a component far smaller than another",
    "constant_component": "a component that is the same everywhere",
    # pre-flight
    "crashed": "an exception while it ran",
    "keys": "components that differ from call to call",
    "result_shape": "a component that is not one number per environment",
    "result_type": "a component that is not of floating-point numbers",
    "not_finite": "a component that is not finite on a probe",
    "nondeterministic": "two calls that differ",
    "row_mixing": "an environment whose reward depends on other environments",
    "mutation": "an input that was changed",
    "aliasing": "a component that shares memory with an input",
    "slow": "too slow, or slower than linear in the number of environments",
    "magnitude": "values too large to learn from",
    "timeout": "not finished in the time allowed",
    "killed": "the process that ran it ended",
    # archive screens
    "preference": "episodes that fail are rewarded like those that succeed",
    "hack": "stopping short of the goal is rewarded like reaching it",
    "farming": "aimless motion is rewarded like reaching the goal",
    "living": "the program rewards time, or the end of an episode",
    "order": "a later stage of a demonstration is rewarded less than an earlier one",
    "goodhart": "a trained policy is rewarded well for episodes that end badly",
    "not_judged": "a screen that had no episodes to evaluate",
}


@dataclass(frozen=True)
class Diagnostic:
    """One finding: what, why, where, and the way out."""

    code: str
    message: str
    line: int = 0  # from 1; 0: the program as a whole
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"unknown diagnostic {self.code!r}; available: {', '.join(CODES)}")

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint} [{self.code}]"

    def as_dict(self) -> dict[str, Any]:
        """Returns the finding as a dict that JSON keeps."""
        return asdict(self)


class Refused(ValueError):
    """A program that is not accepted; ``diagnostics`` says why, worst first."""

    def __init__(self, diagnostics: Sequence[Diagnostic]):
        self.diagnostics = tuple(sorted(diagnostics, key=_rank))
        super().__init__("; ".join(str(d) for d in self.diagnostics))


def _rank(diagnostic: Diagnostic) -> tuple[bool, bool]:
    return diagnostic.severity == "warning", diagnostic.code != "import"


def errors(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Returns the findings that forbid the program."""
    return [d for d in diagnostics if d.severity == "error"]
