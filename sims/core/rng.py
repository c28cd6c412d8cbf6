"""Random numbers for rows: each row draws from its own stream, whatever the other rows do.

The stream is a counter-based Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC 2011) keyed by (seed, row) with the counter (episode, draw): row k of 4,096 draws the
same numbers as row k alone, and one numpy pass serves every row.
"""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
JUDGING = 500_000_000  # from this seed on, episodes judge policies; nothing is trained on them
FAR = 1 << 20  # more draws than any start takes
CONSTANT = 1 << 40  # the place of a draw that nothing else comes to
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox4x32(counter: Array, key: Array) -> Array:
    """Returns random words (n, 4) below 2**32 of ``counter`` (n, 4) and ``key`` (n, 2), uint64."""
    c0, c1, c2, c3 = (counter[:, i].copy() for i in range(4))
    k0, k1 = key[:, 0].copy(), key[:, 1].copy()
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return np.stack([c0, c1, c2, c3], axis=1)


class RowRng:
    """Draws for rows ``rows`` (n,) in their episodes ``episodes`` (n,); axis 0 is the row."""

    def __init__(self, seed: int, rows: Array, episodes: Array):
        self._key = np.stack(
            [np.full(len(rows), seed & 0xFFFFFFFF, np.uint64), rows.astype(np.uint64)], axis=1
        )
        # 64 bits of seed: the upper half lives in the counter, which has room for it.
        self._high = np.uint64((seed >> 32) & 0xFFFFFFFF)
        self._episodes = episodes.astype(np.uint64)
        self._drawn = 0

    def part(self, where: Array) -> RowRng:
        """Returns the streams of the environments where ``where`` (n,) is True, which continue."""
        part = object.__new__(RowRng)
        part._key, part._episodes = self._key[where], self._episodes[where]
        part._high, part._drawn = self._high, self._drawn
        return part

    def leave(self) -> None:
        """Goes on far behind whatever ``part``s have drawn, each its own count of it."""
        self._drawn = (self._drawn // FAR + 1) * FAR

    def _unit(self, shape: tuple[int, ...]) -> Array:
        """(n, *shape) in [0, 1) with 53 random bits."""
        n, each = len(self._key), math.prod(shape)
        blocks = -(-each // 2)  # one block of four words holds two doubles
        draw = np.arange(self._drawn, self._drawn + blocks, dtype=np.uint64)
        self._drawn += blocks
        counter = np.empty((n, blocks, 4), np.uint64)
        counter[..., 0], counter[..., 1] = draw, self._episodes[:, None] & _LOW
        counter[..., 2], counter[..., 3] = self._episodes[:, None] >> _32, self._high
        words = philox4x32(counter.reshape(-1, 4), np.repeat(self._key, blocks, axis=0))
        high, low = words[:, 0::2] >> np.uint64(5), words[:, 1::2] >> np.uint64(6)
        unit = (high * np.float64(2**26) + low) / 2**53
        return unit.reshape(n, 2 * blocks)[:, :each].reshape(n, *shape)

    def constant(self) -> Array:
        """Returns numbers (n,) in [0, 1) that are the same at every call within an episode."""
        drawn, self._drawn = self._drawn, CONSTANT
        unit = self._unit(())
        self._drawn = drawn
        return unit

    def uniform(self, low: object, high: object, shape: tuple[int, ...] = ()) -> Array:
        """Returns uniform numbers (n, *shape) in [low, high); bounds broadcast to ``shape``."""
        low = np.asarray(low, float)
        return low + (np.asarray(high, float) - low) * self._unit(shape)

    def normal(self, shape: tuple[int, ...] = ()) -> Array:
        """Returns standard normal numbers (n, *shape), by Box and Muller's transform."""
        radius = np.sqrt(-2.0 * np.log1p(-self._unit(shape)))
        return radius * np.cos(2 * np.pi * self._unit(shape))

    def integers(self, high: int, shape: tuple[int, ...] = ()) -> Array:
        """Returns integers (n, *shape) in [0, high)."""
        return (self._unit(shape) * high).astype(np.int64)
