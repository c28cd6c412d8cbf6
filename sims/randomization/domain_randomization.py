"""Randomised rows: every row of a batch is another robot, seen by another camera.

What differs is drawn at each reset from the row's own Philox stream, a function of (seed, row,
episode), so row k of any batch is the same row. ``width`` scales every range: 0 is the plain
simulator bit for bit, and a curriculum is a width that grows. A state row holds what was drawn
beside MuJoCo's state, so frames and restarts stay functions of a state row alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import mujoco
import numpy as np

from sims import robots
from sims.core.pose_filter import NOISE
from sims.core.rng import RowRng
from sims.core.step_result import StepResult
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.randomization.estimated_state import EstimatedState
from sims.randomization.sensor_model import SensorModel
from sims.rendering.cameras import Appearance

Array = np.ndarray

# What is wrong with an arm's measurements, of Randomize; flat noise stands for all of it where
# nobody says what columns are made of.
SENSED = (
    "joint_zero",
    "joint_noise",
    "speed_noise",
    "pose_bias",
    "pose_noise",
    "pose_delay",
    "pose_lost",
    "turn_noise",
)
_STREAM = 0x72616E64 << 32  # apart from the streams that tasks reset with
_NOISE = 1 << 16  # entries of the table that observation noise is read from
_STRIDE = 1_009  # entries from one step to the next; prime, and wider than any observation


@dataclass(frozen=True, kw_only=True)
class Randomize:
    """Half widths of the ranges at ``width`` 1; a share is of the model's own value."""

    width: float = 1.0  # scale of all ranges below that are not listed in told
    # Ranges that are told, not drawn from: every row is at one of their ends, whatever the width.
    told: tuple[str, ...] = ()
    mass: float = 0.3  # share of each body's mass and inertia
    friction: float = 0.4  # share of each geom's sliding friction
    damping: float = 0.4  # share of each joint's damping
    gain: float = 0.15  # share of each actuator's gain
    # Of the way from an arm's own servos to the softest that such an arm is known to have, in
    # logarithms, at most 1. Half of the rows stay within a quarter of it: what is met too often
    # costs what is met always.
    soft: float = 1.0
    action_delay: float = 1.0  # control steps, largest latency of actions
    obs_delay: float = 1.0  # control steps, largest latency of observations
    joint_zero: float = 0.01  # rad, offset of each joint's zero, fixed during an episode
    joint_noise: float = 0.002  # rad, standard deviation of each measured angle
    speed_noise: float = 0.05  # rad/s, standard deviation of each measured speed
    pose_bias: float = (
        0.003  # m, offset of each measured position per axis, fixed during an episode
    )
    pose_noise: float = NOISE  # m, standard deviation of each position measurement per axis
    pose_delay: float = 1.0  # control steps, largest latency of position measurements
    pose_lost: float = 0.1  # probability that a measurement misses an object
    turn_noise: float = 0.05  # standard deviation of each number of an object's orientation
    obs_noise: float = (
        0.01  # standard deviation in the observation's units, if the task declares no parts
    )
    camera_pos: float = 0.02  # m, along each of the camera's axes
    camera_turn: float = 0.03  # rad, about each of the camera's axes
    fovy: float = 0.05  # share of the vertical field of view
    light: float = 0.3  # share of the light's intensity
    colour: float = 0.1  # of 1, on red, green and blue of each geom

    def __post_init__(self) -> None:
        if unknown := set(self.told) - (set(vars(self)) - {"width", "told"}):
            raise ValueError(f"told must hold names of ranges, got {', '.join(sorted(unknown))}")
        for name, value in vars(self).items():
            if name != "told" and not 0 <= value < 10:
                raise ValueError(f"{name} must be in [0, 10), got {value}")
        for name in ("mass", "friction", "damping", "gain", "fovy", "light"):
            share = self.half(name, self.width)
            if share >= 1:
                raise ValueError(
                    f"width {self.width} times {name} {getattr(self, name)} is a share of "
                    f"{share:.2f}; below 1 is needed"
                )

    def half(self, name: str, width: float) -> float:
        """Half of the range ``name`` where those that are drawn from have ``width``."""
        return getattr(self, name) * (1.0 if name in self.told else width)


