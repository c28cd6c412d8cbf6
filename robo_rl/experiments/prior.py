"""Demonstrations in every batch beside learning from nothing, where success alone is rewarded.
Every seed has demonstrations of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from robo_rl.experiments import Experiment, Options, Place, Row, training
from robo_rl.experiments.training import Policy, demonstrated, policy, shown
from robo_rl.learners.config import OffPolicyConfig
from robo_rl.presets import preset
from sims.demos import DemoConfig

SEEDS = (0, 1, 2)
ROBOT, STEPS = "so101", 100_000
TASKS = (  # with their goals
    ("lift", "lift_cube"),
    ("pick_place", "cube_at_target"),
    ("stack", "red_on_blue"),
    ("drawer_then_place", "cube_in_drawer"),
    ("peg", "insert"),
)
DEMOS, NOISE = 50, 0.1  # episodes, the noise on their actions
CODE = ("robo_rl.learners.prior", "robo_rl.demonstrations", "sims.demos")


@dataclass(frozen=True)
class AmongDemos:
    """A policy that learns among demonstrations, which are made first."""

    policy: Policy
    demos: DemoConfig


def rows(options: Options) -> list[Row]:
    """All of one seed before any of the next."""
    return [row for seed in options.seeds or SEEDS for row in _seed(options, seed)]


def _seed(options: Options, seed: int) -> list[Row]:
    made = []
    for task, goal in TASKS:
        config = preset(task, "sac", goal=goal)
        config = replace(config, robot=ROBOT, reward="sparse", env_steps=STEPS, looks=0)
        scratch = policy(f"{task}, sac from nothing, seed {seed}", config, options, seed)
        name = f"{task}, sac with {DEMOS} demonstrations, seed {seed}"
        among = policy(name, config, options, seed)
        demos = DemoConfig(episodes=DEMOS, noise=NOISE, num_envs=DEMOS, seed=among.of.config.seed)
        made.append(replace(among, of=AmongDemos(among.of, demos), code=(*among.code, *CODE)))
        made.append(scratch)
    return made


def measure(of: AmongDemos | Policy, place: Place) -> dict[str, Any]:
    """Success of the policy with its floors; what training took."""
    if isinstance(of, Policy):
        return training.measure(of, place)
    config = of.policy.config
    assert isinstance(config.tuning, OffPolicyConfig)
    tuning = replace(config.tuning, demos=str(demonstrated(config, of.demos, place)))
    return training.measure(replace(of.policy, config=replace(config, tuning=tuning)), place)


EXPERIMENT = Experiment(rows, measure, shown)
