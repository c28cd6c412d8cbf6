"""Own scenes: somebody's MJCF and its card, as things and furniture of the arm's table.

The card says which bodies a sentence can name and what they are; sizes, surfaces and joints are
taken from the bodies themselves. The origin of the file is the middle of where the arm reaches.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from sims.core.task import Array, Entity
from sims.core.terms import box_distance, capsule_distance, cylinder_distance, sphere_distance
from sims.rendering.cameras import sky_textures
from sims.tasks.scene.manipulation import Fixture, Placement
from sims.tasks.scene.mjcf import (
    SceneError,
    check_textures,
    element_text,
    named_files,
    parse_mjcf,
    unpack_scene,
)
from sims.tasks.scene.scene_objects import SceneObject

BOX, SPHERE, CYLINDER, CAPSULE = (
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_BOX,
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
    )
)
_HANDLED = ("touch", "push", "lift", "place")
# What can be done to each kind unless the card says otherwise; what lies loose, what does not.
LOOSE: dict[str, tuple[str, ...]] = {
    "cube": (*_HANDLED, "stack"),
    "ball": _HANDLED,
    "cylinder": (*_HANDLED, "stack"),
    "peg": _HANDLED,
    "item": _HANDLED,
}
STANDING: dict[str, tuple[str, ...]] = {
    "plate": ("touch",),
    "fixture": ("touch",),
    "drawer": ("touch", "open", "close", "pull", "push"),
    "handle": ("touch", "pull", "push"),
    "button": ("touch", "press"),
}
MOVING = ("drawer", "button")
ENTRIES = frozenset({"body", "names", "colour", "kind", "affordances", "at", "site"})
AFFORDANCES = frozenset(a for those in (*LOOSE.values(), *STANDING.values()) for a in those)
SAME = 0.001  # m, lengths that may pass for one
_TURNS = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
_PREFIX = "own/"


@dataclass(frozen=True)
class SpawnRegion:
    """Where something is laid: anywhere, in a part of the table, or as it was drawn.

    Lengths in m from the middle of where the arm reaches, x away from it.
    """

    part: tuple[float, float, float, float] | None = None  # x from, to, y from, to; None: anywhere
    drawn: tuple[float, float, float, float] | None = None  # x, y and its half sizes there


@dataclass(frozen=True)
class ObjectGeom:
    """A geom of a thing, in the thing's frame."""

    kind: int  # of mjtGeom
    size: tuple[float, ...]  # m
    pos: tuple[float, ...]  # (3,) m
    mat: tuple[float, ...]  # (9,)

    def distance(self, point: Array) -> Array:
        """Returns the distance (...,) m of points (..., 3) to its surface, 0 inside."""
        local = (point - np.array(self.pos)) @ np.array(self.mat).reshape(3, 3)
        if self.kind == BOX:
            return box_distance(local, np.array(self.size))
        if self.kind == SPHERE:
            return sphere_distance(local, self.size[0])
        measure = cylinder_distance if self.kind == CYLINDER else capsule_distance
        return measure(local, self.size[0], self.size[1])


