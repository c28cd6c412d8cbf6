"""The tabletop: an arm, three coloured objects, and a gripper moved by small steps of its tip.

``reach`` and ``push`` share this scene; they differ in where objects start and what is wanted.
Left and right are as seen in the front camera's picture, which looks back at the arm.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, cast

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims import robots
from sims.core import ik
from sims.core.rng import RowRng
from sims.core.task import Array, Entity, ObsPart, Signal, SignalReader, Task
from sims.core.terms import norm
from sims.rendering.cameras import Camera, add_sky
from sims.robots import Robot, Workspace
from sims.tasks.scene.scene_objects import GRIPPER, THINGS, TURNS, OrientationFeature, SceneObject

LEFT = -robots.SO101.workspace.front.axes()[0]  # (3,): left in every front picture, in the world
UNIT = (-1, 1)  # range of directions, and of positions near the table, m
STIFF_POINTING = 0.1  # m/rad, ik.POINTING for arms that need not choose between reach and posture


@dataclass
class TabletopViews:
    """What the tabletop sees: row i is env i, positions in the world frame."""

    batch: Batch
    all_qpos: Array  # (N, nq), writable
    qpos: Array  # (N, n) arm joints, rad
    qvel: Array  # (N, n) rad/s
    ctrl: Array  # (N, n) arm joint targets, rad
    gripper: Array  # (N, 1) gripper joint, rad
    jaws: Array  # (N, 1 or 2) the gripper's joint and those that mirror it
    gripper_ctrl: Array  # (N, 1) rad
    tip: Array  # (N, 3) point between the fingertips, m
    tip_mat: Array  # (N, 9)
    anchor: Array  # (N, n, 3) joint anchors, m
    axis: Array  # (N, n, 3) joint axes, unit
    finger_pos: tuple[Array, ...]  # (N, 3) each, m
    finger_mat: tuple[Array, ...]  # (N, 9) each
    thing_pos: tuple[Array, ...]  # (N, 3) each, m, in the order of the task's objects
    thing_mat: tuple[Array, ...]  # (N, 9) each
    apart: list[TabletopViews] = field(default_factory=list, kw_only=True)  # Tabletop.untouched

    @property
    def pointing(self) -> Array:
        """Returns the unit direction (N, 3) out of the gripper."""
        return self.tip_mat.reshape(-1, 3, 3)[:, :, 2]


TV = TypeVar("TV", bound=TabletopViews)


@dataclass(frozen=True, kw_only=True)
class Tabletop(Task[TV]):
    """The shared scene, observation and control; a subclass adds resets, goals and an expert."""

    act_dim: ClassVar[int] = 3
    least_spread: ClassVar[float] = 0.2  # 5 cm of a place, 2 to 5 cm of a way, 0.04 rad of a lag
    objects: ClassVar[tuple[SceneObject, ...]] = THINGS
    affordances: ClassVar[tuple[str, ...]] = ("touch", "push")  # what may be done to a thing

    robot: str = "so101"
    tip_step: float = 0.02  # m, largest move of the tip per action and axis
    tip_floor: float = 0.012  # m, the tip is not driven lower than this above the table
    lag: float = 0.10  # rad, a joint target runs at most this far ahead of its joint

    @property
    def arm(self) -> Robot:
        """The arm at this table."""
        return robots.get(self.robot, self.name)

    @property
    def cameras(self) -> tuple[Camera, ...]:  # type: ignore[override]
        """The two that stand at this arm's table."""
        return self.arm.workspace.front, self.arm.workspace.top

    def spec(self) -> mujoco.MjSpec:
        place = self.arm.workspace
        spec = mujoco.MjSpec()
        spec.option.timestep = 0.005
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.visual.headlight.ambient = (0.45, 0.45, 0.45)
        spec.visual.headlight.diffuse = (0.25, 0.25, 0.25)
        spec.visual.headlight.specular = (0.0, 0.0, 0.0)
        spec.visual.map.znear = 0.05
        light = spec.worldbody.add_light(pos=place.light, dir=(-0.1, -0.2, -1.0))
        light.diffuse, light.specular, light.castshadow = (0.45,) * 3, (0.0,) * 3, False
        spec.worldbody.add_geom(
            name="table",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=place.table,
            pos=(place.table_x, 0.0, -place.table[2]),
            rgba=(0.52, 0.40, 0.28, 1.0),
            friction=(0.6, 0.01, 0.001),
        )
        # What is pushed off the table lies beneath it, unseen, and does not roll on.
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=(2.0, 2.0, 0.1),
            pos=(place.table_x, 0.0, -2 * place.table[2]),
            group=4,
            condim=6,
            friction=(1.0, 0.1, 0.1),
        )
        self.arm.build(spec)
        for thing in self.objects:
            thing.add_to(spec)
        for camera in self.cameras:
            camera.add_to(spec)
        add_sky(spec)
        return spec

    def bind(self, batch: Batch) -> TV:
        """The views; a subclass that has more of them overrides this."""
        return cast(TV, TabletopViews(**self._bound(batch)))

    def _bound(self, batch: Batch) -> dict[str, Any]:
        """The fields of TabletopViews."""
        arm = self.arm
        model = batch.model
        joints = [model.joint(name) for name in arm.joints]
        qpos, qvel = (_span([j.qposadr[0] for j in joints]), _span([j.dofadr[0] for j in joints]))
        ctrl = _span([model.actuator(name).id for name in arm.joints])
        ids = _span([j.id for j in joints])
        jaw = model.joint(arm.gripper_joint).qposadr[0]
        jaws = [jaw, *(model.joint(name).qposadr[0] for name in arm.gripper_followers)]
        jaw_ctrl = model.actuator(arm.gripper_joint).id
        tip = batch.site(arm.tool_site)
        fingers = [batch.geom(name) for name in arm.finger_geoms]
        things = [batch.body(thing.name) for thing in self.objects]
        return dict(
            batch=batch,
            all_qpos=batch.qpos,
            qpos=batch.qpos[:, qpos],
            qvel=batch.qvel[:, qvel],
            ctrl=batch.ctrl[:, ctrl],
            gripper=batch.qpos[:, jaw : jaw + 1],
            jaws=batch.qpos[:, _span(jaws)],
            gripper_ctrl=batch.ctrl[:, jaw_ctrl : jaw_ctrl + 1],
            tip=tip.xpos,
            tip_mat=tip.xmat,
            anchor=batch.xanchor[:, ids],
            axis=batch.xaxis[:, ids],
            finger_pos=tuple(f.xpos for f in fingers),
            finger_mat=tuple(f.xmat for f in fingers),
            thing_pos=tuple(t.xpos for t in things),
            thing_mat=tuple(t.xmat for t in things),
        )

    def control(self, v: TV, action: Array) -> None:
        """Turns an action into targets of the arm's joints, ``v.ctrl``.

        Args:
            v: the views of the batch.
            action: (N, 3) in [-1, 1], the tip's step along world x, y and z in units of
                ``tip_step``. The tip stays above ``tip_floor``, and a target within ``lag`` of
                its joint.
        """
        move = self.tip_step * action
        move[:, 2] = np.maximum(move[:, 2], self.tip_floor - v.tip[:, 2])
        # On top of the last target, not of the measured joint: sag must not feed back.
        low, high = self.arm.joint_range.T
        lag = min(self.lag, self.arm.lag_limit)
        room = (np.maximum(low, v.qpos - lag) - v.ctrl, np.minimum(high, v.qpos + lag) - v.ctrl)
        room = np.minimum(room[0], 0.0), np.maximum(room[1], 0.0)
        v.ctrl[:] += self._joint_step(v, slice(None), move, room)

    def _joint_step(
        self, v: TabletopViews, ids: Array | slice, move: Array, room: tuple[Array, Array]
    ) -> Array:
        """Joint increments (n, joints) rad that move the tips of rows ``ids`` by ``move`` (n, 3) m.

        Five joints place the tip and point the tool down. A sixth keeps the jaws opening along y,
        a seventh keeps the elbow where it is at home.
        """
        spare: dict[str, Any] = {}
        joints = len(self.arm.joints)
        if joints > 5:
            across = v.tip_mat[ids].reshape(-1, 3, 3)[:, :2, 0]  # (n, 2) the way the jaws open
            turned = np.arctan2(across[:, 0], -across[:, 1])  # rad from -y, where it is at home
            spare = {"yaw": -turned, "pointing_weight": STIFF_POINTING}
        if joints > 6:
            spare["rest"] = 0.05 * (self.arm.home - v.qpos[ids])
        return ik.joint_step(
            v.anchor[ids], v.axis[ids], v.tip[ids], v.pointing[ids], move, room, **spare
        )

    def command_readers(self) -> tuple[SignalReader[Any], ...]:
        docs = {reader.signal.name: reader.signal for reader in self.signal_readers()}
        what = "last target, after every limit, of"
        arm = replace(docs["qpos"], name="goal", doc=f"{what} the arm joints")
        jaws = replace(docs["gripper"], name="gripper_goal", doc=f"{what} the gripper joint")
        return (SignalReader(arm, lambda v: v.ctrl), SignalReader(jaws, lambda v: v.gripper_ctrl))

    def obs_parts(self) -> dict[str, tuple[ObsPart, ...]]:
        n, things = len(self.arm.joints), [f"{t.name}_pos" for t in self.objects]
        return {
            **self._arm_parts(n),
            "thing": tuple(ObsPart(t, 3, 4.0) for t in things),
            "tip_to_thing": tuple(ObsPart(t, 3, 4.0, "tip") for t in things),
            "thing_to_thing": tuple(
                ObsPart(one, 3, 4.0, other)
                for one, other in zip(things, [*things[1:], things[0]], strict=True)
            ),
        }

    @staticmethod
    def _arm_parts(n: int) -> dict[str, tuple[ObsPart, ...]]:
        """The columns of an arm of ``n`` joints."""
        return {
            "qpos": (ObsPart("qpos", n),),
            "qvel": (ObsPart("qvel", n, 0.1),),
            "lag": (ObsPart("goal", n, 5.0, "qpos"),),
            "tip": (ObsPart("tip", 3, 4.0),),
        }

    def action_doc(self) -> tuple[str, ...]:
        step = f"1 moves the target of the tip by {self.tip_step:g} m along world"
        return tuple(f"{step} {axis}" for axis in "xyz")

    def area(self) -> tuple[float, ...]:
        return self.arm.workspace.area

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        numbered = list(enumerate(self.objects))
        return (
            *self._arm_signals(),
            *(self._position_signal(thing, i) for i, thing in numbered),
            *(
                self._orientation_signal(thing, i, turn)
                for i, thing in numbered
                for turn in TURNS[thing.kind]
            ),
            *(self._finger_signal(thing, i) for i, thing in numbered),
        )

    def _arm_signals(self) -> tuple[SignalReader[Any], ...]:
        """What the arm measures of itself."""
        arm, span = self.arm, self.arm.workspace.span
        n, world, unit, jaws = len(arm.joints), (-span, span), arm.gripper_unit, arm.gripper_range
        angles = float(arm.joint_range.min()), float(arm.joint_range.max())
        speed = 1.5 * float(arm.velocity_limit.max())  # a knock moves a joint faster than its servo
        return (
            SignalReader(
                Signal("qpos", (n,), "rad", "joint", angles, "arm joint angles", True),
                lambda v: v.qpos,
            ),
            SignalReader(
                Signal("qvel", (n,), "rad/s", "joint", (-speed, speed), "arm joint speeds", True),
                lambda v: v.qvel,
            ),
            SignalReader(
                Signal("gripper", (1,), unit, "joint", jaws, "gripper joint angle", True),
                lambda v: v.gripper,
            ),
            SignalReader(
                Signal("tip", (3,), "m", "world", world, "point between the fingertips", True),
                lambda v: v.tip,
            ),
            SignalReader(
                Signal("pointing", (3,), "1", "world", UNIT, "direction out of the gripper", True),
                lambda v: v.pointing,
            ),
            SignalReader(
                Signal(
                    "finger_middles", (2, 3), "m", "world", world, "centres of both fingers", True
                ),
                lambda v: np.stack(v.finger_pos, axis=1),
            ),
        )

    @staticmethod
    def _position_signal(thing: SceneObject, i: int) -> SignalReader[Any]:
        doc = f"centre of the {thing.kind}"
        signal = Signal(f"{thing.name}_pos", (3,), "m", "world", UNIT, doc, False)
        return SignalReader(signal, lambda v: v.thing_pos[i])

    @staticmethod
    def _orientation_signal(
        thing: SceneObject, i: int, turn: OrientationFeature
    ) -> SignalReader[Any]:
        signal = Signal(f"{thing.name}_{turn.name}", (3,), "1", "world", UNIT, turn.doc, False)
        return SignalReader(signal, lambda v: turn.measure(v.thing_mat[i].reshape(-1, 3, 3)))

    def _finger_signal(self, thing: SceneObject, i: int) -> SignalReader[Any]:
        doc = f"from each finger's surface to that of the {thing.kind}"
        signal = Signal(f"{thing.name}_fingers", (2,), "m", "world", (0, 1), doc, False)
        return SignalReader(signal, lambda v: np.column_stack(self.finger_distances(v, i)))

    def entities(self) -> tuple[Entity, ...]:
        return (
            GRIPPER,
            *(
                Entity(
                    t.name,
                    t.aliases,
                    t.colour,
                    t.kind,
                    t.affordances or self.affordances,
                    t.name,
                    f"{t.name}_pos",
                    t.half,
                )
                for t in self.objects
            ),
        )

    # Geometry that goals are written in.
    def surface_distance(self, v: TabletopViews, thing: int) -> Array:
        """Returns the distance (N,) m of ``objects[thing]`` from the nearer finger's surface."""
        return np.minimum(*self.finger_distances(v, thing))

    def finger_distances(self, v: TabletopViews, thing: int) -> list[Array]:
        """Returns the distances (N,) m of ``objects[thing]`` from each finger's surface."""
        mat, distance = v.thing_mat[thing].reshape(-1, 3, 3), self.objects[thing].distance
        return self._finger_distances(v, v.thing_pos[thing], mat, distance)

    def _finger_distances(
        self, v: TabletopViews, centre: Array, axes: Array, distance: Callable[[Array], Array]
    ) -> list[Array]:
        """Distances (N,) m from each finger's surface to what ``distance`` measures in the frame
        at ``centre`` (N, 3) m with ``axes`` (N, 3, 3)."""
        distances = []
        for (points, radius), pos, mat in zip(
            finger_points(self.robot), v.finger_pos, v.finger_mat, strict=True
        ):
            # The finger's frame in the other: points @ turn + offset.
            turn = mat.reshape(-1, 3, 3).transpose(0, 2, 1) @ axes
            offset = (pos - centre)[:, None] @ axes
            distances.append(np.maximum(distance(points @ turn + offset).min(axis=1) - radius, 0.0))
        return distances

    def place_tip(self, v: TabletopViews, ids: Array, target: Array) -> None:
        """Solves rows ``ids`` (n,) for a tip at ``target`` (n, 3) m, the tool pointing down."""
        low, high = self.arm.joint_range.T
        alone = self.untouched(v)
        alone.qpos[ids] = v.qpos[ids]
        for _ in range(40):
            alone.batch.forward(ids, stage=mujoco.mjtStage.mjSTAGE_POS)
            move = np.clip(target - alone.tip[ids], -0.05, 0.05)
            room = low - alone.qpos[ids], high - alone.qpos[ids]
            alone.qpos[ids] += self._joint_step(alone, ids, move, room)
        v.qpos[ids] = alone.qpos[ids]

    def untouched(self, v: TabletopViews) -> TabletopViews:
        """Rows of the same scene in which nothing touches anything: where an arm's joints put its
        tip costs a fifth there. Made when it is first asked for."""
        if not v.apart:
            model = copy(v.batch.model)
            model.opt.disableflags |= (
                mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
            )
            v.apart.append(self.bind(Batch(model, v.batch.nsim, nthread=v.batch.nthread)))
        return v.apart[0]

    def place_thing(self, v: TabletopViews, ids: Array, thing: int, xy: Array, yaw: Array) -> None:
        """Stands ``objects[thing]`` on the table at ``xy`` (n, 2) m, turned by ``yaw`` (n,) rad."""
        height = np.full(len(ids), self.objects[thing].height)
        self.place_at(v, ids, thing, np.column_stack([xy, height]), yaw)

    def place_at(self, v: TabletopViews, ids: Array, thing: int, pos: Array, yaw: Array) -> None:
        """Puts the centre of ``objects[thing]`` at ``pos`` (n, 3) m, upright, turned by ``yaw``
        (n,) rad."""
        start = v.batch.model.joint(self.objects[thing].name).qposadr[0]
        pose = np.zeros((len(ids), 7))
        pose[:, :3] = pos
        pose[:, 3], pose[:, 6] = np.cos(yaw / 2), np.sin(yaw / 2)
        v.all_qpos[ids, start : start + 7] = pose

    def place_arm(self, v: TabletopViews, ids: Array, qpos: Array) -> None:
        """Puts the arm at rest at ``qpos`` (n, joints) rad with the gripper closed."""
        arm = self.arm
        v.qpos[ids] = v.ctrl[ids] = np.clip(qpos, *arm.joint_range.T)
        v.gripper[ids] = v.gripper_ctrl[ids] = arm.gripper_range[0]

    def scatter(self, v: TV, ids: Array, rng: RowRng) -> None:
        """Writes random states into rows ``ids`` (n,).

        Objects are anywhere, sometimes side by side; the tip is anywhere, half the time near one.
        """
        n = len(ids)
        place, arm = self.arm.workspace, self.arm
        spots = sample_spots(place, rng, n, gap=0.045)
        pair = rng.integers(3), rng.integers(2)
        beside = rng.uniform(0, 1) < 0.3
        first, second = pair[0], (pair[0] + 1 + pair[1]) % 3
        angle = rng.uniform(-np.pi, np.pi)
        offset = rng.uniform(0.042, 0.10)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        row = np.arange(n)
        spots[row[beside], second[beside]] = (spots[row, first] + offset)[beside]
        yaw = rng.uniform(-np.pi, np.pi, (3,))
        for thing in range(3):
            self.place_thing(v, ids, thing, spots[:, thing], yaw[:, thing])
        things = np.concatenate([spots, np.full((n, 3, 1), 0.03)], axis=2)
        target = self.tip_targets(things, rng)
        self.place_arm(v, ids, arm.home + place.jitter * rng.normal((len(arm.joints),)))
        self.place_tip(v, ids, target)
        v.ctrl[ids] = v.qpos[ids]

    def tip_targets(self, points: Array, rng: RowRng) -> Array:
        """Returns places (n, 3) m for the tip: near one of ``points`` (n, k, 3) m, or anywhere."""
        n, place = len(points), self.arm.workspace
        where = rng.uniform(0, 1)[:, None]
        centre = points[np.arange(n), rng.integers(points.shape[1])]
        round_it = centre + rng.normal((3,)) * (0.05, 0.05, 0.035)
        over_it = centre + rng.normal((3,)) * (0.018, 0.018, 0.0)
        over_it[:, 2] = rng.uniform(0.03, 0.15)
        anywhere = np.concatenate(
            [
                polar_to_table(
                    place,
                    rng.uniform(*place.air_reach),
                    rng.uniform(-place.air_sector, place.air_sector),
                ),
                rng.uniform(0.012, place.air_top)[:, None],
            ],
            axis=1,
        )
        target = np.where(where < 0.45, round_it, np.where(where < 0.65, over_it, anywhere))
        target[:, 2] = np.maximum(target[:, 2], self.tip_floor)
        return target


