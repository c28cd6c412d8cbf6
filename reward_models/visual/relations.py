"""How far a scene is from making a caption true: what the embedded CLIP's training is graded by.

These measures are written from the signals that a task's card lists (positions and the gripper's
direction) and share no code with the success predicates of ``sims``, which judge the policies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray

HALF = 0.02  # m, half the size of a tabletop object
FINGER = 0.06  # m, of the finger above its tip that can touch something
FINGER_RADIUS = 0.006  # m
SOFTNESS = 0.05  # m, at which a caption is true to 1/e


@dataclass(frozen=True)
class Facts:
    """What is known of ``M`` frames."""

    tip: Array  # (M, 3) m
    pointing: Array  # (M, 3) unit
    position: Array  # (M, S, 3) m, of the S objects
    colour: Array  # (M, S) int, index of each object's colour
    kind: Array  # (M, S) int, index of each object's shape
    left: Array  # (3,) the picture's left, in the world

    def __len__(self) -> int:
        return len(self.tip)

    def __getitem__(self, ids: Array | slice) -> Facts:
        return Facts(
            self.tip[ids],
            self.pointing[ids],
            self.position[ids],
            self.colour[ids],
            self.kind[ids],
            self.left,
        )


def outside(x: Array, low: float, high: float = np.inf) -> Array:
    """How far ``x`` lies outside [low, high]."""
    return np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)


def gripper_relations(facts: Facts) -> dict[str, Array]:
    """{predicate: (M, S) m} from the gripper to every object; 0 where the caption is true."""
    offset = facts.tip[:, None] - facts.position  # (M, S, 3)
    back = -facts.pointing[:, None]
    along = np.clip(-np.sum(offset * back, axis=2), 0.0, FINGER)
    nearest = offset + along[..., None] * back
    touch = np.maximum(np.linalg.norm(nearest, axis=2) - HALF - FINGER_RADIUS, 0.0)
    level = np.linalg.norm(offset[..., :2], axis=2)
    # Over its footprint, and clear of it: a hand that rests on the top is not above it.
    above = np.hypot(outside(level, 0.0, HALF), outside(offset[..., 2], 0.05, 0.105))
    return {
        "touch": touch,
        "above": above,
        **beside(offset, facts.left),
        "far": outside(np.linalg.norm(offset, axis=2), 0.19),
    }


def object_relations(facts: Facts) -> dict[str, Array]:
    """{predicate: (M, S, S) m} of object i (axis 1) towards object j (axis 2)."""
    offset = facts.position[:, :, None] - facts.position[:, None]
    level = np.linalg.norm(offset[..., :2], axis=3)
    return {
        "next_to": outside(level, 0.0, 0.045),
        **beside(offset, facts.left),
        "far": outside(level, 0.17),
    }


def beside(offset: Array, left: Array) -> dict[str, Array]:
    """Left and right of, from offsets (..., 3) m of the subject from the reference."""
    aside = offset @ left
    depth = outside(offset @ np.cross(left, (0.0, 0.0, 1.0)), -0.045, 0.045)
    return {
        "left_of": np.hypot(outside(aside, 0.055), depth),
        "right_of": np.hypot(outside(-aside, 0.055), depth),
    }


def truth(distance: Array) -> Array:
    """Graded truth in (0, 1) of a distance m: exp(-d / SOFTNESS), held off both ends."""
    return np.clip(np.exp(-distance / SOFTNESS), 0.005, 0.985)
