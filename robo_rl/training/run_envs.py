"""The environments that a run trains and scores on, of our tasks and of external envs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from reward_models.base import RewardModel
from robo_rl.config.resolve import ResolvedRun
from robo_rl.config.train_config import SettledConfig, TrainConfig
from robo_rl.evaluation.baselines import ROWS
from robo_rl.evaluation.evaluate import randomization_of
from robo_rl.goals.external_task import ExternalTask
from robo_rl.goals.goal_task import GoalTask, training_task
from robo_rl.learners.hooks import Hook
from robo_rl.rewards import CODE, BuiltReward, make_reward, reward_type
from robo_rl.rollout.subprocess_scorer import Recipe
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv
from sims.randomization.domain_randomization import (
    Randomize,
    RandomizedEnv,
    curriculum_width,
    make_randomized_env,
)

PROGRAM = "reward.py"  # a reward program's text inside its run
SCORED = 128  # environments, at least, that a reward is made and checked in


def training_env(
    task: Task[Any] | ExternalTask, config: SettledConfig, threads: int, judged: bool = True
) -> BatchEnv | GymnasiumEnv:
    """Returns the environments to train on: all the same, or randomised from a width of 0 on.

    Their episodes may be shorter than those that are judged: what happens after the first seconds
    (lying where it fell, say) may be nothing to learn from.
    """
    frames = reward_type(config.reward).frames
    if isinstance(task, ExternalTask):
        return task.make_env(config.tuning.num_envs, config.seed, frames=frames)
    if config.episode_s:
        task = replace(task, episode_s=config.episode_s)
    if isinstance(task, GoalTask):
        # Frames do not show what is to count as done: who looks at them begins at the beginning.
        task = training_task(task, 0.0) if frames else training_task(task)
    options = {
        "seed": config.seed,
        "num_threads": threads,
        "shaped": config.rate_limited,
        "judged": judged,
        "sparse": config.reward == "sparse",
        "scattered": config.random_starts,
    }
    width = randomization_of(vars(config), task, config.randomize)
    env = make_randomized_env(task, config.tuning.num_envs, width=width, **options)
    if isinstance(env, RandomizedEnv):
        env.width = 0.0
    return env


def scoring_env(resolved: ResolvedRun, threads: int) -> BatchEnv | GymnasiumEnv:
    """Returns the environments that the reward of a run is made for, and its frames rendered in."""
    config, task = resolved.config, resolved.task
    if isinstance(task, ExternalTask):
        return task.make_env(ROWS, config.seed + 1, frames=reward_type(config.reward).frames)
    rows = max(config.tuning.num_envs, SCORED)
    return BatchEnv(task, rows, seed=config.seed + 1, num_threads=threads)


def async_scoring_recipe(resolved: ResolvedRun, path: Path, made: BuiltReward) -> Recipe:
    """Returns what a process of its own makes the reward of the run in ``path`` of."""
    config = resolved.config
    kept = made.program is not None and config.reward.startswith(CODE)  # whatever becomes of a file
    name = f"{CODE}{(path / PROGRAM).resolve()}" if kept else config.reward
    return partial(_async_reward, resolved, name)


def _async_reward(resolved: ResolvedRun, name: str) -> tuple[RewardModel, BatchEnv]:
    """The reward of a run, and an env that its frames are rendered in; in the judge's process."""
    config = resolved.config
    env = BatchEnv(resolved.task, SCORED, seed=config.seed + 1, num_threads=1)
    made = make_reward(name, resolved.goal, env, config.scoring)
    assert made.model is not None  # async scoring is refused for the rewards of the simulator
    return made.model, env


def training_metadata(config: TrainConfig, task: Task[Any], env_steps: int) -> dict[str, Any]:
    """Returns what a bundle says of its training; with no ``randomize`` there was no noise and no
    delay."""
    rows = randomization_of(vars(config), task, config.randomize)
    if rows and not isinstance(rows, Randomize):
        rows = Randomize(width=rows)
    return {
        "reward": config.reward,
        "learner": config.learner,
        "env_steps": env_steps,
        "seed": config.seed,
        "randomize": asdict(rows) if rows else {},
        "shaped": config.rate_limited,
    }


class RandomizationCurriculum(Hook):
    """Lets the spread of randomised rows grow with training."""

    def __init__(self, env: BatchEnv | GymnasiumEnv, env_steps: int):
        self._env, self._env_steps = env, env_steps

    def row(self, row: Mapping[str, float]) -> None:
        """Sets the width that the share of ``env_steps`` done so far asks for."""
        if isinstance(self._env, RandomizedEnv):
            self._env.width = curriculum_width(
                self._env.randomize, row["env_steps"] / self._env_steps
            )
