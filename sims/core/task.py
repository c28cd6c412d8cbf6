"""Task: the contract of one simulated task, written once as vectorised numpy.

Letters used everywhere: ``N`` environments (rows), ``n`` selected rows, ``k`` columns. SI units,
world frame, quaternions ``(w, x, y, z)``, actions in ``[-1, 1]``.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import mujoco
import numpy as np
from mujoco.batch import Batch

from sims.core.rng import RowRng
from sims.rendering.cameras import Camera

Array = np.ndarray
V = TypeVar("V")


class TaskGoal(NamedTuple, Generic[V]):
    """One goal of a task: its sentence, and the ground truth no reward model ever sees."""

    sentence: str
    success: Callable[[V], Array]  # (N,) bool, judged at the end of an episode
    reward: Callable[[V, Array], dict[str, Array]]  # (views, action) -> named dense terms, (N,)
    distance: Callable[[V], Array]  # (N,) >= 0, what is missing: scorers are held to it
    unit: str = "m"  # of the distance; empty: a sum of unlike things, good for ranking alone


@dataclass(frozen=True)
class Signal:
    """A named quantity a reward may read: a measurement or an object pose, never success."""

    name: str
    shape: tuple[int, ...]
    unit: str
    frame: str
    range: tuple[float, float]
    doc: str
    on_robot: bool  # whether the real arm can measure it without perception


class SignalReader(NamedTuple, Generic[V]):
    """A signal with the function that reads it from a task's views."""

    signal: Signal
    read: Callable[[V], Array]  # (N, *signal.shape)


@dataclass(frozen=True)
class ObsPart:
    """A stretch of an observation's column: ``scale * (plus - minus) + offset``, first ``size``.

    ``plus`` and ``minus`` name arrays of ``Task.sensed``; "" is 0.
    """

    plus: str
    size: int
    scale: float = 1.0
    minus: str = ""
    offset: float = 0.0

    def value(self, sensed: Mapping[str, Array]) -> Array:
        """Returns the stretch, (N, size), computed from arrays of ``Task.sensed``."""
        value = self._difference(sensed)
        if self.scale != 1.0:
            value = self.scale * value
        return value + self.offset if self.offset else value

    def _difference(self, sensed: Mapping[str, Array]) -> Array:
        """(N, size), ``plus - minus``."""
        if not self.plus:
            return np.zeros((len(next(iter(sensed.values()))), self.size))
        plus = sensed[self.plus][:, : self.size]
        return plus - sensed[self.minus][:, : self.size] if self.minus else plus


class RangePart(ObsPart):
    """``plus - minus`` as a share of a range: 0 at ``low``, 1 at ``high``.

    It is written down as scale and offset like any part, and computed by subtracting and dividing:
    a value at the end of its range is then exactly 0 or 1.
    """

    low: float
    span: float

    def __init__(self, plus: str, size: int, low: float, high: float, minus: str = ""):
        span = float(high - low)
        super().__init__(plus, size, 1 / span, minus, 0.0 - low / span)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "span", span)

    def value(self, sensed: Mapping[str, Array]) -> Array:
        """Returns the share of the range, (N, size)."""
        return (self._difference(sensed) - self.low) / self.span


@dataclass(frozen=True)
class Entity:
    """A thing a sentence can name."""

    name: str  # "red_cube"
    aliases: tuple[str, ...]  # nouns a person may use: cube, block, box
    colour: str  # "red"; "" for the gripper
    kind: str  # "cube"
    affordances: tuple[str, ...]  # what may be done to it: touch, push
    body: str  # MuJoCo body
    pose_signal: str  # the signal that holds its position, (3,)
    half: tuple[float, ...] = ()  # m, half its width, depth and height as it stands; (): unknown


