"""Arranged: the table with whatever things somebody names, anywhere on it.

What is wanted is a sentence or a formula; what the task itself knows is how to touch each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from sims.rng import RowRng
from sims.task import Array, TaskGoal
from sims.tasks.handling import Fixture, Handling, HandlingViews
from sims.tasks.layout import Layout, NoRoom, layout
from sims.tasks.named import named
from sims.tasks.tabletop import Thing, polar
from sims.terms import near, norm, outside

TOUCHING = 0.02  # m, a finger this near a thing's surface touches it
OVER = 0.02  # m, horizontal distance at which the hand comes down on what it touches
# What is done with the jaws, so that they begin open; for all else they begin closed.
WITH_JAWS = frozenset(
    {"lifted", "grasped", "on", "inside", "inserted", "above", "below", "released"}
)
# Of scattered states: how many have a thing beside another, and one on a plate; tries at that.
BESIDE, ON_PLATE, TRIES = 0.3, 0.2, 16
SLIT = 0.003  # m, things that are side by side are at least so far apart


@dataclass(frozen=True, kw_only=True)
class Arranged(Handling):
    """The things of a list on the table, apart from each other; the first goal touches the
    first."""

    name: ClassVar[str] = "tabletop"

    things: str = "red cube, blue ball, green cylinder, white plate"  # what is on the table

    def __post_init__(self) -> None:
        super().__post_init__()
        self._layout()

    @property
    def objects(self) -> tuple[Thing, ...]:  # type: ignore[override]
        """What lies loose."""
        return named(self.things)[0]

    @property
    def fixtures(self) -> tuple[Fixture, ...]:  # type: ignore[override]
        """Plates."""
        return named(self.things)[1]

    def _layout(self) -> Layout:
        radii = tuple(thing.round for thing in self.objects)
        plates = tuple(fixture.points[0].half[0] for fixture in self.fixtures)
        try:
            return layout(self.arm.workspace, (*radii, *plates))
        except NoRoom as error:
            raise ValueError(
                f"{self.things!r} do not fit side by side where the {self.robot} reaches "
                f"({error}): leave some out, or take small ones"
            ) from None

    def reset(self, v: HandlingViews, ids: Array, rng: RowRng) -> None:
        words = set(_words(self.formula or []))
        self.begin(v, ids, rng, opening=1.0 if words & WITH_JAWS else 0.0)
        spots = self._layout().draw(rng, len(ids))
        self._lay(v, ids, spots, rng)

    def _lay(self, v: HandlingViews, ids: Array, spots: Array, rng: RowRng) -> None:
        """Things and plates at ``spots`` (n, k, 2) m, turned anyhow."""
        loose = len(self.objects)
        yaw = rng.uniform(-np.pi, np.pi, (loose,))
        for thing in range(loose):
            self.place_thing(v, ids, thing, spots[:, thing], yaw[:, thing])
        v.mocap[ids, :, :2] = spots[:, loose:]

    def scatter(self, v: HandlingViews, ids: Array, rng: RowRng) -> None:
        """Things anywhere, sometimes side by side or on a plate; the tip anywhere, half the time
        near one; the jaws anyhow."""
        n, place, arm = len(ids), self.arm.workspace, self.arm
        spots = self._moved(self._layout().draw(rng, n), rng)
        self._lay(v, ids, spots, rng)
        chosen = spots[np.arange(n), rng.integers(spots.shape[1])]
        centre = np.column_stack([chosen, np.full(n, 0.03)])
        round_it = centre + rng.normal((3,)) * (0.05, 0.05, 0.035)
        over_it = centre + rng.normal((3,)) * (0.018, 0.018, 0.0)
        over_it[:, 2] = rng.uniform(0.03, 0.15)
        angle = rng.uniform(-place.air_sector, place.air_sector)
        flat = polar(place, rng.uniform(*place.air_reach), angle)
        top = min(place.air_top, self.tip_ceiling)
        anywhere = np.column_stack([flat, rng.uniform(0.012, top)])
        where = rng.uniform(0, 1)[:, None]
        target = np.where(where < 0.4, round_it, np.where(where < 0.6, over_it, anywhere))
        target[:, 2] = np.clip(target[:, 2], self.tip_floor, self.tip_ceiling)
        self.place_arm(v, ids, arm.home + place.jitter * rng.normal((len(arm.joints),)))
        closed, opened = arm.grip_range
        opening = closed + rng.uniform(0, 1) * (opened - closed)
        v.jaws[ids] = v.gripper_ctrl[ids] = opening[:, None]
        self.place_tip(v, ids, target)
        v.ctrl[ids] = v.qpos[ids]

    def _moved(self, spots: Array, rng: RowRng) -> Array:
        """``spots`` (n, k, 2) m with one thing beside another, or on a plate, where chance has it
        so and there is room."""
        n, k, loose = len(spots), spots.shape[1], len(self.objects)
        radius = np.array([*(t.round for t in self.objects),
                           *(f.points[0].half[0] for f in self.fixtures)])  # fmt: skip
        chance, mover, other = rng.uniform(0, 1), rng.integers(loose or 1), rng.integers(k)
        angle = rng.uniform(-np.pi, np.pi, (TRIES,))
        away = rng.uniform(SLIT, 0.06, (TRIES,)) + (radius[mover] + radius[other])[:, None]
        on_plate = (chance >= BESIDE) & (chance < BESIDE + ON_PLATE) & (other >= loose)
        away = np.where(on_plate[:, None], rng.uniform(0, 0.02, (TRIES,)), away)
        row = np.arange(n)
        spot = spots[row, other][:, None] + away[..., None] * np.stack(
            [np.cos(angle), np.sin(angle)], axis=-1
        )  # (n, tries, 2)
        apart = norm(spot[:, :, None] - spots[:, None])  # (n, tries, k)
        apart -= radius + radius[mover][:, None, None]
        apart[row, :, mover] = np.inf
        apart[..., loose:] = np.where(on_plate[:, None, None], np.inf, apart[..., loose:])
        clear = (apart >= SLIT - 1e-9).all(axis=2)
        wanted = (chance < BESIDE) | on_plate
        moves = wanted & clear.any(axis=1) & (mover != other) & (loose > 0)
        moved = spots.copy()
        moved[row[moves], mover[moves]] = spot[row, np.argmax(clear, axis=1)][moves]
        return moved

    def goals(self) -> Mapping[str, TaskGoal[HandlingViews]]:
        return _goals(self)

    def expert(self, v: HandlingViews, rng: np.random.Generator) -> Array:
        """Over it, then down: a sideways approach would knock over what stands in between."""
        if self.formula is not None:
            raise ValueError(f"no expert knows {self.goal}; train a policy: robo-rl train tabletop")
        pos, top = self._touched(v, self.goal.removeprefix("touch_"))
        over = norm(v.tip[:, :2] - pos[:, :2])
        height = pos[:, 2] + top + np.where(over < OVER, 0.004, 0.05)
        return self.go(v, np.column_stack([pos[:, :2], height]), -1.0)

    def _touched(self, v: HandlingViews, name: str) -> tuple[Array, float]:
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
def _goals(task: Arranged) -> dict[str, TaskGoal[HandlingViews]]:
    names = [thing.name for thing in task.objects] + [plate.name for plate in task.fixtures]
    return {f"touch_{name}": _touch(task, name) for name in names}


def _touch(task: Arranged, name: str) -> TaskGoal[HandlingViews]:
    """The ground truth of one goal, from the positions of fingers and thing alone."""
    objects = [thing.name for thing in task.objects]

    def distance(v: HandlingViews) -> Array:
        if name in objects:
            return task.surface_distance(v, objects.index(name))
        return np.minimum(*task.point_distances(v, v.point[name]))

    def success(v: HandlingViews) -> Array:
        return distance(v) <= TOUCHING

    def reward(v: HandlingViews, action: Array) -> dict[str, Array]:
        missing = outside(distance(v), 0.0, TOUCHING)
        return {"near": near(missing, 0.10), "there": 0.5 * (missing == 0.0)}

    return TaskGoal(f"the gripper touches the {name.replace('_', ' ')}", success, reward, distance)
