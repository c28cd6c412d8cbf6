"""Each row is paid for its own goal, of several that all look at the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reward_models.base import RewardOutput, Segment
from reward_models.vision.clip_score import ClipScore

Array = np.ndarray


class GoalConditionedReward:
    """``models[k]`` where the signal ``asked`` (N, goals) has its 1 at k; they share what they look
    through."""

    context = 1
    causal = True

    def __init__(self, models: Sequence[ClipScore], asked: str):
        self.models, self.asked = tuple(models), asked
        self.needs = frozenset({"signals"}).union(*(model.needs for model in models))

    @property
    def version(self) -> int:
        """The version of what all models look through."""
        return self.models[0].version

    @property
    def frame_size(self) -> tuple[int, int] | None:
        """(height, width) px of the frames it looks at; None: it looks at none."""
        return self.models[0].frame_size

    def state_dict(self) -> dict[str, Array]:
        """Returns the shared distilled encoder's labels (n, D) and weights by name, or nothing."""
        return self.models[0].state_dict()

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from the labels (n, D) and weights of ``state_dict()``."""
        self.models[0].load_state_dict(saved)

    def score(self, segment: Segment) -> RewardOutput:
        """Returns the rewards (T, N), of each environment by the model of its goal; see
        ``RewardModel.score``."""
        of = [model.score(segment) for model in self.models]
        asked = segment.signals[self.asked][1:].argmax(axis=-1)

        def own(values: Sequence[Array]) -> Array:
            return np.take_along_axis(np.stack(values), asked[None], axis=0)[0]

        reward = own([one.reward for one in of])
        return RewardOutput(
            reward=reward,
            scored=of[0].scored,
            components={"asked": reward},
            uncertainty=own([one.uncertainty for one in of]),
            version=self.version,
        )