@dataclass(frozen=True)
class ArmServos:
    """The turning joints' servos of an arm, and how soft the whole arm may be."""

    task: str  # whose arm's
    ids: Array  # (n,) actuators
    stiffness: Array  # (n,) N m/rad, their own
    softest: float  # N m/rad

    @classmethod
    def of(cls, task: Task[Any], model: mujoco.MjModel) -> ArmServos:
        """Those of the arm of ``task``; none where it has no arm, or nobody knows how soft."""
        arm = robots.ROBOTS.get(getattr(task, "robot", ""))
        names = (
            []
            if arm is None or not arm.softest
            else [n for n in arm.actuators if model.joint(n).type[0] == mujoco.mjtJoint.mjJNT_HINGE]
        )
        ids = np.array([model.actuator(name).id for name in names], int)
        return cls(
            task.name, ids, model.actuator_gainprm[ids, 0].copy(), arm.softest if names else 0.0
        )

    def softness_of(self, stiffness: float) -> float:
        """Returns the softness of servos of ``stiffness`` N m/rad: 0 as stiff as the stiffest servo
        or stiffer, 1 as soft as they may be, logarithmic between.

        Raises:
            ValueError: The arm has no known servo stiffness.
        """
        if not len(self.ids):
            raise ValueError(
                f"--stiffness needs an arm with known servo stiffness: {self.task} has none"
            )
        top = self.stiffness.max()
        return max(0.0, math.log(top / stiffness) / math.log(top / self.softest))

    def stiffness_at(self, softness: Any) -> Any:
        """Returns the stiffness, N m/rad, at a softness of 0 to 1."""
        top = self.stiffness.max()
        return top * (self.softest / top) ** softness

    def stiffness_shares(self, softness: Array) -> Array:
        """Returns the shares (k, n) of their own stiffness that servos have at ``softness`` (k, 1):
        no servo is stiffer than the arm is then."""
        if not len(self.ids):
            return np.ones((len(softness), 0))
        return np.minimum(1.0, self.stiffness_at(softness) / self.stiffness)

    def soften(self, gain: Array, bias: Array, rows: Array, shares: Array) -> None:
        """In ``rows`` of a model's (N, nu, ...) ``gain`` and ``bias`` the servos push with so much
        of what they do, ``shares`` (k, n), as damped as before."""
        gain[np.ix_(rows, self.ids, [0])] *= shares[:, :, None]
        bias[np.ix_(rows, self.ids, [1])] *= shares[:, :, None]
        bias[np.ix_(rows, self.ids, [2])] *= np.sqrt(shares)[:, :, None]


