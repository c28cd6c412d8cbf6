"""Where things lie that must not overlap: circles drawn at random in the sector an arm reaches."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sims.rng import RowRng
from sims.robots import Workspace
from sims.tasks.tabletop import polar
from sims.terms import norm

Array = np.ndarray

ROOMS = (0.035, 0.025, 0.015, 0.008)  # m between two circles; the first at which they fit
ATTEMPTS, SPOTS = 4, 40  # whole layouts drawn for a row; places tried for a circle of one
PROBED, ENOUGH = 512, 0.5  # rows drawn to see whether circles fit, and the share that must
PROBE_SEED = 600_000_000  # of those


class NoRoom(ValueError):
    """Circles that the sector cannot hold."""


class Layout:
    """Random places for circles of ``radii`` (k,) m round which there is room for a finger.

    ``fixed`` (f, 3) are circles that lie somewhere already: x, y and radius, m. NoRoom where even
    little room is too much.
    """

    def __init__(self, place: Workspace, radii: tuple[float, ...], fixed: Array):
        self._place, self._radii, self._fixed = place, np.asarray(radii), fixed
        self._order = np.argsort(-self._radii, kind="stable")  # the largest finds a place first
        rows = np.arange(PROBED)
        for self.room in ROOMS:
            rng = RowRng(PROBE_SEED, rows, np.zeros(PROBED, np.int64))
            spots, clear = self._drawn(rng, PROBED)
            if clear.mean() >= ENOUGH:
                self._known = spots[clear]
                return
        raise NoRoom(f"of {PROBED} random layouts {clear.sum()} have room for all")

    def draw(self, rng: RowRng, n: int) -> Array:
        """Places (n, k, 2) m; every row draws as many numbers, whatever the other rows draw.

        A row none of whose layouts has room takes one that is known to.
        """
        spots, clear = self._drawn(rng, n)
        known = self._known[rng.integers(len(self._known))]
        return np.where(clear[:, None, None], spots, known)

    def _drawn(self, rng: RowRng, n: int) -> tuple[Array, Array]:
        """(places (n, k, 2), whether they keep apart (n,)) of each row's first good layout."""
        k, place = len(self._radii), self._place
        shape = (ATTEMPTS, k, SPOTS)
        radius = np.sqrt(rng.uniform(place.reach[0] ** 2, place.reach[1] ** 2, shape))
        angle = rng.uniform(-place.sector, place.sector, shape)
        every = polar(place, radius, angle)  # (n, attempts, k, spots, 2)
        chosen = np.empty((n, ATTEMPTS, k, 2))
        good = np.ones((n, ATTEMPTS), bool)
        placed: list[int] = []
        for i in self._order:
            near = self._radii[i] + self.room
            apart = np.full((n, ATTEMPTS, SPOTS), np.inf)
            for x, y, r in self._fixed:
                apart = np.minimum(apart, norm(every[:, :, i] - (x, y)) - r - near)
            for j in placed:
                gap = norm(every[:, :, i] - chosen[:, :, j, None]) - self._radii[j] - near
                apart = np.minimum(apart, gap)
            first = np.argmax(apart >= 0.0, axis=2)[..., None]
            good &= (apart >= 0.0).any(axis=2)
            chosen[:, :, i] = np.take_along_axis(every[:, :, i], first[..., None], axis=2)[:, :, 0]
            placed.append(int(i))
        row, attempt = np.arange(n), np.argmax(good, axis=1)
        return chosen[row, attempt], good[row, attempt]


@lru_cache(maxsize=64)
def layout(
    place: Workspace,
    radii: tuple[float, ...],
    fixed: tuple[tuple[float, float, float], ...] = (),
) -> Layout:
    """The layout of circles on an arm's table, made once."""
    return Layout(place, radii, np.asarray(fixed, float).reshape(-1, 3))
