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
ROBOT, STEPS = "so101", 400_000
TASKS = (  # with their goals and the noise on the demonstrations' actions, which few pegs survive
    ("lift", "lift_cube", 0.1),
    ("pick_place", "cube_at_target", 0.1),
    ("stack", "red_on_blue", 0.1),
    ("drawer_then_place", "cube_in_drawer", 0.1),
    ("peg", "insert", 0.03),
)
DEMOS = 50  # episodes
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
    among, scratch = [], []
    for task, goal, noise in TASKS:
        config = preset(task, "ensemble", goal=goal)
        config = replace(config, robot=ROBOT, reward="sparse", env_steps=STEPS, looks=0)
        scratch.append(policy(f"{task} from nothing, seed {seed}", config, options, seed))
        made = policy(f"{task} with {DEMOS} demonstrations, seed {seed}", config, options, seed)
        demos = DemoConfig(episodes=DEMOS, noise=noise, num_envs=DEMOS, seed=made.of.config.seed)
        among.append(replace(made, of=AmongDemos(made.of, demos), code=(*made.code, *CODE)))
    return [*among, *scratch]


def measure(of: AmongDemos | Policy, place: Place) -> dict[str, Any]:
    """Success of the policy with its floors; what training took."""
    if isinstance(of, Policy):
        return training.measure(of, place)
    config = of.policy.config
    assert isinstance(config.tuning, OffPolicyConfig)
    tuning = replace(config.tuning, demos=str(demonstrated(config, of.demos, place)))
    return training.measure(replace(of.policy, config=replace(config, tuning=tuning)), place)


EXPERIMENT = Experiment(rows, measure, shown)
