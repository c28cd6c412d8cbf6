"""TD3: a deterministic policy that explores with white noise, learned from a replay buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robo_rl.learners.config import OffPolicyConfig

if TYPE_CHECKING:
    from stable_baselines3 import TD3

    from robo_rl.learners.learner import LearnerInputs


@dataclass(frozen=True, kw_only=True)
class TD3Config(OffPolicyConfig):
    """Twin delayed deep deterministic policy gradient (arXiv:1802.09477)."""

    noise: float = 0.1  # standard deviation of the exploration noise on actions

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(0, "noise")


def build_td3(config: TD3Config, inputs: LearnerInputs) -> TD3:
    """SB3's TD3."""
    from stable_baselines3 import TD3
    from stable_baselines3.common.noise import NormalActionNoise

    act_dim = inputs.env.sim.act_dim
    noise = NormalActionNoise(np.zeros(act_dim), np.full(act_dim, config.noise))
    return TD3(**inputs.keywords(config), **inputs.replay(config), action_noise=noise)
