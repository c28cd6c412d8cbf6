"""SB3's policies around a base: each acts ``clip(base + scale * residual)`` in the task's own
actions, and begins with a residual of exactly 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, MlpExtractor
from stable_baselines3.common.utils import update_learning_rate
from stable_baselines3.sac.policies import Actor as SACActor
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import Actor as TD3Actor
from stable_baselines3.td3.policies import TD3Policy
from torch import Tensor, nn

from robo_rl.learners.base_policy import FrozenBase, load_base
from robo_rl.learners.config import LearnerConfig
from robo_rl.learners.ensemble_sac import EnsemblePolicy, EnsembleSAC
from robo_rl.learners.learner import LearnerInputs
from robo_rl.learners.obs_normalization import ObsNormaliser
from robo_rl.learners.residual import (
    ResidualConfig,
    ResidualEnsembleConfig,
    ResidualOffPolicyConfig,
    ResidualPPOConfig,
    ResidualSACConfig,
    ResidualTD3Config,
)
from robo_rl.runs.run_dir import CheckpointError

Array = np.ndarray


class ObsAndBase(BaseFeaturesExtractor):
    """The input of the residual's layers: the normalised observation and the base's action. The
    base gets the raw observation, which it normalises as in its training. Checkpoints identify it
    by its hash."""

    def __init__(
        self,
        observation_space: spaces.Box,
        base: FrozenBase,
        normaliser: ObsNormaliser | None = None,
    ):
        super().__init__(observation_space, base.obs_dim + base.act_dim)
        self.base, self.normaliser = base, normaliser
        self.register_buffer("base_sha256", torch.tensor(list(base.sha256), dtype=torch.uint8))

    def base_action(self, obs: Tensor) -> Tensor:
        """(N, act_dim) of raw ``obs`` (N, obs_dim)."""
        return torch.from_numpy(self.base(obs.detach().cpu().numpy())).to(obs.device)

    def join(self, obs: Tensor, base_action: Tensor) -> Tensor:
        """(N, obs_dim + act_dim)."""
        scaled = obs if self.normaliser is None else self.normaliser(obs)
        return torch.cat([scaled, base_action], dim=1)

    def forward(self, observations: Tensor) -> Tensor:
        """Returns the scaled observations and the base's actions, (N, obs_dim + act_dim)."""
        return self.join(observations, self.base_action(observations))

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        saved = bytes(state_dict[f"{prefix}base_sha256"].tolist())
        if saved != self.base.sha256:
            raise CheckpointError(
                f"--base {self.base.name} has changed since this run began: sha256 "
                f"{saved.hex()[:16]}... then, {self.base.sha256.hex()[:16]}... now; restore the "
                "old one, or start a new run"
            )
        super()._load_from_state_dict(state_dict, prefix, *rest)


def zero_layer(layer: nn.Module) -> None:
    """Makes a linear layer answer exactly 0, whatever it is asked."""
    assert isinstance(layer, nn.Linear)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)


# PPO: the mean of its Gaussian.
class _Layers(MlpExtractor):
    """SB3's hidden layers; those of the actor hand on what the base does."""

    def __init__(self, feature_dim: int, act_dim: int, **kwargs: Any):
        super().__init__(feature_dim, **kwargs)
        self.act_dim = act_dim
        self.latent_dim_pi += act_dim

    def forward_actor(self, features: Tensor) -> Tensor:
        return torch.cat([self.policy_net(features), features[:, -self.act_dim :]], dim=1)


class _Mean(nn.Module):
    """``base + scale * residual`` of hidden layers that end with what the base does."""

    def __init__(self, latent_dim: int, act_dim: int, scale: float):
        super().__init__()
        self.act_dim, self.scale = act_dim, scale
        self.residual = nn.Sequential(nn.Linear(latent_dim - act_dim, act_dim), nn.Tanh())
        zero_layer(self.residual[0])

    def forward(self, latent: Tensor) -> Tensor:
        hidden, base_action = latent[:, : -self.act_dim], latent[:, -self.act_dim :]
        return base_action + self.scale * self.residual(hidden)


