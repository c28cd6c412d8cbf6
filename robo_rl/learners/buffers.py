"""SB3's buffers with rewards from a reward model, scored in large batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer, RolloutBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from reward_models.base import RewardModel, RewardOutput
from robo_rl.learners.demo_replay import DemoReplay, merge_batches
from robo_rl.rollout.ring_buffers import restore_ring, ring_pieces
from robo_rl.rollout.scoring import Scorer
from robo_rl.rollout.trace import Trace
from robo_rl.rollout.vec_env import SB3VecEnv
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray


def refuse_reward_scaling(env: VecEnv | None) -> None:
    """ValueError for VecNormalize(norm_reward=True), which never sees the model's rewards."""
    if isinstance(env, VecNormalize) and env.norm_reward:
        raise ValueError(
            "VecNormalize(norm_reward=True) scales the simulator's reward, not the reward model's, "
            "which is added after it; use norm_reward=False and normalise in the reward model"
        )


def _sb3_env(env: VecEnv) -> SB3VecEnv:
    """Returns the SB3VecEnv inside any wrappers, set to leave scoring to the buffer."""
    refuse_reward_scaling(env)
    if not isinstance(env.unwrapped, SB3VecEnv):
        raise ValueError(f"env must be an SB3VecEnv, got {type(env.unwrapped).__name__}")
    env.unwrapped.scored_later = True
    return env.unwrapped


class ScoredRolloutBuffer(RolloutBuffer):
    """A rollout whose rewards are scored in one go before advantages are computed."""

    def __init__(self, *args: Any, env: VecEnv, scorer: Scorer, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.env, self.scorer = _sb3_env(env), scorer
        # Room for the end of the last rollout, which scores reach back to.
        self.trace = Trace(self.buffer_size + scorer.reach)
        self.output: RewardOutput | None = None  # of the last rollout

    def add(self, *args: Any, **kwargs: Any) -> None:
        super().add(*args, **kwargs)
        self.trace.add(self.env.last_step())

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: Array) -> None:
        """Scores the rollout, then computes returns and advantages as SB3 does.

        Args:
            last_values: (n_envs, 1) the values of the observations after the rollout.
            dones: (n_envs,) bool, whether the last step ended an episode.
        """
        end = self.trace.count
        self.output = self.scorer.score(self.trace, end - self.buffer_size, end)
        reward = self.output.reward
        if self.env.scale is not None:
            ends = np.concatenate([self.episode_starts[1:], dones[None]]).astype(bool)
            reward = np.stack(list(map(self.env.scale, reward, ends)))
        # Added, not assigned: SB3 has put gamma * V(last state) into the rewards of truncated rows.
        self.rewards += reward
        super().compute_returns_and_advantage(last_values, dones)

    def state_dict(self) -> dict[str, Array]:
        """Returns the end of the trace, in pieces (k, n_envs, ...), which the next rollout's scores
        need."""
        return self.trace.state_dict(self.scorer.reach)

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the pieces (k, n_envs, ...) that ``state_dict`` returned."""
        self.trace.load_state_dict(saved)


class SavedReplayBuffer(NStepReplayBuffer):
    """SB3's ring of transitions, to and from plain arrays; its actions are those executed.

    With a ``prior``, ``share`` of every batch is from there.
    """

    def __init__(
        self,
        *args: Any,
        env: VecEnv,
        prior: DemoReplay | None = None,
        share: float = 0.5,
        n_steps: int = 1,
        **kwargs: Any,
    ):
        super().__init__(*args, n_steps=n_steps, **kwargs)
        self.env, self.prior, self.share = _sb3_env(env), prior, share

    def add(self, obs: Array, next_obs: Array, action: Array, *rest: Any, **kwargs: Any) -> None:
        """Adds a transition of all environments, with the executed action in place of ``action``.

        Args:
            obs: (n_envs, obs_dim) observations before the action.
            next_obs: (n_envs, obs_dim) observations after it.
            action: (n_envs, act_dim) the policy's output, which is not stored.
            rest: The reward, done and infos of SB3's buffers.
        """
        super().add(obs, next_obs, self.env.last_step().action, *rest, **kwargs)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        if self.prior is None:
            return self._own(batch_size, env)
        theirs = round(self.share * batch_size)
        own = self._own(batch_size - theirs, env) if theirs < batch_size else None
        prior = self.prior.draw(theirs, self.device, self.n_steps, self.gamma)
        return prior if own is None else merge_batches(own, prior)

    def _own(self, count: int, env: VecNormalize | None) -> ReplayBufferSamples:
        return self._get_samples(self._sample_indices(count), env)

    def _sample_indices(self, count: int) -> Array:
        """Places (count,) in the ring, of any step that is kept."""
        return np.random.randint(0, self.size(), size=count)  # noqa: NPY002 - as SB3 draws

    def figures(self) -> dict[str, float]:
        """Returns figures for the metrics since the last call, beside rewards."""
        return {}

    def _get_samples(self, *args: Any, **kwargs: Any) -> ReplayBufferSamples:
        if self.n_steps == 1:
            return ReplayBuffer._get_samples(self, *args, **kwargs)
        return super()._get_samples(*args, **kwargs)

    def rings(self) -> dict[str, Array]:
        """Every array that has one entry per transition, {name: (buffer_size, n_envs, ...)}."""
        names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Array]:
        """Returns the filled part of the ring, as views of it.

        Returns:
            ``pos``, ``shape`` (2,) of the filled part, and each array of ``rings`` in pieces
            (k, n_envs, ...); with a prior also its state.
        """
        filled: dict[str, Array] = {}
        for name, ring in self.rings().items():
            filled |= add_prefix(f"ring/{name}", ring_pieces(ring, 0, self.size()))
        prior = self.prior.state_dict() if self.prior is not None else {}
        shape = np.array([self.size(), self.n_envs])
        return {"pos": np.array(self.pos), "shape": shape, **filled, **add_prefix("prior", prior)}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the pieces (k, n_envs, ...) that ``state_dict`` returned.

        Args:
            saved: The arrays by name.

        Raises:
            ValueError: this buffer is smaller, or has another number of environments.
        """
        size, rows = saved["shape"].tolist()
        if size > self.buffer_size or rows != self.n_envs:
            raise ValueError(
                f"the saved replay buffer has {size} steps of {rows} environments, this one "
                f"{self.buffer_size} steps of {self.n_envs}"
            )
        for name, ring in self.rings().items():
            restore_ring(saved, f"ring/{name}", ring, 0)
        self.pos, self.full = int(saved["pos"]), size == self.buffer_size
        if self.prior is not None:
            self.prior.load_state_dict(select_prefix(saved, "prior"))


