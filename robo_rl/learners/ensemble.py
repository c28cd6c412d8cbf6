"""Ensemble: SAC for few cores. Many rows, few updates, all critics one batch of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from robo_rl.learners.sac import SACConfig, entropy

if TYPE_CHECKING:
    from robo_rl.learners.ensemble_sac import EnsembleSAC
    from robo_rl.learners.learner import LearnerInputs


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig(SACConfig):
    """SAC with normalised critics (RLPD, arXiv:2302.02948): fast on few cores.

    Many rows, and few updates that go far.
    """

    cheap_steps: ClassVar[bool] = True
    num_envs: int = 64  # environments simulated in parallel
    learning_rate: float = 1e-3  # Adam's step size
    final_rate: float = 0.1  # share of the learning rate at the end of training
    averaged: float = 0.2  # last share of updates averaged into the policy; 0: none
    net: tuple[int, ...] = (128, 128)  # units of the hidden layers of policy and critics
    gradient_steps: int = 4  # updates per control step of all environments
    batch_size: int = 256  # transitions per update
    tau: float = 0.02  # target network update rate
    entropy_init: float = 0.02  # initial entropy coefficient, tuned during training
    critics: int = 2  # ensemble size; the minimum is used
    n_steps: int = 3  # steps of the n-step return
    actor_every: int = 2  # critic updates per actor update
    # Seconds that the noise of exploration lasts in the last row; in those before less, down to one
    # step.
    noise_s: float = 0.5
    # First updates, in which the actor learns to do as --demos do; then their share may be 0.
    clone_updates: int = 0
    # Share of the rows that explore by noise as --demos differ from the policy; 0: none.
    guided_noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "critics", "n_steps", "actor_every")
        if not 0 <= self.averaged <= 1:
            raise ValueError(f"averaged must be in [0, 1], got {self.averaged}")
        self.at_least(0, "clone_updates", "noise_s")
        if not 0 <= self.guided_noise <= 1:
            raise ValueError(f"guided_noise must be in [0, 1], got {self.guided_noise}")
        for name in ("clone_updates", "guided_noise"):
            if getattr(self, name) and not self.demos:
                raise ValueError(f"{name} needs demonstrations: give --demos too")

    def _fits(self, share: float) -> bool:
        otherwise = self.clone_updates > 0 or self.guided_noise > 0  # what they are for
        return super()._fits(share) or (share == 0 and otherwise)


def arguments(config: EnsembleConfig, inputs: LearnerInputs) -> dict[str, Any]:
    """Returns the arguments of an EnsembleSAC except its ``policy``."""
    keywords = inputs.keywords(
        config,
        members=config.critics,
        averaged=config.averaged,
        rows=config.num_envs,
        lasting=config.noise_s / inputs.env.sim.control_dt,
    )
    replay = inputs.replay(config)
    replay["replay_buffer_kwargs"] |= {"n_steps": config.n_steps, "gamma": keywords["gamma"]}
    own = {n: getattr(config, n) for n in ("actor_every", "clone_updates", "guided_noise")}
    return {**keywords, **replay, **entropy(config, inputs), **own}


def build_ensemble(config: EnsembleConfig, inputs: LearnerInputs) -> EnsembleSAC:
    """Our updates in SB3's loop."""
    from robo_rl.learners.ensemble_sac import EnsemblePolicy, EnsembleSAC

    return EnsembleSAC(**arguments(config, inputs) | {"policy": EnsemblePolicy})
