"""Implicit Q-learning (arXiv:2110.06169): a policy from a data set and a reward of it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from robo_rl.learners.ensemble import EnsembleConfig, arguments

if TYPE_CHECKING:
    from robo_rl.learners.learner import LearnerInputs
    from robo_rl.learners.offline_iql import OfflineIQL
    from robo_rl.rollout.vec_sim import VecSim

# Settings of the loop that it does not have.
OF_STEPS = (
    "entropy_init",
    "target_entropy",
    "actor_every",
    "noise_s",
    "clone_updates",
    "guided_noise",
    "hindsight",
)


@dataclass(frozen=True, kw_only=True)
class IQLConfig(EnsembleConfig):
    """Implicit Q-learning (arXiv:2110.06169) of --demos alone: it makes no step of its own.

    What counts as env steps elsewhere are its updates.
    """

    cheap_steps: ClassVar[bool] = False
    makes_steps: ClassVar[bool] = False
    num_envs: int = 1  # environments (not stepped)
    demo_share: float = 1.0  # share of demonstrations per batch
    gradient_steps: int = 64  # updates per training iteration
    expectile: float = 0.7  # expectile of the value regression
    temperature: float = 3.0  # inverse temperature of the advantage weights
    entropy_init: Annotated[float, tyro.conf.Suppress] = EnsembleConfig.entropy_init
    target_entropy: Annotated[float, tyro.conf.Suppress] = EnsembleConfig.target_entropy
    actor_every: Annotated[int, tyro.conf.Suppress] = EnsembleConfig.actor_every
    noise_s: Annotated[float, tyro.conf.Suppress] = EnsembleConfig.noise_s
    clone_updates: Annotated[int, tyro.conf.Suppress] = 0
    guided_noise: Annotated[float, tyro.conf.Suppress] = 0.0
    hindsight: Annotated[float, tyro.conf.Suppress] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.5 <= self.expectile < 1:
            raise ValueError(f"expectile must be in [0.5, 1), got {self.expectile}")
        self.at_least(0, "temperature")
        if self.interventions:
            raise ValueError("iql is offline and trains on --demos only: leave out interventions")
        for name in OF_STEPS:
            if getattr(self, name) != getattr(IQLConfig, name):
                raise ValueError(f"iql is offline and trains on --demos only: leave out {name}")

    def _fits(self, share: float) -> bool:
        return share == 1

    def check(self, sim: VecSim) -> None:
        """Raises ValueError where there are no demonstrations, or settings do not fit ``sim``."""
        if not self.demos:
            raise ValueError("iql trains on a fixed dataset: give --demos DIR (robo-rl demos)")
        super().check(sim)


def build_iql(config: IQLConfig, inputs: LearnerInputs) -> OfflineIQL:
    """Our critics and SB3's actor, in a loop without rollouts."""
    from robo_rl.learners.offline_iql import IQLPolicy, OfflineIQL

    own = {name: getattr(config, name) for name in ("expectile", "temperature")}
    return OfflineIQL(**arguments(config, inputs) | {"policy": IQLPolicy}, **own)
