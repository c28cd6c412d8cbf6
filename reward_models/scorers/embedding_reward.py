"""Rewards that are some function of the embeddings of the last frames.

What each kind adds is how embeddings become a number; rendering, encoding, putting together the
frames of one score and laying scores back into a segment are the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from reward_models.base import Encoder, RewardOutput, Segment
from reward_models.vision.clip_score import FrameEmbedder

Array = np.ndarray


@dataclass(frozen=True)
class FrameScores:
    """What ``n`` frames are worth."""

    reward: Array  # (n,)
    components: Mapping[str, Array] = field(default_factory=dict)  # {name: (n,)}
    doubt: Array | None = None  # (n,) disagreement of an ensemble


class EmbeddingReward(ABC):
    """A causal reward model that looks at the last ``context`` frames through one encoder."""

    needs = frozenset({"frames"})
    causal = True
    context = 1
    version = 0
    keeps = False  # whether embeddings are kept with the steps, for it changes while one learns

    def __init__(self, encoder: Encoder):
        self.encoder = encoder

    @property
    def frame_size(self) -> tuple[int, int]:
        """(height, width) px of the frames that it looks at."""
        return self.encoder.size

    @abstractmethod
    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns what frames are worth.

        Args:
            rows: (n, D) unit rows of the frames.
            before: (n, context) int, for each frame the frames before it, as ``frame_histories``.
        """

    def score(self, segment: Segment) -> RewardOutput:
        """Returns the rewards (T, N) of a segment; see ``RewardModel.score``."""
        where = segment.valid
        rows = self._rows(segment)
        rated = self.rate(rows[where], frame_histories(where, self.context))

        def full(values: Array) -> Array:
            out = np.zeros(where.shape, np.float32)
            out[where] = values
            return out

        return RewardOutput(
            reward=full(rated.reward),
            scored=where.copy(),
            components={name: full(values) for name, values in rated.components.items()},
            uncertainty=None if rated.doubt is None else full(rated.doubt),
            rows=rows if self.context > 1 or self.keeps else None,
            version=self.version,
        )

    def _rows(self, segment: Segment) -> Array:
        """(T, N, D) of successors, nan where ``valid`` is not; what is known already is not drawn
        again, so a step costs one frame however far back its score looks."""
        new = segment.valid
        if segment.rows is not None:
            new = new & np.isnan(segment.rows[..., 0])
        if not new.any() and segment.rows is not None:
            return segment.rows
        fresh, _ = FrameEmbedder(self.encoder).embed(replace(segment, valid=new), False)
        rows = np.full((*new.shape, fresh.shape[1]), np.nan, np.float32)
        if segment.rows is not None:
            rows[:] = segment.rows
        rows[new] = fresh
        return rows


def frame_histories(valid: Array, context: int) -> Array:
    """Returns each frame with those before it.

    Args:
        valid: (T, N) bool, with n True entries in row-major order.
        context: The number of frames.

    Returns:
        (n, context) int indices into the n entries: the entry itself, the one before it in its
        column, and so on. The first of a column is repeated, in training and in scoring alike.
    """
    index = np.cumsum(valid.ravel()).reshape(valid.shape) - 1
    count = np.cumsum(valid, axis=0) - 1  # of each entry within its column
    steps, columns = np.nonzero(valid)
    order = np.lexsort((steps, columns))  # column by column
    flat = index[steps[order], columns[order]]
    length = valid.sum(axis=0)
    first = np.concatenate([[0], np.cumsum(length)[:-1]])  # of each column in ``flat``
    own = count[steps, columns]
    back = np.maximum(own[:, None] - np.arange(context), 0)
    return flat[first[columns][:, None] + back] if len(flat) else np.zeros((0, context), int)
