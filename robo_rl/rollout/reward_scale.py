"""Reward scaling: returns of about the same size, whatever units a reward was written in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from stable_baselines3.common.running_mean_std import RunningMeanStd

Array = np.ndarray

_CLIP = 10.0  # deviations
# A return farther than _OUTLIER deviations from all before adds that share to the variance.
_OUTLIER, _ADDED, _FEW = 1000.0, 0.1, 16
_LEAST_STD = 1e-4  # a reward that hardly varies is not blown up


class RewardScale:
    """Divides rewards by the deviation of the discounted return so far, never shifting them.

    What SB3's VecNormalize does to a simulator's reward, here also for rewards that are scored
    after the rollout. PPO's value loss has the size of the squared return and shares one gradient
    limit with the policy's: a reward of hundreds would leave the policy none of it.
    """

    def __init__(self, num_envs: int, gamma: float):
        self.gamma = gamma
        self._return, self._stats = np.zeros(num_envs), RunningMeanStd(shape=())

    def __call__(self, reward: Array, done: Array) -> Array:
        """Scaled rewards (N,) f32 of one step; ``done`` (N,) bool ends the episode after it."""
        self._return = self._nearer(self.gamma * self._return + reward)
        self._stats.update(self._return)
        self._return[done] = 0.0
        std = max(float(np.sqrt(self._stats.var)), _LEAST_STD)
        return np.clip(reward / std, -_CLIP, _CLIP).astype(np.float32)

    def _nearer(self, returns: Array) -> Array:
        """``returns`` of which none is so far from those before that it alone is the scale."""
        if self._stats.count < _FEW:
            return returns
        away, std = returns - self._stats.mean, max(float(np.sqrt(self._stats.var)), _LEAST_STD)
        nearer = self._stats.mean + np.sqrt(_ADDED * self._stats.count) * std * np.sign(away)
        return np.where(np.abs(away) > _OUTLIER * std, nearer, returns)

    def state_dict(self) -> dict[str, Array]:
        """Returns the running returns, ``return`` (N,), and their mean, variance and count,
        ``stats`` (3,)."""
        stats = np.array([self._stats.mean, self._stats.var, self._stats.count], np.float64)
        return {"return": self._return.copy(), "stats": stats}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays, (N,) and (3,), that ``state_dict`` returned."""
        self._return[:] = saved["return"]
        self._stats.mean, self._stats.var, count = np.array(saved["stats"])
        self._stats.count = float(count)