class ScoredReplayBuffer(SavedReplayBuffer):
    """A ring of transitions that remembers what each was scored on, and can be scored again.

    New transitions are scored before the first sample that may hold them. When the reward model's
    version has risen, every reward still in the ring is rewritten.
    """

    def __init__(self, *args: Any, env: VecEnv, scorer: Scorer, **kwargs: Any):
        super().__init__(*args, env=env, **kwargs)
        self.scorer = scorer
        self.trace = Trace(self.buffer_size)
        shape = (self.buffer_size, self.n_envs)
        self.scored = np.zeros(shape, bool)
        self.version = np.zeros(shape, np.int32)  # of the reward model, where scored
        self.episode_step = np.zeros(shape, np.int32)  # actions since the episode's start
        self.components: dict[str, Array] = {}  # {name: (buffer_size, n_envs)}
        self._scored_to = 0  # steps of the trace

    def add(self, *args: Any, **kwargs: Any) -> None:
        at = self.pos
        super().add(*args, **kwargs)
        step = self.env.last_step()
        self.trace.add(step)
        self.scored[at] = False
        self.episode_step[at] = step.step

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        refuse_reward_scaling(env)
        self.score_pending()
        if self.prior is not None and self.prior.version < self.scorer.version:
            self.prior.score()
        return super().sample(batch_size, env)

    def score_pending(self) -> None:
        """Scores what was added since the last call."""
        first, end = max(self._scored_to, self.trace.oldest), self.trace.count
        if first == end:
            return
        before = self.scorer.version
        self._write(self.scorer.score(self.trace, first, end), first, end)
        if self.scorer.version != before and first > self.trace.oldest:
            self.relabel()

    def relabel(self, model: RewardModel | None = None) -> None:
        """Rewrites every reward in the ring, in episode order; with ``model`` from now on."""
        if model is not None:
            self.scorer.replace(model)
        first, end = self.trace.oldest, self.trace.count
        if first < end:
            output = self.scorer.score(self.trace, first, end, counted=False)
            self._write(output, first, end)
        if self.prior is not None:
            self.prior.score(model)

    def _write(self, output: RewardOutput, first: int, end: int) -> None:
        at = np.arange(first, end) % self.buffer_size
        self.rewards[at] = output.reward
        self.scored[at] = output.scored
        self.version[at] = output.version
        for name in output.components.keys() - self.components.keys():
            self.components[name] = np.zeros(self.rewards.shape, np.float32)
        for name, ring in self.components.items():
            ring[at] = output.components.get(name, 0.0)
        self._scored_to = end

    def rings(self) -> dict[str, Array]:
        """Returns {name: (buffer_size, n_envs, ...)}: the inherited arrays, and which steps are
        scored, by which version of the reward model, with which components."""
        return {
            **super().rings(),
            "scored": self.scored,
            "version": self.version,
            "episode_step": self.episode_step,
            **add_prefix("component", self.components),
        }

    def state_dict(self) -> dict[str, Array]:
        """Returns the ring in pieces (k, n_envs, ...), the trace and the step up to which it is
        scored."""
        return {
            **super().state_dict(),
            **add_prefix("trace", self.trace.state_dict()),
            "scored_to": np.array(self._scored_to),
        }

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the pieces (k, n_envs, ...) and the trace that ``state_dict`` returned."""
        for name in select_prefix(saved, "ring/component"):
            self.components[name.rpartition("/")[0]] = np.zeros(self.rewards.shape, np.float32)
        super().load_state_dict(saved)
        self.trace.load_state_dict(select_prefix(saved, "trace"))
        self._scored_to = int(saved["scored_to"])
        self.scorer.version = int(self.version.max())
