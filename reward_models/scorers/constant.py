"""The control that shows what a policy learns from nothing."""

from __future__ import annotations

import numpy as np

from reward_models.base import RewardOutput, Segment


class Constant:
    """The same reward, 0, everywhere."""

    needs: frozenset[str] = frozenset()
    context, causal = 1, True

    def score(self, segment: Segment) -> RewardOutput:
        """Returns zeros (T, N); see ``RewardModel.score``."""
        return RewardOutput(np.zeros(segment.valid.shape, np.float32), segment.valid.copy())