class ResidualActorCritic(ActorCriticPolicy):
    """PPO's; its deviation is in units of actions."""

    def __init__(self, *args: Any, scale: float, **kwargs: Any):
        self.scale = scale
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Layers(
            self.features_dim,
            get_action_dim(self.action_space),
            net_arch=self.net_arch,
            activation_fn=self.activation_fn,
            device=self.device,
        )

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        width, act_dim = self.mlp_extractor.latent_dim_pi, get_action_dim(self.action_space)
        self.action_net = _Mean(width, act_dim, self.scale).to(self.device)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


# SAC, ensemble and TD3: an actor whose own output is the residual.
class _Actor(BasePolicy):
    scale: float

    def over_base(self, obs: Tensor, residual: Tensor) -> Tensor:
        """The action (N, act_dim) that is executed."""
        return clipped(self.features_extractor.base_action(obs), self.scale, residual)


def clipped(base_action: Tensor, scale: float, residual: Tensor) -> Tensor:
    """Returns ``base_action + scale * residual`` within [-1, 1]; all are (N, act_dim)."""
    return torch.clamp(base_action + scale * residual, -1.0, 1.0)


class _ResidualSACActor(_Actor, SACActor):
    def __init__(self, *args: Any, scale: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.scale = scale
        zero_layer(self.mu)

    def forward(self, obs: Tensor, deterministic: bool = False) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.over_base(obs, super().forward(obs, deterministic))

    def action_log_prob(self, obs: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The executed action, and the log probability of its residual: the entropy that is asked
        for is the residual's, however small its scale."""
        residual, log_prob = super().action_log_prob(obs)
        return self.over_base(obs, residual), log_prob


class _ResidualTD3Actor(_Actor, TD3Actor):
    def __init__(self, *args: Any, scale: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.scale = scale
        zero_layer(self.mu[-2])  # before its tanh

    def forward(self, obs: Tensor) -> Tensor:
        return self.over_base(obs, super().forward(obs))


class _ActorPolicy(BasePolicy):
    """A policy of SB3's that makes its actor of ``actor_class``."""

    actor_class: type[_Actor]

    def __init__(self, *args: Any, scale: float, **kwargs: Any):
        self.scale = scale
        super().__init__(*args, **kwargs)
        # The actor answers executed actions; unsquashing them would cost their last bits.
        self._squash_output = False

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> Any:
        kwargs = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return self.actor_class(**kwargs, scale=self.scale).to(self.device)


class ResidualSACPolicy(_ActorPolicy, SACPolicy):
    actor_class = _ResidualSACActor


class ResidualEnsemblePolicy(_ActorPolicy, EnsemblePolicy):
    actor_class = _ResidualSACActor

    def draw(self, obs: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Returns executed actions (N, act_dim), and the log densities (N,) of their residuals."""
        residual, log_prob = super().draw(obs, noise)
        return self.actor.over_base(obs, residual), log_prob


class ResidualTD3Policy(_ActorPolicy, TD3Policy):
    actor_class = _ResidualTD3Actor


class _OffPolicy(OffPolicyAlgorithm):
    """Residuals are switched on by and by, and the critic learns alone first."""

    def __init__(self, *args: Any, switch_on_steps: int, critic_updates: int, **kwargs: Any):
        self.switch_on_steps, self.critic_updates = switch_on_steps, critic_updates
        super().__init__(*args, **kwargs)

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[Array, Array]:
        """Executed actions, twice: those of the base alone in rows where there is no residual yet.

        Each row draws in each step whether it has one, with probability ``t / switch_on_steps``
        (Policy Decorator). Before learning residuals are uniform.
        """
        actor, obs = self.policy.actor, self._last_obs
        base_action, draw = actor.features_extractor.base(obs), self.action_space.np_random
        if self.num_timesteps < learning_starts:
            action = base_action + actor.scale * draw.uniform(-1.0, 1.0, base_action.shape)
        else:
            action = self.predict(obs, deterministic=False)[0]
            if action_noise is not None:
                action = action + action_noise()
        on = draw.random((n_envs, 1)) * self.switch_on_steps <= self.num_timesteps
        action = np.where(on, np.clip(action, -1.0, 1.0), base_action).astype(np.float32)
        return action, action

    def _update_learning_rate(self, optimizers: Any) -> None:
        super()._update_learning_rate(optimizers)
        if self._n_updates < self.critic_updates:
            for optimizer in optimizers:
                if optimizer is not self.critic.optimizer:
                    update_learning_rate(optimizer, 0.0)


class ResidualSAC(_OffPolicy, SAC):
    """SAC of a residual."""


class ResidualEnsemble(_OffPolicy, EnsembleSAC):
    """Ensemble of a residual."""


class ResidualTD3(_OffPolicy, TD3):
    """TD3 whose actor adds a bounded correction to the base's action."""


POLICIES: Mapping[type[ResidualConfig], type[BasePolicy]] = {
    ResidualPPOConfig: ResidualActorCritic,
    ResidualSACConfig: ResidualSACPolicy,
    ResidualEnsembleConfig: ResidualEnsemblePolicy,
    ResidualTD3Config: ResidualTD3Policy,
}


@dataclass(frozen=True)
class ResidualLearnerInputs(LearnerInputs):
    """The inputs of an algorithm that trains a residual, with the base policy."""

    base: FrozenBase

    @classmethod
    def of(cls, config: ResidualConfig, inputs: LearnerInputs) -> ResidualLearnerInputs:
        """``inputs`` with the base that ``config`` names."""
        return cls(**vars(inputs), base=load_base(config.base, inputs.env.sim))

    def keywords(self, config: LearnerConfig, **policy: Any) -> dict[str, Any]:
        assert isinstance(config, ResidualConfig)
        if "log_std_init" in policy:
            policy["log_std_init"] += log(config.scale)
        keywords = super().keywords(config, **policy, scale=config.scale)
        keywords["policy"] = POLICIES[type(config)]
        keywords["policy_kwargs"] |= {
            "features_extractor_class": ObsAndBase,
            "features_extractor_kwargs": {"base": self.base, "normaliser": self.normaliser},
        }
        return keywords

    def schedule(self, config: ResidualOffPolicyConfig) -> dict[str, int]:
        """Returns by name the env steps of residual ramp-up and the initial critic-only updates."""
        names = ("switch_on_steps", "critic_updates")
        return {name: getattr(config, name) for name in names}


def acting_network(policy: BasePolicy) -> nn.Module:
    """Returns the network of an off-policy policy that computes actions from observations."""
    return (
        policy.mean_actor if isinstance(policy, EnsemblePolicy) else cast(nn.Module, policy.actor)
    )


class ResidualActorModule(nn.Module):
    """The module that is exported: ``obs`` and ``base_action`` in, the executed action (N, act_dim)
    out."""

    def __init__(self, extractor: ObsAndBase, residual: nn.Module, scale: float):
        super().__init__()
        self.extractor, self.residual, self.scale = extractor, residual, scale

    @classmethod
    def of(cls, policy: BasePolicy) -> ResidualActorModule | None:
        """Returns the module of an SB3 policy; None where the policy has no base."""
        if isinstance(policy, ResidualActorCritic):
            layers = nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net.residual)
            return cls(policy.pi_features_extractor, layers, policy.scale)
        if not isinstance(policy, _ActorPolicy):
            return None
        actor = acting_network(policy)
        layers = actor.mu
        if isinstance(actor, SACActor):
            layers = nn.Sequential(actor.latent_pi, actor.mu, nn.Tanh())
        return cls(actor.features_extractor, layers, policy.scale)

    @property
    def base(self) -> FrozenBase:
        return self.extractor.base

    def forward(self, obs: Tensor, base_action: Tensor) -> Tensor:
        """Returns the executed action (N, act_dim) for ``obs`` (N, obs_dim) and the base's
        action."""
        residual = self.residual(self.extractor.join(obs, base_action))
        return clipped(base_action, self.scale, residual)
