"""Trace: what a reward model may see of the last steps of every row, kept in a ring.

An *observation* is ``{name: (N, ...)}``: the signals of all environments at one moment and, when
the reward model needs frames, a state each from which a frame can be rendered any time later. A
transition has two: before its action (after any reset) and at its true successor (before any
reset).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from robo_rl.rollout.embeddings import Embeddings
from robo_rl.rollout.ring_buffers import restore_ring, ring_pieces
from robo_rl.rollout.vec_sim import HasStates, VecSim
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray
Observation = Mapping[str, Array]

FRAMES = (
    "#frames"  # the entry of an observation that frames are made of; no signal can have this name
)
FLAGS = (
    "step",
    "last",
    "terminated",
    "diverged",
)  # what is kept of a transition beside its observations


class Transition(NamedTuple):
    """One step of all environments."""

    before: Observation
    after: Observation
    action: Array  # (N, act_dim) that was executed
    step: Array  # (N,) int: actions of the episode before this one
    last: Array  # (N,) bool: the episode ends here
    terminated: Array  # (N,) bool: for good, and not because its time was over
    diverged: Array  # (N,) bool: the simulation failed here, so no reward model judges the step

    @property
    def first(self) -> Array:
        """(N,) bool: whether the step is the first of its episode."""
        return self.step == 0


class Observer:
    """Observes a simulator, and turns the stored states of observations into frames.

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

    def observe(
        self, previous: Observation | None = None, changed: Array | None = None
    ) -> dict[str, Array]:
        """{name: (N, ...)} of all rows now; with ``previous``, only rows ``changed`` have moved."""
        observation = self.sim.signals() if "signals" in self.needs else {}
        if "frames" in self.needs:
            if isinstance(self.sim, HasStates):
                observation[FRAMES] = self.sim.state()
            elif previous is None or changed is None:
                observation[FRAMES] = self._render(None)
            else:
                observation[FRAMES] = previous[FRAMES].copy()
                observation[FRAMES][changed] = self._render(changed)
        return observation

    def _render(self, ids: Array | None) -> Array:
        frames = self.sim.render(ids, self.sim.cameras[0])
        self.frames_rendered += len(frames)
        return frames

    def frames(self, rows: Array, camera: str) -> Array:
        """Returns frames (k, H, W, 3) uint8 of what was recorded for them.

        Args:
            rows: (k, nstate) state vectors; of a simulator without these, the frames (k, H, W, 3).
            camera: The camera's name.

        Raises:
            ValueError: the task has no such camera, or its frames were not recorded.
        """
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
    """The last ``capacity`` transitions. The one that is added first is number ``first``.

    What a step left behind is what the next one begins with, so an observation is stored once:
    after each step, and at new episodes' starts.
    """

    def __init__(self, capacity: int, first: int = 0):
        self.capacity, self._first = capacity, first
        self.count = first  # transitions ever added, and those before the first
        # {name: (capacity + 1, N, ...)}: what the oldest began with is here, too.
        self._after: dict[str, Array] = {}
        # {step: rows (k,) that began there, {name: (k, ...)}}; of the oldest ever, all rows.
        self._begun: dict[int, tuple[Array, dict[str, Array]]] = {}
        self.action = np.zeros((0, 0))  # (capacity, N, act_dim)
        self.flags: dict[str, Array] = {}  # {of FLAGS: (capacity, N)}
        # (2, capacity, N) int, parts done before each step and after it, as it was last scored.
        self.done = np.zeros((2, 0, 0), int)
        # Of a reward model that will look at what it saw once more. None: nobody will.
        self.embeddings: Embeddings | None = None

    @staticmethod
    def step_bytes(observation: Observation, action: Array) -> int:
        """Returns the bytes of a transition with such an observation and action (N, act_dim), over
        all environments."""
        observed_bytes = sum(array.nbytes for array in observation.values())
        rows, done, step, flags = len(action), 2 * 8, 4, len(FLAGS) - 1
        return observed_bytes + action.nbytes + rows * (done + step + flags)

    def add(self, step: Transition) -> None:
        """Copies one transition in; the first one decides names, shapes and dtypes."""
        if not self.action.size:
            self._allocate(step)
        at = self.count % self.capacity
        self._begun.pop(self.count - self.capacity, None)
        begun = step.first if self.count > self._first else np.ones_like(step.first)
        if begun.any():
            start = {name: array[begun] for name, array in step.before.items()}
            self._begun[self.count] = np.flatnonzero(begun), start
        for name, ring in self._after.items():
            ring[self.count % len(ring)] = step.after[name]
        self.action[at] = step.action
        self.done[:, at] = 0  # until it is scored
        for name, array in self.flags.items():
            array[at] = getattr(step, name)
        self.count += 1

    @property
    def names(self) -> list[str]:
        """The names of an observation's arrays."""
        return list(self._after)

    def observations(self, name: str, steps: Array, rows: Array) -> Array:
        """(L + 1, C, ...) before and after each of consecutive ``steps`` (L, C) of ``rows`` (C,);
        past its end a column may repeat its last step."""
        after = self._after[name]
        found = np.empty((len(steps) + 1, *steps.shape[1:], *after.shape[2:]), after.dtype)
        found[0] = self._before(name, steps[0], rows)
        flat = after.reshape(-1, *after.shape[2:])
        at = steps % len(after) * after.shape[1] + rows
        np.take(flat, at, axis=0, out=found[1:], mode="clip")  # not "raise", which copies it all
        return found

    def _before(self, name: str, steps: Array, rows: Array) -> Array:
        """(C, ...) before ``steps`` (C,) of ``rows`` (C,)."""
        after = self._after[name]
        found = after[(steps - 1) % len(after), rows]
        begun = self.flags["step"][steps % self.capacity, rows] == 0
        at = np.flatnonzero(begun | (steps == self._first))
        at = at[np.argsort(steps[at], kind="stable")]
        for same in np.split(at, np.flatnonzero(np.diff(steps[at])) + 1) if len(at) else ():
            who, start = self._begun[int(steps[same[0]])]
            found[same] = start[name][np.searchsorted(who, rows[same])]
        return found

    def step(self, number: int) -> Transition:
        """The transition ``number``, which must be one that is kept."""
        rows = np.arange(self.action.shape[1])
        pairs = {
            name: self.observations(name, np.full((1, len(rows)), number), rows)
            for name in self._after
        }
        before, after = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
        at = number % self.capacity
        flags = {name: array[at] for name, array in self.flags.items()}
        return Transition(before, after, self.action[at], **flags)

    def _allocate(self, step: Transition) -> None:
        def ring(array: Array, room: int = self.capacity) -> Array:
            return np.zeros((room, *array.shape), array.dtype)

        self._after = {name: ring(array, self.capacity + 1) for name, array in step.after.items()}
        self.action = ring(step.action)
        self.flags = {name: ring(getattr(step, name)) for name in FLAGS}
        self.done = np.zeros((2, self.capacity, len(step.action)), int)

    @property
    def oldest(self) -> int:
        """The first step that is still kept."""
        return max(self._first, self.count - self.capacity)

    def state_dict(self, last: int | None = None) -> dict[str, Array]:
        """Returns the ``last`` transitions (by default all), as views of the rings.

        Returns:
            ``count``; in pieces (k, N, ...) the observations after each step, the actions, the
            flags and the parts done; the observations (k, ...) before the first step and at each
            episode's start, with their step and environment (k,); and the embeddings, if there are
            any.
        """
        first = self.oldest if last is None else max(self.oldest, self.count - last)
        state = {"count": np.array(self.count)}
        if first == self.count:
            return state
        for name, ring in self._rings().items():
            state |= add_prefix(name, ring_pieces(ring, first, self.count))
        every = np.arange(self.action.shape[1])
        start = {
            name: self._before(name, np.full_like(every, first), every) for name in self._after
        }
        begun = {first: (every, start)}
        begun |= {step: one for step, one in self._begun.items() if step > first}
        state["begun/step"] = np.repeat(list(begun), [len(rows) for rows, _ in begun.values()])
        state["begun/row"] = np.concatenate([rows for rows, _ in begun.values()])
        for name in self._after:
            starts = [begun_obs[name] for _, begun_obs in begun.values()]
            state[f"begun/look/{name}"] = np.concatenate(starts)
        if self.embeddings is not None:
            state |= add_prefix("embeddings", self.embeddings.state_dict())
        return state

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the arrays, such as actions (k, N, act_dim), that ``state_dict``
        returned."""
        self.count = self._first = int(saved["count"])
        if "begun/step" not in saved:
            return
        steps, rows = saved["begun/step"], saved["begun/row"]
        starts = dict(select_prefix(saved, "begun/look"))
        self._first = int(steps[0])
        flags = {name: saved[f"{name}/00000"][0] for name in FLAGS}
        one = {name: array[: len(flags["step"])] for name, array in starts.items()}
        self._allocate(Transition(one, one, saved["action/00000"][0], **flags))
        for name, ring in self._rings().items():
            restore_ring(saved, name, ring, self._first)
        self._begun = {}
        edges = [*np.flatnonzero(np.diff(steps, prepend=-1)), len(steps)]
        for at, to in itertools.pairwise(edges):
            start = {name: array[at:to] for name, array in starts.items()}
            self._begun[int(steps[at])] = rows[at:to], start
        self.embeddings = None
        if len(embeddings := select_prefix(saved, "embeddings")):
            self.embeddings = Embeddings.from_state_dict(embeddings)

    def _rings(self) -> dict[str, Array]:
        return {
            **add_prefix("after", self._after),
            "action": self.action,
            "done_before": self.done[0],
            "done_after": self.done[1],
            **self.flags,
        }
