"""Observation scaling inside the policy: saved, exported and applied with it."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

Array = np.ndarray

_CLIP = 10.0  # deviations
_LEAST_STD = 1e-4  # a column that hardly moves is not blown up


class ObsNormaliser(nn.Module):
    """``clip((obs - mean) / std, -10, 10)`` with the mean and std of all observations so far."""

    def __init__(self, obs_dim: int):
        super().__init__()
        for name, start in (("mean", torch.zeros), ("m2", torch.zeros)):
            self.register_buffer(name, start(obs_dim, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        # What forward uses, in the policy's precision.
        self.register_buffer("shift", torch.zeros(obs_dim))
        self.register_buffer("scale", torch.ones(obs_dim))

    def forward(self, obs: Tensor) -> Tensor:
        """Scaled ``obs`` (N, obs_dim)."""
        return torch.clamp((obs - self.shift) * self.scale, -_CLIP, _CLIP)

    def update(self, obs: Array) -> None:
        """Adds observations (..., obs_dim) to the statistics (Chan et al.'s parallel variance)."""
        rows = torch.as_tensor(obs, dtype=torch.float64).reshape(-1, obs.shape[-1])
        rows = rows.to(self.mean.device)
        count, mean = len(rows), rows.mean(dim=0)
        total, delta = self.count + count, mean - self.mean
        self.m2 += ((rows - mean) ** 2).sum(dim=0) + delta**2 * self.count * count / total
        self.mean += delta * count / total
        self.count += count
        std = torch.sqrt(self.m2 / self.count).clamp(min=_LEAST_STD)
        self.shift.copy_(self.mean)
        self.scale.copy_(1.0 / std)


class NormalisedObs(BaseFeaturesExtractor):
    """SB3's hook for what comes before the layers; actor and critics share one normaliser."""

    def __init__(self, observation_space: spaces.Box, normaliser: ObsNormaliser):
        super().__init__(observation_space, observation_space.shape[0])
        self.normaliser = normaliser

    def forward(self, observations: Tensor) -> Tensor:
        return self.normaliser(observations)
