"""Observation scaling inside the policy: saved, exported and applied with it."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from robo_rl.rollout.vec_sim import HasWorkspace

Array = np.ndarray

FAR = 10.0  # deviations
_LEAST_STD = 1e-4  # a column that hardly moves is not blown up

# What is looked at before learning: rows that begin anywhere, and push one way from there.
_BEGINNINGS = 256
_PUSHES = 12  # control steps


class ObsNormaliser(nn.Module):
    """``(obs - mean) / std`` with the mean and std of all observations so far.

    Beyond 10 deviations a value goes on with its logarithm: whatever the scale was measured on, no
    two states that differ look the same. ``least_std``, of each column or of all, is the least that
    is taken for a deviation: an error of millimetres in what never moved is no other world. Columns
    whose deviation is above the share ``still`` of that have moved, and keep their own.
    """

    least_std: Tensor
    mean: Tensor
    m2: Tensor
    count: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, obs_dim: int, least_std: float | Array = 0.0, still: float = 1.0):
        super().__init__()
        self.still = still
        self.register_buffer("least_std", torch.zeros(()), persistent=False)
        self.take_at_least(least_std)
        for name, start in (("mean", torch.zeros), ("m2", torch.zeros)):
            self.register_buffer(name, start(obs_dim, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        # What forward uses, in the policy's precision.
        self.register_buffer("shift", torch.zeros(obs_dim))
        self.register_buffer("scale", torch.ones(obs_dim))

    def take_at_least(self, std: float | Array) -> None:
        """Sets ``least_std``."""
        least = torch.as_tensor(std, dtype=torch.float64)
        self.least_std = least.to(self.least_std.device)

    def forward(self, obs: Tensor) -> Tensor:
        """Scaled ``obs`` (N, obs_dim)."""
        scaled = (obs - self.shift) * self.scale
        beyond = torch.clamp(scaled.abs() - FAR, min=0.0)
        return torch.clamp(scaled, -FAR, FAR) + torch.sign(scaled) * torch.log1p(beyond)

    def update(self, obs: Array) -> None:
        """Adds observations (..., obs_dim) to the statistics (Chan et al.'s parallel variance)."""
        rows = torch.as_tensor(obs, dtype=torch.float64).reshape(-1, obs.shape[-1])
        rows = rows.to(self.mean.device)
        count, mean = len(rows), rows.mean(dim=0)
        total, delta = self.count + count, mean - self.mean
        self.m2 += ((rows - mean) ** 2).sum(dim=0) + delta**2 * self.count * count / total
        self.mean += delta * count / total
        self.count += count
        std = torch.sqrt(self.m2 / self.count)
        least = self.least_std.expand_as(std)
        std = torch.where(std < self.still * least, least, std).clamp(min=_LEAST_STD)
        self.shift.copy_(self.mean)
        self.scale.copy_(1.0 / std)


class NormalisedObs(BaseFeaturesExtractor):
    """SB3's hook for what comes before the layers; actor and critics share one normaliser."""

    def __init__(self, observation_space: spaces.Box, normaliser: ObsNormaliser):
        super().__init__(observation_space, observation_space.shape[0])
        self.normaliser = normaliser

    def forward(self, observations: Tensor) -> Tensor:
        return self.normaliser(observations)


def sample_observations(sim: HasWorkspace) -> Array:
    """Observations (k, obs_dim) from all over the workspace, of things at rest and pushed.

    Random actions from where episodes start never get to most of it: a cube is not lifted, a
    drawer not opened. ``sim`` is left as it was made.
    """
    rng = np.random.default_rng(sim.seed)
    seen = []
    for _ in range(-(-_BEGINNINGS // sim.num_envs)):
        seen.append(sim.scatter())
        action = rng.uniform(-1.0, 1.0, (sim.num_envs, sim.act_dim))
        seen += [sim.step(action).obs for _ in range(_PUSHES)]
    sim.reseed(sim.seed)
    return np.concatenate(seen)
