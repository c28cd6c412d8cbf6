"""Ways to paint a scene's things, so that colour and shape must both be read in its frames.

With the colours that are there exchanged, or in any colours; what a thing is called follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reward_models.base import from_dict
from reward_models.goals.predicates import GRIPPER, role
from sims.core.task import Task
from sims.tasks.scene.named_objects import COLOURS

Array = np.ndarray

PAINTS = 6  # ways to paint a scene in its own colours, at most


@dataclass(frozen=True)
class Recoloring:
    """One way to paint a scene's things: each has the colour of another."""

    rgba: Mapping[str, Array] = field(compare=False)  # {geom: (4,)}; {}: as they are
    colours: Mapping[str, str]  # {entity: colour}


def recolorings(task: Task[Any]) -> list[Recoloring]:
    """As the scene is, and with the colours of its loose things exchanged.

    Only where each thing's name is its colour and shape, and stays the only one of that name.
    """
    things = [t for t in getattr(task, "objects", ()) if t.colour]
    own = Recoloring({t.name: np.asarray(t.rgba) for t in things}, {})
    if len(things) < 2 or any(t.name != f"{t.colour}_{t.kind}" for t in things):
        return [Recoloring({}, {})]
    found = [own]
    for order in itertools.permutations(range(len(things))):
        given = [things[i] for i in order]
        colours = {t.name: g.colour for t, g in zip(things, given, strict=True)}
        names = {f"{colour}_{t.kind}" for t, colour in zip(things, colours.values(), strict=True)}
        if list(order) != sorted(order) and len(names) == len(things):
            rgba = {t.name: np.asarray(g.rgba) for t, g in zip(things, given, strict=True)}
            found.append(Recoloring(rgba, colours))
    return found[:PAINTS]


def random_recolorings(task: Task[Any], count: int, rng: np.random.Generator) -> list[Recoloring]:
    """So many ways to paint things in any colours, each alone of its colour and kind."""
    kinds = {e.name: e.kind for e in from_dict(task.card()).entities if role(e) != GRIPPER}
    found: list[Recoloring] = []
    while len(found) < count:
        drawn = map(str, rng.choice([*COLOURS], len(kinds)))
        colours = dict(zip(kinds, drawn, strict=True))
        if len({(colour, kinds[name]) for name, colour in colours.items()}) == len(kinds):
            rgba = {name: np.array(COLOURS[colour]) for name, colour in colours.items()}
            found.append(Recoloring(rgba, colours))
    return found


def recolorings_without(
    paints: Sequence[Recoloring], task: Task[Any], things: Sequence[str]
) -> list[Recoloring]:
    """Returns those of ``paints`` in which no object looks like one of ``things`` ("red ball").

    Raises:
        ValueError: None is left.
    """
    remaining = [paint for paint in paints if not object_looks(paint, task) & set(things)]
    if not remaining:
        raise ValueError(
            f"{task.name} without {', '.join(things)}: no recolouring of its objects is left"
        )
    return remaining


def object_looks(paint: Recoloring, task: Task[Any]) -> set[str]:
    """Colour and kind of every loose thing, as it is painted: ``red ball``."""
    things = getattr(task, "objects", ())
    return {f"{paint.colours.get(thing.name, thing.colour)} {thing.kind}" for thing in things}
