"""What every source of episodes gives, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.base import from_dict
from reward_models.goals.formula import fill, from_data
from reward_models.goals.text import to_sentence
from reward_models.remote.questions import evenly_spaced
from robo_rl.goals.reading import judged_goal, read_goal
from robo_rl.runtime.remote_models import frame_size
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray


@dataclass(frozen=True)
class SourceEpisode:
    """An episode."""

    name: str
    frames: Array  # (T, H, W, 3) uint8
    at: Array  # (T,) numbers of these frames in the episode
    task: Task[Any]
    text: str  # the sentence
    distance: Array | None = None  # (T,) m, distance to the goal, if simulated
    met: bool | None = None  # success at the end; None: no label
    judge: str = ""  # source of ``met``: "simulator", "operator"
    camera: str = ""  # task camera of the frames; empty: not rendered here


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Which episodes and frames of a source are read."""

    goal: str = ""  # goal sentence; empty: the source's own
    task: str = "reach"  # task with its objects, if the source has none
    camera: str = ""  # empty: the only one, or the task's first
    episodes: int | None = None  # at most; None: one of a policy, all of a dataset
    frames: int = 0  # per episode at most, evenly spaced; 0: all
    height: int = 0  # px, height of rendered frames; 0: the camera's own
    tell: Callable[[str], None] = print  # reports what is left out of a folder

    def at(self, count: int) -> Array:
        """Returns the indices (n,) int of the frames that are read, of an episode of ``count``
        frames."""
        return evenly_spaced(count, self.frames) if self.frames else np.arange(count)

    def sentence(self, task: Task[Any], said: str, path: Path) -> str:
        """The sentence asked about, else what a source ``said``; ValueError where neither is."""
        if not (self.goal or said):
            raise ValueError(f"{path} has no goal sentence: give --goal TEXT")
        return read_goal(task, self.goal or said).text

    def of_its_own(self, task: Task[Any], text: str) -> bool:
        """Whether the sentence asked about is a source's own: of another nothing is known."""
        return not self.goal or judged_goal(task.unwrapped, text)[1].key == task.goal

    def camera_of(self, known: Collection[str], path: Path) -> str:
        """The camera that was asked for, else the only one; ValueError where that is none."""
        if not known:
            raise ValueError(f"{path} has no camera frames")
        wanted = self.camera or (min(known) if len(known) == 1 else "")
        if wanted not in known:
            got = f"has no camera {wanted!r}" if wanted else f"has {len(known)} cameras"
            raise ValueError(f"{path} {got}; give --camera {' or '.join(sorted(known))}")
        return wanted


@dataclass(frozen=True)
class SourceKind:
    """A kind of source."""

    says: str  # short description
    found: Callable[[Path], bool]  # whether a path is such a source
    episodes: Callable[[Path, SourceOptions], Iterator[SourceEpisode]]


def sentence_of(task: Task[Any]) -> str:
    """Returns the sentence of a task's goal."""
    if task.formula is None:
        return task.goals()[task.goal].sentence
    card = from_dict(task.card())
    return to_sentence(fill(from_data(task.formula), card), card)


def render_episode(
    env: BatchEnv,
    states: Array,
    watch: SourceOptions,
    name: str,
    text: str,
    distance: Array | None,
    met: bool | None,
) -> SourceEpisode:
    """The episode of state rows (T, nstate) of ``env``'s task. ``distance`` (T,) and ``met`` are of
    the task's goal: left out where the sentence ``text`` is another."""
    at, camera = watch.at(len(states)), env.camera(watch.camera or None)
    size = frame_size(camera, watch.height)
    frames = env.render_states(states[at], camera.name, size=size)
    if not watch.of_its_own(env.task, text):
        distance = met = None
    distance = None if distance is None else distance[at]
    judge = "" if met is None else "simulator"
    return SourceEpisode(name, frames, at, env.task, text, distance, met, judge, camera.name)
