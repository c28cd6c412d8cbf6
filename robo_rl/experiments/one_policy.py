"""One policy for all goals of a task: where the goal alone is paid, with hindsight and without, and
from the dense rewards of all."""

from __future__ import annotations

from dataclasses import replace

from robo_rl.experiments import Options, Row
from robo_rl.experiments.training import policies, seeded
from robo_rl.presets import preset
from sims.any_goal import ANY

SEEDS = (0, 1, 2)
TASKS = {"reach": 200_000, "push": 600_000, "drawer": 200_000}  # with their steps
WAYS = {  # the reward, and the share of batches in hindsight
    "success alone, in hindsight": ("sparse", 0.8),
    "success alone": ("sparse", 0.0),
    "dense rewards": ("task", 0.0),
}


def rows(options: Options) -> list[Row]:
    cases = {}
    for task, steps in TASKS.items():
        config = preset(task, "ensemble", goal=ANY)
        for way, (reward, hindsight) in WAYS.items():
            tuning = replace(config.tuning, hindsight=hindsight)
            cases[f"{task}, {way}"] = replace(
                config, robot="so101", reward=reward, env_steps=steps, looks=0, tuning=tuning
            )
    return seeded(options, SEEDS, cases)


EXPERIMENT = policies(rows)
