"""A replay buffer whose rewards come later, from a scorer in a process of its own.

A learner goes on meanwhile, with what was scored so far: nothing else is drawn. How many control
steps a reward came late, and of which version of the model it is, is kept with every transition.
Where more than ``MOST_LATE`` steps wait, or half of the ring, the learner waits too: a judge that
cannot keep up would else be left ever farther behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from reward_models.base import RewardModel, RewardOutput
from robo_rl.learners.buffers import ScoredReplayBuffer
from robo_rl.rollout.subprocess_scorer import Recipe, SubprocessScorer

Array = np.ndarray

MOST_LATE = 512  # control steps


class AsyncRewardReplayBuffer(ScoredReplayBuffer):
    """A replay buffer whose rewards a subprocess computes; ``recipe`` makes its reward model."""

    def __init__(self, *args: Any, recipe: Recipe, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._recipe, self._far = recipe, SubprocessScorer(recipe)
        self.late = np.zeros((self.buffer_size, self.n_envs), np.int32)  # control steps
        self._sent_to, self._known_to = 0, 0  # steps; the judge's own trace ends with the latter
        self._lateness: list[float] = []  # of blocks since it was last told
        self._last_late = 0.0

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        self.score_pending()
        while self._far.under_way and self._must_wait:
            self._receive(wait=True)
            self._send()
        return super().sample(batch_size, env)

    def score_pending(self) -> None:
        """Takes what was scored and sends what was made, as far as there is room for it."""
        self._receive()
        self._send()

    @property
    def _must_wait(self) -> bool:
        """Whether there is nothing to learn from yet, or too much to be judged."""
        most = min(MOST_LATE, self.buffer_size // 2)
        return self._ready <= self.trace.oldest or self.trace.count - self._scored_to > most

    @property
    def _ready(self) -> int:
        """The step up to which all that is counted from a step is scored, or was never made."""
        ahead = self.n_steps - 1 if self._scored_to < self.trace.count else 0
        return self._scored_to - ahead

    def _sample_indices(self, count: int) -> Array:
        steps = np.random.randint(self.trace.oldest, self._ready, size=count)  # noqa: NPY002
        return steps % self.buffer_size

    def _send(self) -> None:
        first, end = max(self._sent_to, self.trace.oldest), self.trace.count
        if first == end or not self._far.free:
            return
        missing = 0 if first == self._known_to else self.scorer.reach
        known = min(missing, first - self.trace.oldest)
        self._far.send(first - known, list(map(self.trace.step, range(first - known, end))), known)
        self._sent_to = self._known_to = end

    def _receive(self, wait: bool = False) -> None:
        while (scored := self._far.take(wait)) is not None:
            wait, output = False, scored.output
            end = scored.first + len(output.reward)
            first = max(scored.first, self.trace.oldest)
            self.scorer.observer.frames_rendered += scored.frames
            self.scorer.count(output, scored.seconds)
            if first < end:
                self._write(_from(output, first - scored.first), first, end)
                late = self.trace.count - 1 - np.arange(first, end)
                self.late[np.arange(first, end) % self.buffer_size] = late[:, None]
                self._lateness.append(float(late.mean()))

    def relabel(self, model: RewardModel | None = None) -> None:
        """Raises ValueError: a reward model in another process cannot be refitted."""
        raise ValueError("asynchronous scoring cannot refit the reward model during training")

    def figures(self) -> dict[str, float]:
        if self._lateness:
            self._last_late = round(float(np.mean(self._lateness)), 1)
        self._lateness = []
        return {"steps_late": self._last_late}

    def close(self) -> None:
        """Ends the judge's process."""
        self._far.close()

    def rings(self) -> dict[str, Array]:
        """Returns the inherited arrays and ``late``, {name: (buffer_size, n_envs, ...)}."""
        return {**super().rings(), "late": self.late}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the pieces (k, n_envs, ...) of the ring; steps that were being scored are
        sent again."""
        super().load_state_dict(saved)
        if self._far.under_way:
            self._far.close()
            self._far = SubprocessScorer(self._recipe)
        self._sent_to, self._known_to = self._scored_to, -1  # what was under way is sent again


def _from(output: RewardOutput, first: int) -> RewardOutput:
    """``output`` without the steps before ``first``."""
    return replace(
        output,
        reward=output.reward[first:],
        scored=output.scored[first:],
        components={name: array[first:] for name, array in output.components.items()},
    )
