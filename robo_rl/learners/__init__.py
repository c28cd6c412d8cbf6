"""Learners: who turns rewards into a policy. The table is read without importing torch.

May import: datasets, rollout, runs, runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from robo_rl.learners.config import LearnerConfig, OffPolicyConfig
from robo_rl.learners.crossq import CrossQConfig, build_crossq
from robo_rl.learners.ensemble import EnsembleConfig, build_ensemble
from robo_rl.learners.iql import IQLConfig, build_iql
from robo_rl.learners.ppo import PPOConfig, build_ppo
from robo_rl.learners.residual import (
    ResidualEnsembleConfig,
    ResidualPPOConfig,
    ResidualSACConfig,
    ResidualTD3Config,
    build_residual_ensemble,
    build_residual_ppo,
    build_residual_sac,
    build_residual_td3,
)
from robo_rl.learners.sac import SACConfig, build_sac
from robo_rl.learners.td3 import TD3Config, build_td3
from robo_rl.learners.tqc import TQCConfig, build_tqc

__all__ = [
    "LEARNERS",
    "CrossQConfig",
    "EnsembleConfig",
    "IQLConfig",
    "LearnerConfig",
    "LearnerKind",
    "OffPolicyConfig",
    "PPOConfig",
    "ResidualEnsembleConfig",
    "ResidualPPOConfig",
    "ResidualSACConfig",
    "ResidualTD3Config",
    "SACConfig",
    "TD3Config",
    "TQCConfig",
]


class LearnerKind(NamedTuple):
    """A learner's settings, and what makes SB3's algorithm of them and of ``LearnerInputs``."""

    config: type[LearnerConfig]
    build: Callable[[Any, Any], Any]


LEARNERS: dict[str, LearnerKind] = {
    "ppo": LearnerKind(PPOConfig, build_ppo),
    "sac": LearnerKind(SACConfig, build_sac),
    "td3": LearnerKind(TD3Config, build_td3),
    "tqc": LearnerKind(TQCConfig, build_tqc),
    "crossq": LearnerKind(CrossQConfig, build_crossq),
    "ensemble": LearnerKind(EnsembleConfig, build_ensemble),
    "iql": LearnerKind(IQLConfig, build_iql),
    "residual-ppo": LearnerKind(ResidualPPOConfig, build_residual_ppo),
    "residual-sac": LearnerKind(ResidualSACConfig, build_residual_sac),
    "residual-ensemble": LearnerKind(ResidualEnsembleConfig, build_residual_ensemble),
    "residual-td3": LearnerKind(ResidualTD3Config, build_residual_td3),
}
