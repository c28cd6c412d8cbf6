"""Drawer, then place: open the drawer, put the red cube into it and let go. Two stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.drawer import OPEN, OVER_BAR, slide_drawer, stand_cabinet
from sims.tasks.scene.fixtures import DRAWER, DRAWER_DEPTH, DRAWER_HALF, DRAWER_TOP, HANDLE_OFF
from sims.tasks.scene.manipulation import HOVER, Fixture, ManipulationTask, ManipulationViews
from sims.tasks.scene.tabletop import polar_to_table

CUBE = 0  # its index among the things
INSIDE = 0.035  # m, height of the cube's centre below which it lies in the drawer


@dataclass(frozen=True, kw_only=True)
class DrawerThenPlace(ManipulationTask):
    """One goal: the cube in the drawer, which starts shut."""

    name: ClassVar[str] = "drawer_then_place"
    fixtures: ClassVar[tuple[Fixture, ...]] = (DRAWER,)

    episode_s: float = 10.0  # s

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places cabinet and cube of environments ``ids`` (n,), the drawer nearly shut."""
        place = self.arm.workspace
        self.begin(v, ids, rng, opening=0.0)
        stand_cabinet(self, v, ids, rng)
        v.joint[0][ids, 0] = rng.uniform(0.0, 0.015)
        radius = rng.uniform(*place.inner_reach)
        cube = polar_to_table(place, radius, rng.uniform(-0.95, -0.75) * place.sector)
        self.place_thing(v, ids, CUBE, cube, self.square(cube, rng))

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that opens the drawer, puts the cube into it and lets go."""
        # Into the middle of what of the drawer is out.
        into = v.point["handle"].copy()
        into[:, 1] += HANDLE_OFF + np.clip(0.5 * v.joint[0][:, 0] + 0.003, 0.035, None)
        into[:, 2] = DRAWER_TOP + self.objects[CUBE].height + 0.006
        place = self.fetch_and_leave(v, CUBE, into, close_to=0.012)
        # In the drawer the cube is left alone.
        away = v.tip.copy()
        away[:, 2] = 0.13
        place = np.where(inside(v)[:, None], self.go(v, away, 1.0), place)
        # Off the handle before the jaws open: they would push the drawer shut again.
        off = v.tip - v.point["handle"]
        hooked = (np.abs(off[:, 0]) < 0.05) & (np.abs(off[:, 1]) < 0.055)
        hooked &= (v.tip[:, 2] < OVER_BAR - 0.01) & ~self.held(v, CUBE)
        rise = v.tip + (0.0, 0.0, HOVER)
        place = np.where(hooked[:, None], self.go(v, rise, -1.0), place)
        opened = v.joint[0][:, 0] > np.where(hooked, OPEN + 0.01, OPEN - 0.01)
        return np.where(opened[:, None], place, slide_drawer(self, v, 1.0))


def inside(v: ManipulationViews) -> Array:
    """Returns whether the cube lies between the drawer's walls, (N,) bool."""
    off = np.abs(v.thing_pos[CUBE] - v.point["drawer"])
    between = (off[:, 0] < DRAWER_HALF) & (off[:, 1] < DRAWER_DEPTH / 2)
    return between & (v.thing_pos[CUBE][:, 2] < INSIDE)


@cache
def _goals(task: DrawerThenPlace) -> dict[str, TaskGoal[ManipulationViews]]:
    half = task.objects[CUBE].height

    def aside(v: ManipulationViews) -> Array:
        return norm((v.point["drawer"] - v.thing_pos[CUBE])[:, :2])

    def missing(v: ManipulationViews) -> Array:
        high = outside(v.thing_pos[CUBE][:, 2], -np.inf, INSIDE)
        return np.where(inside(v), 0.0, 0.001 + outside(aside(v), 0.0, 0.03) + high)

    def success(v: ManipulationViews) -> Array:
        return inside(v) & task.let_go(v, CUBE)

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        # The first stage pays until the drawer is open, the second from there.
        opened = np.clip(v.joint[0][:, 0] / OPEN, 0.0, 1.0)
        second = opened >= 1.0
        spot = v.point["handle"] + (0.0, 0.5 * HANDLE_OFF, -0.01)
        grasp, done = task.grasping(v, CUBE), inside(v)
        high = np.clip((v.thing_pos[CUBE][:, 2] - half) / DRAWER_TOP, 0.0, 1.0)
        carried = np.maximum(grasp * high, done)
        return {
            "hook": 0.5 * np.where(second, 1.0, near(norm(v.tip - spot), 0.06)),
            "slide": 1.5 * opened,
            "reach": 0.3 * second * np.maximum(near(task.to_grip(v, CUBE), 0.10), done),
            "grasp": 0.4 * second * np.maximum(grasp, done),
            "carry": second * carried * (0.5 + 1.5 * near(aside(v), 0.10)),
            "leave": 2.0 * success(v),
        }

    return {
        "cube_in_drawer": TaskGoal("the red cube is in the drawer", success, reward, missing, "")
    }
