"""PPO: every rollout is learned from a few times, then dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robo_rl.learners.config import LearnerConfig

if TYPE_CHECKING:
    from stable_baselines3 import PPO

    from robo_rl.learners.learner import LearnerInputs

LONGEST_ROLLOUT = 128  # control steps, where none are given: of a body whose episodes are long


@dataclass(frozen=True, kw_only=True)
class PPOConfig(LearnerConfig):
    """Proximal policy optimisation (arXiv:1707.06347): robust, and fast where steps are cheap."""

    n_steps: int = 0  # rollout length, control steps; 0: one episode, at most 128
    minibatches: int = 4  # minibatches per epoch
    epochs: int = 8  # passes over a rollout
    gae_lambda: float = 0.95  # GAE lambda (bias-variance trade-off)
    clip_ratio: float = 0.2  # PPO clip range
    entropy: float = 0.0  # entropy coefficient
    log_std_init: float = -1.5  # log of the initial standard deviation of actions
    normalise_reward: bool = False  # scale rewards to unit variance of returns
    max_grad_norm: float = 0.5  # gradient norm limit
    # Least standard deviation of an observation column, as a share of the task's smallest
    # meaningful spread (``Task.least_spread``): sensor errors of millimetres stay small. At 1 a
    # push needs twice the steps.
    obs_floor: float = 0.1
    obs_still: float = 1.0  # share of the minimum above which a column counts as moving

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "minibatches", "epochs")
        self.at_least(0, "n_steps", "entropy", "obs_floor")
        if not 0 < self.obs_still <= 1:
            raise ValueError(f"obs_still must be in (0, 1], got {self.obs_still}")
        if not 0 <= self.gae_lambda <= 1:
            raise ValueError(f"gae_lambda must be in [0, 1], got {self.gae_lambda}")
        for name in ("clip_ratio", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")


def build_ppo(config: PPOConfig, inputs: LearnerInputs) -> PPO:
    """Returns SB3's PPO; a reward model scores its rollouts, if there is one.

    Args:
        config: The settings.
        inputs: The env, the scorer and the normaliser.

    Raises:
        ValueError: the steps of a rollout do not divide into the minibatches.
    """
    from stable_baselines3 import PPO
    from stable_baselines3.common.buffers import RolloutBuffer

    from robo_rl.learners.buffers import ScoredRolloutBuffer
    from robo_rl.rollout.reward_scale import RewardScale

    n_steps = config.n_steps or min(inputs.episode_steps, LONGEST_ROLLOUT)
    size = n_steps * config.num_envs
    if size % config.minibatches:
        raise ValueError(
            f"a rollout of {n_steps} steps x {config.num_envs} envs does not divide into "
            f"{config.minibatches} minibatches; the next that fits is "
            f"{next(k for k in range(config.minibatches, size + 1) if size % k == 0)}"
        )
    if config.normalise_reward:
        inputs.env.scale = RewardScale(config.num_envs, config.gamma(inputs.env.sim.control_dt))
    scored = {"env": inputs.env, "scorer": inputs.scorer} if inputs.scorer else None
    return PPO(
        **inputs.keywords(config, log_std_init=config.log_std_init),
        n_steps=n_steps,
        batch_size=size // config.minibatches,
        n_epochs=config.epochs,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_ratio,
        ent_coef=config.entropy,
        max_grad_norm=config.max_grad_norm,
        rollout_buffer_class=ScoredRolloutBuffer if scored else RolloutBuffer,
        rollout_buffer_kwargs=scored,
    )
