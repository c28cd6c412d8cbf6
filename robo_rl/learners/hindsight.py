"""A replay buffer that learns from goals reached by chance (HER, arXiv:1707.01495).

Part of every batch is as if what the episode came to later had been asked for: a goal is drawn of
those that held at a later step of it, the observation's columns say that one, and the reward is
whether it holds. The rarer a goal holds, the likelier it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from robo_rl.learners.buffers import SavedReplayBuffer
from robo_rl.learners.demo_replay import merge_batches

Array = np.ndarray

LOOKS = 8  # at later steps of an episode, for goals that it came to; a rare one held for a moment


class HindsightReplayBuffer(SavedReplayBuffer):
    """``columns`` of an observation say which of the goals is asked for; ``hindsight`` is the share
    of a batch whose goal is another than that."""

    def __init__(self, *args: Any, columns: Array, hindsight: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.columns, self.hindsight = columns, hindsight
        shape = (self.buffer_size, self.n_envs)
        self.reached = np.zeros((*shape, len(columns)), bool)  # goals that hold after the step
        self.ended = np.full(shape, -1, np.int64)  # the episode's last step; -1: it goes on
        self.steps = 0  # ever added; step k is kept at k % buffer_size
        self._began = np.zeros(self.n_envs, np.int64)  # the first step of each row's episode
        self._held = np.zeros(len(columns))  # kept steps after which each goal holds

    def add(
        self, obs: Array, next_obs: Array, action: Array, reward: Array, done: Array, infos: Any
    ) -> None:
        """Adds one transition of all environments, and which goals hold after it.

        Args:
            obs: (n_envs, obs_dim) observations before the action.
            next_obs: (n_envs, obs_dim) observations after it.
            action: (n_envs, act_dim) the policy's output.
            reward: (n_envs,) the task's reward.
            done: (n_envs,) bool, the episode ended.
            infos: SB3's infos.
        """
        at = self.pos
        super().add(obs, next_obs, action, reward, done, infos)
        self._held -= self.reached[at].sum(axis=0)
        self.reached[at] = self.env.reached
        self._held += self.reached[at].sum(axis=0)
        self.ended[at] = -1
        for row in np.flatnonzero(done):
            oldest = self.steps + 1 - self.buffer_size
            episode = np.arange(max(self._began[row], oldest), self.steps + 1)
            self.ended[episode % self.buffer_size, row] = self.steps
            self._began[row] = self.steps + 1
        self.steps += 1

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        again = round(self.hindsight * batch_size)
        if again == batch_size:
            return self._sample_hindsight(again)
        as_asked = super().sample(batch_size - again, env)
        return merge_batches(as_asked, self._sample_hindsight(again)) if again else as_asked

    def _sample_hindsight(self, count: int) -> ReplayBufferSamples:
        """``count`` transitions, each under a goal that its episode came to later, where it did."""
        stored = self.size()
        step = self.steps - 1 - np.random.randint(stored, size=count)  # noqa: NPY002 - as SB3 draws
        row = np.random.randint(self.n_envs, size=count)  # noqa: NPY002
        ended = self.ended[step % self.buffer_size, row]
        last = np.where(ended < 0, self.steps - 1, ended)
        ahead = np.random.rand(LOOKS, count) * (last - step + 1)  # noqa: NPY002
        later = step + ahead.astype(int)
        goal = self._choose_goal(self.reached[later % self.buffer_size, row].any(axis=0))
        goal_index = self.observations[step % self.buffer_size, row][:, self.columns].argmax(axis=1)
        return self._relabelled(step, row, last, np.where(goal < 0, goal_index, goal))

    def _choose_goal(self, reached: Array) -> Array:
        """(B,) a goal of those ``reached`` (B, goals), the rarer the likelier; -1 where there is
        none."""
        weight = np.cumsum(reached / np.maximum(self._held, 1.0), axis=1)
        drawn = np.random.rand(len(weight)) * weight[:, -1]  # noqa: NPY002
        return np.where(reached.any(axis=1), (weight <= drawn[:, None]).sum(axis=1), -1)

    def _relabelled(self, step: Array, row: Array, last: Array, goal: Array) -> ReplayBufferSamples:
        """The transitions from ``step`` (B,) of ``row`` (B,), whose episodes go to ``last`` (B,),
        as if ``goal`` (B,) had been asked for; with ``n_steps`` of rewards."""
        ahead = step[:, None] + np.arange(self.n_steps)
        made = ahead <= last[:, None]
        reached = self.reached[ahead % self.buffer_size, row[:, None], goal[:, None]] & made
        returned = (reached * self.gamma ** np.arange(self.n_steps)).sum(axis=1)
        first, final = step % self.buffer_size, np.minimum(ahead[:, -1], last) % self.buffer_size
        one_hot = np.eye(len(self.columns), dtype=np.float32)[goal]
        obs, after = self.observations[first, row], self.next_observations[final, row]
        obs[:, self.columns] = after[:, self.columns] = one_hot
        over = self.dones[final, row] * (1.0 - self.timeouts[final, row])
        columns = (returned, over, self.gamma ** made.sum(axis=1))
        returned, over, discount = (x.astype(np.float32)[:, None] for x in columns)
        of = (obs, self.actions[first, row], after, over, returned, discount)
        return ReplayBufferSamples(*map(self.to_torch, of))

    def rings(self) -> dict[str, Array]:
        """Returns the inherited arrays, ``reached`` (buffer_size, n_envs, goals) and ``ended``."""
        return {**super().rings(), "reached": self.reached, "ended": self.ended}

    def state_dict(self) -> dict[str, Array]:
        """Returns the inherited arrays, ``steps`` and ``began`` (n_envs,)."""
        return {**super().state_dict(), "steps": np.array(self.steps), "began": self._began.copy()}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``began`` (n_envs,) and the other arrays that ``state_dict`` returned."""
        super().load_state_dict(saved)
        self.steps, self._began = int(saved["steps"]), saved["began"].copy()
        self._held = self.reached[: self.size()].sum(axis=(0, 1)).astype(float)
