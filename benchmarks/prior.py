"""Tasks whose success alone is rewarded, with fifty demonstrations: in every batch, as a start that
imitates them, and both; on two tasks as noise, too, and beside learning from nothing, from where
episodes begin or from anywhere. Every seed has demonstrations of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Options
from benchmarks.demonstrated import among, measure
from benchmarks.training import policy, table_text
from robo_rl.config.presets import preset
from robo_rl.learners.config import LearnerConfig
from sims.envs.demonstrations import DemoConfig

SEEDS = (0, 1, 2)
ROBOT, LEARNER = "so101", "ensemble"
DEMOS = 50  # episodes
CLONED = 2_000  # updates, where learning begins with imitation
GUIDED = 0.5  # share of the rows that explore as demonstrations differ from the policy
SCATTERED = 0.5  # share of episodes that begin anywhere, where there are none
UPDATES = 16  # of each control step of all rows: more than learning from nothing needs
BOTH, AMONG, FIRST = "cloned first, and in every batch", "in every batch", "cloned first"
WAYS: dict[str, dict[str, Any]] = {  # of learning from them
    BOTH: {"clone_updates": CLONED},
    AMONG: {},
    FIRST: {"clone_updates": CLONED, "demo_share": 0.0},
    "as noise": {"guided_noise": GUIDED, "demo_share": 0.0},
    "as noise, and in every batch": {"guided_noise": GUIDED},
}


@dataclass(frozen=True)
class PriorCase:
    """What is learned, and how long."""

    goal: str
    steps: int
    noise: float = 0.1  # on the demonstrations' actions, which few pegs survive
    horizon_s: float = LearnerConfig.horizon_s
    beside: bool = False  # the other ways, and nothing


TASKS: Mapping[str, PriorCase] = {
    "stack": PriorCase("red_on_blue", 300_000),
    "peg": PriorCase("insert", 300_000, noise=0.03, horizon_s=4.0),  # an episode has 8 s
    "drawer_then_place": PriorCase("cube_in_drawer", 300_000),
    "pick_place": PriorCase("cube_at_target", 300_000, beside=True),
    "lift": PriorCase("lift_cube", 100_000, beside=True),
}


def rows(options: Options) -> list[BenchmarkRow]:
    """All of one seed before any of the next."""
    return [row for seed in options.seeds or SEEDS for row in _seed(options, seed)]


def _seed(options: Options, seed: int) -> list[BenchmarkRow]:
    made = []
    for task, case in TASKS.items():
        config = preset(task, LEARNER, goal=case.goal)
        tuning = replace(config.tuning, gradient_steps=UPDATES, horizon_s=case.horizon_s)
        config = replace(
            config, robot=ROBOT, reward="sparse", env_steps=case.steps, eval_points=0, tuning=tuning
        )
        for way in WAYS if case.beside else (BOTH,):
            one = policy(f"{task}, {DEMOS} episodes {way}, seed {seed}", config, options, seed)
            demos = DemoConfig(
                episodes=DEMOS, noise=case.noise, num_envs=DEMOS, seed=one.of.config.seed
            )
            made.append(among(one, demos, WAYS[way]))
        if case.beside:
            made.append(policy(f"{task} from nothing, seed {seed}", config, options, seed))
            anywhere = replace(config, random_starts=SCATTERED)
            named = f"{task} from nothing, begun anywhere, seed {seed}"
            made.append(policy(named, anywhere, options, seed))
    return made


EXPERIMENT = Experiment(rows, measure, table_text)
