"""All captions that the embedded CLIP is trained on, and how true each is of a frame."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from reward_models.visual.relations import Facts, gripper_relations, object_relations, truth

Array = np.ndarray

COLOURS = ("red", "blue", "green")
KINDS = ("cube", "ball", "cylinder")
GRIPPER = {
    "touch": "the gripper touches the {}",
    "above": "the gripper is above the {}",
    "left_of": "the gripper is left of the {}",
    "right_of": "the gripper is right of the {}",
    "far": "the gripper is far from the {}",
}
OBJECTS = {
    "next_to": "the {} is next to the {}",
    "left_of": "the {} is left of the {}",
    "right_of": "the {} is right of the {}",
    "far": "the {} is far from the {}",
}


@dataclass(frozen=True)
class Name:
    """A way to call an object: by colour, by shape, or by both; -1 leaves one open."""

    text: str
    colour: int
    kind: int

    def fits(self, facts: Facts) -> Array:
        """(M, S) bool: which objects of each frame bear this name."""
        colour = (facts.colour == self.colour) | (self.colour < 0)
        return colour & ((facts.kind == self.kind) | (self.kind < 0))


FULL = tuple(
    Name(f"{colour} {kind}", i, j)
    for i, colour in enumerate(COLOURS)
    for j, kind in enumerate(KINDS)
)
SHORT = tuple(Name(f"{c} object", i, -1) for i, c in enumerate(COLOURS)) + tuple(
    Name(k, -1, j) for j, k in enumerate(KINDS)
)
PAIRS = tuple(
    (a, b) for a, b in itertools.product(FULL, FULL) if a.colour != b.colour and a.kind != b.kind
)
CAPTIONS = (
    *(text.format(name.text) for text in GRIPPER.values() for name in (*FULL, *SHORT)),
    *(text.format(a.text, b.text) for text in OBJECTS.values() for a, b in PAIRS),
)


def grade(facts: Facts) -> tuple[Array, Array]:
    """(truth (M, C) in [0, 1], weight (M, C)) of every caption in CAPTIONS for every frame.

    A caption about something that is not in the frame is false; such captions weigh little, for
    they are the majority. Objects of one scene differ in colour and in shape, so a name fits one
    object at most.
    """
    m, slots = facts.colour.shape
    gripper = {p: truth(d) for p, d in gripper_relations(facts).items()}  # (M, S)
    objects = {p: truth(d) for p, d in object_relations(facts).items()}  # (M, S, S)
    slot = {}
    for name in (*FULL, *SHORT):
        fits = name.fits(facts)
        slot[name] = np.where(fits.any(axis=1), fits.argmax(axis=1), slots)
    rows = np.arange(m)
    truths, weights = [], []
    for predicate in GRIPPER:
        padded = np.concatenate([gripper[predicate], np.full((m, 1), 0.005)], axis=1)
        for name in (*FULL, *SHORT):
            truths.append(padded[rows, slot[name]])
            weights.append(np.where(slot[name] < slots, 1.0, 0.15))
    for predicate in OBJECTS:
        padded = np.pad(objects[predicate], ((0, 0), (0, 1), (0, 1)), constant_values=0.005)
        for a, b in PAIRS:
            truths.append(padded[rows, slot[a], slot[b]])
            present = (slot[a] < slots) & (slot[b] < slots)
            weights.append(np.where(present, 1.0, 0.05))
    return (
        np.stack(truths, axis=1).astype(np.float32),
        np.stack(weights, axis=1).astype(np.float32),
    )
