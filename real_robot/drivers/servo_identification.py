"""What a servo's loop is like, from a step test: a straight line below saturation, and its bounds.

Where it is not saturated a loop of P and D gives the duty ``k (error - dead band) - d speed``.
``k`` and ``d`` are least squares for each dead band of a grid, in which only the error beyond it
counts, or the whole error where it is beyond; the best one is taken. Left out are samples before
the servo had heard its goal, those nearest to it, where the start-up force may be more than the
line, and what a standing servo repeats. Intervals are 95 % of a bootstrap over whole steps, whose
samples are not independent, and half an encoder step besides. Where saturation leaves too few
encoder steps to draw a line through, only a bound is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from real_robot.drivers.calibration import UNIT
from real_robot.drivers.servo_step_test import ServoSettings, ServoStep

Array = np.ndarray

UNSATURATED = 0.9  # share of the most
NEAR = 4  # steps: nearer to the goal the start-up force may be more than the line
SPREAD = 6  # encoder steps that a line must be drawn through
FEW = 50  # samples, for a line
STILL = 0.05  # rad/s
DEAD = np.arange(0.0, 33.25, 0.25)  # steps
DRAWS = 300
ZERO = 0.004  # share of the voltage that counts as none


class Estimate(NamedTuple):
    """A number with its interval; a bound that is None was not seen."""

    value: float | None
    low: float | None
    high: float | None
    n: int  # samples, or steps, behind it
    unit: str
    note: str = ""


def identify_servo(
    steps: Sequence[ServoStep], settings: ServoSettings, stall: float, seed: int = 0
) -> dict[str, Estimate]:
    """Everything that ``steps`` tell of a servo whose full voltage makes ``stall`` N m."""
    which = np.concatenate([np.full(len(s.probes), i) for i, s in enumerate(steps)])
    probes = [probe for step in steps for probe in step.probes]
    error = np.array([p.goal - p.position for p in probes], float)  # steps
    speed = np.array([p.speed for p in probes]) * UNIT  # rad/s
    load = np.array([p.load for p in probes]) / settings.limit
    # No document says which way a servo counts these; all is told as the goal counts.
    turned = np.diff([p.position for p in probes], append=probes[-1].position)
    signs = {
        "speed_sign": _sign(speed @ turned, "speed", "position"),
        "load_sign": _sign(load @ error, "load", "error to the goal"),
    }
    speed, load = speed * (signs["speed_sign"].value or 1), load * (signs["load_sign"].value or 1)
    told = identify_loop(which, error, speed, load, stall * settings.limit, seed)
    still = np.abs(speed) < 5.5 * UNIT
    return (
        told
        | signs
        | {
            "start_up_force": _least(np.abs(load[still]) * settings.limit),
            "dead_time": _delay(steps, "load"),
            "first_motion": _delay(steps, "position"),
            "speed_at_saturation": _fastest(speed[np.abs(load) >= 0.98], np.abs(load)),
        }
    )


def identify_loop(
    which: Array, error: Array, speed: Array, load: Array, stall: float, seed: int = 0
) -> dict[str, Estimate]:
    """Stiffness, damping and dead band from samples (m,) of the steps ``which``.

    ``error`` steps, ``speed`` rad/s, ``load`` a share of the most.
    """
    size = np.abs(load)
    used = (size < UNSATURATED) & (np.abs(error) >= NEAR)
    used &= ~_unheard(which, load)
    # A servo that stands says the same again and again: once is enough.
    used[1:] &= (np.diff(error) != 0) | (np.diff(load) != 0) | (np.diff(which) != 0)
    slow = (np.abs(speed) < STILL) & (size > 0.1)
    least = size[slow] / (np.abs(error[slow]) + 0.5) if slow.any() else np.zeros(1)
    bound = float(np.percentile(least, 95))  # share of the most, a step
    if used.sum() < FEW or bound > 1 / SPREAD:
        note = f"it saturates within {SPREAD} encoder steps: no line can be drawn"
        nothing = Estimate(None, None, None, 0, "", note)
        bound *= stall / UNIT
        return {
            "stiffness": Estimate(
                bound, bound, None, int(slow.sum()), "N m/rad", f"at least; {note}"
            ),
            "damping": nothing._replace(unit="N m s/rad"),
            "dead_band": nothing._replace(unit="steps"),
        }
    n = int(used.sum())
    which, error, speed, load = which[used], error[used], speed[used], load[used]
    rows = [_beyond(error, dead, kind) for kind in (True, False) for dead in DEAD]
    beyond = np.array(rows) * UNIT  # (kinds x dead bands, n) rad
    groups = np.unique(which)
    squares, products, total = _sums(which, groups, beyond, speed, load)
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), DRAWS)
    weights = np.vstack([np.ones(len(groups)), draws])  # the first is everything once
    best, slope, damping = _solve(weights, squares, products, total)
    dead = np.tile(DEAD, 2)[best]
    own = 0.5 / max(float(np.abs(error).max()), 1.0)  # what half an encoder step is of the line
    return {
        "stiffness": _interval(slope * stall, own * slope[0] * stall, n, "N m/rad"),
        "damping": _interval(damping * stall, own * abs(damping[0]) * stall, n, "N m s/rad"),
        "dead_band": _interval(
            dead, 0.5, n, "steps", "subtracted" if best[0] < len(DEAD) else "a threshold"
        ),
    }


def _sign(product: float, what: str, other: str) -> Estimate:
    """1 where a register has the sign of another, on the whole."""
    sign = float(np.sign(product))
    return Estimate(sign, sign, sign, 0, "", f"of {what} against {other}")


def _unheard(which: Array, load: Array) -> Array:
    """Samples (m,) of each step before its load changed: it had not heard the goal yet."""
    old = np.zeros(len(which), bool)
    for group in np.unique(which):
        own = np.flatnonzero(which == group)
        changed = load[own] != load[own[0]]
        old[own[: int(changed.argmax()) if changed.any() else len(own)]] = True
    return old


def _beyond(error: Array, dead: float, subtracted: bool) -> Array:
    """What of the error (n,) counts, in steps."""
    outside = np.abs(error) > dead
    return np.where(outside, error - subtracted * dead * np.sign(error), 0.0)


def _sums(
    which: Array, groups: Array, beyond: Array, speed: Array, load: Array
) -> tuple[Array, Array, Array]:
    """Normal equations of each step: (g, d, 3), (g, d, 2), (g,)."""
    squares = np.zeros((len(groups), len(beyond), 3))
    products = np.zeros((len(groups), len(beyond), 2))
    total = np.zeros(len(groups))
    for i, group in enumerate(groups):
        own = which == group
        x, v, y = beyond[:, own], -speed[own], load[own]
        squares[i] = np.stack([(x * x).sum(1), x @ v, np.full(len(x), v @ v)], 1)
        products[i] = np.stack([x @ y, np.full(len(x), v @ y)], 1)
        total[i] = y @ y
    return squares, products, total


def _solve(
    weights: Array, squares: Array, products: Array, total: Array
) -> tuple[Array, Array, Array]:
    """Of each draw (b,): which dead band is best, and slope and damping at it."""
    a, c, b = np.moveaxis(np.einsum("bg,gdk->bdk", weights, squares), -1, 0)
    p, q = np.moveaxis(np.einsum("bg,gdk->bdk", weights, products), -1, 0)
    whole = np.maximum(a * b - c * c, 1e-12)
    slope, damping = (b * p - c * q) / whole, (a * q - c * p) / whole
    left = (weights @ total)[:, None] - slope * p - damping * q
    best = left.argmin(axis=1)
    rows = np.arange(len(best))
    return best, slope[rows, best], damping[rows, best]


def _interval(draws: Array, besides: float, n: int, unit: str, note: str = "") -> Estimate:
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    low, high = min(low, draws[0]), max(high, draws[0])
    return Estimate(float(draws[0]), float(low - besides), float(high + besides), n, unit, note)


def _least(load: Array) -> Estimate:
    """The least that it gives where it gives anything, standing still."""
    some = load[load > ZERO]
    unit = "of the voltage"
    if not len(some):
        return Estimate(None, None, None, 0, unit, "it always gave nothing, standing")
    least = float(some.min())
    same = int((some < least + 0.0025).sum())
    if same < 5:
        return Estimate(None, None, least, same, unit, "at most")
    return Estimate(least, least - 0.002, least + 0.002, same, unit)


def _delay(steps: Sequence[ServoStep], what: str) -> Estimate:
    """From a goal to the first answer: between the last sample without and the first with one."""
    without, with_ = [], []
    for before, step in zip(steps, steps[1:], strict=False):
        if abs(step.change) < 4 or len(before.probes) < 10:
            continue
        rest = np.array([getattr(p, what) for p in before.probes[-10:]], float)
        enough = max(0.02 if what == "load" else 2.0, 2 * np.ptp(rest))
        last = step.told
        for probe in step.probes:
            if abs(getattr(probe, what) - np.median(rest)) >= enough:
                without.append(last - step.told)
                with_.append(probe.t - step.told)
                break
            last = probe.t
    note = "until the load changes" if what == "load" else "until it has moved by two encoder steps"
    if not with_:
        return Estimate(None, None, None, 0, "s", note)
    low, high = float(np.median(without)), float(np.median(with_))
    return Estimate((low + high) / 2, low, high, len(with_), "s", note)


def _fastest(speed: Array, size: Array) -> Estimate:
    """The highest speed at full voltage; a bound unless it stays the same for a while."""
    n, unit = len(speed), "rad/s"
    if not n:
        return Estimate(
            None, None, None, 0, unit, f"it had {size.max():.0%} of the voltage at most"
        )
    top = float(np.abs(speed).max())
    same = int((np.abs(speed) > 0.97 * top).sum())
    if same < 20:
        return Estimate(None, top, None, n, unit, "at least: it was still gaining speed")
    return Estimate(top, 0.97 * top, 1.03 * top, same, unit)
