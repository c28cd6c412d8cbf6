"""Arm tasks from their hand-written dense reward, with the defaults of their tasks."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, seeded
from robo_rl.config.presets import preset

DENSE = (  # task, arm, goal
    ("reach", "so101", "touch_red_cube"),
    ("push", "so101", "red_cube_next_to_blue_ball"),
    ("lift", "ur5e", "lift_cube"),
    ("drawer", "so101", "open"),
    ("drawer", "so101", "close"),
    ("button", "so101", "press"),
)


def rows(options: Options) -> list[BenchmarkRow]:
    cases = {
        f"{task} {goal}, {robot}": replace(preset(task, goal=goal), robot=robot, reward="task")
        for task, robot, goal in DENSE
    }
    return seeded(options, (0,), cases)


EXPERIMENT = policies(rows)
