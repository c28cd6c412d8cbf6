"""What a reward model is, and the plain data that crosses the packages' borders.

Letters: ``T`` steps, ``N`` rows, ``k`` frames, ``D`` embedding width. Time first: ``(T, N, ...)``.
Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class CardSignal:
    """A named quantity of the task that a reward may read."""

    name: str
    shape: tuple[int, ...]
    unit: str
    frame: str
    range: tuple[float, float]
    doc: str
    on_robot: bool


@dataclass(frozen=True)
class CardEntity:
    """A thing a sentence can name."""

    name: str
    aliases: tuple[str, ...]
    colour: str
    kind: str
    affordances: tuple[str, ...]
    body: str
    pose_signal: str
    half: tuple[float, ...] = ()  # m, half its width, depth and height as it stands; (): unknown


@dataclass(frozen=True)
class TaskCard:
    """Everything a reward model, grammar or writer may know of a task."""

    task: str
    signals: tuple[CardSignal, ...]
    entities: tuple[CardEntity, ...]
    goals: Mapping[str, str]  # key -> sentence
    cameras: tuple[str, ...]
    control_dt: float
    episode_s: float
    act_dim: int = 0  # numbers in an action; 0: the card does not say
    area: tuple[float, ...] = ()  # m, x from, x to, y from, y to: where things lie on a table

    def entity(self, name: str) -> CardEntity:
        """Returns the entity of that name.

        Raises:
            ValueError: The card has no such entity.
        """
        for entity in self.entities:
            if entity.name == name:
                return entity
        known = ", ".join(e.name for e in self.entities)
        raise ValueError(f"unknown entity {name!r} in task {self.task!r}; available: {known}")


def from_dict(card: Mapping[str, Any]) -> TaskCard:
    """Reads a task card.

    Args:
        card: The dict of ``Task.card()``; unknown keys are ignored.

    Returns:
        The card.

    Raises:
        ValueError: An entry lacks a key.
    """

    def tuples(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def build(kind: type, entry: Mapping[str, Any]) -> Any:
        names = kind.__dataclass_fields__
        needed = [name for name, f in names.items() if f.default is MISSING]
        if missing := [name for name in needed if name not in entry]:
            raise ValueError(
                f"task card: a {kind.__name__.removeprefix('Card').lower()} lacks "
                f"{', '.join(missing)}"
            )
        return kind(**{name: tuples(entry[name]) for name in names if name in entry})

    try:
        return TaskCard(
            task=card["task"],
            signals=tuple(build(CardSignal, s) for s in card["signals"]),
            entities=tuple(build(CardEntity, e) for e in card["entities"]),
            goals=dict(card["goals"]),
            cameras=tuple(card["cameras"]),
            control_dt=float(card["control_dt"]),
            episode_s=float(card["episode_s"]),
            act_dim=int(card.get("act_dim", 0)),
            area=tuple(card.get("area", ())),
        )
    except KeyError as error:
        raise ValueError(f"task card lacks {error.args[0]!r}") from error


class FrameSource(Protocol):
    """Frames of a segment, rendered only when asked for and only once."""

    def __call__(self, camera: str, where: Array) -> Array:
        """(k, H, W, 3) uint8 of the True entries of ``where`` (T+1, N) bool, in row-major order."""
        ...


@dataclass(frozen=True)
class EpisodePosition:
    """Where each of ``T`` transitions of ``N`` rows stands in its episode."""

    step: Array  # (T, N) int: how many actions of the episode came before
    last: Array  # (T, N) bool: none comes after; the episode or its recording ended
    terminated: Array  # (T, N) bool: it ended for good, and not because its time was over


def positions_from_start(live: Array, terminated: Array) -> EpisodePosition:
    """Returns where transitions stand in episodes that are seen from their first step.

    Args:
        live: (T, N) bool, True up to an episode's last step, also where the simulation failed.
        terminated: (T, N) bool.
    """
    last = live & ~np.concatenate([live[1:], np.zeros_like(live[:1])])
    return EpisodePosition(np.indices(live.shape)[0], last, terminated & last)


@dataclass(frozen=True)
class Segment:
    """``T`` transitions of ``N`` rows; never crosses a reset.

    Entry 0 of ``signals`` and of the frames is the state before the first action, entry ``t + 1``
    the true successor of ``action[t]``. Rows shorter than ``T`` are padded; ``valid`` says where.
    """

    signals: Mapping[str, Array]  # {name: (T+1, N, ...)}
    frames: FrameSource
    action: Array  # (T, N, act_dim)
    valid: Array  # (T, N) bool
    place: EpisodePosition | None = None  # None: single states, of no episode
    done: Array | None = None  # (N,) int, ``RewardOutput.done`` of the step before; None: 0
    rows: Array | None = None  # (T, N, D) f32, ``RewardOutput.rows`` of these steps; nan: not known

    def placed(self, model: object) -> EpisodePosition:
        """Returns the position in the episode, which ``model`` needs.

        Raises:
            ValueError: The segment has none.
        """
        if self.place is None:
            raise ValueError(
                f"reward model {type(model).__name__} depends on a step's position in its episode, "
                "which this Segment lacks: give Segment(..., place=EpisodePosition(step, last, "
                "terminated)), or use a reward model that scores single states"
            )
        return self.place


@dataclass(frozen=True)
class RewardOutput:
    """Rewards of a segment's transitions; ``reward[t]`` judges the transition of ``action[t]``."""

    reward: Array  # (T, N) f32
    scored: Array  # (T, N) bool: where ``reward`` means something
    components: Mapping[str, Array] = field(default_factory=dict)  # {name: (T, N)}
    uncertainty: Array | None = None  # (T, N), ensemble disagreement
    # (T, N) int, of what is wanted in turn the parts that were done up to this step: whoever keeps
    # steps gives it back with those that follow. None: the model remembers nothing.
    done: Array | None = None
    rows: Array | None = None  # (T, N, D) f32 embeddings that later steps look back to; or nan
    version: int = 0  # rises when the model is refitted: stored rewards must be relabelled


@runtime_checkable
class RewardModel(Protocol):
    """Scores segments. Stateless, deterministic, indifferent to masked content and to batching.

    It may also have ``frame_size`` (height, width) px, of the frames that it looks at, and
    ``episodic``, True where its pay is for an episode as a whole.
    """

    needs: frozenset[str]  # of {"signals", "frames"}
    context: int  # frames that one score looks at
    causal: bool  # False: looks ahead, refused online

    def score(self, segment: Segment) -> RewardOutput:
        """Scores every transition of a segment.

        Args:
            segment: T steps of N environments.

        Returns:
            Rewards (T, N) and what goes with them; ``reward[t]`` judges the transition of
            ``action[t]``.
        """
        ...


class Encoder(Protocol):
    """Frames and sentences into one space of unit vectors (a CLIP)."""

    name: str  # names weights and preprocessing: a key of the caches
    camera: str
    size: tuple[int, int]  # px, height and width of the frames that it looks at

    def encode(self, frames: Array) -> Array:
        """Returns unit rows (k, D) float32 of frames (k, H, W, 3) uint8."""
        ...

    def encode_texts(self, texts: tuple[str, ...]) -> Array:
        """Returns unit rows (n, D) float32 of n texts."""
        ...
