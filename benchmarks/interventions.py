"""Somebody who takes over in a fifth of the early episodes, on push: steps until a look at the
policy has 90 of 100, beside learning alone. From the dense reward, looked at as often as may be."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, seeded
from robo_rl.config.presets import preset

SEEDS = (0, 1, 2)
TASK, ROBOT, GOAL, STEPS = "push", "so101", "red_cube_next_to_blue_ball", 500_000
SHARES = (0.0, 0.2)


def rows(options: Options) -> list[BenchmarkRow]:
    """Every share with one seed before any with the next."""
    made = preset(TASK, "ensemble", goal=GOAL)
    made = replace(made, robot=ROBOT, reward="task", env_steps=STEPS, eval_points=100, stop_at=0.9)
    cases = {
        f"{TASK}, {100 * share:.0f} % of early episodes": replace(
            made, tuning=replace(made.tuning, interventions=share)
        )
        for share in SHARES
    }
    return seeded(options, SEEDS, cases)


EXPERIMENT = policies(rows)
