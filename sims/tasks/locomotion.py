"""Bodies of Gymnasium's MuJoCo suite: one scene from Gymnasium's own XML, one set of rules.

Each task here mirrors a v5 environment: same scene, same observation, and, for the task's first
goal, the same reward and the same end of an episode, to 1e-8 in float64. Further goals change the
reward and never the observation.

After a step MuJoCo's derived fields still describe the state before the last substep, and so do
Gymnasium's observations. What an observation needs of them is copied into arrays that the task
owns; state rows alone say the rest.
"""

from __future__ import annotations

import importlib.util
import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.core.task import Array, Entity, Signal, SignalReader, Task
from sims.rendering.cameras import Camera, add_sky

WALKING = 1.0  # m/s, mean over an episode that counts as having gone forward
LEANING = 0.4  # rad at most, of a body that is scattered upright
FAR, SPEEDS = (-1e3, 1e3), (-1e4, 1e4)  # ranges that no body leaves within an episode
# The position of a body that moves in the plane y = 0.
TORSO_POS = Signal("torso_pos", (3,), "m", "world", FAR, "middle of the torso", False)


@dataclass
class LocomotionViews:
    """What a body's task sees: row i is env i."""

    batch: Batch
    qpos: Array  # (N, nq)
    qvel: Array  # (N, nv)
    ctrl: Array  # (N, nu)


B = TypeVar("B", bound=LocomotionViews)


@dataclass(frozen=True, kw_only=True)
class LocomotionTask(Task[B]):
    """A scene, control and reset as Gymnasium has them; a subclass adds what it sees and wants."""

    mirrors: ClassVar[str]  # the Gymnasium id
    xml: ClassVar[str]  # in gymnasium/envs/mujoco/assets
    has_expert: ClassVar[bool] = False
    noise: ClassVar[float] = 0.0  # half width of the uniform noise on a starting qpos
    normal_speeds: ClassVar[bool] = False  # starting qvel noise: normal, or uniform as qpos

    stage: int = mujoco.mjtStage.mjSTAGE_NONE.value

    def spec(self) -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_file(str(asset(self.xml)))
        for camera in self.cameras:
            camera.add_to(spec)
        add_sky(spec)
        return spec

    def model(self) -> mujoco.MjModel:
        model = _compiled(self.spec())
        if model.ntree == 1:
            # One island in any case: looking for more costs up to 7 % and changes no bit.
            model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
        return model

    def control(self, v: B, action: Array) -> None:
        """Writes ``action`` (N, act_dim) in [-1, 1] to ``v.ctrl``, scaled to the motors' ranges."""
        low, high = v.batch.model.actuator_ctrlrange.T
        v.ctrl[:] = 0.5 * (low + high) + 0.5 * (high - low) * action

    def reset(self, v: B, ids: Array, rng: RowRng) -> None:
        """Adds Gymnasium's noise to qpos and qvel of environments ``ids`` (n,).

        The noise of qpos is uniform within ``noise`` to either side. That of qvel is normal with
        the standard deviation ``noise`` if ``normal_speeds`` is set, and else uniform likewise.
        """
        v.qpos[ids] += rng.uniform(-self.noise, self.noise, v.qpos.shape[1:])
        nv = v.qvel.shape[1:]
        speeds = rng.normal(nv) if self.normal_speeds else rng.uniform(-1.0, 1.0, nv)
        v.qvel[ids] += self.noise * speeds

    def scatter(self, v: B, ids: Array, rng: RowRng) -> None:
        """Writes random states into rows ``ids`` (n,).

        Joints are anywhere in their range, with some speed. A body tied to the world keeps its
        place; a free one is on the floor, upright in half of the rows, else turned any way.
        """
        model = v.batch.model
        unit = rng.uniform(0.0, 1.0, (model.nq,))
        for joint in range(model.njnt):
            if model.jnt_limited[joint]:
                at, (low, high) = model.jnt_qposadr[joint], model.jnt_range[joint]
                v.qpos[ids, at] = low + (high - low) * unit[:, at]
        v.qvel[ids] += rng.normal((model.nv,))
        if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
            angle = np.where(rng.uniform(0.0, 1.0) < 0.5, LEANING, np.pi) * rng.uniform(0.0, 1.0)
            self._land(v, ids, rng.normal((3,)), angle)

    def _land(self, v: B, ids: Array, about: Array, angle: Array) -> None:
        """Rows ``ids`` turned by ``angle`` (n,) rad about axes (n, 3), down to where they meet the
        floor. These bodies are of spheres and capsules."""
        model = v.batch.model
        data, moving = mujoco.MjData(model), model.geom_bodyid > 0
        for row, axis, by in zip(ids, about, angle, strict=True):
            data.qpos[:] = v.qpos[row]
            mujoco.mju_axisAngle2Quat(data.qpos[3:7], axis / np.linalg.norm(axis), by)
            mujoco.mj_kinematics(model, data)
            reach = model.geom_size[:, 0] + np.abs(data.geom_xmat[:, 8]) * model.geom_size[:, 1]
            v.qpos[row, 3:7] = data.qpos[3:7]
            v.qpos[row, 2] -= (data.geom_xpos[:, 2] - reach)[moving].min()

    def expert(self, v: B, rng: np.random.Generator) -> Array:
        """Returns nothing: no body has an expert that could return actions (N, act_dim).

        Raises:
            ValueError: always; the message says how to train a policy instead.
        """
        raise ValueError(
            f"task {self.name!r} has no scripted expert; train a policy: "
            f"robo-rl train {self.name} --reward task"
        )

    def signal_readers(self) -> tuple[SignalReader[Any], ...]:
        (nq, nv), order = (compiled(self.xml).nq, compiled(self.xml).nv), "root first, then joints"
        qpos = Signal(
            "qpos", (nq,), "m, rad, quaternion", "joint", FAR, f"positions: {order}", True
        )
        qvel = Signal("qvel", (nv,), "m/s, rad/s", "joint", SPEEDS, f"speeds: {order}", True)
        return SignalReader(qpos, lambda v: v.qpos), SignalReader(qvel, lambda v: v.qvel)


