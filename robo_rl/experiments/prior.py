"""Demonstrations in every batch beside learning from nothing, where success alone is rewarded; on
two tasks, a start from a clone of them, and both. Every seed has demonstrations of its own."""

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
CLONED = 2_000  # updates, where learning begins with imitation
AMONG, FIRST, BOTH = "in every batch", "cloned first", "cloned first, and in every batch"
WAYS: dict[str, dict[str, Any]] = {  # of learning from them
    AMONG: {},
    FIRST: {"clone_updates": CLONED, "demo_share": 0.0},
    BOTH: {"clone_updates": CLONED},
}
ALL_WAYS = ("lift", "pick_place")  # tasks
CODE = ("robo_rl.learners.prior", "robo_rl.demonstrations", "sims.demos")


@dataclass(frozen=True)
class FromDemos:
    """A policy that learns from demonstrations, which are made first."""

    policy: Policy
    demos: DemoConfig
    way: str


def rows(options: Options) -> list[Row]:
    """All of one seed before any of the next."""
    return [row for seed in options.seeds or SEEDS for row in _seed(options, seed)]


def _seed(options: Options, seed: int) -> list[Row]:
    made = []
    for task, goal, noise in TASKS:
        config = preset(task, "ensemble", goal=goal)
        config = replace(config, robot=ROBOT, reward="sparse", env_steps=STEPS, looks=0)
        for way in WAYS if task in ALL_WAYS else (AMONG,):
            one = policy(f"{task}, {DEMOS} episodes {way}, seed {seed}", config, options, seed)
            demos = DemoConfig(episodes=DEMOS, noise=noise, num_envs=DEMOS, seed=one.of.config.seed)
            of = FromDemos(one.of, demos, way)
            made.append(replace(one, of=of, code=(*one.code, *CODE)))
        made.append(policy(f"{task} from nothing, seed {seed}", config, options, seed))
    return made


def measure(of: FromDemos | Policy, place: Place) -> dict[str, Any]:
    """Success of the policy with its floors; what training took."""
    if isinstance(of, Policy):
        return training.measure(of, place)
    config = of.policy.config
    assert isinstance(config.tuning, OffPolicyConfig)
    demos = str(demonstrated(config, of.demos, place))
    tuning = replace(config.tuning, demos=demos, **WAYS[of.way])
    return training.measure(replace(of.policy, config=replace(config, tuning=tuning)), place)


EXPERIMENT = Experiment(rows, measure, shown)
