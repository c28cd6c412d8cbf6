"""Noise that lasts, in each row for another time.

White noise goes nowhere: what it tries in one step it takes back in the next, so a hand that has
closed on a thing never happens to raise it. Noise that lasts (an Ornstein-Uhlenbeck process, as in
DDPG, arXiv:1509.02971) does, and which time is right is not known before; so rows have all of them,
from none to the longest. At any one step it is as large as white noise, so what SAC asks of a
policy's entropy holds as it is.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class CorrelatedNoise(nn.Module):
    """Standard normal numbers (rows, act_dim), those of a row correlated over steps."""

    kept: Tensor
    now: Tensor

    def __init__(self, rows: int, act_dim: int, longest: float):
        """``longest`` control steps, in the last row, until a correlation has fallen to 1/e; in
        the first row each step's noise is its own."""
        super().__init__()
        lasts = np.linspace(0.0, longest, rows)
        with np.errstate(divide="ignore"):
            decay = torch.from_numpy(np.exp(-1.0 / lasts).astype(np.float32))[:, None]
        self.register_buffer("kept", decay, persistent=False)
        self.register_buffer("now", torch.randn(rows, act_dim))

    def forward(self) -> Tensor:
        """Returns the noise (rows, act_dim) of the next step."""
        fresh = (1.0 - self.kept.square()).sqrt()
        self.now = self.kept * self.now + fresh * torch.randn_like(self.now)
        return self.now
