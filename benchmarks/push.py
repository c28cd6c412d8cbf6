"""Push from its sentence beside the dense reward, at equal steps."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, policy, seeded
from robo_rl.config.presets import preset
from robo_rl.rewards import ClipConfig


def rows(options: Options) -> list[BenchmarkRow]:
    """The sentence is scored by the distilled encoder."""
    base = preset("push", goal="red_cube_next_to_blue_ball")
    cases = {
        "sentence alone": replace(base, reward="clip", scoring=ClipConfig(distill=True)),
        "dense reward (ceiling)": replace(base, reward="task"),
    }
    expert = policy("scripted expert", base, options, kind="expert")
    return [*seeded(options, (0,), cases), expert]


EXPERIMENT = policies(rows)
