"""CustomTabletop: the table with whatever things somebody names or has drawn, anywhere on it.

What is wanted is a sentence or a formula; what the task itself knows is how to touch each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import mujoco
import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.manipulation import Fixture, ManipulationTask, ManipulationViews
from sims.tasks.scene.mjcf import packed_scene
from sims.tasks.scene.named_objects import objects_by_name
from sims.tasks.scene.object_layout import Circle, Layout, TableFullError, make_layout
from sims.tasks.scene.scene_objects import SceneObject
from sims.tasks.scene.user_scene import SpawnRegion, UserScene, read_user_scene

TOUCHING = 0.02  # m, a finger this near a thing's surface touches it
OVER = 0.02  # m, horizontal distance at which the hand comes down on what it touches
# What is done with the jaws, so that they begin open; for all else they begin closed.
WITH_JAWS = frozenset(
    {"lifted", "grasped", "on", "inside", "inserted", "above", "below", "released"}
)
# Of scattered states, how many have a thing beside another; tries at that.
BESIDE, TRIES = 0.3, 16
SLIT = 0.003  # m, things that are side by side are at least so far apart


USUAL = "red cube, blue ball, green cylinder, white plate"


@dataclass(frozen=True, kw_only=True)
class CustomTabletop(ManipulationTask):
    """The things of a list on the table, and those of somebody's own MJCF, apart from each other;
    the first goal touches the first."""

    name: ClassVar[str] = "tabletop"

    things: str = ""  # what is on the table: "yellow ball, two red cubes"; empty: the usual
    scene: str = ""  # FILE.xml with FILE.toml beside it, kept as ``mjcf.packed`` text

    def __post_init__(self) -> None:
        object.__setattr__(self, "scene", packed_scene(self.scene))
        super().__post_init__()
        clash = Counter(entity.name for entity in self.entities())
        if twice := [name for name, times in clash.items() if times > 1]:
            raise ValueError(f"duplicate object name {twice[0]!r}: in --things and in the scene")
        for scattered in (False, True):  # what has no room says so now
            self._layout(scattered=scattered)
        if self._own is not None:
            self._own.add_to(super().spec(), self.middle())  # names that are the arm's

    @property
    def _described_objects(self) -> tuple[tuple[SceneObject, ...], tuple[Fixture, ...]]:
        """What words put on the table: nothing beside somebody's own scene."""
        if not self.things and self.scene:
            return (), ()
        return objects_by_name(self.things or USUAL)

    @property
    def _own(self) -> UserScene | None:
        return read_user_scene(self.scene) if self.scene else None

    @property
    def objects(self) -> tuple[SceneObject, ...]:  # type: ignore[override]
        """What lies loose."""
        return self._described_objects[0] + (self._own.objects if self._own else ())

    @property
    def fixtures(self) -> tuple[Fixture, ...]:  # type: ignore[override]
        """Plates and furniture."""
        return self._described_objects[1] + (self._own.fixtures if self._own else ())

    def spec(self) -> mujoco.MjSpec:
        spec = super().spec()
        if self._own is not None:
            self._own.add_to(spec, self.middle())
        return spec

    def _circles(self, *, scattered: bool = False) -> tuple[Circle, ...]:
        """What is laid, things first; ``scattered``: what is loose may be anywhere."""
        x, y = self.middle()
        circles = []
        loose = {thing.name for thing in self.objects}
        for name, radius in self._radii().items():
            spot = self._own.spots.get(name, SpawnRegion()) if self._own else SpawnRegion()
            if scattered and name in loose:
                spot = SpawnRegion()
            part, drawn = spot.part, spot.drawn
            part = part and (part[0] + x, part[1] + x, part[2] + y, part[3] + y)
            drawn = drawn and (drawn[0] + x, drawn[1] + y, drawn[2], drawn[3])
            circles.append(Circle(radius, part, drawn))
        return tuple(circles)

    def _radii(self) -> dict[str, float]:
        """m, the circle that each thing, then each piece of furniture, stands in."""
        own_round = self._own.round if self._own else {}
        things = {thing.name: thing.round for thing in self.objects}
        return things | {f.name: own_round.get(f.name, f.points[0].half[0]) for f in self.fixtures}

    def _layout(self, *, scattered: bool = False) -> Layout:
        x, y = self.middle()
        scenery = self._own.scenery if self._own else []
        boxes = tuple((u + x, v + y, wide, deep) for u, v, wide, deep in scenery)
        circles = self._circles(scattered=scattered)
        try:
            return make_layout(self.arm.workspace, circles, boxes)
        except TableFullError as error:
            what = ", ".join(self._radii())
            raise ValueError(
                f"{what} do not fit side by side within reach of the {self.robot} "
                f"({error}): use fewer or smaller objects"
            ) from None

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places arm, objects and furniture of environments ``ids`` (n,) at random.

        The jaws begin open where the formula needs them, and else closed.

        Raises:
            ValueError: the things do not fit side by side within the arm's reach.
        """
        words = set(_words(self.formula or []))
        self.begin(v, ids, rng, opening=1.0 if words & WITH_JAWS else 0.0)
        self._lay(v, ids, self._layout().draw(rng, len(ids)), rng)

    def _lay(self, v: ManipulationViews, ids: Array, spots: Array, rng: RowRng) -> None:
        """Things and furniture at ``spots`` (n, k, 2) m; what is not as drawn is turned anyhow, and
        what slides is anywhere on its way."""
        circles, loose = self._circles(), len(self.objects)
        yaw = rng.uniform(-np.pi, np.pi, (loose,))
        for thing in range(loose):
            turn = yaw[:, thing] * (circles[thing].drawn is None)
            self.place_thing(v, ids, thing, spots[:, thing], turn)
        for number, circle in enumerate(circles[loose:]):
            if circle.drawn is None:  # else it is where the model has it
                v.mocap[ids, number, :2] = spots[:, loose + number]
        for fixture, joint in zip(self.moving, v.joint, strict=True):
            joint[ids, 0] = rng.uniform(*fixture.range)

    def lay(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places the objects of rows ``ids`` (n,) anywhere, sometimes side by side."""
        spots = self._moved(self._layout(scattered=True).draw(rng, len(ids)), rng)
        self._lay(v, ids, spots, rng)

    def _moved(self, spots: Array, rng: RowRng) -> Array:
        """``spots`` (n, k, 2) m with one thing beside another, where chance has it so and there is
        room."""
        n, k, loose = len(spots), spots.shape[1], len(self.objects)
        radius = np.array([*self._radii().values()])
        chance, mover, other = rng.uniform(0, 1), rng.integers(loose or 1), rng.integers(k)
        angle = rng.uniform(-np.pi, np.pi, (TRIES,))
        away = rng.uniform(SLIT, 0.06, (TRIES,)) + (radius[mover] + radius[other])[:, None]
        row = np.arange(n)
        spot = spots[row, other][:, None] + away[..., None] * np.stack(
            [np.cos(angle), np.sin(angle)], axis=-1
        )  # (n, tries, 2)
        apart = norm(spot[:, :, None] - spots[:, None])  # (n, tries, k)
        apart -= radius + radius[mover][:, None, None]
        apart[row, :, mover] = np.inf
        clear = (apart >= SLIT - 1e-9).all(axis=2)
        moves = (chance < BESIDE) & clear.any(axis=1) & (mover != other) & (loose > 0)
        moved = spots.copy()
        moved[row[moves], mover[moves]] = spot[row, np.argmax(clear, axis=1)][moves]
        return moved

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that moves over the object, then down onto it.

        A sideways approach would knock over what stands in between.

        Raises:
            ValueError: the goal is a formula, which the expert does not solve.
        """
        if self.formula is not None:
            raise ValueError(
                f"goal {self.goal} has no scripted expert; train a policy: robo-rl train tabletop"
            )
        pos, top = self._touched(v, self.goal.removeprefix("touch_"))
        over = norm(v.tip[:, :2] - pos[:, :2])
        height = pos[:, 2] + top + np.where(over < OVER, 0.004, 0.05)
        return self.go(v, np.column_stack([pos[:, :2], height]), -1.0)

    def _touched(self, v: ManipulationViews, name: str) -> tuple[Array, float]:
        """Where a thing or plate is, (N, 3) m, and half its height."""
        for thing, pos in zip(self.objects, v.thing_pos, strict=True):
            if thing.name == name:
                return pos, thing.height
        return v.point[name], 0.0


def _words(formula: list[Any]) -> Iterator[str]:
    """The predicates and operators of a formula."""
    if formula:
        yield formula[0]
        for part in formula[1]:
            if isinstance(part, list):
                yield from _words(part)


@cache
def _goals(task: CustomTabletop) -> dict[str, TaskGoal[ManipulationViews]]:
    names = [entity.name for entity in task.entities() if entity.kind != "gripper"]
    return {f"touch_{name}": _touch(task, name) for name in names}


def _touch(task: CustomTabletop, name: str) -> TaskGoal[ManipulationViews]:
    """The ground truth of one goal, from the positions of fingers and thing alone."""
    objects = [thing.name for thing in task.objects]

    def distance(v: ManipulationViews) -> Array:
        if name in objects:
            return task.surface_distance(v, objects.index(name))
        return np.minimum(*task.point_distances(v, v.point[name]))

    def success(v: ManipulationViews) -> Array:
        return distance(v) <= TOUCHING

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        missing = outside(distance(v), 0.0, TOUCHING)
        return {"near": near(missing, 0.10), "there": 0.5 * (missing == 0.0)}

    return TaskGoal(f"the gripper touches the {name.replace('_', ' ')}", success, reward, distance)
