"""Stable-Baselines3 algorithms on batched simulators, with scored rewards and safe checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from sb3_contrib import TQC
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch import nn

from reward_models.base import RewardModel
from robo_rl.learners.buffers import SavedReplayBuffer, ScoredReplayBuffer, ScoredRolloutBuffer
from robo_rl.learners.config import (
    LearnerConfig,
    OffPolicyConfig,
    PPOConfig,
    SACConfig,
    TD3Config,
    TQCConfig,
)
from robo_rl.learners.features import NormalisedObs, ObsNormaliser
from robo_rl.rollout.reward_scale import RewardScale
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.vec_env import SB3VecEnv
from robo_rl.rollout.vec_sim import VecSim, episode_steps
from robo_rl.runs import Checkpoint, CheckpointError
from robo_rl.threads import seed_everything

Array = np.ndarray

LONGEST_ROLLOUT = 128  # control steps, where none are given: of a body whose episodes are long

_ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


@runtime_checkable
class Stateful(Protocol):
    """A reward model that changes while the policy learns: it is saved with the policy."""

    def state_dict(self) -> Mapping[str, Array]: ...
    def load_state_dict(self, saved: Mapping[str, Array]) -> None: ...


@dataclass
class Learner:
    """An SB3 algorithm with its environment, reward model and observation scale."""

    config: LearnerConfig
    algorithm: BaseAlgorithm
    env: SB3VecEnv
    scorer: Scorer | None  # None: the task's own reward
    normaliser: ObsNormaliser | None

    @property
    def env_steps(self) -> int:
        """Steps simulated so far, over all rows."""
        return self.algorithm.num_timesteps

    def act(self, obs: Array) -> Array:
        """Deterministic actions (N, act_dim) in [-1, 1] of raw observations (N, obs_dim)."""
        return self.algorithm.predict(obs, deterministic=True)[0]

    @property
    def buffer(self) -> RolloutBuffer | SavedReplayBuffer:
        """Where the algorithm keeps transitions."""
        off_policy = isinstance(self.algorithm, OffPolicyAlgorithm)
        return self.algorithm.replay_buffer if off_policy else self.algorithm.rollout_buffer

    def checkpoint(self, extra: Mapping[str, Any] | None = None) -> Checkpoint:
        """Everything that decides how learning goes on; taken between two rollouts.

        ``extra`` is JSON that comes back in ``meta["extra"]``.
        """
        model = self.algorithm
        state = {
            **_named("env", self.env.state_dict()),
            **_named("rng", _rng_state()),
            "last_obs": model._last_obs,
            "last_episode_starts": model._last_episode_starts,
        }
        if isinstance(self.buffer, SavedReplayBuffer | ScoredRolloutBuffer):
            state |= _named("buffer", self.buffer.state_dict())
        if isinstance(self._reward_model, Stateful):
            state |= _named("reward", self._reward_model.state_dict())
        return Checkpoint(
            step=self.env_steps,
            weights=_weights(model),
            state=state,
            meta={
                "counters": {name: getattr(model, name) for name in _COUNTERS},
                "action_rng": model.action_space.np_random.bit_generator.state,
                "extra": dict(extra or {}),
            },
        )

    def restore(self, checkpoint: Checkpoint) -> bool:
        """Continues from ``checkpoint``; False when the simulator had to start new episodes."""
        model, state = self.algorithm, checkpoint.state
        try:
            _load_weights(model, checkpoint.weights)
            if isinstance(self.buffer, SavedReplayBuffer | ScoredRolloutBuffer):
                self.buffer.load_state_dict(_part("buffer", state))
            if isinstance(self._reward_model, Stateful):
                self._reward_model.load_state_dict(_part("reward", state))
            continues = self.env.load_state_dict(_part("env", state))
            if continues:
                model._last_obs = state["last_obs"]
                model._last_episode_starts = state["last_episode_starts"]
            for name in _COUNTERS:
                setattr(model, name, checkpoint.meta["counters"][name])
            model.action_space.np_random.bit_generator.state = checkpoint.meta["action_rng"]
            # Last: what came before may have drawn random numbers.
            _load_rng_state(_part("rng", state))
        except KeyError as error:
            raise CheckpointError(
                f"checkpoint at step {checkpoint.step} lacks {error}: it was saved by another "
                f"learner or reward model than {type(model).__name__} with {self._reward_name}"
            ) from error
        return continues

    @property
    def _reward_model(self) -> RewardModel | None:
        return self.scorer.model if self.scorer else None

    @property
    def _reward_name(self) -> str:
        return type(self.scorer.model).__name__ if self.scorer else "the task's reward"


def make_learner(
    config: LearnerConfig,
    sim: VecSim,
    reward_model: RewardModel | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
) -> Learner:
    """The learner of ``config`` on ``sim``; without a reward model it learns the task's reward."""
    if sim.num_envs != config.num_envs:
        raise ValueError(
            f"the learner is configured for num_envs={config.num_envs}, the simulator has "
            f"{sim.num_envs} rows"
        )
    seed_everything(seed)
    scaled = isinstance(config, PPOConfig) and config.normalise_reward
    scale = RewardScale(config.num_envs, config.gamma) if scaled else None
    env = SB3VecEnv(sim, reward_model, scale)
    env.action_space.seed(seed)
    scorer = Scorer(reward_model, env.observer) if reward_model else None
    normaliser = ObsNormaliser(sim.obs_dim) if config.normalise_obs else None
    policy: dict[str, Any] = {
        "net_arch": list(config.net),
        "activation_fn": _ACTIVATIONS[config.activation],
    }
    if normaliser is not None:
        policy["features_extractor_class"] = NormalisedObs
        policy["features_extractor_kwargs"] = {"normaliser": normaliser}
    common: dict[str, Any] = {
        "env": env,
        "learning_rate": _falling(config),
        "gamma": config.gamma,
        "device": device,
    }
    scored = {"env": env, "scorer": scorer}
    if isinstance(config, PPOConfig):
        algorithm = _ppo(config, episode_steps(sim), policy, common, scored)
    elif isinstance(config, OffPolicyConfig):
        algorithm = _off_policy(config, policy, common, scored)
    else:
        raise ValueError(f"no learner for a {type(config).__name__}")
    return Learner(config, algorithm, env, scorer, normaliser)


