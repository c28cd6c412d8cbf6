"""Everything that decides how an SB3 algorithm goes on, as arrays and JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from robo_rl.learners.buffers import SavedReplayBuffer, ScoredRolloutBuffer
from robo_rl.learners.rng_state import load_rng_states, rng_states
from robo_rl.runs.run_dir import Checkpoint, CheckpointError
from sims.utils.prefixed_dict import add_prefix, select_prefix

if TYPE_CHECKING:
    from robo_rl.learners.learner import Learner

Array = np.ndarray

FORMAT = 2  # of what is saved; 1 had every look twice, and none in pieces

# What SB3 keeps as plain numbers.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num")


@runtime_checkable
class Stateful(Protocol):
    """A reward model that changes while the policy learns: it is saved with the policy."""

    def state_dict(self) -> Mapping[str, Array]: ...
    def load_state_dict(self, saved: Mapping[str, Array]) -> None: ...


def save(learner: Learner, extra: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint of ``learner``, taken between two rollouts."""
    model, reward = learner.algorithm, learner.reward_model
    state = {
        **add_prefix("env", learner.env.state_dict()),
        **add_prefix("rng", rng_states()),
        "last_obs": model._last_obs,
        "last_episode_starts": model._last_episode_starts,
    }
    if isinstance(learner.buffer, SavedReplayBuffer | ScoredRolloutBuffer):
        state |= add_prefix("buffer", learner.buffer.state_dict())
    if learner.scorer is not None:
        state |= add_prefix("scorer", learner.scorer.state_dict())
    if isinstance(reward, Stateful):
        state |= add_prefix("reward", reward.state_dict())
    return Checkpoint(
        step=learner.env_steps,
        weights=weights_of(model),
        state=state,
        meta={
            "format": FORMAT,
            "counters": {name: getattr(model, name) for name in _COUNTERS},
            "action_rng": model.action_space.np_random.bit_generator.state,
            "extra": dict(extra),
        },
    )


def load(learner: Learner, checkpoint: Checkpoint) -> bool:
    """Continues from ``checkpoint``; returns False when the simulator had to start new episodes.

    Args:
        learner: The learner, as it was made.
        checkpoint: The checkpoint of one with the same settings.

    Raises:
        CheckpointError: another version wrote the checkpoint, or another learner or reward model
            than this one.
    """
    model, state, reward = learner.algorithm, checkpoint.state, learner.reward_model
    if (form := checkpoint.meta.get("format", 1)) != FORMAT:
        raise CheckpointError(
            f"the checkpoint at step {checkpoint.step} has format {form}, this version reads "
            f"{FORMAT}: resume with the robo-rl version that wrote it, or start a new run"
        )
    try:
        load_weights(model, checkpoint.weights)
        if isinstance(learner.buffer, SavedReplayBuffer | ScoredRolloutBuffer):
            learner.buffer.load_state_dict(select_prefix(state, "buffer"))
        if learner.scorer is not None:
            learner.scorer.load_state_dict(select_prefix(state, "scorer"))
        if isinstance(reward, Stateful):
            reward.load_state_dict(select_prefix(state, "reward"))
        continues = learner.env.load_state_dict(select_prefix(state, "env"))
        if continues:
            model._last_obs = state["last_obs"]
            model._last_episode_starts = state["last_episode_starts"]
        for name in _COUNTERS:
            setattr(model, name, checkpoint.meta["counters"][name])
        model.action_space.np_random.bit_generator.state = checkpoint.meta["action_rng"]
        # Last: what came before may have drawn random numbers.
        load_rng_states(select_prefix(state, "rng"))
    except KeyError as error:
        reward_name = type(reward).__name__ if reward else "the task's reward"
        raise CheckpointError(
            f"checkpoint at step {checkpoint.step} lacks {error}: it was saved by another "
            f"learner or reward model than {type(model).__name__} with {reward_name}"
        ) from error
    return continues


def weights_of(model: BaseAlgorithm) -> dict[str, Array]:
    """Returns the networks, optimiser moments and single tensors of an algorithm, by name.

    Each array has the shape of its tensor.
    """
    found: dict[str, Array] = {}
    for name, saved in model.get_parameters().items():
        if "param_groups" in saved:  # an optimiser; its settings come from the config
            for index, moments in saved["state"].items():
                found |= {f"{name}/{index}/{key}": _numpy(t) for key, t in moments.items()}
        else:
            found |= {f"{name}/{key}": _numpy(t) for key, t in saved.items()}
    return found | {name: _numpy(tensor) for name, tensor in _tensors(model).items()}


def load_weights(model: BaseAlgorithm, weights: Mapping[str, Array]) -> None:
    """Sets the networks, optimiser moments and single tensors that ``weights_of`` returned.

    Args:
        model: The algorithm, whose tensors have the same names and shapes.
        weights: {name: array}.

    Raises:
        CheckpointError: an array has another shape than its tensor.
    """
    parameters = model.get_parameters()
    for name, current in parameters.items():
        part = {
            key: torch.from_numpy(array.copy())
            for key, array in select_prefix(weights, name).items()
        }
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