@dataclass
class RunnerViews(LocomotionViews):
    """What a task sees whose body goes somewhere."""

    before: Array = field(metadata={"owned": True})  # (N, 1) m, place before the last action


R = TypeVar("R", bound=RunnerViews)


class Runner(LocomotionTask[R]):
    """A body that goes along x; its speed is the way made during the step over ``control_dt``."""

    def place(self, v: R) -> Array:
        """Returns where the body is, (N, k) m; the first column is x."""
        return v.qpos[:, :1]

    def speed(self, v: R) -> Array:
        """Returns the speed (N,) m/s along x during the last step."""
        return (self.place(v)[:, 0] - v.before[:, 0]) / self.control_dt

    def control(self, v: R, action: Array) -> None:
        """Copies the place to ``v.before`` and applies ``action`` (N, act_dim) in [-1, 1]."""
        v.before[:] = self.place(v)
        super().control(v, action)

    def after_reset(self, v: R, ids: Array) -> None:
        """Copies the place of environments ``ids`` (n,) to ``v.before``."""
        v.before[ids] = self.place(v)[ids]

    def way_left(self, v: R, pace: float = WALKING) -> Array:
        """Returns what the body lacks to ``pace`` m/s times the episode's length, (N,) m."""
        return np.maximum(pace * self.episode_s - v.qpos[:, 0], 0.0)


@dataclass
class LaggedViews(RunnerViews):
    """What a task sees whose observation needs MuJoCo's derived fields as a step leaves them."""

    xpos: Array  # (N, nbody, 3) m; this and the next two are one substep late, see ``settle``
    geom_xpos: Array  # (N, ngeom, 3) m
    ncon: Array  # (N,) contacts
    pushed: Array  # (N, nbody, 6) N and N m, external forces, as written by a caller
    lagged_place: Array = field(metadata={"owned": True})  # (N, 2) m
    cfrc_ext: Array = field(metadata={"owned": True})  # (N, nbody, 6) torque N m and force N
    scratch: mujoco.MjData  # of one row
    current: bool  # whether positions of bodies and geoms describe the state as it is


L = TypeVar("L", bound=LaggedViews)


