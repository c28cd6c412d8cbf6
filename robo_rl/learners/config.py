"""Settings of the learners; the defaults are those that text rewards were tuned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """What every learner has."""

    num_envs: int = 64  # rows simulated together
    learning_rate: float = 1e-3  # Adam's step size
    final_rate: float = 0.1  # share of it left at the end of training, to which it falls evenly
    gamma: float = 0.97  # discount per control step
    net: tuple[int, ...] = (128, 128)  # units of the hidden layers of policy and critic
    activation: Literal["tanh", "relu"] = "tanh"  # between the hidden layers
    normalise_obs: bool = True  # scale observations to mean 0, deviation 1, inside the policy
    obs_stats_steps: int = 0  # env steps that the scale is measured on; 0: all of them

    def __post_init__(self) -> None:
        positive = {"num_envs": self.num_envs, "learning_rate": self.learning_rate}
        for name, value in positive.items():
            if value <= 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        if not 0 <= self.final_rate <= 1:
            raise ValueError(f"final_rate must be in [0, 1], got {self.final_rate}")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma must be in (0, 1], got {self.gamma}")


@dataclass(frozen=True, kw_only=True)
class PPOConfig(LearnerConfig):
    """Proximal policy optimisation (arXiv:1707.06347): robust, and fast where steps are cheap."""

    n_steps: int = 0  # control steps of a rollout; 0: one episode, at most 128
    minibatches: int = 4  # gradient steps per epoch
    epochs: int = 8  # passes over a rollout
    gae_lambda: float = 0.95  # bias against variance of the advantage
    clip_ratio: float = 0.2  # largest change of an action's probability that is rewarded
    entropy: float = 0.0  # weight of the entropy bonus
    log_std_init: float = -1.5  # log of the first standard deviation of actions
    normalise_reward: bool = False  # scale rewards so that returns have a deviation of 1
    max_grad_norm: float = 0.5  # gradients are scaled down to this


@dataclass(frozen=True, kw_only=True)
class OffPolicyConfig(LearnerConfig):
    """What learners with a replay buffer share."""

    num_envs: int = 16  # rows simulated together
    final_rate: float = 1.0  # share of the learning rate left at the end of training
    net: tuple[int, ...] = (256, 256)  # units of the hidden layers of policy and critic
    activation: Literal["tanh", "relu"] = "relu"  # between the hidden layers
    buffer_size: int = 200_000  # transitions kept
    learning_starts: int = 1_000  # env steps of random actions before learning
    gradient_steps: int = 8  # updates per control step of all rows
    batch_size: int = 256  # transitions per update
    tau: float = 0.005  # share of the critic that enters its target per update


@dataclass(frozen=True, kw_only=True)
class SACConfig(OffPolicyConfig):
    """Soft actor-critic (arXiv:1812.05905): few steps, many updates."""

    entropy_init: float = 0.1  # first weight of the entropy bonus, tuned from there


@dataclass(frozen=True, kw_only=True)
class TD3Config(OffPolicyConfig):
    """Twin delayed deep deterministic policy gradient (arXiv:1802.09477)."""

    noise: float = 0.1  # standard deviation of the exploration noise on actions


@dataclass(frozen=True, kw_only=True)
class TQCConfig(SACConfig):
    """Truncated quantile critics (arXiv:2005.04269): SAC with less overestimation."""

    quantiles: int = 25  # per critic
    drop_quantiles: int = 2  # highest ones dropped, per critic


LEARNERS: dict[str, type[LearnerConfig]] = {
    "ppo": PPOConfig,
    "sac": SACConfig,
    "td3": TD3Config,
    "tqc": TQCConfig,
}
