"""Embeddings of what was seen at the last steps of a trace, for models that look at it again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.rollout.ring_buffers import restore_ring, ring_pieces
from robo_rl.runtime.memory import check_free
from sims.utils.prefixed_dict import add_prefix

Array = np.ndarray


class Embeddings:
    """Embeddings of the newest ``room`` steps of ``rows`` environments, ``width`` numbers each."""

    def __init__(self, room: int, rows: int, width: int, first: int):
        """ValueError where there is no memory for so many."""
        what = f"what was seen in {room * rows:,} steps is kept, {width} numbers of each"
        check_free(4.0 * room * rows * width, what, "give less of --tuning.buffer-size")
        # Zeros, not nan: of what is not filled yet the system then takes no memory.
        self._ring = np.zeros((room, rows, width), np.float32)
        self._seen = np.zeros((room, rows), bool)
        self._first, self._end = first, first  # steps that it was ever told of

    def at(self, steps: Array, rows: Array) -> Array:
        """(L, C, width) of ``steps`` (L, C) of ``rows`` (C,), nan where none is kept."""
        there = (steps >= self._oldest) & (steps < self._end)
        known = there & self._seen[steps % len(self._ring), rows]
        found = np.full((*steps.shape, self._ring.shape[2]), np.nan, np.float32)
        found[known] = self._ring[self._places(steps, rows, known)]
        return found

    def reach(self, end: int) -> None:
        """Makes room for the steps before ``end``, where that of the oldest is needed."""
        room = len(self._ring)
        self._seen[np.arange(max(self._end, end - room), end) % room] = False
        self._end = max(self._end, end)

    def put(self, steps: Array, rows: Array, new: Array, where: Array) -> None:
        """Keeps ``new`` (L, C, width) of ``steps`` (L, C) of ``rows`` (C,), where that is so (L, C)
        and they are not nan."""
        where = where & ~np.isnan(new[..., 0]) & (steps >= self._oldest)
        at = self._places(steps, rows, where)
        self._ring[at], self._seen[at] = new[where], True

    def _places(self, steps: Array, rows: Array, where: Array) -> tuple[Array, Array]:
        return steps[where] % len(self._ring), np.broadcast_to(rows, steps.shape)[where]

    @property
    def _oldest(self) -> int:
        return max(self._first, self._end - len(self._ring))

    def state_dict(self) -> dict[str, Array]:
        """Returns the stored embeddings.

        Returns:
            ``shape`` (3,), ``span`` (2,) of the oldest step and the end, and the pieces of ``ring``
            (k, rows, width) and ``seen`` (k, rows).
        """
        span = self._oldest, self._end
        return {
            "shape": np.array(self._ring.shape),
            "span": np.array(span),
            **add_prefix("ring", ring_pieces(self._ring, *span)),
            **add_prefix("seen", ring_pieces(self._seen, *span)),
        }

    @classmethod
    def from_state_dict(cls, saved: Mapping[str, Array]) -> Embeddings:
        """Restores the embeddings (capacity, rows, width) from what ``state_dict`` returned."""
        first, end = (int(step) for step in saved["span"])
        store = cls(*saved["shape"].tolist(), first)
        store._end = end
        restore_ring(saved, "ring", store._ring, first)
        restore_ring(saved, "seen", store._seen, first)
        return store
