"""What any reward pays on a coverage's episodes: forth, backwards, or some steps of them alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reward_models.base import EpisodePosition, RewardModel, Segment, positions_from_start
from robo_rl.reward_analysis.coverage import Coverage
from robo_rl.rollout.scoring import StoredFrames
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

FRAMES_AT_ONCE = 1 << 11
STEPS_AT_ONCE = 1 << 16  # of a reward that draws nothing


@dataclass(frozen=True)
class StepSelection:
    """``C`` stretches of episodes, as entries of a coverage in the order in which they are seen."""

    column: Array  # (C,)
    entry: Array  # (L+1, C); past a stretch's end its last one
    action: Array  # (L, C) step whose action is seen
    length: Array  # (C,) steps
    turned: bool = False  # time goes backwards

    @property
    def valid(self) -> Array:
        """(L, C) bool."""
        return np.arange(len(self.action))[:, None] < self.length

    def some(self, columns: slice) -> StepSelection:
        """Returns a selection of the segments."""
        arrays = self.column[columns], self.entry[:, columns], self.action[:, columns]
        return StepSelection(*arrays, self.length[columns], self.turned)

    def place(self, cover: Coverage) -> EpisodePosition:
        """The position of each step in its episode; reversed steps have none."""
        if self.turned:
            never = np.zeros(self.action.shape, bool)
            return positions_from_start(never, never)
        at = self.action, self.column
        return EpisodePosition(self.action, cover.last[at], cover.terminated[at])


def forward(column: Array, length: Array, start: Array | int = 0) -> StepSelection:
    """The first ``length`` (C,) steps of episodes from entry ``start`` on."""
    steps = int(length.max(initial=1))
    entry = start + np.minimum(np.arange(steps + 1)[:, None], length)
    action = start + np.minimum(np.arange(steps)[:, None], np.maximum(length - 1, 0))
    return StepSelection(column, entry, action, length)


def whole_episodes(cover: Coverage) -> StepSelection:
    """Every episode from its start to its end, in as many rows (T) as the coverage has."""
    way, steps = forward(np.arange(len(cover.who)), cover.length), len(cover.action)
    more = steps - len(way.action)
    entry = np.concatenate([way.entry, np.repeat(way.entry[-1:], more, axis=0)])
    action = np.concatenate([way.action, np.repeat(way.action[-1:], more, axis=0)])
    return StepSelection(way.column, entry, action, way.length)


def reversed_steps(way: StepSelection) -> StepSelection:
    """The same stretches with time reversed; each step has the action that it undoes."""
    steps = len(way.action)
    ends = np.take_along_axis(way.entry, way.length[None], axis=0)
    entry = np.maximum(ends - np.arange(steps + 1)[:, None], way.entry[:1])
    last = np.take_along_axis(way.action, np.maximum(way.length - 1, 0)[None], axis=0)
    return StepSelection(
        way.column,
        entry,
        np.maximum(last - np.arange(steps)[:, None], way.action[:1]),
        way.length,
        turned=True,
    )


class SelectionScores(NamedTuple):
    """A reward's scores along selected steps."""

    reward: Array  # (L, C) float, nan where nothing was scored
    parts: Mapping[str, Array]  # {component: (L, C)}


Pay = Callable[[Coverage, StepSelection], SelectionScores]


def segment_of(
    cover: Coverage, way: StepSelection, render: Callable[[Array, str], Array]
) -> Segment:
    """Returns the Segment that a reward model scores for selected steps of a coverage.

    Args:
        cover: The episodes.
        way: The selected steps.
        render: ``render(states (k, nstate), camera)`` returns frames (k, H, W, 3) uint8.
    """
    entry, action, column = way.entry, way.action, way.column
    return Segment(
        {name: s[entry, column] for name, s in cover.signals.items()},
        StoredFrames(cover.states[entry, column], way.length, render),
        cover.action[action, column],
        way.valid,
        way.place(cover),
    )


def by_model(model: RewardModel) -> Pay:
    """A reward model's pay; frames are drawn of stored states, as in training."""

    def pay(cover: Coverage, way: StepSelection) -> SelectionScores:
        frames = "frames" in model.needs
        env = BatchEnv(cover.task, 1)
        size = getattr(model, "frame_size", None)

        def render(rows: Array, camera: str) -> Array:
            return env.render_states(rows, camera, size=size)

        shape = (len(way.action), len(way.column))
        reward = np.full(shape, np.nan)
        parts: dict[str, Array] = {}
        at_once = max(1, (FRAMES_AT_ONCE if frames else STEPS_AT_ONCE) // max(1, shape[0]))
        try:
            for first in range(0, shape[1], at_once):
                some = slice(first, first + at_once)
                found = model.score(segment_of(cover, part := way.some(some), render))
                reward[:, some] = np.where(found.scored & part.valid, found.reward, np.nan)
                for name, part in found.components.items():
                    parts.setdefault(name, np.full(shape, np.nan))[:, some] = part
        finally:
            env.close()
        return SelectionScores(reward, parts)

    return pay


def by_entry(values: Callable[[Coverage], Array]) -> Pay:
    """The pay of what is a function of the successor alone, from its ``values`` (T, N) along the
    episodes; a start, which is nobody's successor, is paid as the step after it."""

    def pay(cover: Coverage, way: StepSelection) -> SelectionScores:
        rewards = values(cover)[np.maximum(way.entry[1:] - 1, 0), way.column].astype(float)
        return SelectionScores(np.where(way.valid, rewards, np.nan), {})

    return pay


def dense(cover: Coverage) -> Array:
    """Returns the task's own hand-written reward (T, N)."""
    return cover.dense


def sparse(cover: Coverage) -> Array:
    """Returns the judge's verdict (T, N) bool after each action."""
    return cover.success


def shaped(cover: Coverage, gamma: float) -> Array:
    """Returns a shaped reward (T, N) with the incentives of the dense reward or of the sparse one.

    The sparse one is taken where there is no dense one. It is shaped by 10 times the negative
    distance, so its distance to that reward shows what a reward distance fails to see through.

    Args:
        cover: The episodes.
        gamma: The discount per step.
    """
    base = np.where(np.isnan(cover.dense), cover.success, cover.dense)
    nearness = -10.0 * cover.distance
    return base + gamma * nearness[1:] - nearness[:-1]


def random(cover: Coverage) -> Array:
    """Returns a reward (T, N) without meaning: a fixed random network of the observation."""
    rng = np.random.default_rng(0)
    scale = cover.obs[0].std(axis=0) + 1e-3
    wide = rng.normal(size=(cover.obs.shape[2], 64)) / np.sqrt(cover.obs.shape[2])
    hidden = np.tanh((cover.obs[1:] - cover.obs[0].mean(axis=0)) / scale @ wide)
    return hidden @ rng.normal(size=64)


def clock(cover: Coverage, way: StepSelection) -> SelectionScores:
    """A reward that rises with time, whatever happens, also where frames are shown backwards."""
    step = np.arange(len(way.action))[:, None] / len(cover.action)
    return SelectionScores(np.where(way.valid, step, np.nan), {})
