"""CrossQ: SAC whose critics have normalised batches in place of targets that lag behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.learners.sac import SACConfig, entropy

if TYPE_CHECKING:
    from sb3_contrib import CrossQ

    from robo_rl.learners.learner import LearnerInputs


@dataclass(frozen=True, kw_only=True)
class CrossQConfig(SACConfig):
    """Batch normalisation in deep reinforcement learning (arXiv:1902.05605): SAC without target
    networks, so few updates go far; it scales observations by itself as well."""

    tau: Annotated[float, tyro.conf.Suppress] = 1.0  # there is no target
    policy_delay: int = 3  # critic updates per policy update
    warmup_updates: int = 10_000  # first updates, which use batch statistics only

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tau != 1.0:
            raise ValueError(f"CrossQ has no target networks, so tau stays 1, got {self.tau}")
        self.at_least(1, "policy_delay", "warmup_updates")


def build_crossq(config: CrossQConfig, inputs: LearnerInputs) -> CrossQ:
    """sb3-contrib's CrossQ."""
    from sb3_contrib import CrossQ

    replay = inputs.replay(config)
    del replay["tau"]
    return CrossQ(
        **inputs.keywords(config, renorm_warmup_steps=config.warmup_updates),
        **replay,
        **entropy(config, inputs),
        policy_delay=config.policy_delay,
    )
