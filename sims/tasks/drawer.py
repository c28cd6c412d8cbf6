"""Drawer: pull it open by its handle, or push it shut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.fixtures import DRAWER, DRAWER_TRAVEL, HANDLE_OFF
from sims.tasks.scene.manipulation import Fixture, ManipulationTask, ManipulationViews
from sims.tasks.scene.scene_objects import SceneObject

OPEN, SHUT = 0.08, 0.01  # m: at least, at most
FRONT = 0.085  # m, the cabinet's front from the middle of the table, towards +y
OVER_BAR = 0.065  # m, the tip this high clears the handle and the drawer
LOW = 0.020  # m, the tip this high is well below the bar's top


@dataclass(frozen=True, kw_only=True)
class Drawer(ManipulationTask):
    """Two goals: open and close."""

    name: ClassVar[str] = "drawer"
    objects: ClassVar[tuple[SceneObject, ...]] = ()
    fixtures: ClassVar[tuple[Fixture, ...]] = (DRAWER,)

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places the cabinet of environments ``ids`` (n,).

        The drawer starts shut for ``open``, out for ``close`` and anywhere for a formula.
        """
        self.begin(v, ids, rng, opening=0.0)
        stand_cabinet(self, v, ids, rng)
        starts = {"open": (0.0, 0.015), "close": (0.06, DRAWER_TRAVEL)}
        v.joint[0][ids, 0] = rng.uniform(*starts.get(self.goal, (0.0, DRAWER_TRAVEL)))

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that slides the drawer open, or shut, with closed jaws."""
        return slide_drawer(self, v, 1.0 if self.goal == "open" else -1.0)


def stand_cabinet(task: ManipulationTask, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
    """Places the cabinet of rows ``ids`` (n,) right of the middle, up to 12 mm off in x and y."""
    v.mocap[ids, 0, :2] = task.middle() + (0.0, FRONT) + rng.uniform(-0.012, 0.012, (2,))


def slide_drawer(task: ManipulationTask, v: ManipulationViews, way: float) -> Array:
    """Returns the action (N, 4) that slides the drawer open (``way`` 1) or shut (-1).

    The closed hand comes down on one side of the bar and pushes it away from there.
    """
    bar = v.point["handle"]
    spot = bar.copy()
    spot[:, 1] += way * 0.5 * HANDLE_OFF
    aside = v.tip - spot
    # Once down it may drift along the bar, as far as the bar is long.
    low = v.tip[:, 2] < LOW + 0.015
    ready = (np.abs(aside[:, 0]) < np.where(low, 0.026, 0.012)) & (way * aside[:, 1] > -0.014)
    ready &= way * aside[:, 1] < 0.012
    pushing = ready & (v.tip[:, 2] < LOW + 0.008)
    target = spot.copy()
    target[:, 2] = np.where(ready, LOW, OVER_BAR)
    up = ~ready & (v.tip[:, 2] < OVER_BAR - 0.015)
    target[up, :2] = v.tip[up, :2]
    target[pushing, 1] = v.tip[pushing, 1] - way * 0.03
    goal, opening = (OPEN + 0.015, 1.0) if way > 0 else (SHUT - 0.006, -1.0)
    done = opening * (v.joint[0][:, 0] - goal) >= 0.0
    target[done] = v.tip[done]
    return task.go(v, target, -1.0)


@cache
def _goals(task: Drawer) -> dict[str, TaskGoal[ManipulationViews]]:
    return {
        "open": _goal(task, 1.0, "the drawer is open"),
        "close": _goal(task, -1.0, "the drawer is closed"),
    }


def _goal(task: Drawer, way: float, sentence: str) -> TaskGoal[ManipulationViews]:
    def missing(v: ManipulationViews) -> Array:
        return outside(v.joint[0][:, 0], *((OPEN, np.inf) if way > 0 else (-np.inf, SHUT)))

    def success(v: ManipulationViews) -> Array:
        return missing(v) == 0.0

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        # Where the hand has to be: behind the bar to pull it, before it to push.
        spot = v.point["handle"] + (0.0, way * 0.5 * HANDLE_OFF, LOW - v.point["handle"][0, 2])
        return {
            "reach": 0.5 * np.maximum(near(norm(v.tip - spot), 0.06), success(v)),
            "slide": 1.5 * (1.0 - missing(v) / OPEN),
            "there": 0.5 * success(v),
        }

    return TaskGoal(sentence, success, reward, missing)
