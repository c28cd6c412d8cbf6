"""Learners with a replay buffer beside PPO where a cube is lifted and a drawer opened, from the
dense reward: what success costs in steps and in processor time."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, seeded
from robo_rl.config.presets import preset

LEARNERS = ("sac", "td3", "tqc", "ppo")
TASKS = (("lift", "ur5e", "lift_cube"), ("drawer", "so101", "open"))  # task, arm, goal


def rows(options: Options) -> list[BenchmarkRow]:
    """Each with its learner's defaults for the task."""
    cases = {
        f"{task} {goal}, {learner}": replace(
            preset(task, learner, goal=goal), robot=robot, reward="task"
        )
        for task, robot, goal in TASKS
        for learner in LEARNERS
    }
    return seeded(options, (0,), cases)


EXPERIMENT = policies(rows)
