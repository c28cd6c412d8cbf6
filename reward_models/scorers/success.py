"""A success classifier: whether the goal is met in the frame, learned from frames in which it is
and in which it is not (HIL-SERL, arXiv:2410.21845; RoboFuME, arXiv:2310.15145).

p = sigmoid(f(x)) of an embedding x, by binary cross-entropy, both kinds weighing the same. The
reward is 1 where p has been at least a threshold in each of the last ``consecutive`` frames, else 0
(``sparse``), or p itself (``probability``). The threshold is the lowest at which the share of
failing frames above it, at the upper end of its 95 % interval, is within a stated bound on episodes
that it was not fitted on.

It fails where the policy finds frames unlike all that it learned from: a reward of 1 for them is
all it learns then. The bound holds for frames such as it was chosen on. Look at the share on the
policy's own episodes, and fit anew with those (``--watch.run``).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.nn import functional as F

from reward_models.analysis.metrics import auc, average_precision, threshold_within_bound, wilson
from reward_models.base import Encoder
from reward_models.scorers.embedded_episodes import EmbeddedEpisodes, frame_windows, split_episodes
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from reward_models.scorers.heads import FitProblem, Head, sigmoid, untrained_head
from reward_models.vision.config import HeadConfig

Array = np.ndarray
Form = Literal["sparse", "probability"]


class SuccessClassifier(EmbeddingReward):
    """See the module's text."""

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        threshold: float,
        consecutive: int = 2,
        form: Form = "sparse",
    ):
        super().__init__(encoder)
        self.head, self.threshold, self.form = head, threshold, form
        self.context = consecutive

    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns the scores (n,) of frames with unit rows (n, D); see ``EmbeddingReward.rate``."""
        chance = sigmoid(self.head.values(rows[:, None]))
        sure = (chance[before] >= self.threshold).all(axis=1).astype(np.float32)
        reward = sure if self.form == "sparse" else chance
        return FrameScores(reward, {"probability": chance, "success": sure})


@dataclass(frozen=True, kw_only=True)
class SuccessLoss:
    """Binary cross-entropy of frames; the threshold is one of the figures."""

    bound: float = 0.01  # allowed share of failing frames above the threshold
    each: bool = False  # the bound holds for each of those who acted, not for all together
    consecutive: int = 2  # frames in a row

    def problem(self, episodes: EmbeddedEpisodes, config: HeadConfig) -> FitProblem:
        """Returns the fit of ``episodes``; see ``ScorerLoss``.

        Raises:
            ValueError: A part of the episodes lacks frames in which the goal is met, or not met.
        """
        parts = [part[episodes.episode] for part in split_episodes(episodes, config.seed)]
        for part, does in zip(parts, ("fit on", "choose by", "judge by"), strict=True):
            if len(np.unique(episodes.holds[part])) < 2:
                raise ValueError(
                    f"of {episodes.count} episodes, those to {does} hold no frame in which the "
                    f"goal is {'met' if not episodes.holds[part].any() else 'not met'}: give more "
                    "of them"
                )
        fit, held, _ = map(np.flatnonzero, parts)
        rows = torch.from_numpy(episodes.rows)[:, None]
        truth = torch.from_numpy(episodes.holds.astype(np.float32))
        share = episodes.holds[fit].mean()
        weight = torch.where(truth > 0, 0.5 / float(share), 0.5 / float(1.0 - share))

        def loss(head: Head, ids: Array) -> torch.Tensor:
            return F.binary_cross_entropy_with_logits(head(rows[ids]), truth[ids], weight[ids])

        def judge() -> dict[str, Any]:
            threshold = self._threshold(head, episodes, held)
            return {
                "threshold": threshold,
                **evaluate_classifier(head, threshold, self.consecutive, episodes, config.seed),
            }

        head = untrained_head(config, rows.shape[2])
        return FitProblem([head], [head], loss, [fit], held, asdict(self), judge)

    def _threshold(self, head: Head, episodes: EmbeddedEpisodes, held: Array) -> float:
        """The lowest threshold that keeps to the bound on the frames ``held`` (m,)."""
        chance = sigmoid(head.values(episodes.rows[held][:, None]))
        holds, who = episodes.holds[held], np.array(episodes.by)[episodes.episode[held]]
        names = np.unique(who[~holds])
        groups = [who == name for name in names] if self.each else [np.ones_like(holds)]
        return max(threshold_within_bound(chance[ids], holds[ids], self.bound) for ids in groups)


def evaluate_classifier(
    head: Head, threshold: float, consecutive: int, episodes: EmbeddedEpisodes, seed: int
) -> dict[str, Any]:
    """Returns figures of a classifier on the episodes that ``seed`` sets aside for the test."""
    test = np.flatnonzero(split_episodes(episodes, seed)[2][episodes.episode])
    chance = sigmoid(head.values(episodes.rows[:, None]))
    return threshold_figures(
        chance, consecutive_above(episodes, chance >= threshold, consecutive), episodes, test
    )


def consecutive_above(episodes: EmbeddedEpisodes, above: Array, consecutive: int) -> Array:
    """Returns the frames that end a run of frames above a threshold.

    Args:
        episodes: The episodes of the frames.
        above: (M,) bool.
        consecutive: The length of the run.

    Returns:
        (M,) bool.
    """
    seen = [frame_windows(span, tuple(range(consecutive))) for span in episodes.spans()]
    return above[np.concatenate(seen)].all(axis=1)  # pyright: ignore[reportReturnType]  # numpy: a scalar too


def threshold_figures(
    chance: Array, sure: Array, episodes: EmbeddedEpisodes, ids: Array
) -> dict[str, Any]:
    """Judges a classifier on some frames.

    Args:
        chance: (M,) probabilities of all frames.
        sure: (M,) bool, the frames that count as success.
        episodes: The episodes of the frames.
        ids: (m,) int, the frames to judge by.

    Returns:
        Figures of the ranking and of the threshold, also by who acted.
    """
    holds, who = episodes.holds, np.array(episodes.by)[episodes.episode]
    wrong, right = ids[~holds[ids]], ids[holds[ids]]
    by = {name: _share(sure, wrong[who[wrong] == name]) for name in dict.fromkeys(episodes.by)}
    return {
        "test_episodes": len(np.unique(episodes.episode[ids])),
        "auc": auc(chance[ids], holds[ids]),
        "average_precision": average_precision(chance[ids], holds[ids]),
        "positives": float(holds[ids].mean()),
        "false_positives": _share(sure, wrong),
        "false_positives_by": by,
        "found": _share(sure, right),
    }


def _share(sure: Array, ids: Array) -> dict[str, float]:
    low, high = wilson(int(sure[ids].sum()), max(len(ids), 1))
    return {
        "share": float(sure[ids].mean()) if len(ids) else 0.0,
        "low": low,
        "high": high,
        "frames": len(ids),
    }
