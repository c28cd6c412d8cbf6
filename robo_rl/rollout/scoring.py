"""Scorer: applies a reward model to a trace in segments that never cross a reset.

Each row's steps are cut at its resets into fragments; fragments become the columns of a Segment,
padded to the longest. The reward of a transition does not depend on which fragments share a
Segment, so a whole rollout, or a whole replay buffer, is scored in few large calls.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from reward_models.base import EpisodePosition, RewardModel, RewardOutput, Segment
from robo_rl.rollout.embeddings import Embeddings
from robo_rl.rollout.trace import FRAMES, Observer, Trace
from robo_rl.runtime.threads import lend_threads_to_torch
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray

# Transitions in one Segment: a bound on memory, far above what one core needs to be kept busy.
_BATCH_SIGNALS = 1 << 17
_BATCH_FRAMES = 1 << 11  # 2,048 frames of 224 px are 308 MB

# A model that freezes its statistics after a warm-up changes once, in the middle of a span: the
# span is then scored again, so that all of it is on one scale.
_ATTEMPTS = 3


@dataclass(frozen=True)
class Packing:
    """A two-way map between fragments of a block (T, N) and columns (L, C)."""

    step: Array  # (L, C) int, step of the block; past a fragment's end its last step
    row: Array  # (C,) int
    valid: Array  # (L, C) bool

    def take(self, block: Array) -> Array:
        """Columns (L, C, ...) of a block (T, N, ...); padding repeats the last step."""
        return block[self.step, self.row]

    def put(self, columns: Array, block: Array) -> None:
        """Writes the valid entries of ``columns`` (L, C) to their places in ``block`` (T, N)."""
        block[self.step[self.valid], np.broadcast_to(self.row, self.step.shape)[self.valid]] = (
            columns[self.valid]
        )


def packings(starts: Array, *, batch: int, skip: int = 0) -> Iterator[Packing]:
    """Packings that hold every fragment of a block once, about ``batch`` entries each.

    ``starts`` (T, N) bool says which steps are the first of an episode. Fragments that end within
    the first ``skip`` steps are left out.
    """
    ends = np.ones_like(starts)
    ends[:-1] = starts[1:]
    row, last = np.nonzero(ends.T)  # sorted by row, then step
    first = np.zeros_like(last)
    same_row = row[1:] == row[:-1]
    first[1:][same_row] = last[:-1][same_row] + 1
    length = last - first + 1
    # Long fragments first, so that columns of like length share a Segment.
    order = np.argsort(-length, kind="stable")
    order = order[last[order] >= skip]
    while len(order):
        longest = length[order[0]]
        columns, order = np.split(order, [max(1, batch // longest)])
        offset = np.arange(longest)[:, None]
        step = np.minimum(first[columns] + offset, last[columns])
        yield Packing(step, row[columns], offset < length[columns])


class StoredFrames:
    """The FrameSource of one Segment: renders stored rows when asked, each at most once."""

    def __init__(
        self, rows: Array, length: Array, render: Callable[[Array, str], Array]
    ):  # rows (L+1, C, ...), length (C,)
        self._rows, self._render = rows, render
        # Past the end of its fragment an entry is the fragment's last one.
        entry = np.minimum(np.arange(len(rows))[:, None], length)
        self._canonical = entry * rows.shape[1] + np.arange(rows.shape[1])  # (L+1, C)
        self._cache: dict[str, tuple[Array, Array]] = {}  # camera: index of each entry, frames

    def __call__(self, camera: str, where: Array) -> Array:
        """(k, H, W, 3) uint8 of the True entries of ``where`` (L+1, C) bool, row-major."""
        if where.shape != self._canonical.shape or where.dtype != bool:
            raise ValueError(
                f"where must be {self._canonical.shape} bool, got {where.shape} {where.dtype}"
            )
        wanted = self._canonical[where]
        index, frames = self._cache.get(camera, (np.full(where.size, -1), None))
        missing = np.unique(wanted[index[wanted] < 0])
        if len(missing) or frames is None:
            flat = self._rows.reshape(-1, *self._rows.shape[2:])
            new = self._render(flat[missing], camera)
            index[missing] = np.arange(len(missing)) + (0 if frames is None else len(frames))
            frames = new if frames is None else np.concatenate([frames, new])
            self._cache[camera] = index, frames
        return frames[index[wanted]]


def _no_frames(camera: str, where: Array) -> Array:
    raise ValueError(
        f"the reward model asked for frames of camera {camera!r} but does not declare them: "
        'its `needs` must contain "frames"'
    )


class Scorer:
    """Scores spans of a Trace with one reward model, and keeps the running figures."""

    def __init__(self, model: RewardModel, observer: Observer, *, batch: int | None = None):
        self.observer, self._given_batch = observer, batch
        self.version = 0  # of the last score
        self._seconds = 0.0
        self._sums: dict[str, float] = {}
        self._scored = 0
        self.replace(model)
        self._another = False  # what a trace has of embeddings is of this model, of a resumed run

    def replace(self, model: RewardModel) -> None:
        """Scores with ``model`` from now on; ValueError when it cannot judge a learning policy."""
        name = type(model).__name__
        if not model.causal:
            raise ValueError(
                f"reward model {name} looks ahead (causal=False), so it cannot reward a policy "
                "while it learns; use a causal model, or score finished episodes offline"
            )
        missing = model.needs - self.observer.needs
        if missing:
            raise ValueError(f"reward model {name} needs {sorted(missing)}, which is not recorded")
        self.model = model
        frames = "frames" in model.needs
        self.batch = self._given_batch or (_BATCH_FRAMES if frames else _BATCH_SIGNALS)
        # A score looks at `context` frames, the last of them the successor: for the first step of a
        # span that reaches so many transitions of the same episode back.
        self.history = max(0, model.context - 1)
        self.reach = self.history + 1  # and what was done by then is told by one more
        self._another = True  # it may look through another encoder

    def score(self, trace: Trace, first: int, last: int, *, counted: bool = True) -> RewardOutput:
        """Returns the scores (T, N) of steps ``first`` up to ``last`` (exclusive) of a trace.

        Rewards are 0 where nothing was scored: where the simulation diverged, and where the model
        says so.

        Args:
            trace: The recorded steps.
            first: The first step that is scored.
            last: The step after the last one.
            counted: Whether the scores enter ``pop_means``.

        Raises:
            ValueError: the trace does not hold these steps, or the reward model changed its version
                in each of several attempts.
        """
        began = time.perf_counter()
        if not trace.oldest <= first < last <= trace.count:
            raise ValueError(
                f"cannot score steps {first} to {last}: the trace holds {trace.oldest} to "
                f"{trace.count}"
            )
        start = max(trace.oldest, first - self.history)
        skip = first - start
        ring = np.arange(start, last) % trace.capacity  # of each step of the block
        starts, diverged = trace.flags["step"][ring] == 0, trace.flags["diverged"][ring]
        if self._another:
            trace.embeddings, self._another = None, False
        known = trace.embeddings
        if known is not None and not self._keeps_all:  # what is seen now takes the older ones' room
            known = copy.deepcopy(known)
        for _ in range(_ATTEMPTS):
            blocks = _Blocks(starts.shape)
            for packing in packings(starts, batch=self.batch, skip=skip):
                valid = packing.valid & ~packing.take(diverged)
                done = self._done(trace, start, packing, starts)
                steps, rows = start + packing.step, packing.row
                segment = self._segment(trace, packing, steps, valid, done)
                if known is not None:
                    segment = dataclasses.replace(segment, rows=known.at(steps, rows))
                # An image encoder keeps every core busy; a small network is slower on several.
                frames = "frames" in self.model.needs
                with lend_threads_to_torch() if frames else contextlib.nullcontext():
                    output = self.model.score(segment)
                _check(output, valid, type(self.model).__name__)
                blocks.put(packing, output, valid, done)
                if output.rows is not None:
                    if store := self._embeddings(trace, start, output.rows.shape[2]):
                        store.reach(last)
                        store.put(steps, rows, output.rows, packing.valid)
            if len(blocks.versions) == 1:
                break
        else:
            raise ValueError(
                f"reward model {type(self.model).__name__} changed its version in each of "
                f"{_ATTEMPTS} attempts to score {starts.size} transitions; refit it between calls"
            )
        if blocks.done is not None:
            trace.done[:, ring[skip:]] = blocks.done[:, skip:]
        result = blocks.result(skip)
        self.version = result.version
        seconds = time.perf_counter() - began
        if counted:
            self.count(result, seconds)
        else:
            self._seconds += seconds
        return result

    @property
    def _keeps_all(self) -> bool:
        """Whether the model will judge again whatever it has seen."""
        return getattr(self.model, "keeps", False)

    def _embeddings(self, trace: Trace, start: int, width: int) -> Embeddings | None:
        """Those of ``trace``, from ``start`` on where it has none yet; None where no score looks
        back at them."""
        room = trace.capacity if self._keeps_all else min(self.history, trace.capacity)
        if trace.embeddings is None and room:
            trace.embeddings = Embeddings(room, trace.action.shape[1], width, start)
        return trace.embeddings

    def _done(self, trace: Trace, start: int, packing: Packing, starts: Array) -> Array:
        """(C,) parts done before each column: by the step before, where that is still there."""
        first, row = packing.step[0], packing.row
        at, last = (start + first) % trace.capacity, (start + first - 1) % trace.capacity
        gone = start + first == trace.oldest
        done = np.where(gone, trace.done[0, at, row], trace.done[1, last, row])
        return np.where(starts[first, row], 0, done)

    def _segment(
        self, trace: Trace, packing: Packing, steps: Array, valid: Array, done: Array
    ) -> Segment:
        at, rows = steps % trace.capacity, packing.row
        needs = self.model.needs
        frames = _no_frames
        if "frames" in needs:
            length = packing.valid.sum(axis=0)
            frame_states = trace.observations(FRAMES, steps, rows)
            frames = StoredFrames(frame_states, length, self.observer.frames)
        names = [name for name in trace.names if name != FRAMES] if "signals" in needs else []
        flags = (trace.flags[name][at, rows] for name in ("step", "last", "terminated"))
        return Segment(
            signals={name: trace.observations(name, steps, rows) for name in names},
            frames=frames,
            action=trace.action[at, rows],
            valid=valid,
            place=EpisodePosition(*flags),
            done=done,
        )

    def count(self, output: RewardOutput, seconds: float) -> None:
        """Has what was scored enter ``pop_means``, and what it took ``pop_seconds``."""
        self._seconds += seconds
        self._scored += int(output.scored.sum())
        for name, array in {"reward": output.reward, **_components(output)}.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(array[output.scored].sum())

    def pop_means(self) -> dict[str, float]:
        """Means per scored step since the last call: ``reward`` and ``reward/<component>``."""
        means = {name: total / self._scored for name, total in self._sums.items() if self._scored}
        self._sums, self._scored = {}, 0
        return means

    def state_dict(self) -> dict[str, Array]:
        """Returns what ``pop_means`` continues from."""
        sums = {name: np.array(total) for name, total in self._sums.items()}
        return {"scored": np.array(self._scored), **add_prefix("sum", sums)}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``state_dict``."""
        self._scored = int(saved["scored"])
        self._sums = {name: float(total) for name, total in select_prefix(saved, "sum").items()}

    def pop_seconds(self) -> float:
        """Time spent scoring since the last call, s, rendering included."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def _components(output: RewardOutput) -> dict[str, Array]:
    return add_prefix("reward", output.components)


def _check(output: RewardOutput, valid: Array, model: str) -> None:
    arrays = {
        "reward": output.reward,
        "scored": output.scored,
        "uncertainty": output.uncertainty,
        "done": output.done,
        **{f"components[{name!r}]": array for name, array in output.components.items()},
    }
    for name, array in arrays.items():
        if array is not None and np.shape(array) != valid.shape:
            raise ValueError(
                f"{model}.score: {name} must have shape {valid.shape}, got {np.shape(array)}"
            )
    bad = valid & output.scored & ~np.isfinite(output.reward)
    if bad.any():
        t, n = np.argwhere(bad)[0]
        raise ValueError(
            f"{model}.score: {int(bad.sum())} rewards are not finite, the first at step {t} of "
            f"column {n}; set scored=False where there is no reward"
        )


class _Blocks:
    """Collects packed outputs into (T, N) arrays."""

    def __init__(self, shape: tuple[int, int]):
        self._shape = shape
        self._arrays = {"scored": np.zeros(shape, bool), "reward": np.zeros(shape, np.float32)}
        self.versions: set[int] = set()
        self.done: Array | None = None  # (2, T, N) before and after each step

    def put(self, packing: Packing, output: RewardOutput, valid: Array, before: Array) -> None:
        self.versions.add(output.version)
        if output.done is not None:
            if self.done is None:
                self.done = np.zeros((2, *self._shape), int)
            packing.put(np.concatenate([before[None], output.done[:-1]]), self.done[0])
            packing.put(output.done, self.done[1])
        scored = valid & output.scored
        packing.put(scored, self._arrays["scored"])
        optional: Mapping[str, Array | None] = {
            "reward": output.reward,
            "uncertainty": output.uncertainty,
            **add_prefix("reward", output.components),
        }
        for name, array in optional.items():
            if array is not None:
                block = self._arrays.setdefault(name, np.zeros(self._shape, np.float32))
                packing.put(np.where(scored, array, 0.0), block)

    def result(self, skip: int) -> RewardOutput:
        arrays = {name: array[skip:] for name, array in self._arrays.items()}
        return RewardOutput(
            reward=arrays["reward"],
            scored=arrays["scored"],
            components=dict(select_prefix(arrays, "reward")),
            uncertainty=arrays.get("uncertainty"),
            version=max(self.versions),
        )
