"""SAC: learns from a replay buffer, with as much noise in its actions as it still has use for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robo_rl.learners.config import OffPolicyConfig

if TYPE_CHECKING:
    from stable_baselines3 import SAC

    from robo_rl.learners.learner import LearnerInputs


@dataclass(frozen=True, kw_only=True)
class SACConfig(OffPolicyConfig):
    """Soft actor-critic (arXiv:1812.05905): few steps, many updates."""

    entropy_init: float = 0.1  # initial entropy coefficient, tuned during training
    target_entropy: float = -1.0  # target entropy, nats per action dimension

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.entropy_init > 0:
            raise ValueError(f"entropy_init must be above 0, got {self.entropy_init}")


def entropy(config: SACConfig, inputs: LearnerInputs) -> dict[str, Any]:
    """How SB3 is told to tune the entropy bonus."""
    from stable_baselines3.common.preprocessing import get_action_dim

    target = config.target_entropy * get_action_dim(inputs.env.action_space)
    return {"ent_coef": f"auto_{config.entropy_init}", "target_entropy": target}


def build_sac(config: SACConfig, inputs: LearnerInputs) -> SAC:
    """SB3's SAC."""
    from stable_baselines3 import SAC

    return SAC(**inputs.keywords(config), **inputs.replay(config), **entropy(config, inputs))
