"""Trace: what a reward model may see of the last steps of every row, kept in a ring.

A *look* is ``{name: (N, ...)}``: the signals of all rows at one moment and, when the reward model
needs frames, a row each from which a frame can be made any time later. A transition has two looks:
before its action (after any reset) and at its true successor (before any reset).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from robo_rl.rollout.vec_sim import HasStates, VecSim
from sims.nested import named, part_of

Array = np.ndarray
Look = Mapping[str, Array]

FRAMES = "#frames"  # the entry of a look that frames are made of; no signal can have this name
FLAGS = ("step", "last", "terminated", "diverged")  # what is kept of a transition beside its looks


class Transition(NamedTuple):
    """One step of all rows."""

    before: Look
    after: Look
    action: Array  # (N, act_dim) that was executed
    step: Array  # (N,) int: actions of the episode before this one
    last: Array  # (N,) bool: the episode ends here
    terminated: Array  # (N,) bool: for good, and not because its time was over
    diverged: Array  # (N,) bool: the simulation failed here, so no reward model judges the step

    @property
    def first(self) -> Array:
        """(N,) bool: the step is the first of its episode."""
        return self.step == 0


class Observer:
    """Takes looks of a simulator and turns their frame rows into frames.

    Frames are rendered when they are asked for, from stored state rows. A simulator without state
    rows is rendered while it steps instead, through its first camera.
    """

    def __init__(self, sim: VecSim, needs: frozenset[str], size: tuple[int, int] | None = None):
        """``size`` (height, width) px of frames that are made later; None: as the camera has it."""
        unknown = needs - {"signals", "frames"}
        if unknown:
            raise ValueError(
                f"reward models may need 'signals' and 'frames', got {sorted(unknown)}"
            )
        self.sim, self.needs, self.size = sim, needs, size
        self.frames_rendered = 0
        if "frames" in needs and not sim.cameras:
            raise ValueError(
                f"the reward model looks at frames, but task {sim.card['task']!r} has no camera"
            )

    def look(self, previous: Look | None = None, changed: Array | None = None) -> dict[str, Array]:
        """{name: (N, ...)} of all rows now; with ``previous``, only rows ``changed`` have moved."""
        look = self.sim.signals() if "signals" in self.needs else {}
        if "frames" in self.needs:
            if isinstance(self.sim, HasStates):
                look[FRAMES] = self.sim.state()
            elif previous is None or changed is None:
                look[FRAMES] = self._render(None)
            else:
                look[FRAMES] = previous[FRAMES].copy()
                look[FRAMES][changed] = self._render(changed)
        return look

    def _render(self, ids: Array | None) -> Array:
        frames = self.sim.render(ids, self.sim.cameras[0])
        self.frames_rendered += len(frames)
        return frames

    def frames(self, rows: Array, camera: str) -> Array:
        """Frames (k, H, W, 3) uint8 of stored frame rows (k, ...)."""
        if camera not in self.sim.cameras:
            raise ValueError(
                f"the reward model asks for camera {camera!r}; "
                f"task {self.sim.card['task']!r} has {', '.join(self.sim.cameras)}"
            )
        if isinstance(self.sim, HasStates):
            self.frames_rendered += len(rows)
            return self.sim.render_states(rows, camera, size=self.size)
        if camera != self.sim.cameras[0]:
            raise ValueError(
                f"only frames of camera {self.sim.cameras[0]!r} were recorded, not of {camera!r}: "
                "this simulator cannot render past states; put the camera first in its list"
            )
        return rows


class Trace:
    """The last ``capacity`` transitions; step ``t`` since the start lies at ``t % capacity``. The
    one that is added first is number ``first``."""

    def __init__(self, capacity: int, first: int = 0):
        self.capacity, self._first = capacity, first
        self.count = first  # transitions ever added, and those before the first
        self.before: dict[str, Array] = {}  # {name: (capacity, N, ...)}
        self.after: dict[str, Array] = {}
        self.action = np.zeros((0, 0))
        self.flags: dict[str, Array] = {}  # {of FLAGS: (capacity, N)}
        # (2, capacity, N) int, parts done before each step and after it, as it was last scored.
        self.done = np.zeros((2, 0, 0), int)
        # Embeddings (K, N, D) f32 of what was seen after each of the K steps before ``rows_end``,
        # of a reward model that will look at it again; step ``t`` lies at ``t % K``, nan where
        # nothing was seen. None: nobody will.
        self.rows: Array | None = None
        self.rows_end = 0

    def keep(self, first: int, rows: Array, most: int) -> None:
        """Keeps the embeddings ``rows`` (T, N, D) of the steps from ``first`` on, nan where nothing
        was seen; of all that were ever given those of the newest ``most`` steps, fixed at first."""
        if self.rows is None:
            shape = (min(most, self.capacity), *rows.shape[1:])
            self.rows = np.full(shape, np.nan, np.float32)
        kept, end = len(self.rows), max(self.rows_end, first + len(rows))
        self.rows[np.arange(max(self.rows_end, end - kept), end) % kept] = np.nan
        self.rows_end = end
        steps = np.arange(max(first, end - kept), first + len(rows))
        at, new = steps % kept, rows[len(rows) - len(steps) :]
        self.rows[at] = np.where(np.isnan(new), self.rows[at], new)

    def known(self, first: int, last: int) -> Array | None:
        """(T, N, D) embeddings of steps ``first`` up to ``last``, nan where none is kept; None:
        nowhere."""
        if self.rows is None:
            return None
        steps = np.arange(first, last)
        gone = (steps < self.rows_end - len(self.rows)) | (steps >= self.rows_end)
        return np.where(gone[:, None, None], np.nan, self.rows[steps % len(self.rows)])

    def add(self, step: Transition) -> None:
        """Copies one transition in; the first one decides names, shapes and dtypes."""
        if not self.action.size:
            self._allocate(step)
        at = self.count % self.capacity
        for ring, look in ((self.before, step.before), (self.after, step.after)):
            for name, array in ring.items():
                array[at] = look[name]
        self.action[at] = step.action
        self.done[:, at] = 0  # until it is scored
        for name, array in self.flags.items():
            array[at] = getattr(step, name)
        self.count += 1

    def step(self, number: int) -> Transition:
        """The transition ``number``, which must be one that is kept."""
        at = number % self.capacity
        before, after = (
            {name: array[at] for name, array in ring.items()} for ring in (self.before, self.after)
        )
        flags = {name: array[at] for name, array in self.flags.items()}
        return Transition(before, after, self.action[at], **flags)

    def _allocate(self, step: Transition) -> None:
        def ring(array: Array) -> Array:
            return np.zeros((self.capacity, *array.shape), array.dtype)

        self.before = {name: ring(array) for name, array in step.before.items()}
        self.after = {name: ring(array) for name, array in step.after.items()}
        self.action = ring(step.action)
        self.flags = {name: ring(getattr(step, name)) for name in FLAGS}
        self.done = np.zeros((2, self.capacity, len(step.action)), int)

    @property
    def oldest(self) -> int:
        """The first step that is still kept."""
        return max(self._first, self.count - self.capacity)

    def state_dict(self, last: int | None = None) -> dict[str, Array]:
        """The ``last`` transitions (all by default) as arrays, oldest first."""
        first = self.oldest if last is None else max(self.oldest, self.count - last)
        at = np.arange(first, self.count) % self.capacity
        rows = {} if self.rows is None else {"rows": self.rows, "rows_end": np.array(self.rows_end)}
        kept = {name: array[at] for name, array in self._rings().items()}
        return {"count": np.array(self.count)} | kept | rows

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``state_dict``: later transitions follow on those saved."""
        count, kept = int(saved["count"]), len(saved["action"]) if "action" in saved else 0
        self.count = count
        if not kept:
            return

        def look(side: str) -> dict[str, Array]:
            return {name: array[0] for name, array in part_of(saved, side).items()}

        flags = {name: saved[name][0] for name in FLAGS}
        self._allocate(Transition(look("before"), look("after"), saved["action"][0], **flags))
        at = np.arange(count - kept, count) % self.capacity
        if "rows_end" in saved:  # not of an older checkpoint: those are looked at again
            self.rows, self.rows_end = saved["rows"].copy(), int(saved["rows_end"])
        for name, array in self._rings().items():
            if name in saved:  # what was done in turn, an older checkpoint does not say
                array[at] = saved[name]

    def _rings(self) -> dict[str, Array]:
        if not self.action.size:
            return {}
        return {
            **named("before", self.before),
            **named("after", self.after),
            "action": self.action,
            "done_before": self.done[0],
            "done_after": self.done[1],
            **self.flags,
        }
