"""Steady: where things are, from looks that tremble, since most things mostly lie still.

A Kalman filter of a constant position for each thing, one variance for its three axes. A thing
that lies still is known better with every look. One that is seen farther away than noise explains
has moved: what was known of it is then worth as little as that look says, so that a push is
followed at once. The bridge on a real arm filters what it perceives with this; randomised rows see
through it, too.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

NOISE = 0.002  # m, standard deviation of a seen position on each axis
DRIFT = 0.001  # m/sqrt(s), by which a thing may wander without being noticed
MOVED = 2.0  # standard deviations, root mean square of the axes, that noise does not explain


def kalman_update(
    known: Array, variance: Array, seen: Array, elapsed: Array | float, noise: float, drift: float
) -> tuple[Array, Array, Array]:
    """Returns position (..., 3) m, its variance (...,) m^2 and the gain (...,) after a measurement.

    ``known`` (..., 3) with ``variance`` (...,) is from ``elapsed`` (...,) s before ``seen``
    (..., 3); the gain is the share of the way to what was seen.
    """
    wandered = variance + drift**2 * elapsed
    away = seen - known
    square = np.einsum("...i,...i->...", away, away) / 3.0
    wandered = np.where(square > MOVED**2 * (wandered + noise**2), square, wandered)
    total = wandered + noise**2
    gain = np.divide(wandered, total, out=np.zeros_like(total), where=total > 0)
    return known + gain[..., None] * away, gain * noise**2, gain
