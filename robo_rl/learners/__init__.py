"""Learners: who turns rewards into a policy. The table is read without importing torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from robo_rl.learners.config import LearnerConfig, OffPolicyConfig
from robo_rl.learners.crossq import CrossQConfig, build_crossq
from robo_rl.learners.ppo import PPOConfig, build_ppo
from robo_rl.learners.residual import (
    ResidualPPOConfig,
    ResidualSACConfig,
    ResidualTD3Config,
    build_residual_ppo,
    build_residual_sac,
    build_residual_td3,
    check_base,
)
from robo_rl.learners.sac import SACConfig, build_sac
from robo_rl.learners.td3 import TD3Config, build_td3
from robo_rl.learners.tqc import TQCConfig, build_tqc

__all__ = [
    "LEARNERS",
    "CrossQConfig",
    "LearnerConfig",
    "LearnerKind",
    "OffPolicyConfig",
    "PPOConfig",
    "ResidualPPOConfig",
    "ResidualSACConfig",
    "ResidualTD3Config",
    "SACConfig",
    "TD3Config",
    "TQCConfig",
]


def nothing(config: Any, sim: Any) -> None:
    """Whatever the simulator is, it will do."""


def check_prior(config: OffPolicyConfig, sim: Any) -> None:
    """ValueError where ``config`` names demonstrations that are not of ``sim``'s task."""
    if config.demos:
        from robo_rl.learners.prior import check_demos

        check_demos(config, sim)


def check_both(config: Any, sim: Any) -> None:
    """``check_base`` and ``check_prior``."""
    check_base(config, sim)
    check_prior(config, sim)


class LearnerKind(NamedTuple):
    """A learner's settings, and what makes SB3's algorithm of them and of ``Parts``."""

    config: type[LearnerConfig]
    build: Callable[[Any, Any], Any]
    check: Callable[[Any, Any], object] = nothing  # (config, sim): ValueError before minutes pass


LEARNERS: dict[str, LearnerKind] = {
    "ppo": LearnerKind(PPOConfig, build_ppo),
    "sac": LearnerKind(SACConfig, build_sac, check_prior),
    "td3": LearnerKind(TD3Config, build_td3, check_prior),
    "tqc": LearnerKind(TQCConfig, build_tqc, check_prior),
    "crossq": LearnerKind(CrossQConfig, build_crossq, check_prior),
    "residual-ppo": LearnerKind(ResidualPPOConfig, build_residual_ppo, check_base),
    "residual-sac": LearnerKind(ResidualSACConfig, build_residual_sac, check_both),
    "residual-td3": LearnerKind(ResidualTD3Config, build_residual_td3, check_both),
}
