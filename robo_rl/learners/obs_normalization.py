"""Observation scaling inside the policy: saved, exported and applied with it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from robo_rl.rollout.vec_sim import HasWorkspace

Array = np.ndarray

FAR = 10.0  # deviations
# A value that is more than OUTLIER deviations from all others adds to the variance no more than the
# share ADDED of it: one wrong reading ruins no scale, and a column that begins to move has its
# scale after few steps.
OUTLIER, ADDED = 1000.0, 0.1
_FEW = 16  # observations; with fewer no outlier can be recognised
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
        """Sets ``least_std``, one number for all columns or (obs_dim,) numbers in the columns'
        units."""
        least = torch.as_tensor(std, dtype=torch.float64)
        self.least_std = least.to(self.least_std.device)

    def forward(self, obs: Tensor) -> Tensor:
        """Scaled ``obs`` (N, obs_dim)."""
        scaled = (obs - self.shift) * self.scale
        beyond = torch.clamp(scaled.abs() - FAR, min=0.0)
        return torch.clamp(scaled, -FAR, FAR) + torch.sign(scaled) * torch.log1p(beyond)

    def update(self, obs: Array) -> Array:
        """Adds observations (..., obs_dim) to the statistics (Chan et al.'s parallel variance).

        Returns which values (..., obs_dim) bool are outliers, and count as nearer than they are.
        """
        rows = torch.as_tensor(obs, dtype=torch.float64).reshape(-1, obs.shape[-1])
        rows, outliers = self._compress_outliers(rows.to(self.mean.device))
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
        return outliers.numpy(force=True).reshape(obs.shape)

    def _compress_outliers(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(``rows`` with outliers as near as ADDED says, which those are), by the statistics so
        far, or by the rows themselves without the farthest 0.1 % of each column."""
        if self.count >= _FEW:
            centre, spread = self.mean, torch.sqrt(self.m2 / self.count)
        elif len(rows) >= _FEW:
            centre = rows.median(dim=0).values
            away = (rows - centre).abs()
            usual = away.kthvalue(len(rows) - math.ceil(len(rows) / 1000), dim=0).values
            spread = torch.where(away <= usual, away, 0.0).square().mean(dim=0).sqrt()
        else:
            return rows, torch.zeros_like(rows, dtype=torch.bool)
        least = self.least_std.clamp(min=_LEAST_STD)
        # Nothing is known of a column that has never moved.
        spread = torch.where(spread > 0.0, spread.maximum(least), torch.inf)
        away = rows - centre
        outliers = away.abs() > OUTLIER * spread
        if not outliers.any():
            return rows, outliers
        nearer = math.sqrt(ADDED * max(float(self.count), len(rows))) * spread
        return torch.where(outliers, centre + nearer * away.sign(), rows), outliers


class ObsOutlier(UserWarning):
    """An observation is so far from all others that the observation scale leaves it out."""

    one_line = True  # in the shell


def warn_of_outliers(obs: Array, outliers: Array, names: Sequence[str], row: str) -> bool:
    """Whether there are ``outliers`` (..., obs_dim) in ``obs``; an ObsOutlier warning names the
    first: its ``row`` (of the last axis but one) and its column."""
    if not outliers.any():
        return False
    at = tuple(np.argwhere(outliers)[0])
    warnings.warn(
        f"{row} {at[-2]} observed {names[at[-1]]} = {obs[at]:g}, more than {OUTLIER:,.0f} standard "
        "deviations from what was observed before: the observation scale leaves it out",
        ObsOutlier,
        stacklevel=2,
    )
    return True


class NormalisedObs(BaseFeaturesExtractor):
    """SB3's hook for what comes before the layers; actor and critics share one normaliser."""

    def __init__(self, observation_space: spaces.Box, normaliser: ObsNormaliser):
        super().__init__(observation_space, observation_space.shape[0])
        self.normaliser = normaliser

    def forward(self, observations: Tensor) -> Tensor:
        """Returns the scaled observations (N, obs_dim)."""
        return self.normaliser(observations)


def sample_observations(sim: HasWorkspace) -> Array:
    """Observations (k, obs_dim) from all over the workspace, of things at rest and pushed.

    Random actions from where episodes start never get to most of it: a cube is not lifted, a
    drawer not opened. ``sim`` is left as it was made.
    """
    rng = np.random.default_rng(sim.seed)
    observations = []
    for _ in range(-(-_BEGINNINGS // sim.num_envs)):
        observations.append(sim.scatter())
        action = rng.uniform(-1.0, 1.0, (sim.num_envs, sim.act_dim))
        observations += [sim.step(action).obs for _ in range(_PUSHES)]
    sim.reseed(sim.seed)
    return np.concatenate(observations)