def _falling(config: LearnerConfig) -> Callable[[float], float]:
    """The learning rate as a function of the share of training that is left."""
    first, last = config.learning_rate, config.learning_rate * config.final_rate
    return lambda left: last + (first - last) * left


def _ppo(
    config: PPOConfig,
    episode: int,
    policy: dict[str, Any],
    common: dict[str, Any],
    scored: dict[str, Any],
) -> PPO:
    n_steps = config.n_steps or min(episode, LONGEST_ROLLOUT)
    size = n_steps * config.num_envs
    if size % config.minibatches:
        raise ValueError(
            f"a rollout of {n_steps} steps x {config.num_envs} rows does not divide into "
            f"{config.minibatches} minibatches; the next that fits is "
            f"{next(k for k in range(config.minibatches, size + 1) if size % k == 0)}"
        )
    return PPO(
        "MlpPolicy",
        n_steps=n_steps,
        batch_size=size // config.minibatches,
        n_epochs=config.epochs,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_ratio,
        ent_coef=config.entropy,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs=policy | {"log_std_init": config.log_std_init},
        rollout_buffer_class=ScoredRolloutBuffer if scored["scorer"] else RolloutBuffer,
        rollout_buffer_kwargs=scored if scored["scorer"] else None,
        **common,
    )