@dataclass(frozen=True, kw_only=True)
class Task(ABC, Generic[V]):
    """A task over ``N`` rows at once; subclasses are frozen parameters, all state is in ``V``.

    ``V`` is a dataclass of live ``(N, ...)`` views into the batch. An array that the task itself
    owns (a delay line, a stage) is declared with ``field(metadata={"owned": True})`` so that it is
    saved and restored with the row.
    """

    name: ClassVar[str]
    cameras: ClassVar[tuple[Camera, ...]]
    has_expert: ClassVar[bool] = True  # False: ``expert`` raises, and says what to do instead
    # Of a column of ``obs``, in its own units, that means anything: who scales columns by how far
    # they spread takes no less, for what hardly moves at first may be what the task is about, and
    # an arm sees it off by some millimetres.
    least_spread: ClassVar[float] = 0.0
    mirrors: ClassVar[str] = ""  # the Gymnasium id whose observations and rewards these are

    goal: str = ""  # key into goals(), or a formula as JSON; empty: the first goal
    control_dt: float = 0.05  # s, one action
    episode_s: float = 2.5  # s, time limit
    stage: int = mujoco.mjtStage.mjSTAGE_VEL.value  # what is current after a step
    persistent: bool = False  # one MjData per row instead of one per thread

    def __post_init__(self) -> None:
        goals = self.goals()
        # Empty: the first; a goal's own sentence stands for its key.
        said = {_words(goal.sentence): key for key, goal in goals.items()}
        key = said.get(_words(self.goal), self.goal) if self.goal else next(iter(goals))
        object.__setattr__(self, "goal", key)
        if self.formula is None and self.goal not in goals:
            near = difflib.get_close_matches(self.goal, goals, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"task {self.name!r} has no goal {self.goal!r}.{hint} Available: "
                f"{', '.join(goals)}; or one of their sentences, word for word"
            )

    @property
    def formula(self) -> list[Any] | None:
        """The goal as ``[name, [arguments], {numbers}]``; None where it is one of ``goals()``.

        Raises:
            ValueError: the goal begins like a formula and is not JSON.
        """
        if not self.goal.startswith("["):
            return None
        try:
            return json.loads(self.goal)
        except ValueError as error:
            raise ValueError(f"a goal that is a formula must be JSON: {error}") from error

    @property
    def solved(self) -> bool:
        """Whether ``expert`` knows the way to this goal: it knows those of ``goals()`` alone."""
        return self.has_expert and self.formula is None

    def need_expert(self) -> None:
        """ValueError, which says what to do instead, where nobody knows the way to this goal."""
        if not self.has_expert:
            self.expert(None, np.random.default_rng(0))  # says so itself
        if not self.solved:
            raise ValueError(
                f"the expert of task {self.name!r} solves only the built-in goals "
                f"({', '.join(self.goals())}), not {self.goal}: train a policy for it "
                "(robo-rl train) and record demonstrations with that policy"
            )

    @property
    def unwrapped(self) -> Task[Any]:
        """The task that wrote this scene and these goals: itself, unless it is about another."""
        return self

    # What a task file writes.
    @abstractmethod
    def spec(self) -> mujoco.MjSpec:
        """The scene."""

    def model(self) -> mujoco.MjModel:
        """The scene, compiled."""
        return self.spec().compile()

    @abstractmethod
    def bind(self, batch: Batch) -> V:
        """Live views of the batch."""

    @abstractmethod
    def reset(self, v: V, ids: Array, rng: RowRng) -> None:
        """Writes a starting state into rows ``ids`` (n,); they hold the model's defaults before.

        For a formula, a start that has no goal in mind.
        """

    def scatter(self, v: V, ids: Array, rng: RowRng) -> None:
        """Writes states from the whole workspace into rows ``ids``; reward data is made of them.

        Args:
            v: the views of the batch.
            ids: (n,) the rows to write.
            rng: the random numbers of these rows.
        """
        self.reset(v, ids, rng)

    @abstractmethod
    def control(self, v: V, action: Array) -> None:
        """Turns ``action`` (N, act_dim) in [-1, 1] into ``v.ctrl``."""

    def after_reset(self, v: V, ids: Array) -> None:
        """Brings owned arrays of rows ``ids`` (n,) up to date with their starting state."""

    def after_step(self, v: V, ids: Array) -> None:
        """Brings owned arrays of rows ``ids`` (n,), which made a sound step, up to date."""

    def obs(self, v: V) -> dict[str, Array]:
        """Returns the observation's named columns, {name: (N, k)}; the same for every goal.

        They are computed from ``obs_parts``; a task that declares no parts overrides this method.
        """
        readers, columns = self._obs_plan
        sensed = {name: read(v) for name, read in readers.items()}
        made = {name: [part.value(sensed) for part in parts] for name, parts in columns.items()}
        return {n: p[0] if len(p) == 1 else np.concatenate(p, axis=1) for n, p in made.items()}

    @cached_property
    def _obs_plan(
        self,
    ) -> tuple[dict[str, Callable[[V], Array]], Mapping[str, tuple[ObsPart, ...]]]:
        """The reader of each array that ``obs_parts`` names, and the parts of each column."""
        columns = self.obs_parts()
        if not columns:
            raise TypeError(f"task {self.name!r} must define obs_parts or override obs")
        readers = (*self.signal_readers(), *self.command_readers())
        read = {reader.signal.name: reader.read for reader in readers}
        named = {x for parts in columns.values() for p in parts for x in (p.plus, p.minus) if x}
        if unknown := named - read.keys():
            raise ValueError(
                f"obs_parts of task {self.name!r} names {', '.join(sorted(unknown))}, which "
                f"neither signal_readers nor command_readers reads; available: {', '.join(read)}"
            )
        return {name: read[name] for name in named}, columns

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the tables of functions; a copy makes its own."""
        return {k: v for k, v in vars(self).items() if k not in ("_obs_plan", "_readers")}

    def spread_of(self, part: str) -> float | Array:
        """Returns ``least_spread`` of a column of ``obs``, as one number or one for each entry.

        Args:
            part: the column's name.

        Returns:
            A float, or an array (k,), in the column's own units.
        """
        return self.least_spread

    def signal_readers(self) -> tuple[SignalReader[V], ...]:
        """Returns what a reward may read: each signal, with the function that reads it."""
        return ()

    def signals(self, v: V) -> dict[str, Array]:
        """Returns what a reward may read, {name: (N, ...)}; keys and shapes as in ``card()``."""
        return {reader.signal.name: reader.read(v) for reader in self._readers}

    @abstractmethod
    def goals(self) -> Mapping[str, TaskGoal[V]]:
        """Returns the goals {key: goal}; their success shares no code with a reward model."""

    @abstractmethod
    def expert(self, v: V, rng: np.random.Generator) -> Array:
        """Returns the action (N, act_dim) of a stateless controller that solves ``goal``."""

    def reached(self, v: V) -> Array | None:
        """Returns which goals hold now, (N, goals) bool; None if the task has but one at once."""
        return None

    def terminated(self, v: V) -> Array | bool:
        """Returns whether the task ends an episode early, (N,) bool; never by default."""
        return False

    def signal_docs(self) -> tuple[Signal, ...]:
        """Returns the description of each key of ``signals``, in the same order."""
        return tuple(reader.signal for reader in self._readers)

    @cached_property
    def _readers(self) -> tuple[SignalReader[V], ...]:
        return self.signal_readers()

    @abstractmethod
    def entities(self) -> tuple[Entity, ...]:
        """The things that a sentence about this task can name."""

    act_dim: ClassVar[int]

    # What everyone else reads.
    def command_readers(self) -> tuple[SignalReader[V], ...]:
        """Returns what ``obs_parts`` speaks of beside the signals, or instead of one of the same
        name: last commands, and measurements that no range cuts off."""
        return ()

    def sensed(self, v: V) -> Mapping[str, Array]:
        """Returns what ``obs_parts`` speaks of, {name: (N, k)}: signals and last commands."""
        return {**self.signals(v), **{r.signal.name: r.read(v) for r in self.command_readers()}}

    def sensed_docs(self) -> tuple[Signal, ...]:
        """Returns the description of each key of ``sensed``."""
        commands = (reader.signal for reader in self.command_readers())
        return tuple({doc.name: doc for doc in (*self.signal_docs(), *commands)}.values())

    def obs_parts(self) -> Mapping[str, tuple[ObsPart, ...]]:
        """Returns {column of ``obs``: what it is made of, in order}; {} if the task overrides
        ``obs`` and declares no parts.

        A bundle's manifest lists the parts, so that a policy can be fed without this code. A column
        that holds what the task remembers of an episode follows from no single state: it has no
        entry.
        """
        return {}

    def action_doc(self) -> tuple[str, ...]:
        """(act_dim,) what each element of an action in [-1, 1] means; () where nobody wrote it."""
        return ()

    def area(self) -> tuple[float, ...]:
        """(x from, x to, y from, y to) m: where on a table things may lie; empty: on none."""
        return ()

    def card(self) -> dict[str, Any]:
        """The JSON-able description of the task that crosses to reward models and writers."""
        return {
            "task": self.name,
            "goal": self.goal,
            "signals": [dataclasses.asdict(s) for s in self.signal_docs()],
            "entities": [dataclasses.asdict(e) for e in self.entities()],
            "goals": {key: goal.sentence for key, goal in self.goals().items()},
            "cameras": [camera.name for camera in self.cameras],
            "control_dt": self.control_dt,
            "episode_s": self.episode_s,
            "act_dim": self.act_dim,
            "area": self.area(),
            "params": {
                f.name: getattr(self, f.name)
                for f in dataclasses.fields(self)
                if f.name not in ("goal", "stage", "persistent")
            },
        }


def owned_arrays(views: Any) -> dict[str, Array]:
    """Returns the arrays (N, ...) of a views object that the task itself owns, by name."""
    return {
        f.name: getattr(views, f.name)
        for f in dataclasses.fields(views)
        if f.metadata.get("owned", False)
    }


def _words(text: str) -> str:
    """Words alone, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))
