"""Button: press the yellow button and keep it pressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.tasks.scene.fixtures import BUTTON, BUTTON_TRAVEL
from sims.tasks.scene.manipulation import HOVER, Fixture, ManipulationTask, ManipulationViews
from sims.tasks.scene.scene_objects import SceneObject

PRESSED = 0.008  # m of the button's 12 mm


@dataclass(frozen=True, kw_only=True)
class Button(ManipulationTask):
    """One goal: the button is down at the end."""

    name: ClassVar[str] = "button"
    objects: ClassVar[tuple[SceneObject, ...]] = ()
    fixtures: ClassVar[tuple[Fixture, ...]] = (BUTTON,)

    episode_s: float = 3.0  # s

    def reset(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places the button of environments ``ids`` (n,) at random and closes the jaws."""
        self.begin(v, ids, rng, opening=0.0)
        v.mocap[ids, 0, :2] = self.spot(v, rng, len(ids), (-0.8, 0.8))
        v.joint[0][ids, 0] = rng.uniform(0.0, 0.3 * BUTTON_TRAVEL)  # it springs back at once

    def goals(self) -> Mapping[str, TaskGoal[ManipulationViews]]:
        return _goals(self)

    def expert(self, v: ManipulationViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 4) that moves the closed jaws over the button, then down."""
        button = v.point["button"]
        over = norm((button - v.tip)[:, :2]) < 0.012
        target = button.copy()
        pressed = v.joint[0][:, 0] > 0.5 * (PRESSED + BUTTON_TRAVEL)
        # No further than it goes: a hand that leans on it slips off.
        target[:, 2] += np.where(over, np.where(pressed, 0.0, -0.012), HOVER)
        return self.go(v, target, -1.0)


@cache
def _goals(task: Button) -> dict[str, TaskGoal[ManipulationViews]]:
    def missing(v: ManipulationViews) -> Array:
        return outside(v.joint[0][:, 0], PRESSED)

    def success(v: ManipulationViews) -> Array:
        return missing(v) == 0.0

    def reward(v: ManipulationViews, action: Array) -> dict[str, Array]:
        down = np.clip(v.joint[0][:, 0] / BUTTON_TRAVEL, 0.0, 1.0)
        return {
            "reach": 0.5 * near(norm(v.point["button"] - v.tip), 0.10),
            "press": 1.0 * down,
            "pressed": 0.5 * success(v),
        }

    return {"press": TaskGoal("the gripper presses the button", success, reward, missing)}
