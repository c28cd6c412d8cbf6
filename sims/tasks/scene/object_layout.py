"""Where things lie that must not overlap: circles drawn at random where an arm reaches."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sims.core.rng import RowRng
from sims.core.terms import norm
from sims.robots import Workspace
from sims.tasks.scene.tabletop import polar_to_table

Array = np.ndarray
Rect = tuple[float, float, float, float]

ROOMS = (0.035, 0.025, 0.015, 0.008)  # m between two circles; the first at which they fit
ATTEMPTS, SPOTS = 4, 40  # whole layouts drawn for a row; places tried for a circle of one
PROBED, ENOUGH = 512, 0.5  # rows drawn to see whether circles fit, and the share that must
# Of the places tried for a circle, the share that must be free: with less of it, room between them
# is bought with layouts that are all alike.
EASE = 0.08
PROBE_SEED = 600_000_000  # of those


class TableFullError(ValueError):
    """Circles that the table cannot hold."""


class Circle(NamedTuple):
    """What is laid: the circle that it stands in, and where that may be; m, in the world."""

    radius: float
    part: Rect | None = None  # x from, to, y from, to; None: all of the sector that the arm reaches
    drawn: Rect | None = None  # it stays there: x, y and its half sizes along x and y


class Layout:
    """Random places for circles round which there is room for a finger.

    ``scenery``, boxes as ``Circle.drawn``, is kept clear too. TableFullError where even little room
    is too much; between what stays where it was drawn there may be none.
    """

    def __init__(self, place: Workspace, circles: tuple[Circle, ...], scenery: tuple[Rect, ...]):
        self._place, self._circles = place, circles
        self._fixed = [*scenery, *(c.drawn for c in circles if c.drawn is not None)]
        loose = [i for i, circle in enumerate(circles) if circle.drawn is None]
        # Who may be in few places, and who is large, finds one first.
        self._order = sorted(loose, key=lambda i: (circles[i].part is None, -circles[i].radius))
        rows = np.arange(PROBED)
        for self.room in ROOMS:
            rng = RowRng(PROBE_SEED, rows, np.zeros(PROBED, np.int64))
            spots, clear, ease = self._drawn(rng, PROBED)
            roomy = ease >= EASE or self.room == ROOMS[-1]
            if clear.mean() >= ENOUGH and roomy:
                self._known = spots[clear]
                return
        raise TableFullError(
            f"only {clear.sum()} of {PROBED} random layouts have room for all objects"
        )

    def draw(self, rng: RowRng, n: int) -> Array:
        """Returns places (n, k, 2) m; each environment samples as many numbers, whatever others do.

        A row none of whose layouts has room takes one that is known to.
        """
        spots, clear, _ = self._drawn(rng, n)
        known = self._known[rng.integers(len(self._known))]
        return np.where(clear[:, None, None], spots, known)

    def _drawn(self, rng: RowRng, n: int) -> tuple[Array, Array, float]:
        """(places (n, k, 2), whether they keep apart (n,)) of each row's first good layout; the
        share of places that were free, of the circle that found fewest."""
        k, place = len(self._circles), self._place
        shape = (ATTEMPTS, k, SPOTS)
        share = rng.uniform(0, 1, shape), rng.uniform(0, 1, shape)
        low, high = place.reach[0] ** 2, place.reach[1] ** 2
        radius = np.sqrt(low + (high - low) * share[0])
        angle = place.sector * (2 * share[1] - 1)
        every = polar_to_table(place, radius, angle)  # (n, attempts, k, spots, 2)
        chosen = np.empty((n, ATTEMPTS, k, 2))
        good = np.ones((n, ATTEMPTS), bool)
        for i, circle in enumerate(self._circles):
            if circle.drawn is not None:
                chosen[:, :, i] = circle.drawn[:2]
            if circle.part is not None:
                x0, x1, y0, y1 = circle.part
                along = x0 + (x1 - x0) * share[0][:, :, i], y0 + (y1 - y0) * share[1][:, :, i]
                every[:, :, i] = np.stack(along, axis=-1)
        placed: list[int] = []
        ease = 1.0
        for i in self._order:
            near = self._circles[i].radius + self.room
            apart = np.full((n, ATTEMPTS, SPOTS), np.inf)
            for x, y, wide, deep in self._fixed:
                off = np.maximum(np.abs(every[:, :, i] - (x, y)) - (wide, deep), 0.0)
                apart = np.minimum(apart, norm(off) - near)
            for j in placed:
                gap = norm(every[:, :, i] - chosen[:, :, j, None])
                apart = np.minimum(apart, gap - self._circles[j].radius - near)
            free = apart >= 0.0
            ease = min(ease, float(free.mean()))
            first = np.argmax(free, axis=2)[..., None]
            good &= free.any(axis=2)
            chosen[:, :, i] = np.take_along_axis(every[:, :, i], first[..., None], axis=2)[:, :, 0]
            placed.append(i)
        row, attempt = np.arange(n), np.argmax(good, axis=1)
        return chosen[row, attempt], good[row, attempt], ease


@lru_cache(maxsize=64)
def make_layout(
    place: Workspace, circles: tuple[Circle, ...], scenery: tuple[Rect, ...] = ()
) -> Layout:
    """The layout of circles on an arm's table, made once."""
    return Layout(place, circles, scenery)
