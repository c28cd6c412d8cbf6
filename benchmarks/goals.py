"""One policy for each goal of reach from its sentence alone, further seeds for three."""

from __future__ import annotations

from dataclasses import replace

import sims
from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, policy
from robo_rl.config.presets import preset
from robo_rl.rewards import ClipConfig

SEEDED = ("touch_red_cube", "above_blue_ball", "left_of_green_cylinder")
SEEDS = (0, 1, 2)


def rows(options: Options) -> list[BenchmarkRow]:
    """From the distilled encoder: a scene is drawn once, for all of its goals."""
    made = []
    for seed in options.seeds or SEEDS:
        for key in sims.make_task("reach").goals():
            if seed == 0 or options.seeds or key in SEEDED:
                config = replace(preset("reach", goal=key), reward="clip")
                config = replace(config, scoring=ClipConfig(distill=True))
                made.append(policy(f"{key}, seed {seed}", config, options, seed))
    return made


EXPERIMENT = policies(rows)
