"""Rings of steps as checkpoints have them: in pieces, so that none is ever copied as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sims.utils.prefixed_dict import select_prefix

Array = np.ndarray

PIECE = 64 << 20  # bytes


def ring_pieces(ring: Array, first: int, end: int) -> dict[str, Array]:
    """{number: (k, ...)} views of the steps ``first`` up to ``end`` of a ring (capacity, ...), in
    which step ``t`` lies at ``t % capacity``; in turn."""
    return {f"{i:05d}": ring[at] for i, at in enumerate(_slices(ring, first, end))}


def restore_ring(saved: Mapping[str, Array], name: str, ring: Array, first: int) -> None:
    """Writes the pieces (k, ...) that ``ring_pieces`` made back into a ring.

    Args:
        saved: The saved arrays, among them the pieces.
        name: The name under which the pieces were saved.
        ring: (capacity, ...) the ring, which is written.
        first: The step of the first entry of the first piece.
    """
    of = select_prefix(saved, name)
    for number in sorted(of):
        part = of[number]
        ring[np.arange(first, first + len(part)) % len(ring)] = part
        first += len(part)


def _slices(ring: Array, first: int, end: int) -> Iterator[slice]:
    most = max(1, PIECE // max(1, ring[:1].nbytes))
    while first < end:
        at = first % len(ring)
        count = min(most, end - first, len(ring) - at)
        yield slice(at, at + count)
        first += count
