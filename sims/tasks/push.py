"""Push: slide one object across the table until it is next to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sims.core.rng import RowRng
from sims.core.task import Array, TaskGoal
from sims.core.terms import near, norm, outside
from sims.robots import Workspace
from sims.tasks.scene.scene_objects import THINGS
from sims.tasks.scene.tabletop import Tabletop, TabletopViews, polar_to_table, sample_spots

NEXT_TO = 0.065  # m, horizontal distance of two centres that counts as next to each other
ROOM = 0.01  # m, by which closer than that pays more still
TIPPED = 0.01  # m, a centre this far from its height when standing is no longer on the table
PAIRS = (
    ("red_cube", "blue_ball"),
    ("red_cube", "green_cylinder"),
    ("green_cylinder", "blue_ball"),
    ("green_cylinder", "red_cube"),
)

# Where a row starts: the pair in the middle of the table, the third object anywhere else.
GAP = (0.08, 0.15)  # m between the two centres
CLEAR = 0.08  # m, the third object keeps off the path of the push

# The scripted pusher.
BEHIND = 0.055  # m from the mover's centre: room for the closed jaws to come down
OVER = 0.075  # m, tip height that clears every object
LOW = 0.016  # m, tip height that pushes below the centre, so that nothing topples
STRIDE = 0.012  # m, by which the target leads the tip along the line
PUSHED = 0.055  # m, where the pusher stops


@dataclass(frozen=True, kw_only=True)
class Push(Tabletop[TabletopViews]):
    """Four goals: red cube or green cylinder next to another object."""

    name: ClassVar[str] = "push"

    def reset(self, v: TabletopViews, ids: Array, rng: RowRng) -> None:
        """Places arm and objects of environments ``ids`` (n,) at random.

        For one of the task's own goals the third object is kept off the path of the push.
        """
        arm, place = self.arm, self.arm.workspace
        jitter = rng.uniform(-place.jitter / 2, place.jitter / 2, (len(arm.joints),))
        jitter[:, 0] = rng.uniform(-place.turn / 2, place.turn / 2)
        self.place_arm(v, ids, arm.home + jitter)
        if self.formula is None:
            mover, goal = _parse(self.goal)
            order, spots = (mover, goal, 3 - mover - goal), _layout(place, rng, len(ids))
        else:
            order, spots = (0, 1, 2), sample_spots(place, rng, len(ids), gap=GAP[0])
        yaw = rng.uniform(-np.pi, np.pi, (3,))
        for slot, thing in enumerate(order):
            self.place_thing(v, ids, thing, spots[:, slot], yaw[:, slot])

    def goals(self) -> Mapping[str, TaskGoal[TabletopViews]]:
        return _goals(self)

    def expert(self, v: TabletopViews, rng: np.random.Generator) -> Array:
        """Returns the action (N, 3) that goes behind the object and pushes it towards the other."""
        mover, goal = (v.thing_pos[thing][:, :2] for thing in _parse(self.goal))
        gap = norm(goal - mover)
        along = (goal - mover) / np.maximum(gap, 1e-9)[:, None]
        from_mover = v.tip[:, :2] - mover
        ahead = np.einsum("Ni,Ni->N", from_mover, along)
        aside = from_mover - ahead[:, None] * along  # (N, 2) off the line of the push
        spot = mover - BEHIND * along

        # Where the tip is tells the phase: up, over to the spot, down, along the line.
        behind = (ahead < 0.0) & (ahead > -BEHIND - 0.02) & (norm(aside) < 0.02)
        pushing = (v.tip[:, 2] < LOW + 0.014) & behind
        down = pushing | (norm(v.tip[:, :2] - spot) < 0.012)
        up = ~down & (v.tip[:, 2] < OVER - 0.02)
        move = np.empty_like(v.tip)
        move[:, :2] = spot - v.tip[:, :2]
        move[up, :2] = 0.0
        move[pushing, :2] = (STRIDE * along - aside)[pushing]
        # Slowly down: a servo that runs ahead swings the jaws into the object.
        move[:, 2] = np.maximum(np.where(down, LOW, OVER) - v.tip[:, 2], -0.02)
        move[gap <= PUSHED] = 0.0
        return np.clip(0.6 * move / self.tip_step, -1.0, 1.0)


def _layout(place: Workspace, rng: RowRng, n: int) -> Array:
    """Spots (n, 3, 2) m of mover, goal object and third object.

    Every row draws the same number of candidates and takes its first good one, or its least bad,
    so a row's layout does not depend on its neighbours.
    """
    tries = 128
    reach = np.array([place.inner_reach, place.inner_reach, place.reach])
    sector = np.array([place.inner_sector, place.inner_sector, place.sector])
    radius = np.sqrt(rng.uniform(*reach.T**2, (tries, 3)))
    spots = polar_to_table(
        place, radius, rng.uniform(-sector, sector, (tries, 3))
    )  # (n, tries, 3, 2)
    mover, goal, third = (spots[:, :, slot] for slot in range(3))
    gap = norm(goal - mover)
    along = (goal - mover) / gap[..., None]
    # The push runs from behind the mover to the goal object; the third object stands clear of it.
    run = np.clip(np.einsum("ntk,ntk->nt", third - mover, along), -BEHIND, gap)
    aside = norm(third - mover - run[..., None] * along)
    bad = outside(gap, *GAP) + outside(aside, CLEAR)
    return spots[np.arange(n), np.argmin(bad, axis=1)]  # the first of equals


def _parse(goal: str) -> tuple[int, int]:
    """Indices into THINGS of the object that is pushed and the one it is pushed to."""
    names = [thing.name for thing in THINGS]
    mover, other = goal.split("_next_to_")
    return names.index(mover), names.index(other)


@cache
def _goals(task: Push) -> dict[str, TaskGoal[TabletopViews]]:
    return {f"{mover}_next_to_{other}": _goal(task, mover, other) for mover, other in PAIRS}


def _goal(task: Push, mover: str, other: str) -> TaskGoal[TabletopViews]:
    """The ground truth of one goal, from the positions of the fingers and the two objects."""
    pair = _parse(f"{mover}_next_to_{other}")

    def gap(v: TabletopViews) -> Array:
        first, second = (v.thing_pos[thing][:, :2] for thing in pair)
        return norm(first - second)

    def distance(v: TabletopViews) -> Array:
        return outside(gap(v), 0.0, NEXT_TO)

    def success(v: TabletopViews) -> Array:
        lifted = [np.abs(v.thing_pos[thing][:, 2] - THINGS[thing].height) for thing in pair]
        return (gap(v) <= NEXT_TO) & (np.maximum(*lifted) < TIPPED)

    def reward(v: TabletopViews, action: Array) -> dict[str, Array]:
        # A product: coming close to the mover pays first, and nudging it pays only from there. Once
        # they are next to each other nothing is won by another nudge, and what is lost by one that
        # sets the ball rolling is more than a few millimetres are worth.
        there = success(v)
        touch = near(outside(task.surface_distance(v, pair[0]), 0.0, 0.005), 0.07)
        touch = np.where(there, 1.0, touch)
        closer = touch * near(outside(gap(v), 0.0, NEXT_TO - ROOM), 0.07)
        return {"touch": 0.5 * touch, "gap": 0.75 * closer, "next_to": 0.75 * there}

    def words(name: str) -> str:
        return name.replace("_", " ")

    return TaskGoal(f"the {words(mover)} is next to the {words(other)}", success, reward, distance)
