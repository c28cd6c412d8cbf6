"""Arithmetic that success, distances and dense rewards share."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def norm(x: Array) -> Array:
    """Returns the Euclidean length (...,) of vectors (..., k) along the last axis."""
    return np.sqrt(np.einsum("...i,...i->...", x, x))


def near(distance: Array, margin: float) -> Array:
    """Returns a nearness (...,) in (0, 1]: 1 at distance zero, 1/e at ``margin``.

    Args:
        distance: (...,) m, at least 0.
        margin: m, more than 0.
    """
    return np.exp(-distance / margin)


def outside(x: Array, low: float, high: float = np.inf) -> Array:
    """Returns how far (...,) each ``x`` (...,) lies outside [low, high]; 0 inside."""
    return np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)


def box_distance(point: Array, half: Array) -> Array:
    """Returns the distance (...,) m of points (..., 3), in the box's frame, to a box; 0 inside."""
    return norm(np.maximum(np.abs(point) - half, 0.0))


def sphere_distance(point: Array, radius: float) -> Array:
    """Returns the distance (...,) m of points (..., 3), in the sphere's frame, to it; 0 inside."""
    return np.maximum(norm(point) - radius, 0.0)


def cylinder_distance(point: Array, radius: float, half: float) -> Array:
    """Returns the distance (...,) m of points (..., 3), in the cylinder's frame; 0 inside."""
    side = np.maximum(norm(point[..., :2]) - radius, 0.0)
    return np.hypot(side, np.maximum(np.abs(point[..., 2]) - half, 0.0))


def capsule_distance(point: Array, radius: float, half: float) -> Array:
    """Returns the distance (...,) m of points (..., 3), in the capsule's frame; 0 inside."""
    beyond = np.maximum(np.abs(point[..., 2:]) - half, 0.0)
    return np.maximum(norm(np.concatenate([point[..., :2], beyond], axis=-1)) - radius, 0.0)
