"""One sentence seen through several cameras: paid what the one that sees least of it would pay.

A policy that is paid by one camera finds where that one has to guess: it puts the cube behind the
arm and stays there. What is hidden from one camera another sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reward_models.base import RewardOutput, Segment
from reward_models.vision.clip_score import ClipScore

Array = np.ndarray


class MultiViewReward:
    """The same plan through ``models``, one for each camera, none of which learns: the least
    reward, and what is wanted in turn done once all have seen it done."""

    context = 1
    causal = True
    version = 0

    def __init__(self, models: Sequence[ClipScore]):
        self.models = tuple(models)
        self.needs = frozenset[str]().union(*(model.needs for model in models))

    @property
    def frame_size(self) -> tuple[int, int] | None:
        """(height, width) px of the frames it looks at."""
        return self.models[0].frame_size

    def state_dict(self) -> dict[str, Array]:
        """Returns nothing: no part of it learns."""
        return {}

    def load_state_dict(self, saved: dict[str, Array]) -> None:
        """Does nothing: no part of it learns."""

    def score(self, segment: Segment) -> RewardOutput:
        """Returns the least of the models' rewards (T, N); see ``RewardModel.score``."""
        seen = [model.score(segment) for model in self.models]

        def least(of: Callable[[RewardOutput], Array]) -> Array:
            return np.minimum.reduce([of(one) for one in seen])

        return RewardOutput(
            reward=least(lambda one: one.reward),
            scored=seen[0].scored,
            components={
                name: least(lambda one, name=name: one.components[name])
                for name in seen[0].components
            },
            uncertainty=np.maximum.reduce([one.uncertainty for one in seen]),
            done=None if seen[0].done is None else least(lambda one: one.done),
        )
