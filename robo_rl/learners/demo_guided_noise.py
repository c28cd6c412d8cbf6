"""Noise that looks where demonstrations go (data-guided noise, DGN).

What a demonstration did, less what the policy would do there, is a direction worth trying, however
little the policy is made to imitate it. A Gaussian around the policy's own action is fitted to
that, by state, with a full covariance; as the policy comes to act as they did, it dies down.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

UNITS, LEAST, MOST = 64, 0.01, 1.0  # of the hidden layer; of a standard deviation


class DemoGuidedNoise(nn.Module):
    """The distribution of what to add to a policy's action (B, act_dim), by its features."""

    def __init__(self, extractor: Any, act_dim: int):
        super().__init__()
        self.extractor, self.act_dim = extractor, act_dim
        self.lower = torch.tril_indices(act_dim, act_dim, -1)
        outputs = act_dim + self.lower.shape[1]
        self.net = nn.Sequential(
            nn.Linear(extractor.features_dim, UNITS), nn.ReLU(), nn.Linear(UNITS, outputs)
        )
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def around(self, obs: Tensor) -> MultivariateNormal:
        """Returns the noise for ``obs`` (B, obs_dim)."""
        out = self.net(self.extractor(obs))
        own = LEAST + (MOST - LEAST) * torch.sigmoid(out[:, : self.act_dim])
        factor = torch.diag_embed(own)
        factor[:, self.lower[0], self.lower[1]] = torch.tanh(out[:, self.act_dim :])
        return MultivariateNormal(torch.zeros_like(own), scale_tril=factor, validate_args=False)

    def learn(self, obs: Tensor, off: Tensor) -> float:
        """Fits the noise to how far (B, act_dim) demonstrations differ from the policy; returns the
        loss."""
        loss = -self.around(obs).log_prob(off).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()
