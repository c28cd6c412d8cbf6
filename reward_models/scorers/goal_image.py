"""A goal picture's reward: how like it the frame is, in the space of one encoder.

- ``cosine``: x . g (LIV, arXiv:2306.00958)
- ``distance``: -|x - g| (VIP, arXiv:2210.00030)

of unit rows x against the row g of the picture; of several pictures the nearest one counts. On unit
rows both order frames alike; the second is steeper close to the goal. The score becomes phi by its
quantiles over the scene's states, as a sentence's does (``vision/clip_score.py``).

It fails where a picture shows more than the goal. A picture of a gripper at a cube also shows where
the cube lies, and what else is there: a frame with the goal met elsewhere is no more like it than
one with the gripper beside the cube. Then one picture is not enough; many of them, with things
lying differently, are a crude memory of what the goal looks like.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from reward_models.base import Encoder, Segment
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from reward_models.vision.clip_score import QUANTILES, FrameEmbedder, progress

Array = np.ndarray
Likeness = Literal["cosine", "distance"]


class GoalImage(EmbeddingReward):
    """Likeness to the nearest of some pictures; see the module's text."""

    def __init__(self, encoder: Encoder, goals: Array, formula: Likeness = "cosine"):
        """Takes the pictures of a goal.

        Args:
            encoder: What gives frames their rows.
            goals: (k, D) unit rows of the pictures.
            formula: How likeness is measured.

        Raises:
            ValueError: ``goals`` is not of shape (k, D), or holds no picture.
        """
        super().__init__(encoder)
        if goals.ndim != 2 or not len(goals):
            raise ValueError(
                f"goals must have shape (k, D) with at least one picture, got {goals.shape}"
            )
        self.goals, self.formula = goals, formula
        self.scale = 0.0, 1.0  # raw scores that are phi 0 and 1

    def raw(self, rows: Array) -> Array:
        """Returns the likeness (n,) of unit rows (n, D), before calibration."""
        cosine = (rows @ self.goals.T).max(axis=1)
        if self.formula == "cosine":
            return cosine
        return -np.sqrt(np.maximum(2.0 - 2.0 * cosine, 0.0))

    def calibrate(self, segment: Segment) -> None:
        """Sets phi's scale from the scores of a segment's states; call once, before training."""
        rows, _ = FrameEmbedder(self.encoder).embed(segment, False)
        low, high = np.quantile(self.raw(rows), QUANTILES)
        self.scale = float(low), float(high)

    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns the scores (n,) of frames with unit rows (n, D); see ``EmbeddingReward.rate``."""
        low, high = self.scale
        return FrameScores(progress((self.raw(rows) - low) / max(high - low, 1e-6)))
