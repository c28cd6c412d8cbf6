"""Rates, each beside its peer: everything is measured in interleaved rounds, so that a busy machine
slows both sides alike; a figure is a median."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks import BenchmarkRow, Experiment, Measured, RowFolder
from robo_rl.runs.markdown import table

REPEATS = 5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Figure:
    """One line of a rate's table."""

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

    def line(self) -> tuple[str, ...]:
        """The cells of its line."""
        bound = f"{'<=' if self.less else '>='} {self.target:g}{'' if self.met else ', missed'}"
        sides = (f"{side:,.4g} {self.unit}" for side in (self.ours, self.peer))
        return (self.what, *sides, f"{self.ratio:.2f}", bound, self.beside)


def rates(
    code: str, figures: Callable[[str, Say], Sequence[Figure]], scenes: Sequence[str]
) -> Experiment:
    """An experiment with a row for each of ``scenes``, whose ``figures`` module ``code`` has."""
    makes = (code, f"{__package__}.rates", f"{__package__}.peers")

    def measure(scene: str, place: RowFolder) -> dict[str, object]:
        console = place.console
        say = (lambda text: console.print(f"[dim]{text}[/dim]")) if console else lambda text: None
        return {"figures": [asdict(f) for f in figures(scene, say)]}

    def shown(rows: Sequence[Measured]) -> str:
        lines = [Figure(**figure).line() for row in rows for figure in row["figures"]]
        return table(("what", "ours", "peer", "ratio", "target", "beside"), lines)

    return Experiment(
        lambda _: [BenchmarkRow(s, s, makes) for s in scenes], measure, shown, rate=True
    )


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
