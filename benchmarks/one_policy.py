"""One policy for all goals of a task: where success alone is paid, with hindsight and without, from
the dense rewards of all, and from pictures and the sentences of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, seeded
from robo_rl.config.presets import preset
from robo_rl.rewards import ClipConfig
from sims.core.multi_goal import ANY

SEEDS = (0, 1, 2)
TASKS = {"reach": 200_000, "push": 600_000, "drawer": 200_000}  # with their steps
WAYS: dict[str, dict[str, Any]] = {
    "success alone, in hindsight": {"reward": "sparse"},
    "success alone": {"reward": "sparse"},
    "dense rewards": {"reward": "task"},
    "pictures, distilled": {"reward": "clip", "scoring": ClipConfig(distill=True)},
}
HINDSIGHT = {"success alone, in hindsight": 0.8}  # share of every batch


def rows(options: Options) -> list[BenchmarkRow]:
    cases = {}
    for task, steps in TASKS.items():
        config = preset(task, "ensemble", goal=ANY)
        for way, settings in WAYS.items():
            tuning = replace(config.tuning, hindsight=HINDSIGHT.get(way, 0.0))
            cases[f"{task}, {way}"] = replace(
                config, robot="so101", env_steps=steps, eval_points=0, tuning=tuning, **settings
            )
    return seeded(options, SEEDS, cases)


EXPERIMENT = policies(rows)