class RandomizedEnv(BatchEnv):
    """A BatchEnv whose rows differ as ``randomize`` says. Success and signals stay the truth."""

    def __init__(self, task: Task[Any], num_envs: int, *, randomize: Randomize, **options: Any):
        super().__init__(task, num_envs, **options)
        self.randomize, self.width = randomize, randomize.width
        self._fields = self._varied_model_fields()
        self._servos = ArmServos.of(task, self.model)
        names = (self.model.geom(i).name for i in range(self.model.ngeom))
        self._geoms = [name for name in names if name]
        columns = task.obs(self.views)
        self._sensing = self._sensor_model(columns)
        widths = self._parameter_widths()
        ends = np.cumsum(list(widths.values()))
        self._part = {
            name: slice(end - width, end)
            for (name, width), end in zip(widths.items(), ends, strict=True)
        }
        # Everything drawn, (N, p): shares, delays in steps, the place in the noise table.
        self._drawn = np.zeros((num_envs, ends[-1]))
        self._make_delay_lines()
        # What the task remembers is no sum of what is sensed.
        declared = task.obs_parts()
        remembered = [n for n in columns if n not in declared] if self._sensing else []
        self._remembered = np.repeat(
            [name in remembered for name in columns], [c.shape[1] for c in columns.values()]
        )
        self._believed = (
            EstimatedState(task, self.views, self.batch, self._sensing, remembered)
            if self._sensing and remembered
            else None
        )
        self._shown = np.zeros((num_envs, self.obs_dim), np.float32)
        self._table = np.random.default_rng(20_240_229).standard_normal(_NOISE).astype(np.float32)

    def _half(self, name: str) -> float:
        """Half of the range ``name`` at full width."""
        return self.randomize.half(name, self.randomize.width)

    def _varied_model_fields(self) -> dict[str, tuple[Array, Array]]:
        """The model's fields that vary: their own values, and those of each row (N, ...)."""
        ranges_of = {
            "body_mass": ("mass",),
            "body_inertia": ("mass",),
            "geom_friction": ("friction",),
            "dof_damping": ("damping",),
            "actuator_gainprm": ("gain", "soft"),
            "actuator_biasprm": ("gain", "soft"),
        }
        return {
            name: (np.array(getattr(self.model, name)), self.batch.expand(name))
            for name, ranges in ranges_of.items()
            if any(map(self._half, ranges))
        }

    def _sensor_model(self, columns: Mapping[str, Array]) -> SensorModel | None:
        """The errors of the observation's ``columns``; None where the task declares no parts."""
        if self.task.obs_parts():
            return SensorModel(self.task, self.views, self.batch, columns)
        if any(map(self._half, SENSED)) and getattr(self.task, "robot", ""):
            raise ValueError(
                f"{self.task.goal!r} cannot be randomised: the task does not declare its "
                "observation parts (obs_parts), which the sensor model needs; leave out --randomize"
            )
        return None

    def _parameter_widths(self) -> dict[str, int]:
        """How many numbers of each kind are sampled for a row."""
        model, sensing = self.model, self._sensing
        return {
            "mass": model.nbody,
            "friction": model.ngeom,
            "damping": model.nv,
            "gain": model.nu,
            "action_delay": 1,
            "obs_delay": 1,
            "noise": 1,
            "camera_pos": 3,
            "camera_turn": 3,
            "fovy": 1,
            "light": 1,
            "colour": 3 * len(self._geoms),
            "joint_zero": sensing.joints if sensing else 0,
            "pose_bias": 3 * len(sensing.bodies) if sensing else 0,
            "pose_delay": 1,
            "soft": 1,
        }

    def _make_delay_lines(self) -> None:
        """Makes room for past actions, observations and object positions, the newest first."""
        longest = {name: self._half(name) for name in ("action_delay", "obs_delay", "pose_delay")}
        # Rate-limited rows choose their targets at once; their arms hear late of commands.
        late = 0 if self._shaped else math.ceil(longest["action_delay"])
        self._actions = np.zeros((1 + late, self.num_envs, self.act_dim))
        late = math.ceil(longest["obs_delay"])
        self._seen = np.zeros((1 + late, self.num_envs, self.obs_dim), np.float32)
        if self._shaped:
            self._shaped.hear_late(math.ceil(longest["action_delay"] * self._shaped.ticks))
        late = math.ceil(longest["pose_delay"])
        places = 3 * len(self._sensing.bodies) if self._sensing else 0
        self._places = np.zeros((1 + late, self.num_envs, places))

    @property
    def nstate(self) -> int:
        """Width of a state row: MuJoCo's state, then what was drawn."""
        return super().nstate + self._drawn.shape[1]

    # Drawing.
    def _begin(self, ids: Array, write: Any, holds: Any = None) -> None:
        if not len(ids):
            return
        self._draw(ids)
        self._apply(ids)
        super()._begin(ids, write, holds)
        self._actions[:, ids] = 0.0
        self._start_seeing(ids)

    def _draw(self, ids: Array) -> None:
        r, part, n = self.randomize, self._part, len(ids)
        # The episode that is about to begin.
        rng = RowRng(self.seed ^ _STREAM, self.rows[ids], self._episode[ids] + 1)
        unit = rng.uniform(-1.0, 1.0, (self._drawn.shape[1],))
        for name, columns in part.items():
            if name == "noise":
                unit[:, columns] = np.floor(0.5 * (unit[:, columns] + 1.0) * _NOISE)
                continue
            wide, told = r.half(name, self.width), name in r.told
            if told:
                unit[:, columns] = np.sign(unit[:, columns])
            if name == "soft" or name.endswith("delay"):  # from 0 on
                share = 1.0 if told else 0.5 * (unit[:, columns] + 1.0)
                if name == "soft" and not told:
                    share, wide = share**2, min(1.0, wide)
                unit[:, columns] = share * wide
            else:
                unit[:, columns] *= wide
        assert unit.shape == (n, self._drawn.shape[1])
        self._drawn[ids] = unit

    def _apply(self, ids: Array) -> None:
        """Writes what was drawn into the models of rows ``ids``."""
        if self._shaped:
            late = self._shaped.ticks * self._drawn[ids, self._part["action_delay"]][:, 0]
            self._shaped.late[ids] = late.round().astype(int)
        factor = {
            name: 1.0 + self._drawn[ids, self._part[name]]
            for name in ("mass", "friction", "damping", "gain")
        }
        for name, (base, rows) in self._fields.items():
            if name == "body_mass":
                rows[ids] = base * factor["mass"]
            elif name == "body_inertia":
                rows[ids] = base * factor["mass"][:, :, None]
            elif name == "geom_friction":
                rows[ids, :, 0] = base[:, 0] * factor["friction"]
            elif name == "dof_damping":
                rows[ids] = base * factor["damping"].reshape(len(ids), *base.shape)
            else:
                # A servo's gain and bias by the same factor: it holds another stiffness, not
                # another place.
                rows[ids] = base * factor["gain"][:, :, None]
        if "actuator_gainprm" in self._fields:
            gain, bias = (self._fields[f"actuator_{name}prm"][1] for name in ("gain", "bias"))
            shares = self._servos.stiffness_shares(self._drawn[ids, self._part["soft"]])
            self._servos.soften(gain, bias, ids, shares)
        if "body_mass" in self._fields and (factor["mass"] != 1.0).any():
            self.batch.set_const(ids)

    # Acting and seeing late.
    def step(self, action: Array, active: Array | None = None) -> StepResult:
        """Does what ``BatchEnv.step`` does, with the delays of each environment.

        A delay that is no whole number of steps mixes two actions, each by its share of the step.

        Args:
            action: (N, act_dim); values outside [-1, 1] are clipped.
            active: (N,) bool, the environments that are simulated; by default all.
        """
        action = np.asarray(action)
        if action.shape != (self.num_envs, self.act_dim) or len(self._actions) == 1:
            return super().step(action, active)
        self._actions[1:] = self._actions[:-1]
        self._actions[0] = np.clip(action, -1.0, 1.0)
        late = self._late(self._actions, "action_delay", np.arange(self.num_envs))
        return super().step(late, active)

    def _late(self, past: Array, name: str, ids: Array) -> Array:
        """What rows ``ids`` get of ``past`` (k, N, m), newest first, with the delay drawn."""
        late = self._drawn[ids, self._part[name]]  # (n, 1) steps
        newer = np.minimum(late[:, 0].astype(int), len(past) - 1)
        older = np.minimum(newer + 1, len(past) - 1)
        share = (late - newer[:, None]).astype(past.dtype)
        return (1 - share) * past[newer, ids] + share * past[older, ids]

    def _start_seeing(self, ids: Array) -> None:
        if self._sensing is not None:
            self._sensing.begin(ids)
            self._places[:, ids] = self._sensing.places()[ids].reshape(len(ids), -1)
        self._seen[:, ids] = self._sensed(ids, ids, begun=False)
        self._show(ids)

    def _after_step_obs(self, moved: Array) -> Array:
        if self._sensing is not None:
            self._places[1:] = self._places[:-1]
            self._places[0] = self._sensing.places().reshape(self.num_envs, -1)
        self._seen[1:] = self._seen[:-1]
        everyone = np.arange(self.num_envs)
        self._seen[0] = self._sensed(everyone, moved, begun=True)
        self._show(everyone)
        return self._shown.copy()

    def _sensed(self, ids: Array, new: Array, *, begun: bool) -> Array:
        """The observations (n, obs_dim) that rows ``ids`` make of their states now, which are new
        to rows ``new``."""
        clean, r, sensing = super()._obs()[ids], self.randomize, self._sensing
        if sensing is None or not any(r.half(name, self.width) for name in SENSED):
            if self._believed is not None:
                self._believed.track(new)
            return clean
        size = {
            name: r.half(name, self.width)
            for name in ("joint_noise", "speed_noise", "pose_noise", "turn_noise")
        }
        chance = r.half("pose_lost", self.width)
        size["pose_lost"] = np.inf if chance == 0 else -np.inf  # no look, every look
        if 0 < chance < 1:
            size["pose_lost"] = NormalDist().inv_cdf(1.0 - chance)
        places = self._late(self._places, "pose_delay", ids).reshape(len(ids), -1, 3)
        drawn = {n: self._drawn[ids, self._part[n]] for n in ("joint_zero", "pose_bias")}
        error = sensing.measure(ids, places, self._normal(ids, sensing.draws), drawn, size)
        seen = clean + error.astype(np.float32)
        if self._believed is not None:
            self._believed.update(new, begun=begun)
            seen[:, self._remembered] = self._believed.columns()[ids]
        return seen

    def _normal(self, ids: Array, count: int) -> Array:
        """(n, count) standard normal numbers of this step of rows ``ids``."""
        start = self._drawn[ids, self._part["noise"]][:, 0].astype(np.int64)
        first = start + self._step[ids] * _STRIDE
        return self._table[(first[:, None] + np.arange(count)) & (_NOISE - 1)]

    def _show(self, ids: Array) -> None:
        self._shown[ids] = self._late(self._seen, "obs_delay", ids)
        sigma = np.float32(self.randomize.half("obs_noise", self.width))
        if sigma and self._sensing is None:
            self._shown[ids] += sigma * self._normal(ids, self.obs_dim)

    def _obs(self) -> Array:
        return self._shown.copy() if hasattr(self, "_shown") else super()._obs()

    # States and frames.
    def state(self, ids: Array | None = None) -> Array:
        """State rows (n, nstate) f64: MuJoCo's state, then what was drawn."""
        drawn = self._drawn if ids is None else self._drawn[ids]
        return np.concatenate([super().state(ids), drawn], axis=1)

    def set_state(self, states: Array) -> Array:
        """Writes states, of these very robots, and returns the observations (N, obs_dim) f32.

        Args:
            states: (N, nstate), as ``state`` returns them.

        Raises:
            ValueError: the states have another shape.
        """
        if np.shape(states) != (self.num_envs, self.nstate):
            raise ValueError(
                f"states must have shape {(self.num_envs, self.nstate)}, got {np.shape(states)}"
            )
        everyone = np.arange(self.num_envs)
        self._drawn[:] = states[:, super().nstate :]
        self._apply(everyone)
        super().set_state(states[:, : super().nstate])
        self._actions[:] = 0.0
        self._start_seeing(everyone)
        return self._obs()

    def render_states(
        self,
        states: Array,
        camera: str | None = None,
        *,
        size: tuple[int, int] | None = None,
        look: Appearance | None = None,
    ) -> Array:
        """Returns frames (n, H, W, 3) uint8 of stored state rows, each as its own camera sees it.

        Args:
            states: (n, nstate), as ``state`` returns them.
            camera: a camera's name; by default the task's first.
            size: height and width, px; by default the camera's.
            look: colours, light and camera offsets; by default those sampled for the rows.

        Raises:
            ValueError: the states have another shape.
        """
        states = np.asarray(states)
        if states.ndim != 2 or states.shape[1] != self.nstate:
            raise ValueError(f"states must have shape (n, {self.nstate}), got {states.shape}")
        plain, drawn = states[:, : super().nstate], states[:, super().nstate :]
        if look is None and self.width:
            look = self._look(drawn)
        return super().render_states(plain, camera, size=size, look=look)

    def _look(self, drawn: Array) -> Appearance:
        part, model = self._part, self.model
        shift = drawn[:, part["colour"]].reshape(len(drawn), -1, 3)
        rgba = {}
        for i, name in enumerate(self._geoms):
            colour = np.tile(model.geom(name).rgba, (len(drawn), 1))
            colour[:, :3] = np.clip(colour[:, :3] + shift[:, i], 0.0, 1.0)
            rgba[name] = colour
        return Appearance(
            geom_rgba=rgba,
            light=1.0 + drawn[:, part["light"]][:, 0],
            camera_offset=drawn[:, part["camera_pos"]],
            camera_roll=drawn[:, part["camera_turn"]],
            fovy=1.0 + drawn[:, part["fovy"]][:, 0],
        )

    def state_dict(self) -> dict[str, Array]:
        """Returns the arrays of ``BatchEnv.state_dict`` with the sampled parameters (N, p) and the
        delayed actions and observations."""
        return super().state_dict() | {
            "random/drawn": self._drawn.copy(),
            "random/actions": self._actions.copy(),
            "random/seen": self._seen.copy(),
            "random/shown": self._shown.copy(),
            "random/places": self._places.copy(),
            **{f"sensing/{n}": a for n, a in self._sensing_state().items()},
            **{f"believed/{n}": a for n, a in self._believed_state().items()},
            **({"random/sent": self._shaped.sent.copy()} if self._shaped else {}),
            "random/width": np.array(self.width),
        }

    def _believed_state(self) -> dict[str, Array]:
        return {} if self._believed is None else self._believed.state_dict()

    def _sensing_state(self) -> dict[str, Array]:
        return {} if self._sensing is None else self._sensing.state_dict()

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from what ``state_dict`` returned.

        Args:
            saved: the arrays (N, ...) by name.

        Raises:
            ValueError: they were saved without randomisation, or with another scene.
        """
        if saved.get("random/drawn", np.zeros(0)).shape != self._drawn.shape:
            raise ValueError(
                "state_dict['random/drawn'] does not fit: it was saved without "
                "randomisation, or with another scene"
            )
        self._drawn[:] = saved["random/drawn"]
        self._apply(np.arange(self.num_envs))
        super().load_state_dict(saved)
        self._actions[:], self._seen[:] = saved["random/actions"], saved["random/seen"]
        self._shown[:], self.width = saved["random/shown"], float(saved["random/width"])
        self._places[:] = saved["random/places"]
        if self._sensing is not None:
            self._sensing.load_state_dict({n: saved[f"sensing/{n}"] for n in self._sensing_state()})
        if self._believed is not None:
            own = self._believed_state()
            self._believed.load_state_dict({n: saved[f"believed/{n}"] for n in own})
        if self._shaped:
            self._shaped.sent[:] = saved["random/sent"]


def make_randomized_env(
    task: Task[Any], num_envs: int, *, width: float | Randomize = 0.0, **options: Any
) -> BatchEnv:
    """Rows randomised by ``width``, or as it says; at 0 plain ones."""
    if not width:
        return BatchEnv(task, num_envs, **options)
    randomize = width if isinstance(width, Randomize) else Randomize(width=width)
    return RandomizedEnv(task, num_envs, randomize=randomize, **options)


def curriculum_width(randomize: Randomize, share: float) -> float:
    """The width when ``share`` in [0, 1] of training is done: it grows evenly over the first half.

    A policy that starts on the plain simulator finds the goal before it meets the spread.
    """
    return randomize.width * min(1.0, 2.0 * max(share, 0.0))
