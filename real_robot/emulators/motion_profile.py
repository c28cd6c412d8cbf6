"""How a servo's setpoint goes to its goal: at a speed and an acceleration, trapezoidal."""

from __future__ import annotations

import math


def advance_profile(
    setpoint: float, speed: float, goal: float, top: float, push: float, dt: float
) -> tuple[float, float]:
    """Setpoint and speed after ``dt`` s, in steps and steps/s.

    ``top`` steps/s and ``push`` steps/s^2 are what its registers allow; 0: as fast as it can.
    """
    if not top and not push:
        return goal, 0.0
    way = goal - setpoint
    stops = math.sqrt(2 * push * abs(way)) if push else math.inf  # steps/s, from which it can stop
    wanted = math.copysign(min(top or math.inf, stops, abs(way) / dt), way)
    change = push * dt if push else math.inf
    speed += min(max(wanted - speed, -change), change)
    return setpoint + speed * dt, speed