def polar_to_table(place: Workspace, radius: Array, angle: Array) -> Array:
    """Returns points (..., 2) m on the table at polar coordinates (m, rad) about the shoulder."""
    return np.stack([place.shoulder_x + radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def sample_spots(place: Workspace, rng: RowRng, n: int, gap: float) -> Array:
    """Returns spots (n, 3, 2) m in the reachable sector, at least ``gap`` m between centres.

    Every row draws the same number of candidates and takes its first good one, so a row's layout
    does not depend on its neighbours.
    """
    tries = 32
    radius = np.sqrt(rng.uniform(place.reach[0] ** 2, place.reach[1] ** 2, (tries, 3)))
    angle = rng.uniform(-place.sector, place.sector, (tries, 3))
    spots = polar_to_table(place, radius, angle)  # (n, tries, 3, 2)
    apart = norm(spots - np.roll(spots, 1, axis=2)).min(axis=2)  # (n, tries)
    apart[:, 0] = np.where((apart >= gap).any(axis=1), apart[:, 0], np.inf)
    return spots[np.arange(n), np.argmax(apart >= gap, axis=1)]


_POINTS: dict[str, tuple[tuple[Array, float], ...]] = {}


def finger_points(robot: str) -> tuple[tuple[Array, float], ...]:
    """Returns, for each finger, points (p, 3) m in its frame and the radius m of balls round them.

    A grid of balls just inside the surface of its box, 2 by 3 by 9: fine enough for 3 mm.
    """
    if robot not in _POINTS:
        arm = robots.get(robot)
        spec = mujoco.MjSpec()
        arm.build(spec)
        model = spec.compile()
        radius = 0.003
        fingers = []
        for name in arm.finger_geoms:
            half = model.geom(name).size
            counts = np.empty(3, int)
            counts[np.argsort(half)] = 2, 3, 9
            axes = [np.linspace(-1, 1, n) * (h - radius) for n, h in zip(counts, half, strict=True)]
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
            fingers.append((grid.reshape(-1, 3), radius))
        _POINTS[robot] = tuple(fingers)
    return _POINTS[robot]


def _span(ids: Any) -> slice:
    """The slice of consecutive ids; the scene builders add an arm's joints in one run."""
    ids = [int(i) for i in ids]
    if ids != list(range(ids[0], ids[0] + len(ids))):
        raise ValueError(f"the arm's joints must be consecutive in the model, got {ids}")
    return slice(ids[0], ids[-1] + 1)
