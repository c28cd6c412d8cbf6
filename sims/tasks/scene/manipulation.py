"""ManipulationTask: the tabletop with a hand that opens and closes, and furniture beside the
things.

``lift``, ``pick_place``, ``stack``, ``drawer``, ``button``, ``peg`` and ``drawer_then_place`` are
written on this scene. An action is a small step of the tip and a small change of the jaws.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, ObsPart, RangePart, Signal, SignalReader
from sims.core.terms import near, norm
from sims.tasks.scene.scene_objects import THINGS, TURNS, SceneObject
from sims.tasks.scene.tabletop import Tabletop, TabletopViews, polar_to_table

RED_CUBE = THINGS[0]
HOVER = 0.05  # m, the tip this far over a thing clears it and its neighbours
ALONGSIDE = 0.012  # m, sideways error that still leaves the jaws room to come down over a thing
CAUGHT = 0.03  # m, fingers no further than this from a thing have it between them
IN_HAND, PUT = 0.3, 0.25  # shares of scattered rows in which a thing is held, or put somewhere
JAWS_TRIED = 8  # widths, until they fit what is between them
SQUEEZE = 0.10  # of the jaws' way, by which their target runs ahead of jaws that hold something


@dataclass(frozen=True)
class Placement:
    """Where a piece of furniture takes a thing, about one of its points."""

    point: str
    under: float = 0.0  # m, what the thing stands on is so far below the point
    aside: float = 0.0  # m, how far from the point, along x and y, it may stand
    deep: float = 0.0  # m, how much lower it may be


ON_TOP = Placement("", aside=0.005)  # of another thing


@dataclass(frozen=True)
class Fixture:
    """A piece of furniture on a mocap body, so that every row can have it elsewhere."""

    name: str  # the body's
    add_to: Callable[[mujoco.MjSpec], None]
    points: tuple[Entity, ...]  # what a sentence can name; ``body`` bears a site of the same name
    joint: str = ""  # "" where nothing moves
    unit: str = "m"
    range: tuple[float, float] = (0.0, 0.0)  # of the joint
    doc: str = ""  # of the joint's signal
    places: tuple[Placement, ...] = ()  # where a thing can be put


@dataclass
class ManipulationViews(TabletopViews):
    """The tabletop's views and the furniture's."""

    mocap: Array  # (N, fixtures, 3) where the furniture stands, m
    joint: tuple[Array, ...]  # (N, 1) each, of the fixtures that move, m or rad
    point: dict[str, Array]  # {entity: (N, 3) m}


@dataclass(frozen=True, kw_only=True)
class ManipulationTask(Tabletop[ManipulationViews]):
    """Four numbers an action: the tip's step in x, y and z, and the jaws' (-1 closes)."""

    act_dim: ClassVar[int] = 4
    objects: ClassVar[tuple[SceneObject, ...]] = (RED_CUBE,)
    fixtures: ClassVar[tuple[Fixture, ...]] = ()
    affordances: ClassVar[tuple[str, ...]] = ("touch", "push", "lift", "place")

    episode_s: float = 4.0  # s
    grip_step: float = 0.125  # of the way from closed to open, largest change per action
    tip_ceiling: float = 0.25  # m, the tip is not driven higher than this above the table

    def spec(self) -> mujoco.MjSpec:
        spec = super().spec()
        spec.option.impratio = 10.0  # friction as stiff as the contact: what is held does not creep
        for fixture in self.fixtures:
            fixture.add_to(spec)
        return spec

    def bind(self, batch: Batch) -> ManipulationViews:
        joints = [batch.model.joint(f.joint).qposadr[0] for f in self.fixtures if f.joint]
        points = [point for fixture in self.fixtures for point in fixture.points]
        return ManipulationViews(
            **self._bound(batch),
            mocap=batch.mocap_pos,
            joint=tuple(batch.qpos[:, j : j + 1] for j in joints),
            point={point.name: batch.site(point.name).xpos for point in points},
        )

    def control(self, v: ManipulationViews, action: Array) -> None:
        """Turns an action into targets of the arm's joints and of the jaws.

        Args:
            v: the views of the batch.
            action: (N, 4) in [-1, 1]: the tip's step along world x, y and z in units of
                ``tip_step``, limited by ``tip_ceiling``, and the jaws' in units of ``grip_step``,
                where 1 opens.
        """
        move = action[:, :3].copy()
        move[:, 2] = np.minimum(move[:, 2], (self.tip_ceiling - v.tip[:, 2]) / self.tip_step)
        super().control(v, move)
        closed, opened = self.arm.grip_range
        target = v.gripper_ctrl + self.grip_step * (opened - closed) * action[:, 3:4]
        v.gripper_ctrl[:] = np.clip(target, closed, opened)

    def command_readers(self) -> tuple[SignalReader[Any], ...]:
        """The tabletop's, and the fixtures' joints as measured: their signals are clipped."""
        return (*super().command_readers(), *self._joint_signals(clipped=False))

    def obs_parts(self) -> dict[str, tuple[ObsPart, ...]]:
        closed, opened = self.arm.grip_range
        half, things = (opened - closed) / 2, [f"{t.name}_pos" for t in self.objects]
        points = {point.name: f"{point.name}_pos" for f in self.fixtures for point in f.points}
        parts = {
            **self._arm_parts(len(self.arm.joints)),
            "gripper": (RangePart("gripper", 1, closed, opened),),
            "squeeze": (RangePart("gripper", 1, 0.0, half, "gripper_goal"),),
        }
        if things:
            parts["thing"] = tuple(ObsPart(t, 3, 4.0) for t in things)
            parts["tip_to_thing"] = tuple(ObsPart(t, 3, 10.0, "tip") for t in things)
            turns = tuple(
                ObsPart(f"{t.name}_{turn.name}", 2) for t in self.objects for turn in TURNS[t.kind]
            )
            if turns:
                parts["thing_turn"] = turns
            for name, point in points.items():
                parts[f"thing_to_{name}"] = tuple(ObsPart(point, 3, 10.0, t) for t in things)
        if len(things) > 1:
            apart = list(zip(things, [*things[1:], things[0]], strict=True))
            parts["thing_to_thing"] = tuple(ObsPart(a, 3, 10.0, b) for a, b in apart[1:])
        for name, point in points.items():
            parts[f"tip_to_{name}"] = (ObsPart(point, 3, 10.0, "tip"),)
        for fixture in self.moving:
            parts[fixture.joint] = (RangePart(fixture.joint, 1, *fixture.range),)
        return parts

    def action_doc(self) -> tuple[str, ...]:
        jaws = f"1 opens the target of the jaws by {self.grip_step:g} of their way"
        return (*super().action_doc(), jaws)

    @property
    def moving(self) -> tuple[Fixture, ...]:
        """The fixtures with a joint, in the order of ``ManipulationViews.joint``."""
        return tuple(fixture for fixture in self.fixtures if fixture.joint)

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        points = [point for fixture in self.fixtures for point in fixture.points]
        grip = Signal("grip", (3,), "m", "world", (-1, 1), "middle of the open jaws", True)
        return (
            *super().signal_readers(),
            SignalReader(grip, self.grip_point),
            *(self._point_signal(point) for point in points),
            *(self._point_fingers_signal(point) for point in points),
            *self._joint_signals(clipped=True),
        )

    @staticmethod
    def _point_signal(point: Entity) -> SignalReader[Any]:
        doc = f"where the {point.kind} is"
        signal = Signal(f"{point.name}_pos", (3,), "m", "world", (-1, 1), doc, False)
        return SignalReader(signal, lambda v: v.point[point.name])

    def _point_fingers_signal(self, point: Entity) -> SignalReader[Any]:
        doc = f"from each finger's surface to where the {point.kind} is"
        signal = Signal(f"{point.name}_fingers", (2,), "m", "world", (0, 1), doc, False)
        return SignalReader(
            signal, lambda v: np.column_stack(self.point_distances(v, v.point[point.name]))
        )

    def _joint_signals(self, *, clipped: bool) -> Iterator[SignalReader[Any]]:
        """The joints of the fixtures that move, each within its range if ``clipped``."""
        for i, f in enumerate(self.moving):

            def read(v: ManipulationViews, i: int = i, f: Fixture = f) -> Array:
                return np.clip(v.joint[i], *f.range) if clipped else v.joint[i]

            yield SignalReader(Signal(f.joint, (1,), f.unit, "joint", f.range, f.doc, False), read)

    def entities(self) -> tuple[Entity, ...]:
        return (*super().entities(), *(p for fixture in self.fixtures for p in fixture.points))

    # What resets are made of.
    def begin(self, v: ManipulationViews, ids: Array, rng: RowRng, opening: float = 1.0) -> None:
        """Puts arms of environments ``ids`` (n,) near home, jaws at ``opening`` (1 is open)."""
        arm, place = self.arm, self.arm.workspace
        jitter = rng.uniform(-place.jitter / 2, place.jitter / 2, (len(arm.joints),))
        jitter[:, 0] = rng.uniform(-place.turn / 2, place.turn / 2)
        self.place_arm(v, ids, arm.home + jitter)
        self.place_jaws(v, ids, opening)

    def place_jaws(self, v: ManipulationViews, ids: Array, opening: float) -> None:
        """Puts the jaws of environments ``ids`` (n,) at rest at ``opening`` (0 closed, 1 open)."""
        closed, opened = self.arm.grip_range
        v.jaws[ids] = v.gripper_ctrl[ids] = closed + opening * (opened - closed)

    def spot(self, v: ManipulationViews, rng: RowRng, n: int, part: tuple[float, float]) -> Array:
        """Returns random places (n, 2) m in the sector's ``part``: -1 is its left, 1 its right."""
        place = self.arm.workspace
        low, high = place.inner_reach
        radius = np.sqrt(rng.uniform(low**2, high**2))
        return polar_to_table(place, radius, place.sector * rng.uniform(*part))

    def square(self, spot: Array, rng: RowRng) -> Array:
        """Returns yaws (n,) rad of cubes at ``spot`` (n, 2) m, at most 35 degrees off the jaws.

        A hand that cannot turn independently of the arm has its jaws across the line to it.
        """
        away = spot[:, 1], spot[:, 0] - self.arm.workspace.shoulder_x
        jaws = np.arctan2(*away) if len(self.arm.joints) == 5 else np.zeros(len(spot))
        return jaws + rng.uniform(-0.6, 0.6)

    def middle(self) -> Array:
        """Returns the middle (2,) m of where things lie."""
        place = self.arm.workspace
        return np.array([place.shoulder_x + np.mean(place.inner_reach), 0.0])

    def scatter(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Writes random states into rows ``ids`` (n,).

        Objects, joints and jaws are anywhere. The tip is anywhere too, half the time near an object
        or a fixture. In half of the rows one object is in the jaws, or where it can be put.
        """
        self.reset(v, ids, rng)
        self.lay(v, ids, rng)
        v.batch.forward(ids, stage=mujoco.mjtStage.mjSTAGE_POS)
        points = np.stack([pos[ids] for pos in (*v.thing_pos, *v.point.values())], axis=1)
        arm = self.arm
        self.place_arm(v, ids, arm.home + arm.workspace.jitter * rng.normal((len(arm.joints),)))
        closed, opened = arm.grip_range
        opening = closed + rng.uniform(0, 1) * (opened - closed)
        v.jaws[ids] = v.gripper_ctrl[ids] = opening[:, None]
        target = self.tip_targets(points, rng)
        target[:, 2] = np.minimum(target[:, 2], self.tip_ceiling)
        self.place_tip(v, ids, target)
        v.ctrl[ids] = v.qpos[ids]
        if self.objects:
            self._take_up(v, ids, rng)

    def lay(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """Places objects of rows ``ids`` (n,) anywhere on the table, and joints anywhere in their
        range, now and then at its end."""
        for thing in range(len(self.objects)):
            spot = self.spot(v, rng, len(ids), (-1.0, 1.0))
            self.place_thing(v, ids, thing, spot, rng.uniform(-np.pi, np.pi))
        for fixture, joint in zip(self.moving, v.joint, strict=True):
            low, high = fixture.range
            over = 0.15 * (high - low)
            joint[ids, 0] = np.clip(rng.uniform(low - over, high + over), low, high)

    def _take_up(self, v: ManipulationViews, ids: Array, rng: RowRng) -> None:
        """In some rows, one thing is put between the jaws, in others where it can be put."""
        chance, which = rng.uniform(0, 1), rng.integers(len(self.objects))
        yaw, off, deep = rng.uniform(-np.pi, np.pi), rng.normal((2,)), rng.uniform(0, 1)
        turn = rng.integers(1 << 20)
        before = v.all_qpos[ids].copy()
        v.batch.forward(ids, stage=mujoco.mjtStage.mjSTAGE_POS)
        for thing in range(len(self.objects)):
            mine = which == thing
            self._grip(v, ids[mine & (chance < IN_HAND)], thing)
            places = self._places(v, thing)
            for number, (below, place) in enumerate(places):
                put = mine & (chance > 1.0 - PUT) & (turn % len(places) == number)
                pos = below[ids[put]].copy()
                pos[:, :2] += np.clip(off[put] / 2, -1, 1) * place.aside
                pos[:, 2] += self.objects[thing].height - deep[put] * place.deep
                self.place_at(v, ids[put], thing, pos, yaw[put])
        v.batch.forward(ids, stage=mujoco.mjtStage.mjSTAGE_POS)
        inside = self._inside_another(v)[ids]
        v.all_qpos[ids[inside]] = before[inside]  # no room there: it stays where it lay
        v.gripper_ctrl[ids[inside]] = v.gripper[ids[inside]]

    def _inside_another(self, v: ManipulationViews) -> Array:
        """(N,) bool: two things are in one place."""
        found = np.zeros(len(v.tip), bool)
        for a, b in itertools.combinations(range(len(self.objects)), 2):
            off, pair = v.thing_pos[a] - v.thing_pos[b], (self.objects[a], self.objects[b])
            level = norm(off[:, :2]) < sum(thing.round for thing in pair)
            found |= level & (np.abs(off[:, 2]) < sum(thing.height for thing in pair) - 0.001)
        return found

    def _places(self, v: ManipulationViews, thing: int) -> list[tuple[Array, Placement]]:
        """Where else than on the table a thing can be: what is below it (N, 3) m, and the place."""
        places = [
            (v.point[place.point] - (0.0, 0.0, place.under), place)
            for fixture in self.fixtures
            for place in fixture.places
        ]
        for other, under in enumerate(self.objects):
            if other != thing and "stack" in (under.affordances or self.affordances):
                places.append((v.thing_pos[other] + (0.0, 0.0, under.height), ON_TOP))
        return places

    def _grip(self, v: ManipulationViews, rows: Array, thing: int) -> None:
        """Puts a thing between the jaws of ``rows`` (n,) and closes them on it."""
        if not len(rows):
            return
        closed, opened = self.arm.grip_range
        low, high = np.zeros(len(rows)), np.ones(len(rows))
        pos = self.grip_point(v)[rows]
        pos[:, 2] = np.maximum(pos[:, 2], self.objects[thing].height)
        for _ in range(JAWS_TRIED):
            middle = (low + high) / 2
            v.jaws[rows] = (closed + middle * (opened - closed))[:, None]
            across = (v.finger_pos[1] - v.finger_pos[0])[rows]
            self.place_at(v, rows, thing, pos, np.arctan2(across[:, 1], across[:, 0]))
            v.batch.forward(rows, stage=mujoco.mjtStage.mjSTAGE_POS)
            left, right = (d[rows] for d in self.finger_distances(v, thing))
            across /= np.maximum(norm(across), 1e-9)[:, None]
            pos += 0.5 * (right - left)[:, None] * across * (1.0, 1.0, 0.0)
            free = np.minimum(left, right) > 0.0
            low, high = np.where(free, low, middle), np.where(free, middle, high)
        # As jaws that hold something: their target is ahead of them.
        ahead = v.gripper[rows, 0] - 2 * SQUEEZE * (opened - closed)
        v.gripper_ctrl[rows] = np.clip(ahead, closed, opened)[:, None]

    # What experts and rewards are made of.
    def squeeze(self, v: ManipulationViews) -> Array:
        """Returns how far the jaws' target is ahead of the jaws, (N,), as a share of their way.

        A signal of any gripper: it stays positive while something is held.
        """
        closed, opened = self.arm.grip_range
        return (v.gripper - v.gripper_ctrl)[:, 0] / (opened - closed)

    def point_distances(self, v: ManipulationViews, point: Array) -> list[Array]:
        """Returns the distances (N,) m from each finger's surface to points (N, 3) m."""
        return self._finger_distances(v, point, np.eye(3), norm)

    def grip_point(self, v: ManipulationViews) -> Array:
        """Returns the middle of the open jaws (N, 3) m: what is there will be grasped."""
        return v.tip - self.arm.grip_offset * v.tip_mat.reshape(-1, 3, 3)[:, :, 0]

    def held(self, v: ManipulationViews, thing: int) -> Array:
        """Returns whether both fingers touch the thing and press on it, (N,) bool."""
        left, right = self.finger_distances(v, thing)
        return (np.maximum(left, right) < 0.004) & (self.squeeze(v) > SQUEEZE)

    def grasping(self, v: ManipulationViews, thing: int) -> Array:
        """Returns how nearly a thing is grasped, (N,): 1 with fingers on it from either side."""
        left, right = self.finger_distances(v, thing)
        between = near(self.to_grip(v, thing), 0.05)
        return between * near(np.maximum(left, right), 0.02)

    def to_grip(self, v: ManipulationViews, thing: int) -> Array:
        """Returns the distance (N,) m from the middle of the open jaws to the thing's centre."""
        return norm(v.thing_pos[thing] - self.grip_point(v))

    def let_go(self, v: ManipulationViews, thing: int) -> Array:
        """Returns whether neither finger is within 5 mm of the thing, (N,) bool."""
        return self.surface_distance(v, thing) > 0.005

    def go(self, v: ManipulationViews, target: Array, grip: Array | float) -> Array:
        """Returns the action (N, 4) that moves the tip straight to ``target`` (N, 3) m."""
        move = np.clip(0.6 * (target - v.tip) / self.tip_step, -1.0, 1.0)
        return np.column_stack([move, np.broadcast_to(grip, len(move))])

    def fetch(
        self, v: ManipulationViews, thing: int, target: Array, *, depth: float = 0.0
    ) -> tuple[Array, Array]:
        """Returns the action (N, 4) that brings a thing to ``target`` (N, 3) m; (N,) bool held.

        Over it with open jaws, down, close, and when it is held up and over to the target, then
        down. ``depth`` m is how far below the thing's centre it is grasped.
        """
        pos = v.thing_pos[thing]
        offset = v.tip - self.grip_point(v)  # (N, 3) from the middle of the jaws to the tip
        grasp = pos + offset
        grasp[:, 2] = np.maximum(pos[:, 2] - depth, self.tip_floor)
        aside = norm(v.tip[:, :2] - grasp[:, :2])
        above = v.tip[:, 2] - grasp[:, 2]
        held = self.held(v, thing)

        down = (aside < ALONGSIDE) | ((aside < 2 * ALONGSIDE) & (above < 0.6 * HOVER))
        there = down & (above < 0.008) & (aside < ALONGSIDE)
        # Jaws that have begun to close on it go on, though they drag it along.
        closed, opened = self.arm.grip_range
        closing = v.gripper_ctrl[:, 0] < closed + 0.9 * (opened - closed)
        across = np.einsum("Ni,Ni->N", pos - v.tip, v.tip_mat.reshape(-1, 3, 3)[:, :, 1])
        between = np.maximum(*self.finger_distances(v, thing)) < CAUGHT
        between &= np.abs(across) < ALONGSIDE + 0.006
        there |= closing & between & (above < 0.02)
        approach = grasp.copy()
        approach[:, 2] += np.where(down, 0.0, HOVER)
        # A tip that is low and beside the thing goes up first.
        low = ~down & (above < 0.5 * HOVER)
        approach[low, :2] = v.tip[low, :2]

        # Carried high until it is over the place, then straight down.
        carry = target + (v.tip - pos)
        far = norm(target[:, :2] - pos[:, :2])
        carry[:, 2] += np.where(far > 0.012, np.clip(4.0 * far, 0.0, HOVER), 0.0)
        rise = (far > 0.03) & (pos[:, 2] < target[:, 2] + 0.7 * HOVER)
        carry[rise, :2] = v.tip[rise, :2]

        goal = np.where(held[:, None], carry, np.where(there[:, None], v.tip, approach))
        return self.go(v, goal, np.where(there | held, -1.0, 1.0)), held

    def fetch_and_leave(
        self,
        v: ManipulationViews,
        thing: int,
        target: Array,
        *,
        close_to: float,
        depth: float = 0.0,
    ) -> Array:
        """Returns the action (N, 4) that takes a thing to ``target`` (N, 3) m and leaves it.

        It is there when it is within ``close_to`` m sideways and 4 mm above.
        """
        action, _ = self.fetch(v, thing, target, depth=depth)
        pos = v.thing_pos[thing]
        arrived = norm(pos[:, :2] - target[:, :2]) < close_to
        arrived &= pos[:, 2] < target[:, 2] + 0.004
        # Open where it stands, then straight up.
        closed, opened = self.arm.grip_range
        free = v.gripper[:, 0] > closed + 0.85 * (opened - closed)
        away = v.tip.copy()
        away[:, 2] += np.where(free, HOVER, 0.0)
        return np.where(arrived[:, None], self.go(v, away, 1.0), action)


def upright(v: TabletopViews, thing: int) -> Array:
    """Returns the cosine (N,) between the thing's own up and the world's."""
    return v.thing_mat[thing].reshape(-1, 3, 3)[:, 2, 2]
