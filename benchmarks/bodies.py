"""What bodies do from their hand-written dense reward, with the defaults of their goals."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import BenchmarkRow, Experiment, Measured, Options
from benchmarks.table import percent
from benchmarks.training import FLOORS, baselines_text, measure, seeded
from robo_rl.config.presets import preset
from robo_rl.config.train_config import TrainConfig
from robo_rl.runs.markdown import table

SEEDS = (0, 1, 2)
BODIES = (
    ("hopper", "forward"),
    ("walker2d", "forward"),
    ("half_cheetah", "forward"),
    ("ant", "forward"),
    ("ant", "lie_down"),
    ("hopper", "front_flip"),
)


def rows(options: Options) -> list[BenchmarkRow]:
    """All goals with one seed before any with the next."""
    config = TrainConfig(reward="task")
    cases = {f"{t} {goal}": preset(t, base=config, goal=goal) for t, goal in BODIES}
    return seeded(options, SEEDS, cases)


def table_text(rows: Sequence[Measured]) -> str:
    """Success and return of each, and what training took."""
    heads = ("run", "success (95 % interval, n)", FLOORS, "return", "steps", "processor min")
    lines = [
        (
            row["name"],
            percent(row["evaluation"]),
            baselines_text(row["evaluation"]),
            f"{row['evaluation']['return_mean']:,.0f}",
            f"{row['env_steps']:,}",
            f"{row['seconds']['processor'] / 60:.1f}",
        )
        for row in rows
    ]
    return table(heads, lines)


EXPERIMENT = Experiment(rows, measure, table_text)
