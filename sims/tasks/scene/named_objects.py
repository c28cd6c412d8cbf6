"""Things by their names: "yellow ball, two red cubes, white plate" as what stands on a table."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import mujoco

from sims.core.task import Entity
from sims.tasks.scene.manipulation import Fixture, Placement
from sims.tasks.scene.scene_objects import SceneObject

MOST = 6
Rgba = tuple[float, float, float, float]

COLOURS: dict[str, Rgba] = {
    "red": (0.90, 0.08, 0.06, 1.0),
    "orange": (1.00, 0.45, 0.02, 1.0),
    "yellow": (0.95, 0.85, 0.10, 1.0),
    "green": (0.05, 0.75, 0.12, 1.0),
    "blue": (0.06, 0.18, 0.95, 1.0),
    "purple": (0.45, 0.10, 0.70, 1.0),
    "pink": (1.00, 0.55, 0.70, 1.0),
    "white": (0.95, 0.95, 0.95, 1.0),
    "grey": (0.45, 0.45, 0.48, 1.0),
    "black": (0.04, 0.04, 0.05, 1.0),
}
# kind: what else people call it.
SHAPES: dict[str, tuple[str, ...]] = {
    "cube": ("block", "box", "brick"),
    "ball": ("sphere", "orb"),
    "cylinder": ("can", "tube"),
    "plate": ("disc", "disk", "dish", "mark", "spot", "pad", "coaster"),
}
# What a size is called, and how many times the usual it is.
SIZES: dict[str, tuple[tuple[str, ...], float]] = {
    "small": (("small", "tiny"), 0.75),
    "large": (("large", "big"), 1.3),
}
_COUNTED = "one two three four five six seven eight nine ten".split()
NUMBERS = {word: i for i, word in enumerate(_COUNTED, 1)}
HALF: dict[str, tuple[float, ...]] = {  # m, of the usual size: as ``SceneObject.size``
    "cube": (0.02, 0.02, 0.02),
    "ball": (0.021,),
    "cylinder": (0.019, 0.024),
    "plate": (0.04,),
}
THICK = 0.001  # m, half the height of a plate: a mark, in nobody's way
LOOSE = ("touch", "push", "lift", "place")
FLAT_TOPPED = ("cube", "cylinder")  # on which others stand

_WORDS = {
    word: shape
    for shape, others in SHAPES.items()
    for one in (shape, *others)
    for word in (one, f"{one}es" if one.endswith(("x", "sh")) else f"{one}s")
}
_SIZED = {word: size for size, (words, _) in SIZES.items() for word in words}
_SPELT = {"gray": "grey"}


@dataclass(frozen=True)
class ObjectDescription:
    """One thing as it was asked for."""

    colour: str
    shape: str
    size: str = ""

    @property
    def name(self) -> str:
        return "_".join(filter(None, (self.size, self.colour, self.shape)))


def parse_object_list(text: str) -> tuple[ObjectDescription, ...]:
    """What a list such as "yellow ball, two small red cubes" asks for; ValueError on what is not
    known, on nothing and on more than ``MOST``."""
    found: list[ObjectDescription] = []
    for item in re.split(r",|;|\band\b", text.casefold()):
        if item.split():
            found += _item(item, text)
    if not 1 <= len(found) <= MOST:
        raise ValueError(f"--things must name 1 to {MOST} objects, got {len(found)} in {text!r}")
    return tuple(found)


def _item(item: str, text: str) -> list[ObjectDescription]:
    words = [_SPELT.get(word, word) for word in item.split()]
    if words[0] in ("a", "an", "the"):
        words = words[1:]
    count = 1
    if words and (words[0] in NUMBERS or words[0].isdecimal()):
        count = NUMBERS.get(words[0]) or int(words[0])
        words = words[1:]
    size = _SIZED.get(words[0], "") if words else ""
    colour, shape = (words[1:] if size else words, [])
    if len(colour) == 2:
        colour, shape = colour[:1], colour[1:]
    if not shape or colour[0] not in COLOURS or shape[0] not in _WORDS:
        known = [*COLOURS, *_WORDS, *_SIZED, *NUMBERS]
        near = [
            m for w in words if w not in known for m in difflib.get_close_matches(w, known, 1, 0.75)
        ]
        hint = f"; did you mean {' or '.join(map(repr, near))}? Expected" if near else "; expected"
        raise ValueError(
            f"unknown object {item.strip()!r} in --things {text!r}{hint} objects such as "
            "'two small red cubes', separated by commas: a number if there are several, "
            f"small or large if needed, a colour ({', '.join(COLOURS)}) and a shape "
            f"({', '.join(SHAPES)}); "
            "for any other object give a scene, --scene FILE.xml"
        )
    return [ObjectDescription(colour[0], _WORDS[shape[0]], size)] * min(count, MOST + 1)


@lru_cache(maxsize=64)
def objects_by_name(text: str) -> tuple[tuple[SceneObject, ...], tuple[Fixture, ...]]:
    """(things, plates) of a list; those that would be called the same are numbered."""
    every = parse_object_list(text)
    alike = Counter(every)
    things: list[SceneObject] = []
    plates: list[Fixture] = []
    met: Counter[ObjectDescription] = Counter()
    for one in every:
        met[one] += 1
        number = met[one] if alike[one] > 1 else 0
        name = f"{one.name}_{number}" if number else one.name
        if one.shape == "plate":
            plates.append(_plate(one, name, _aliases(one, number)))
        else:
            things.append(_thing(one, name, _aliases(one, number)))
    return tuple(things), tuple(plates)


def _aliases(one: ObjectDescription, number: int) -> tuple[str, ...]:
    """Nouns for it, alone, with each word for its size and with its number: "can", "big can",
    "can 2"."""
    nouns = (one.shape, *SHAPES[one.shape])
    sizes = SIZES[one.size][0] if one.size else ()
    sized = [
        f"{size} {colour}{noun}"
        for noun in nouns
        for size in sizes
        for colour in ("", f"{one.colour} ")
    ]
    numbered = [f"{noun} {number}" for noun in nouns] if number else []
    return (*nouns, *sized, *numbered)


def _sizes(one: ObjectDescription) -> tuple[float, ...]:
    scale = SIZES[one.size][1] if one.size else 1.0
    return tuple(round(scale * half, 4) for half in HALF[one.shape])


def _thing(one: ObjectDescription, name: str, aliases: Sequence[str]) -> SceneObject:
    size = _sizes(one)
    affordances = (*LOOSE, "stack") if one.shape in FLAT_TOPPED else LOOSE
    return SceneObject(
        name,
        one.colour,
        one.shape,
        tuple(aliases),
        COLOURS[one.colour],
        size,
        size[-1],
        affordances,
    )


def _plate(one: ObjectDescription, name: str, aliases: Sequence[str]) -> Fixture:
    (radius,) = _sizes(one)

    def add_to(spec: mujoco.MjSpec) -> None:
        body = spec.worldbody.add_body(name=name, mocap=True)
        body.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=(radius, THICK, 0),
            rgba=COLOURS[one.colour],
            contype=0,
            conaffinity=0,
        )
        body.add_site(name=name, group=4)

    half = (radius, radius, 0.0)
    point = Entity(
        name, tuple(aliases), one.colour, one.shape, ("touch",), name, f"{name}_pos", half
    )
    return Fixture(name, add_to, (point,), places=(Placement(name, aside=radius / 2),))
