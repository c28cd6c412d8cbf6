"""`robo-rl bench`: measured rates, each beside its peer in the same run.

A bench is a module with ``bench(say) -> list[Figure]`` and one line in ``BENCHES``. Everything is
measured in interleaved rounds, so that a busy machine slows both sides alike; a figure is a median.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

REPEATS = 5

BENCHES: dict[str, tuple[str, str]] = {
    # name: (module in this package, what it measures)
    "sim": ("sim", "env-steps per second of bodies and of arm reach"),
    "render": ("render", "frames per second of the arm scene"),
    "reward": ("reward", "frames encoded and steps rewarded per second"),
    "loop": ("loop", "lateness of the control loop and of the policy"),
}


@dataclass(frozen=True)
class Figure:
    """One line of a bench's table."""

    what: str
    ours: float
    peer: float
    beside: str  # what the peer is
    target: float  # of the ratio
    unit: str = "1/s"
    less: bool = False  # whether less is better, as of a latency

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def met(self) -> bool:
        return self.ratio <= self.target if self.less else self.ratio >= self.target

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, with ratio and verdict."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


def run_bench(name: str, say: Callable[[str], None] = lambda text: None) -> list[Figure]:
    """The figures of the bench called ``name``; ``say`` is told what is being measured."""
    return importlib.import_module(f"{__name__}.{BENCHES[name][0]}").bench(say)


def interleaved(
    measures: Mapping[str, Callable[[], float]], repeats: int = REPEATS
) -> dict[str, float]:
    """Medians of ``repeats`` rounds in each of which everything is measured once, after a first
    round that only warms up."""
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(repeats + 1)]
    return {name: float(np.median([r[name] for r in rounds[1:]])) for name in measures}


def rate(count: int, work: Callable[[], object]) -> float:
    """``count`` per second of ``work``."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def markdown(figures: list[Figure]) -> str:
    """The figures as a table."""
    lines = ["| what | ours | peer | ratio | target | beside |", "|---|---|---|---|---|---|"]
    for f in figures:
        bound = f"{'<=' if f.less else '>='} {f.target:g}"
        verdict = bound if f.met else f"{bound}, missed"
        lines.append(
            f"| {f.what} | {f.ours:,.4g} {f.unit} | {f.peer:,.4g} {f.unit} | {f.ratio:.2f} | "
            f"{verdict} | {f.beside} |"
        )
    return "\n".join(lines) + "\n"
