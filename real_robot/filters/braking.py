"""Braking: the quickest stop of each joint within its acceleration and jerk, in closed form.

Every stop of the arm rests on this, so it depends on nothing that could fail.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Stop(NamedTuple):
    """A stop of n joints, counted from where they were."""

    qpos: Array  # (n,) rad after one period
    qvel: Array  # (n,) rad/s
    qacc: Array  # (n,) rad/s^2
    end: Array  # (n,) rad where it ends
    low: Array  # (n,) rad, the lowest place on the way
    high: Array  # (n,) rad, the highest
    seconds: float  # until the last joint rests


def brake(
    qpos: Array, qvel: Array, qacc: Array, acceleration: Array, jerk: Array, period: float
) -> Stop:
    """The quickest way to rest from ``qpos`` rad, ``qvel`` rad/s, ``qacc`` rad/s^2, all (n,).

    Jerk takes the acceleration down to -peak, holds it there, and back to zero. Joints that would
    end up moving backwards if the acceleration just ended are mirrored.
    """
    heading = qvel + qacc * np.abs(qacc) / (2 * jerk)  # rad/s, once the acceleration has ended
    side = np.where(heading != 0, np.sign(heading), np.where(qvel < 0, -1.0, 1.0))
    v, a = side * qvel, side * qacc
    peak = np.minimum(acceleration, np.sqrt(np.maximum(jerk * v + a * a / 2, 0.0)))
    down = np.maximum((a + peak) / jerk, 0.0)  # s
    v_held = v + a * down - jerk * down**2 / 2
    up = peak / jerk
    held = np.maximum(v_held - peak * up / 2, 0.0) / np.where(peak > 0, peak, np.inf)

    def at(t: Array) -> tuple[Array, Array, Array]:
        """Way, speed and acceleration (n,) after ``t`` (n,) s."""
        t1 = np.clip(t, 0.0, down)
        x = v * t1 + a * t1**2 / 2 - jerk * t1**3 / 6
        s, b = v + a * t1 - jerk * t1**2 / 2, a - jerk * t1
        t2 = np.clip(t - down, 0.0, held)
        x, s = x + s * t2 + b * t2**2 / 2, s + b * t2
        t3 = np.clip(t - down - held, 0.0, up)
        x = x + s * t3 + b * t3**2 / 2 + jerk * t3**3 / 6
        s, b = s + b * t3 + jerk * t3**2 / 2, b + jerk * t3
        over = t >= down + held + up
        return x, np.where(over, 0.0, s), np.where(over, 0.0, b)

    way, speed, acc = at(np.full_like(v, period))
    end = at(np.full_like(v, np.inf))[0]
    # One that first moves the other way turns where v + a t - jerk t^2 / 2 is zero.
    root = np.sqrt(np.maximum(a * a + 2 * jerk * v, 0.0))
    turns = np.where(v < 0, -2 * v / np.where(a + root > 0, a + root, np.inf), 0.0)
    back = at(turns)[0]
    ends = np.stack([np.zeros_like(v), side * back, side * end])
    return Stop(
        qpos + side * way, side * speed, side * acc, qpos + side * end,
        qpos + ends.min(axis=0), qpos + ends.max(axis=0), float((down + held + up).max()),
    )  # fmt: skip