@dataclass(frozen=True)
class UserObject(SceneObject):
    """A loose body of somebody's scene."""

    shapes: tuple[ObjectGeom, ...] = ()
    extents: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m, half its width, depth and height

    @property
    def half(self) -> tuple[float, float, float]:
        return self.extents

    def distance(self, point: Array) -> Array:
        """Returns the distance (...,) m of points (..., 3) to its surface, 0 inside."""
        return np.minimum.reduce([shape.distance(point) for shape in self.shapes])

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Nothing: it comes with its scene."""


@dataclass
class UserScene:
    """A scene, ready to be put round an arm."""

    name: str
    objects: tuple[UserObject, ...] = ()
    fixtures: tuple[Fixture, ...] = ()
    spots: dict[str, SpawnRegion] = field(default_factory=dict)  # of things and furniture, by body
    round: dict[str, float] = field(default_factory=dict)  # m, circles that furniture stands in
    scenery: list[tuple[float, float, float, float]] = field(default_factory=list)  # as ``drawn``
    xml: str = ""
    files: dict[str, bytes] = field(default_factory=dict)

    def add_to(self, spec: mujoco.MjSpec, middle: Array) -> None:
        """Adds the scene to a model.

        Args:
            spec: the model, which is changed.
            middle: (2,) m, where the scene's origin is on the table.

        Raises:
            SceneError: the arm or the table already has one of the scene's names.
        """
        taken = {one.name for part in _parts(spec) for one in part} - {""}
        child = _spec(self.name, self.xml, self.files)
        if clash := sorted(taken & {one.name for part in _parts(child) for one in part}):
            raise SceneError(
                f"{self.name}: the name {clash[0]!r} is already used by the arm or the table; "
                "choose another"
            )
        for sky in sky_textures(spec) if sky_textures(child) else ():
            spec.delete(sky)
        spec.attach(child, frame=spec.worldbody.add_frame(pos=[*middle, 0.0]), prefix=_PREFIX)
        for part in _parts(spec):
            for one in part:
                one.name = one.name.removeprefix(_PREFIX)
        for exclude in spec.excludes:
            exclude.bodyname1 = exclude.bodyname1.removeprefix(_PREFIX)
            exclude.bodyname2 = exclude.bodyname2.removeprefix(_PREFIX)


def _parts(spec: mujoco.MjSpec) -> tuple[Iterable[Any], ...]:
    return spec.bodies[1:], spec.geoms, spec.joints, spec.sites


def _spec(name: str, xml: str, files: dict[str, bytes]) -> mujoco.MjSpec:
    try:
        return mujoco.MjSpec.from_string(xml, assets=files)
    except ValueError as error:
        raise SceneError(f"{name}: {' '.join(str(error).split())}") from None


def _compiled(name: str, xml: str, files: dict[str, bytes]) -> mujoco.MjModel:
    spec = _spec(name, xml, files)
    try:
        return spec.compile()
    except ValueError as error:
        raise SceneError(f"{name}: {' '.join(str(error).split())}") from None


@lru_cache(maxsize=16)
def read_user_scene(text: str) -> UserScene:
    """The scene of ``mjcf.packed``; SceneError names the file and the entry that is wrong."""
    whole = unpack_scene(text)
    check_textures(whole["name"], whole["files"])
    return _Reader(whole["name"], whole["xml"], whole["card"], whole["files"]).scene()


class _Reader:
    """One scene as it is taken apart: the elements, the model they make, and the card."""

    def __init__(self, name: str, xml: str, card: str, files: dict[str, bytes]):
        self.name, self.card_name = name, f"{name.rpartition('.')[0] or name}.toml"
        self.root = parse_mjcf(name, xml)
        named_files(name, self.root)
        self.world = self._world()
        self.parent = {child: one for one in self.root.iter() for child in one}
        self._name_everything()
        self.bodies = {b.get("name", ""): b for b in self.world.iter("body")}
        self.card = self._entries(card)
        self.model = _compiled(name, self._xml(), files)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self.own = UserScene(name, files=files)

    def scene(self) -> UserScene:
        tops = list(self.world)
        of_top: dict[ET.Element, list[str]] = {top: [] for top in tops}
        for entity, entry in self.card.items():
            of_top[self._top(self.bodies[entry["body"]])].append(entity)
        for top, entities in of_top.items():
            if _free(top) is not None:
                self._loose(top, entities)
            elif entities:
                self._furniture(top, entities)
            else:
                low, high = self._box(top)
                self.own.scenery.append(_flat(low, high))
        self.own.xml = self._xml()
        _compiled(self.name, self.own.xml, self.own.files)  # the card's names are free
        return self.own

    # The card.
    def _entries(self, card: str) -> dict[str, dict[str, Any]]:
        try:
            entries = tomllib.loads(card)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise SceneError(f"{self.card_name} is not TOML: {error}") from None
        if not entries:
            raise SceneError(f"{self.card_name}: expected one table for each named object")
        return {name: self._entry(name, entry) for name, entry in entries.items()}

    def _entry(self, name: str, entry: Any) -> dict[str, Any]:
        def wrong(what: str) -> SceneError:
            return SceneError(f"{self.card_name}: [{name}] {what}")

        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name == "gripper":
            raise wrong("must be a name of lower-case letters, digits and _, and not gripper")
        if not isinstance(entry, dict) or "kind" not in entry:
            raise wrong("must be a table that has the key kind")
        if unknown := sorted(set(entry) - ENTRIES):
            raise wrong(
                f"has the unknown key {unknown[0]!r}; available: {', '.join(sorted(ENTRIES))}"
            )
        lists = {"names": [], "affordances": []}
        whole = {"body": name, "colour": "", "at": "", "site": ""} | lists | entry
        for key in ("body", "colour", "kind", "site"):
            if not isinstance(whole[key], str):
                raise wrong(f"{key} must be a text, got {whole[key]!r}")
        for key in lists:
            if not (isinstance(whole[key], list) and all(isinstance(x, str) for x in whole[key])):
                raise wrong(f"{key} must be a list of texts, got {whole[key]!r}")
        kinds = LOOSE | STANDING
        if whole["kind"] not in kinds:
            raise wrong(f"unknown kind {whole['kind']!r}{_nearest_word(whole['kind'], kinds)}")
        for one in whole["affordances"]:
            if one not in AFFORDANCES:
                raise wrong(f"unknown affordance {one!r}{_nearest_word(one, AFFORDANCES)}")
        if whole["body"] not in self.bodies:
            there = _nearest_word(whole["body"], self.bodies)
            raise wrong(f"body {whole['body']!r} is not in {self.name}{there}")
        whole["affordances"] = tuple(whole["affordances"]) or kinds[whole["kind"]]
        return whole

    def _spot(
        self, entity: str, usual: str, drawn: tuple[float, float, float, float]
    ) -> SpawnRegion:
        at = self.card[entity]["at"] or usual
        if at == "anywhere":
            return SpawnRegion()
        if at == "drawn":
            return SpawnRegion(drawn=drawn)
        try:
            (x, y), (u, v) = (map(float, at[axis]) for axis in "xy")
            assert x <= y and u <= v and len(at) == 2
        except (KeyError, TypeError, ValueError, AssertionError):
            raise SceneError(
                f"{self.card_name}: [{entity}] at must be 'anywhere', 'drawn' or a part of the "
                f"table, {{x = [from, to], y = [from, to]}} in m, got {at!r}"
            ) from None
        return SpawnRegion(part=(x, y, u, v))

    # The elements.
    def _world(self) -> ET.Element:
        worlds = self.root.findall("worldbody")
        if len(worlds) != 1:
            raise SceneError(f"{self.name}: expected one <worldbody>, got {len(worlds)}")
        for child in worlds[0]:
            if child.tag != "body":
                raise SceneError(
                    f"{self.name}: {element_text(child)} must be inside a body, not in the world"
                )
        return worlds[0]

    def _name_everything(self) -> None:
        for number, one in enumerate(self.world.iter()):
            if one.tag in ("body", "geom", "joint", "freejoint") and not one.get("name"):
                one.set("name", f"own_{one.tag}_{number}")

    def _top(self, element: ET.Element) -> ET.Element:
        while self.parent[element] is not self.world:
            element = self.parent[element]
        return element

    def _xml(self) -> str:
        return ET.tostring(self.root, encoding="unicode")

    def _geoms(self, body: ET.Element) -> list[int]:
        """The geoms of a body alone that can be touched."""
        return [g for g in self._all(body) if self._touchable(g)]

    def _all(self, body: ET.Element) -> list[int]:
        number = self.model.body(body.get("name")).id
        return [g for g in range(self.model.ngeom) if self.model.geom_bodyid[g] == number]

    def _touchable(self, geom: int) -> bool:
        return bool(self.model.geom_contype[geom] or self.model.geom_conaffinity[geom])

    def _bounds(self, geom: int, pos: Array, mat: Array) -> tuple[Array, Array]:
        """The axis-aligned box (3,), (3,) m round a geom at ``pos`` (3,) with ``mat`` (3, 3)."""
        kind, size = int(self.model.geom_type[geom]), self.model.geom_size[geom]
        axis = mat[:, 2]
        if kind == BOX:
            half = np.abs(mat) @ size
        elif kind == SPHERE:
            half = np.full(3, size[0])
        elif kind == CYLINDER:
            half = size[0] * np.sqrt(np.maximum(1 - axis**2, 0.0)) + size[1] * np.abs(axis)
        elif kind == CAPSULE:
            half = size[0] + size[1] * np.abs(axis)
        else:  # what is only seen, and whatever else: the box that MuJoCo has round it
            centre, half = self.model.geom_aabb[geom].reshape(2, 3)
            pos, half = pos + mat @ centre, np.abs(mat) @ half
        return pos - half, pos + half

    def _box(self, element: ET.Element, alone: bool = False) -> tuple[Array, Array]:
        """The box in the world round a body and, unless ``alone``, those in it, as drawn."""
        bodies = [element] if alone else list(element.iter("body"))
        geoms = [g for body in bodies for g in self._all(body)]
        if not geoms:
            raise SceneError(f"{self.name}: {element_text(element)} must have geoms")
        mats = self.data.geom_xmat.reshape(-1, 3, 3)
        boxes = [self._bounds(g, self.data.geom_xpos[g], mats[g]) for g in geoms]
        return np.min([low for low, _ in boxes], axis=0), np.max(
            [high for _, high in boxes], axis=0
        )

    # What lies loose.
    def _loose(self, top: ET.Element, entities: list[str]) -> None:
        if len(entities) != 1:
            raise SceneError(
                f"{self.card_name}: {element_text(top)} of {self.name} has a free joint, so "
                f"exactly one entry must name it; got {', '.join(entities) or 'none'}"
            )
        name, entry = entities[0], self.card[entities[0]]
        if entry["kind"] not in LOOSE:
            raise SceneError(
                f"{self.card_name}: [{name}] has a free joint, so its kind must be "
                f"one of {', '.join(LOOSE)}, got {entry['kind']!r}"
            )
        joints = [child for child in top.iter() if child.tag in ("joint", "freejoint")]
        if top.find(".//body") is not None or len(joints) != 1:
            raise SceneError(
                f"{self.name}: {element_text(top)} has a free joint, so it must be one body with "
                "that joint and geoms"
            )
        number = self.model.body(top.get("name")).id
        made, half, centre = self._solid(top, self.data.xmat[number].reshape(3, 3))
        self._check_kind(name, entry["kind"], made, half)
        extents = tuple(round(float(h), 6) for h in half)
        self.own.objects += (
            UserObject(
                name,
                entry["colour"],
                entry["kind"],
                tuple(entry["names"]),
                (0.5, 0.5, 0.5, 1.0),
                extents,
                extents[2],
                entry["affordances"],
                made,
                extents,
            ),
        )
        place = self.data.xpos[number] + centre
        self.own.spots[name] = self._spot(
            name, "anywhere", (float(place[0]), float(place[1]), extents[0], extents[1])
        )
        self._stood_up(top, name, place, half, centre)

    def _solid(self, top: ET.Element, turn: Array) -> tuple[tuple[ObjectGeom, ...], Array, Array]:
        """The geoms with contacts of a body turned by ``turn`` (3, 3), about the middle of the box
        that they fill; half the size of that box and its middle, (3,) m."""
        low, high, shapes = [], [], []
        for geom in self._geoms(top):
            mat = np.zeros(9)
            mujoco.mju_quat2Mat(mat, self.model.geom_quat[geom])
            pos, mat = turn @ self.model.geom_pos[geom], turn @ mat.reshape(3, 3)
            kind = int(self.model.geom_type[geom])
            if kind not in (BOX, SPHERE, CYLINDER, CAPSULE):
                raise SceneError(
                    f"{self.name}: geom {self.model.geom(geom).name!r} of {element_text(top)} "
                    f"must be a box, sphere, cylinder or capsule to have contacts; for a purely "
                    'visual geom set contype="0" conaffinity="0"'
                )
            bounds = self._bounds(geom, pos, mat)
            low.append(bounds[0])
            high.append(bounds[1])
            shapes.append((kind, self.model.geom_size[geom], pos, mat))
        if not shapes:
            raise SceneError(f"{self.name}: {element_text(top)} has no geom with contacts")
        bottom, peak = np.min(low, axis=0), np.max(high, axis=0)
        centre, half = (bottom + peak) / 2, (peak - bottom) / 2
        made = tuple(
            ObjectGeom(kind, *(tuple(x.ravel().tolist()) for x in (size, pos - centre, mat)))
            for kind, size, pos, mat in shapes
        )
        return made, half, centre

    def _check_kind(
        self, name: str, kind: str, shapes: tuple[ObjectGeom, ...], half: Array
    ) -> None:
        """What the goals' meaning rests on: a cube is a box on a square, a ball a sphere, ..."""
        wanted = {
            "cube": (BOX, "a box on a square"),
            "ball": (SPHERE, "a sphere"),
            "cylinder": (CYLINDER, "an upright cylinder"),
            "peg": (CYLINDER, "an upright cylinder"),
        }
        if kind not in wanted:
            return
        shape, words = wanted[kind]
        fits = len(shapes) == 1 and shapes[0].kind == shape
        if fits and kind != "ball":
            upright = abs(shapes[0].mat[8]) > 0.999
            square = abs(half[0] - half[1]) < SAME and (
                kind != "cube" or abs(half[0] - shapes[0].size[0]) < SAME
            )
            fits = upright and square
        if not fits:
            raise SceneError(
                f"{self.card_name}: [{name}] of kind {kind!r} must be one geom with "
                f"contacts, {words}; for any other shape use kind 'item'"
            )

    def _stood_up(
        self, top: ET.Element, name: str, place: Array, half: Array, centre: Array
    ) -> None:
        """Gives a loose body its centre for its origin, and the way it stands for its axes."""
        number = self.model.body(top.get("name")).id
        joint = _free(top)
        assert joint is not None
        frame = ET.Element("frame", pos=_text(-centre), quat=_text(self.data.xquat[number]))
        for child in list(top):
            if child is not joint:
                top.remove(child)
                frame.append(child)
        top.append(frame)
        joint.set("name", name)
        for key in _TURNS:
            top.attrib.pop(key, None)
        top.set("pos", _text(np.array([place[0], place[1], half[2]])))
        self._rename(top, name)

    def _rename(self, body: ET.Element, name: str) -> None:
        old = body.get("name")
        body.set("name", name)
        for exclude in self.root.iter("exclude"):
            for key in ("body1", "body2"):
                if exclude.get(key) == old:
                    exclude.set(key, name)

    # What stands.
    def _furniture(self, top: ET.Element, entities: list[str]) -> None:
        moving: list[tuple[str, ET.Element]] = []
        points = []
        for name in entities:
            entry = self.card[name]
            body = self.bodies[entry["body"]]
            if entry["kind"] not in STANDING:
                raise SceneError(
                    f"{self.card_name}: [{name}] of kind {entry['kind']!r} must have a free joint, "
                    f"but {element_text(top)} has none; kinds without a free joint: "
                    f"{', '.join(STANDING)}"
                )
            if not re.fullmatch(r"[A-Za-z_]\w*", entry["body"]):
                raise SceneError(
                    f"{self.name}: {element_text(body)} must have a name of letters, digits and _"
                )
            points.append(self._point(name, entry, body))
            if entry["kind"] in MOVING:
                moving.append((name, body))
        if len(moving) > 1:
            raise SceneError(
                f"{self.card_name}: only one part of {element_text(top)} can move, "
                f"got {', '.join(name for name, _ in moving)}"
            )
        low, high = self._box(top)
        origin = self.data.xpos[self.model.body(top.get("name")).id]
        joint, travel = self._joint(*moving[0]) if moving else ("", 0.0)
        stand = self._on_stand(top)
        usual = "anywhere" if all(self.card[n]["kind"] == "plate" for n in entities) else "drawn"
        asked = next((n for n in entities if self.card[n]["at"]), entities[0])
        self.own.spots[stand] = self._spot(asked, usual, _flat(low, high))
        corners = [(x, y) for x in (low[0], high[0]) for y in (low[1], high[1])]
        self.own.round[stand] = float(max(np.hypot(*(np.array(c) - origin[:2])) for c in corners))
        doc = f"how far the {self.card[moving[0][0]]['kind']} is out" if moving else ""
        self.own.fixtures += (
            Fixture(
                stand,
                _already_in_scene,
                tuple(points),
                joint,
                "m",
                (0.0, travel),
                doc,
                tuple(Placement(p.name, aside=p.half[0] / 2) for p in points if p.kind == "plate"),
            ),
        )

    def _point(self, name: str, entry: dict[str, Any], body: ET.Element) -> Entity:
        """The entity, with a site that bears its name where it is."""
        low, high = self._box(body, alone=True)
        if entry["site"]:
            sites = [site for site in body.iter("site") if site.get("name") == entry["site"]]
            if not sites:
                raise SceneError(
                    f"{self.card_name}: [{name}] site {entry['site']!r} is not in "
                    f"{element_text(body)} of {self.name}"
                )
            sites[0].set("name", name)
            sites[0].set("group", "4")
        else:
            point = (low + high) / 2
            if entry["kind"] == "plate":
                point[2] = 0.0
            if entry["kind"] == "button":
                point[2] = high[2]
            number = self.model.body(body.get("name")).id
            turn = self.data.xmat[number].reshape(3, 3)
            local = turn.T @ (point - self.data.xpos[number])
            ET.SubElement(body, "site", name=name, pos=_text(local), group="4")
        if entry["kind"] == "plate":
            for geom in body.iter("geom"):
                geom.set("contype", "0")
                geom.set("conaffinity", "0")
        wide, deep = (round(float(h), 6) for h in ((high - low) / 2)[:2])
        return Entity(
            name,
            tuple(entry["names"]),
            entry["colour"],
            entry["kind"],
            entry["affordances"],
            entry["body"],
            f"{name}_pos",
            (wide, deep, 0.0),
        )

    def _joint(self, name: str, body: ET.Element) -> tuple[str, float]:
        """(name, travel m) of the slide of a part that moves."""
        joints = [child for child in body if child.tag == "joint"]
        limits = [self.model.joint(j.get("name")) for j in joints]
        slide = int(mujoco.mjtJoint.mjJNT_SLIDE)
        if (
            len(joints) != 1
            or limits[0].type[0] != slide
            or not self.model.jnt_limited[limits[0].id]
            or limits[0].range[0] != 0.0
        ):
            raise SceneError(
                f"{self.name}: {element_text(body)} is the {self.card[name]['kind']} {name!r}, "
                f"so it must "
                'have one <joint type="slide" range="0 LENGTH">'
            )
        joints[0].set("name", f"{body.get('name')}_joint")
        return f"{body.get('name')}_joint", float(limits[0].range[1])

    def _on_stand(self, top: ET.Element) -> str:
        """The name of the body that an episode may put elsewhere; one that has joints of its own
        is given a stand."""
        if not any(child.tag in ("joint", "freejoint") for child in top):
            top.set("mocap", "true")
            return str(top.get("name"))
        stand = ET.Element("body", name=f"{top.get('name')}_stand", mocap="true")
        for key in ("pos", *_TURNS):
            if key in top.keys():
                stand.set(key, top.attrib.pop(key))
        self.world.insert(list(self.world).index(top), stand)
        self.world.remove(top)
        stand.append(top)
        return str(stand.get("name"))


def _already_in_scene(spec: mujoco.MjSpec) -> None:
    """Furniture of a scene is added with the scene."""


def _free(body: ET.Element) -> ET.Element | None:
    """Its free joint."""
    for child in body:
        if child.tag == "freejoint" or (child.tag == "joint" and child.get("type") == "free"):
            return child
    return None


def _flat(low: Array, high: Array) -> tuple[float, float, float, float]:
    """(x, y, half width, half depth) m of a box seen from above."""
    (x, y), (wide, deep) = ((low + high) / 2)[:2], ((high - low) / 2)[:2]
    return float(x), float(y), float(wide), float(deep)


def _text(values: Array) -> str:
    return " ".join(repr(round(float(v), 9)) for v in values)


def _nearest_word(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(word, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{hint} available: {', '.join(names)}"