class Lagged(Runner[L]):
    """A runner whose observation has contact forces: one MjData per row, as Gymnasium has."""

    persistent: bool = True

    def common(self, batch: Batch) -> dict[str, Any]:
        """The fields of LaggedViews."""
        n, model = batch.nsim, batch.model
        return {
            "batch": batch,
            "qpos": batch.qpos,
            "qvel": batch.qvel,
            "ctrl": batch.ctrl,
            "xpos": batch.xpos,
            "geom_xpos": batch.geom_xpos,
            "ncon": batch.ncon,
            "pushed": batch.xfrc_applied,
            "before": np.zeros((n, 2)),
            "lagged_place": np.zeros((n, 2)),
            "cfrc_ext": np.zeros((n, model.nbody, 6)),
            "scratch": mujoco.MjData(model),
            "current": False,
        }

    @abstractmethod
    def lagging(self, v: L, rows: Array | slice) -> Array:
        """Returns where the bodies of ``rows`` are according to the derived fields, (n, 2) m."""

    def place(self, v: L) -> Array:
        """Returns the place (N, 2) m according to the derived fields that the last step left."""
        return v.lagged_place

    def after_reset(self, v: L, ids: Array) -> None:
        """Copies the place of environments ``ids`` (n,) and sets their external forces to zero."""
        v.current = False
        rows = row_index(ids, len(v.qpos))
        v.lagged_place[rows] = self.lagging(v, rows)
        v.cfrc_ext[rows] = 0.0  # as Gymnasium's are until the first step
        super().after_reset(v, ids)

    def after_step(self, v: L, ids: Array) -> None:
        """Copies the place of environments ``ids`` (n,) and computes their external forces.

        The forces, (nbody, 6) each, are zero where there is no contact and no force from outside.
        """
        v.current = False
        rows = row_index(ids, len(v.qpos))
        v.lagged_place[rows] = self.lagging(v, rows)
        v.cfrc_ext[rows] = 0.0
        # Forces come from contacts or from whoever pushes; most rows may have none.
        acted = (v.ncon[rows] > 0) | v.pushed[rows].any(axis=(1, 2))
        model, data, forces = v.batch.model, v.scratch, v.scratch.cfrc_ext
        for row in ids[acted].tolist():
            v.batch.get_data(row, data)
            mujoco.mj_rnePostConstraint(model, data)
            v.cfrc_ext[row] = forces

    def settle(self, v: L) -> None:
        """Makes positions of bodies and geoms those of the state as it is now."""
        if not v.current:
            v.batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS.value)
            v.current = True


def row_index(ids: Array, num_rows: int) -> Array | slice:
    """Rows ``ids`` (n,) as an index; all of them as a slice, with which numpy copies nothing."""
    return slice(None) if len(ids) == num_rows else ids


def asset(xml: str) -> Path:
    """Path of a scene that the gymnasium package installs."""
    found = importlib.util.find_spec("gymnasium")
    assert found is not None and found.origin is not None, "gymnasium is a dependency"
    return Path(found.origin).parent / "envs" / "mujoco" / "assets" / xml


@cache
def compiled(xml: str) -> mujoco.MjModel:
    """The model of a scene, for its sizes."""
    return _compiled(mujoco.MjSpec.from_file(str(asset(xml))))


def _compiled(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """The model of a scene: what MuJoCo thinks of the style of these files is nothing that a user
    here can mend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "compiler attribute", UserWarning)
        return spec.compile()


def up_axis_height(quat: Array) -> Array:
    """Returns the height (N,) of the z axis turned by ``quat`` (N, 4) of any length."""
    w, x, y, z = quat.T
    return 1.0 - 2.0 * (x * x + y * y) / (w * w + x * x + y * y + z * z)


def torso_in_plane(v: LocomotionViews, height: float = 0.0) -> Array:
    """Returns the torso's position, (N, 3) m, of a body whose qpos begins with x and z.

    Args:
        v: the views of the body's task.
        height: of the torso where its z coordinate is zero, m.
    """
    return np.column_stack([v.qpos[:, 0], np.zeros(len(v.qpos)), height + v.qpos[:, 1]])


def torso_readers(position: str, uprightness: str) -> tuple[SignalReader[Any], ...]:
    """Returns the signals of a free torso, its position and the height of its own z axis.

    Args:
        position: the description of the position.
        uprightness: the description of the height of the axis.
    """
    pos = Signal("torso_pos", (3,), "m", "world", FAR, position, False)
    up = Signal("torso_up", (1,), "1", "world", (-1, 1), uprightness, True)
    return (
        SignalReader(pos, lambda v: v.qpos[:, :3]),
        SignalReader(up, lambda v: up_axis_height(v.qpos[:, 3:7])[:, None]),
    )


def tracking_cameras(body: str, height: float, away: float = 4.0) -> tuple[Camera, ...]:
    """A camera at the body's side and one ahead of it, both going where it goes."""
    return (
        Camera("side", pos=(0.0, -away, height), target=(0.0, 0.0, 0.0), body=body),
        Camera("front", pos=(away, -0.4 * away, height), target=(0.0, 0.0, 0.0), body=body),
    )


def sum_of_squares(x: Array) -> Array:
    """Returns the sums (N,) of the squares of each row of (N, k)."""
    return np.einsum("Ni,Ni->N", x, x)


def strictly_within(x: Array, low: float, high: float) -> Array:
    """Returns whether low < x < high, (...,) bool, of numbers ``x`` (...,)."""
    return (low < x) & (x < high)


def body_entity(
    name: str,
    aliases: tuple[str, ...],
    body: str,
    signal: str,
    affordances: tuple[str, ...] = ("move",),
) -> Entity:
    """The body itself, as something a sentence can name."""
    return Entity(name, aliases, "", "body", affordances, body, signal)
