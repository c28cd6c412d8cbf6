"""Humanoid: two legs, two arms; it is to walk, stand up, kneel, or raise its arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, Signal, SignalReader, TaskGoal
from sims.core.terms import near, norm, outside
from sims.rendering.cameras import Camera
from sims.tasks.locomotion import (
    FAR,
    Lagged,
    LaggedViews,
    body_entity,
    row_index,
    strictly_within,
    sum_of_squares,
    torso_readers,
    tracking_cameras,
    up_axis_height,
)

HEIGHT = (1.0, 2.0)  # m, of the torso, while healthy
HEAD = 0.19  # m, from the torso to the middle of the head
UPRIGHT = 0.85  # least height of the torso's own z axis when it stands or kneels

STANDING = 1.2  # m, least height of the torso; 1.4 with straight legs
SOLE = 0.25  # m, most height of a foot's centre when it is stood on; its radius is 0.075
KNEE_DOWN = 0.15  # m, most height of a knee that is knelt on; the shin's radius is 0.05
KNEELING = (0.5, 1.05)  # m, height of the torso on its knees
HANDS_UP = 0.0  # m, least height of both hands above the middle of the head
STILL = 0.5  # m/s, most speed of a torso that holds a pose rather than falling through it
LYING = 0.2  # m, height of the torso at the start of standing up


@dataclass
class HumanoidViews(LaggedViews):
    """Row i is env i; qpos is torso position m and quaternion, then 17 joints."""

    xipos: Array  # (N, nbody, 3) m, of the bodies' centres of mass, one substep late
    derived: tuple[Array, ...]  # (N, ...) inertias, speeds, actuator forces, one substep late
    lagged: Array = field(metadata={"owned": True})  # (N, k) the same, as they were kept
    kept: tuple[Array, ...]  # views of ``lagged`` in the shapes of ``derived``


@dataclass(frozen=True, kw_only=True)
class Humanoid(Lagged[HumanoidViews]):
    """Goals: forward (Gymnasium's Humanoid-v5), stand up, kneel, arms raised."""

    name: ClassVar[str] = "humanoid"
    mirrors: ClassVar[str] = "Humanoid-v5"
    xml: ClassVar[str] = "humanoid.xml"
    act_dim: ClassVar[int] = 17
    cameras: ClassVar[tuple[Camera, ...]] = tracking_cameras("torso", 0.3, away=3.6)
    noise: ClassVar[float] = 1e-2

    control_dt: float = 0.015
    episode_s: float = 15.0
    persistent: bool = True

    def bind(self, batch: Batch) -> HumanoidViews:
        # Without the world, and without the root, which no motor drives.
        derived = batch.cinert[:, 1:], batch.cvel[:, 1:], batch.qfrc_actuator[:, 6:]
        ends = np.cumsum([part[0].size for part in derived])
        lagged = np.zeros((batch.nsim, ends[-1]))
        kept = tuple(
            lagged[:, end - part[0].size : end].reshape(part.shape)
            for part, end in zip(derived, ends, strict=True)
        )
        return HumanoidViews(
            **self.common(batch), xipos=batch.xipos, derived=derived, lagged=lagged, kept=kept
        )

    def reset(self, v: HumanoidViews, ids: Array, rng: RowRng) -> None:
        """Adds noise to environments ``ids`` (n,), which for ``stand_up`` lie on their backs."""
        super().reset(v, ids, rng)
        if self.goal == "stand_up":
            self._lay(v, ids, rng)

    def _lay(self, v: HumanoidViews, ids: Array, rng: RowRng) -> None:
        """Lays rows ``ids`` on their backs, heads in any direction."""
        yaw = rng.uniform(-np.pi, np.pi) / 2
        half = np.sqrt(0.5)
        v.qpos[ids, 2] = LYING
        # A turn about the vertical after one of -90 degrees about y: the chest looks up.
        v.qpos[ids, 3:7] = half * np.stack(
            [np.cos(yaw), np.sin(yaw), -np.cos(yaw), np.sin(yaw)], axis=1
        )

    def lagging(self, v: HumanoidViews, rows: Array | slice) -> Array:
        """Returns x and y of the centres of mass (n, 2) m in ``rows``, by the derived fields."""
        mass = v.batch.model.body_mass
        return np.einsum("b,nbk->nk", mass / mass.sum(), v.xipos[rows, :, :2])

    def after_reset(self, v: HumanoidViews, ids: Array) -> None:
        """Copies the derived fields that ``obs`` needs, in environments ``ids`` (n,)."""
        super().after_reset(v, ids)
        self._keep(v, ids)

    def after_step(self, v: HumanoidViews, ids: Array) -> None:
        """Copies the derived fields that ``obs`` needs, in environments ``ids`` (n,)."""
        super().after_step(v, ids)
        self._keep(v, ids)

    def _keep(self, v: HumanoidViews, ids: Array) -> None:
        rows = row_index(ids, len(v.qpos))
        for part, kept in zip(v.derived, v.kept, strict=True):
            kept[rows] = part[rows]

    def obs(self, v: HumanoidViews) -> dict[str, Array]:
        """Returns the observation of Gymnasium's Humanoid-v5.

        Returns:
            ``qpos`` (N, 22) without x and y of the torso, ``qvel`` (N, 23), ``lagged`` (N, 225),
            the inertias and velocities of the bodies and the actuator forces, and ``cfrc_ext``
            (N, 78), the external torques and forces on each body.
        """
        forces = v.cfrc_ext[:, 1:].reshape(len(v.qpos), -1)
        return {"qpos": v.qpos[:, 2:], "qvel": v.qvel, "lagged": v.lagged, "cfrc_ext": forces}

    def hands(self, v: HumanoidViews) -> Array:
        """Returns the positions (N, 2, 3) m of the right and the left hand."""
        self.settle(v)
        model = v.batch.model
        return v.geom_xpos[:, [model.geom(f"{side}_hand").id for side in SIDES]]

    def limbs(self, v: HumanoidViews, part: str) -> Array:
        """Returns the places (N, 2, 3) m of right and left ``foot``, or knee (``shin``)."""
        self.settle(v)
        model = v.batch.model
        if part == "foot":
            return v.geom_xpos[:, [model.geom(f"{side}_foot").id for side in SIDES]]
        return v.xpos[:, [model.body(f"{side}_{part}").id for side in SIDES]]

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        def limb(name: str, doc: str, read: Callable[[Any], Array]) -> SignalReader[Any]:
            return SignalReader(Signal(name, (2, 3), "m", "world", FAR, doc, False), read)

        return (
            *super().signal_readers(),
            *torso_readers("middle of the chest", "1 upright, 0 lying"),
            limb("hands_pos", "right and left hand", self.hands),
            limb("knees_pos", "right and left knee", lambda v: self.limbs(v, "shin")),
            limb("feet_pos", "right and left foot", lambda v: self.limbs(v, "foot")),
        )

    def entities(self) -> tuple[Entity, ...]:
        return (body_entity("humanoid", ("robot", "person", "body"), "torso", "torso_pos"),)

    def terminated(self, v: HumanoidViews) -> Array | bool:
        """Returns where it is not ``healthy``, (N,) bool, for ``forward``; for other goals
        False."""
        return ~healthy(v) if self.goal == "forward" else False

    def goals(self) -> Mapping[str, TaskGoal[HumanoidViews]]:
        return _goals(self)


SIDES = ("right", "left")


def healthy(v: HumanoidViews) -> Array:
    """Returns where a state is healthy as in Gymnasium, (N,) bool: the torso is off the floor."""
    return strictly_within(v.qpos[:, 2], *HEIGHT)


@cache
def _goals(task: Humanoid) -> dict[str, TaskGoal[HumanoidViews]]:
    def effort(v: HumanoidViews) -> Array:
        return -0.1 * sum_of_squares(v.ctrl)

    def forward(v: HumanoidViews, action: Array) -> dict[str, Array]:
        forces = sum_of_squares(v.cfrc_ext.reshape(len(v.qpos), -1))
        return {
            "survive": 5.0 * healthy(v),
            "forward": 1.25 * task.speed(v),
            "ctrl": effort(v),
            "contact": -np.minimum(5e-7 * forces, 10.0),
        }

    def walked(v: HumanoidViews) -> Array:
        return healthy(v) & (task.way_left(v) == 0.0)

    def tilt(v: HumanoidViews) -> Array:
        return outside(up_axis_height(v.qpos[:, 3:7]), UPRIGHT)

    def to_stand(v: HumanoidViews) -> Array:
        """(N,) m of height missing to standing on both feet, and the tilt too much."""
        feet = outside(task.limbs(v, "foot")[:, :, 2], 0.0, SOLE).max(axis=1)
        return outside(v.qpos[:, 2], STANDING) + feet + tilt(v)

    def to_kneel(v: HumanoidViews) -> Array:
        """(N,) m from torso and knees to where they are when kneeling, and the tilt too much."""
        knees = outside(task.limbs(v, "shin")[:, :, 2], -np.inf, KNEE_DOWN).max(axis=1)
        return knees + outside(v.qpos[:, 2], *KNEELING) + tilt(v)

    def to_raise(v: HumanoidViews) -> Array:
        """(N,) m of height that the lower hand and the torso lack, and the tilt too much."""
        above = task.hands(v)[:, :, 2].min(axis=1) - (v.qpos[:, 2] + HEAD)
        return outside(above, HANDS_UP) + outside(v.qpos[:, 2], HEIGHT[0]) + tilt(v)

    def pose(sentence: str, away: Callable[[HumanoidViews], Array]) -> TaskGoal[HumanoidViews]:
        def left(v: HumanoidViews) -> Array:
            return away(v) + outside(norm(v.qvel[:, :3]), 0.0, STILL)

        def success(v: HumanoidViews) -> Array:
            return left(v) == 0.0

        def reward(v: HumanoidViews, action: Array) -> dict[str, Array]:
            return {"near": near(away(v), 0.3), "there": 1.0 * success(v), "ctrl": effort(v)}

        return TaskGoal(sentence, success, reward, left, "")

    return {
        "forward": TaskGoal("the humanoid walks forward", walked, forward, task.way_left),
        "stand_up": pose("the humanoid is standing up", to_stand),
        "kneel": pose("the humanoid is kneeling", to_kneel),
        "arms_raised": pose("the humanoid has both arms raised", to_raise),
    }
