"""Learner: a Stable-Baselines3 algorithm on a batched simulator, with what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch import nn

from reward_models.base import RewardModel
from robo_rl.learners import LEARNERS, checkpoint
from robo_rl.learners.async_replay import AsyncRewardReplayBuffer
from robo_rl.learners.buffers import SavedReplayBuffer, ScoredReplayBuffer
from robo_rl.learners.config import LearnerConfig, OffPolicyConfig, goal_columns
from robo_rl.learners.demo_replay import make_demo_replay
from robo_rl.learners.hindsight import HindsightReplayBuffer
from robo_rl.learners.obs_normalization import NormalisedObs, ObsNormaliser, sample_observations
from robo_rl.learners.ppo import PPOConfig
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.subprocess_scorer import Recipe
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.rollout.vec_sim import HasWorkspace, VecSim, episode_steps
from robo_rl.runs.run_dir import Checkpoint
from robo_rl.runtime.threads import seed_everything

Array = np.ndarray

_ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass
class Learner:
    """An SB3 algorithm with its environment, reward model and observation scale."""

    config: LearnerConfig
    algorithm: BaseAlgorithm
    env: SB3VecEnv
    scorer: Scorer | None  # None: the task's own reward
    normaliser: ObsNormaliser | None

    @property
    def env_steps(self) -> int:
        """Steps simulated so far, summed over environments."""
        return self.algorithm.num_timesteps

    @property
    def reward_model(self) -> RewardModel | None:
        """The reward model; None: the task's own reward."""
        return self.scorer.model if self.scorer else None

    @property
    def buffer(self) -> RolloutBuffer | SavedReplayBuffer:
        """The algorithm's rollout or replay buffer."""
        off_policy = isinstance(self.algorithm, OffPolicyAlgorithm)
        return self.algorithm.replay_buffer if off_policy else self.algorithm.rollout_buffer

    def act(self, obs: Array) -> Array:
        """Deterministic actions (N, act_dim) in [-1, 1] of raw observations (N, obs_dim)."""
        return self.algorithm.predict(obs, deterministic=True)[0]

    def close(self) -> None:
        """Ends what it has beside this process: a judge, perhaps."""
        if isinstance(self.buffer, AsyncRewardReplayBuffer):
            self.buffer.close()

    def checkpoint(self, extra: Mapping[str, Any] | None = None) -> Checkpoint:
        """Returns everything that determines further learning; taken between two rollouts.
        Transitions are views, not copies: write them before more are added. ``extra`` is JSON that
        comes back in ``meta["extra"]``."""
        return checkpoint.save(self, extra or {})

    def restore(self, saved: Checkpoint) -> bool:
        """Continues from ``saved``; False when the simulator had to start new episodes."""
        return checkpoint.load(self, saved)


@dataclass(frozen=True)
class LearnerInputs:
    """What an algorithm is built from: its env, scorer, normaliser and device."""

    env: SB3VecEnv
    scorer: Scorer | None
    normaliser: ObsNormaliser | None
    device: str
    # Of a judge in a process of its own; None: it judges in this one.
    recipe: Recipe | None = field(default=None, kw_only=True)

    @property
    def episode_steps(self) -> int:
        """Control steps of a full episode."""
        return episode_steps(self.env.sim)

    def keywords(self, config: LearnerConfig, **policy: Any) -> dict[str, Any]:
        """SB3's arguments of any algorithm; ``policy`` are further ones of its networks."""
        policy |= {"net_arch": list(config.net), "activation_fn": _ACTIVATIONS[config.activation]}
        if self.normaliser is not None:
            policy["features_extractor_class"] = NormalisedObs
            policy["features_extractor_kwargs"] = {"normaliser": self.normaliser}
        return {
            "policy": "MlpPolicy",
            "policy_kwargs": policy,
            "env": self.env,
            "learning_rate": _learning_rate_schedule(config),
            "gamma": config.gamma(self.env.sim.control_dt),
            "device": self.device,
        }

    def replay(self, config: OffPolicyConfig) -> dict[str, Any]:
        """SB3's arguments of any algorithm with a replay buffer."""
        settings: dict[str, Any] = {"scorer": self.scorer} if self.scorer else {}
        prior = make_demo_replay(
            config.demos, self.env.sim, self.scorer.model if self.scorer else None
        )
        if prior is not None:
            settings |= {"prior": prior, "share": config.demo_share}
        buffer = ScoredReplayBuffer if self.scorer else SavedReplayBuffer
        if self.recipe is not None:
            settings |= {"recipe": self.recipe}
            buffer = AsyncRewardReplayBuffer
        if config.hindsight:
            columns = np.array(goal_columns(self.env.sim))
            gamma = config.gamma(self.env.sim.control_dt)
            settings |= {"columns": columns, "hindsight": config.hindsight, "gamma": gamma}
            buffer = HindsightReplayBuffer
        return {
            "buffer_size": config.buffer_size,
            "learning_starts": config.learning_starts,
            "batch_size": config.batch_size,
            "tau": config.tau,
            "train_freq": 1,
            "gradient_steps": config.gradient_steps,
            "replay_buffer_class": buffer,
            "replay_buffer_kwargs": {"env": self.env, **settings},
        }


def make_learner(
    config: LearnerConfig,
    sim: VecSim,
    reward_model: RewardModel | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    recipe: Recipe | None = None,
) -> Learner:
    """Returns the learner of ``config`` on ``sim``.

    Args:
        config: The settings of a learner.
        sim: The simulator, with ``config.num_envs`` environments.
        reward_model: The reward; None: the task's own.
        seed: The seed of all random numbers.
        device: The torch device of the networks.
        recipe: Makes the reward model again in a process that scores while the policy learns.

    Raises:
        ValueError: ``sim`` has another number of environments, or no learner has such settings.
    """
    if sim.num_envs != config.num_envs:
        raise ValueError(
            f"the learner is configured for num_envs={config.num_envs}, the simulator has "
            f"{sim.num_envs} environments"
        )
    builds = {kind.config: kind.build for kind in LEARNERS.values()}
    if type(config) not in builds:
        raise ValueError(f"no learner for settings of type {type(config).__name__}")
    seed_everything(seed)
    env = SB3VecEnv(sim, reward_model)
    env.action_space.seed(seed)
    if isinstance(config, OffPolicyConfig):
        env.interventions = config.make_interventions(sim)
    scorer = Scorer(reward_model, env.observer) if reward_model else None
    normaliser = _obs_scale(config, sim) if config.normalise_obs else None
    algorithm = builds[type(config)](
        config, LearnerInputs(env, scorer, normaliser, device, recipe=recipe)
    )
    return Learner(config, algorithm, env, scorer, normaliser)


def _obs_scale(config: LearnerConfig, sim: VecSim) -> ObsNormaliser:
    """Measured while learning; where old transitions are learned from, begun before.

    A critic takes a scale that drifts, but not one that is found out late: by then it has learned
    from thousands of steps on another.
    """
    if not isinstance(sim, HasWorkspace):
        return ObsNormaliser(sim.obs_dim)
    if isinstance(config, PPOConfig):
        return ObsNormaliser(sim.obs_dim, config.obs_floor * sim.least_spread, config.obs_still)
    scale = ObsNormaliser(sim.obs_dim, sim.least_spread)
    scale.update(sample_observations(sim))
    return scale


def _learning_rate_schedule(config: LearnerConfig) -> Callable[[float], float]:
    """The learning rate as a function of the share of training that is left."""
    first, last = config.learning_rate, config.learning_rate * config.final_rate
    return lambda left: last + (first - last) * left
