"""EpisodeTransitions: transitions of whole episodes, one after the other, as a learner draws
them."""

from __future__ import annotations

import numpy as np
import torch
from stable_baselines3.common.type_aliases import ReplayBufferSamples

Array = np.ndarray


class EpisodeTransitions:
    """``n`` transitions; ``last`` says which are the last of their episode."""

    obs: Array  # (n, obs_dim) f32
    action: Array  # (n, act_dim) f32, executed
    next_obs: Array  # (n, obs_dim) f32
    done: Array  # (n,) bool: terminal, so the next value is 0
    last: Array  # (n,) bool
    reward: Array  # (n,) f32

    def __len__(self) -> int:
        return len(self.obs)

    def draw(
        self, count: int, device: torch.device, n_steps: int = 1, gamma: float = 1.0
    ) -> ReplayBufferSamples:
        """``count`` transitions, drawn evenly, of up to ``n_steps`` steps of one episode each."""
        at = np.random.randint(len(self), size=count)  # noqa: NPY002 - as SB3's buffers draw
        end, reward, discount = at, self.reward[at], np.full(count, gamma, np.float32)
        for _ in range(n_steps - 1):
            on = ~self.last[end]
            end = end + on
            reward = reward + on * discount * self.reward[end]
            discount = np.where(on, gamma * discount, discount)
        columns = (
            self.obs[at],
            self.action[at],
            self.next_obs[end],
            self.done[end, None],
            reward[:, None],
            discount[:, None],
        )
        return ReplayBufferSamples(
            *(torch.as_tensor(c, dtype=torch.float32, device=device) for c in columns)
        )