def _off_policy(
    config: OffPolicyConfig,
    policy: dict[str, Any],
    common: dict[str, Any],
    scored: dict[str, Any],
) -> OffPolicyAlgorithm:
    common = common | {
        "buffer_size": config.buffer_size,
        "learning_starts": config.learning_starts,
        "batch_size": config.batch_size,
        "tau": config.tau,
        "train_freq": 1,
        "gradient_steps": config.gradient_steps,
        "replay_buffer_class": ScoredReplayBuffer if scored["scorer"] else SavedReplayBuffer,
        "replay_buffer_kwargs": scored if scored["scorer"] else None,
    }
    if isinstance(config, TD3Config):
        act_dim = common["env"].action_space.shape[0]
        noise = NormalActionNoise(np.zeros(act_dim), np.full(act_dim, config.noise))
        return TD3("MlpPolicy", policy_kwargs=policy, action_noise=noise, **common)
    if isinstance(config, SACConfig):
        common["ent_coef"] = f"auto_{config.entropy_init}"
    if isinstance(config, TQCConfig):
        return TQC(
            "MlpPolicy",
            policy_kwargs=policy | {"n_quantiles": config.quantiles},
            top_quantiles_to_drop_per_net=config.drop_quantiles,
            **common,
        )
    if isinstance(config, SACConfig):
        return SAC("MlpPolicy", policy_kwargs=policy, **common)
    raise ValueError(f"no learner for a {type(config).__name__}")


# What SB3 keeps as plain numbers.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num")


def _weights(model: BaseAlgorithm) -> dict[str, Array]:
    """Networks, optimiser moments and single tensors of an algorithm, by name."""
    found: dict[str, Array] = {}
    for name, saved in model.get_parameters().items():
        if "param_groups" in saved:  # an optimiser; its settings come from the config
            for index, moments in saved["state"].items():
                found |= {f"{name}/{index}/{key}": _numpy(t) for key, t in moments.items()}
        else:
            found |= {f"{name}/{key}": _numpy(t) for key, t in saved.items()}
    return found | {name: _numpy(tensor) for name, tensor in _tensors(model).items()}


def _load_weights(model: BaseAlgorithm, weights: Mapping[str, Array]) -> None:
    parameters = model.get_parameters()
    for name, current in parameters.items():
        part = {key: torch.from_numpy(array.copy()) for key, array in _part(name, weights).items()}
        if "param_groups" in current:
            state: dict[int, dict[str, torch.Tensor]] = {}
            for key, tensor in part.items():
                index, _, moment = key.partition("/")
                state.setdefault(int(index), {})[moment] = tensor
            parameters[name] = {"state": state, "param_groups": current["param_groups"]}
            continue
        for key, tensor in current.items():
            if part[key].shape != tensor.shape:
                raise CheckpointError(
                    f"{name}/{key} must have shape {tuple(tensor.shape)}, the checkpoint has "
                    f"{tuple(part[key].shape)}: it was saved with other network sizes or another "
                    "task"
                )
        parameters[name] = part
    model.set_parameters(parameters, exact_match=True, device=model.device)
    for name, tensor in _tensors(model).items():
        tensor.data.copy_(torch.from_numpy(weights[name].copy()))


def _tensors(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    """Learned tensors that SB3 keeps outside its networks (SAC's entropy coefficient)."""
    _, names = model._get_torch_save_params()
    found = {name: getattr(model, name) for name in names}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _numpy(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy().copy()


def _rng_state() -> dict[str, Array]:
    """The states of the generators that SB3 draws from."""
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 - SB3 draws from it
    state = {
        "numpy_keys": keys,
        "numpy_rest": np.array([position, has_gauss, gauss], np.float64),
        "torch": torch.get_rng_state().numpy(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state().numpy()
    return state


def _load_rng_state(saved: Mapping[str, Array]) -> None:
    position, has_gauss, gauss = saved["numpy_rest"]
    legacy = ("MT19937", saved["numpy_keys"], int(position), int(has_gauss), float(gauss))
    np.random.set_state(legacy)  # noqa: NPY002 - SB3 draws from it
    torch.set_rng_state(torch.from_numpy(saved["torch"].copy()))
    if "cuda" in saved and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.from_numpy(saved["cuda"].copy()))


def _named(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def _part(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    start = f"{prefix}/"
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
