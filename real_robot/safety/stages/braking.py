"""Braking: the quickest stop of each joint within its acceleration and jerk, in closed form.

Every stop of the arm rests on this, so it depends on nothing that could fail.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

Array = np.ndarray

_BUILDING = 1 / 6  # of the time to stop, kept for acceleration to end


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
    joints = zip(*(x.tolist() for x in (qpos, qvel, qacc, acceleration, jerk)), strict=True)
    after, speed, acc, end, low, high, seconds = zip(
        *(_joint(*joint, period) for joint in joints), strict=True
    )
    return Stop(
        np.array(after),
        np.array(speed),
        np.array(acc),
        np.array(end),
        np.array(low),
        np.array(high),
        max(seconds),
    )


def max_stopping_speed(seconds: float, acceleration: Array, jerk: Array) -> tuple[Array, Array]:
    """Speeds (n,) rad/s and accelerations (n,) rad/s^2 within which a stop takes ``seconds`` at
    most, whatever the joints are about.

    What builds up speed must end before a stop can begin, so it gets a part of the time: from the
    most acceleration on the way to the most speed the stop is the longest that there is, and as
    long as these two together. Full ``acceleration`` (n,), built up by ``jerk`` (n,), is kept for
    the stop.
    """
    building = np.minimum(acceleration, _BUILDING * seconds * jerk)
    left = seconds - building / jerk  # s, for the stop from full speed
    triangle = left < 2 * acceleration / jerk  # the stop never gets to full acceleration
    full = acceleration * (left - acceleration / jerk)
    return np.where(triangle, jerk * left**2 / 4, full), building


def _joint(
    qpos: float, qvel: float, qacc: float, acceleration: float, jerk: float, period: float
) -> tuple[float, ...]:
    """The fields of a stop of one joint: half a dozen numbers are quicker without numpy."""
    heading = qvel + qacc * abs(qacc) / (2 * jerk)  # rad/s, once the acceleration has ended
    side = math.copysign(1.0, heading or qvel)
    v, a = side * qvel, side * qacc
    peak = min(acceleration, math.sqrt(max(jerk * v + a * a / 2, 0.0)))
    down = max((a + peak) / jerk, 0.0)  # s
    up = peak / jerk
    flat = a - jerk * down  # rad/s^2 that is held
    x1, v1 = down * (v + down * (a / 2 - jerk * down / 6)), v + down * (a - jerk * down / 2)
    held = max(v1 - peak * up / 2, 0.0) / peak if peak > 0 else 0.0
    x2, v2 = x1 + held * (v1 + flat * held / 2), v1 + flat * held
    end = side * (x2 + up * (v2 + up * (flat / 2 + jerk * up / 6)))

    def at(t: float) -> tuple[float, float, float]:
        """Way, speed and acceleration after ``t`` s."""
        if t < down:
            x, s = t * (v + t * (a / 2 - jerk * t / 6)), v + t * (a - jerk * t / 2)
            return x, s, a - jerk * t
        t -= down
        if t < held:
            return x1 + t * (v1 + flat * t / 2), v1 + flat * t, flat
        t -= held
        if t < up:
            x, s = x2 + t * (v2 + t * (flat / 2 + jerk * t / 6)), v2 + t * (flat + jerk * t / 2)
            return x, s, flat + jerk * t
        return side * end, 0.0, 0.0

    way, speed, acc = at(period)
    back = 0.0
    if v < 0:  # first the other way, and it turns where v + a t - jerk t^2 / 2 is zero
        root = a + math.sqrt(max(a * a + 2 * jerk * v, 0.0))
        back = side * at(-2 * v / root if root > 0 else 0.0)[0]
    return (
        qpos + side * way,
        side * speed,
        side * acc,
        qpos + end,
        qpos + min(0.0, back, end),
        qpos + max(0.0, back, end),
        down + held + up,
    )
