"""Residual learners: a frozen base, and what is learned is added to what it does.

The action is ``clip(base(obs) + scale * residual(obs, base(obs)))``, the residual in [-1, 1] and
exactly 0 before anything is learned. To Stable-Baselines3 the whole is one policy over the task's
own actions: the simulator, the replay buffer and the critics know executed actions alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.learners.config import LearnerConfig, OffPolicyConfig
from robo_rl.learners.ensemble import EnsembleConfig, arguments
from robo_rl.learners.ppo import PPOConfig, build_ppo
from robo_rl.learners.sac import SACConfig, entropy
from robo_rl.learners.td3 import TD3Config

if TYPE_CHECKING:
    from stable_baselines3 import PPO, SAC, TD3

    from robo_rl.learners.ensemble_sac import EnsembleSAC
    from robo_rl.learners.learner import LearnerInputs
    from robo_rl.rollout.vec_sim import VecSim

Named = Annotated[str, tyro.conf.arg(aliases=("--base",))]  # it has no --tuning. in front


# Of several parents the first one's defaults count, so what a learner needs stands first.
@dataclass(frozen=True, kw_only=True)
class ResidualConfig(LearnerConfig):
    """Settings that all residual learners have."""

    base: Named = ""  # base policy: RUN, BUNDLE, FILE.onnx or controller:NAME
    scale: float = 0.3  # largest residual, as a share of the action range

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.scale <= 2:
            raise ValueError(f"scale must be in (0, 2], got {self.scale}")

    def check(self, sim: VecSim) -> None:
        from robo_rl.learners.base_policy import load_base

        super().check(sim)
        load_base(self.base, sim)


@dataclass(frozen=True, kw_only=True)
class ResidualOffPolicyConfig(OffPolicyConfig, ResidualConfig):
    """Settings of residual learners with a replay buffer."""

    switch_on_steps: int = 10_000  # env steps of residual ramp-up; 0: none
    critic_updates: int = 1_000  # initial updates of the critic only

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(0, "switch_on_steps", "critic_updates")


@dataclass(frozen=True, kw_only=True)
class ResidualPPOConfig(PPOConfig, ResidualConfig):
    """PPO of a residual on a frozen --base (ResiP, arXiv:2407.16677)."""

    log_std_init: float = -0.7  # log of the initial standard deviation of residuals


@dataclass(frozen=True, kw_only=True)
class ResidualSACConfig(SACConfig, ResidualOffPolicyConfig):
    """SAC of a residual on a frozen --base (Policy Decorator, arXiv:2412.13630)."""


@dataclass(frozen=True, kw_only=True)
class ResidualEnsembleConfig(EnsembleConfig, ResidualOffPolicyConfig):
    """SAC with normalised critics of a residual on a frozen --base, for few cores."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("clone_updates", "guided_noise"):
            if getattr(self, name):
                raise ValueError(f"{name} does not apply to residual learners: leave it out")


@dataclass(frozen=True, kw_only=True)
class ResidualTD3Config(TD3Config, ResidualOffPolicyConfig):
    """TD3 that trains a residual on a frozen --base (as ResFiT does, arXiv:2509.19301)."""

    noise: float = 0.3  # standard deviation of the exploration noise on residuals


def build_residual_ppo(config: ResidualPPOConfig, inputs: LearnerInputs) -> PPO:
    """SB3's PPO, whose policy's mean is around the base's action."""
    from robo_rl.learners.residual_policy import ResidualLearnerInputs

    return build_ppo(config, ResidualLearnerInputs.of(config, inputs))


def build_residual_sac(config: ResidualSACConfig, inputs: LearnerInputs) -> SAC:
    """SB3's SAC, whose actor squashes the residual alone."""
    from robo_rl.learners.residual_policy import ResidualLearnerInputs, ResidualSAC

    over = ResidualLearnerInputs.of(config, inputs)
    return ResidualSAC(
        **over.keywords(config),
        **over.replay(config),
        **over.schedule(config),
        **entropy(config, inputs),
    )


def build_residual_ensemble(config: ResidualEnsembleConfig, inputs: LearnerInputs) -> EnsembleSAC:
    """Our updates in SB3's loop, of an actor that squashes the residual alone."""
    from robo_rl.learners.residual_policy import ResidualEnsemble, ResidualLearnerInputs

    over = ResidualLearnerInputs.of(config, inputs)
    return ResidualEnsemble(**arguments(config, over), **over.schedule(config))


def build_residual_td3(config: ResidualTD3Config, inputs: LearnerInputs) -> TD3:
    """SB3's TD3, with all of its noise in units of the residual."""
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    from robo_rl.learners.residual_policy import ResidualLearnerInputs, ResidualTD3

    over, act_dim = ResidualLearnerInputs.of(config, inputs), inputs.env.sim.act_dim
    noise = NormalActionNoise(np.zeros(act_dim), np.full(act_dim, config.scale * config.noise))
    return ResidualTD3(
        **over.keywords(config),
        **over.replay(config),
        **over.schedule(config),
        action_noise=noise,
        # Of the target's actions: SB3's, which are of actions in [-1, 1].
        target_policy_noise=0.2 * config.scale,
        target_noise_clip=0.5 * config.scale,
    )
