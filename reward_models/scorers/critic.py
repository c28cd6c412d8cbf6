"""A critic of films so far (Video-Language Critic, arXiv:2405.19988).

s = f(x_t, x_t-4, x_t-8) of a frame and two before it, fitted to lower

    log(1 + sum_j exp(s_j - s_end)) + ranking * relu(s_t - s_t+1)

the first over ends at which the goal is met, against the ends s_j of episodes that fail; the
second over successive frames t of episodes that end so, never less later than sooner (sequential
ranking). Ends that somebody rated are in the first alone. Nothing says how much more a later frame
is worth. The reward is s on a scale from the 5 % to the 99.5 % quantile of the frames
fitted on, cut off below 0 and above 1. The paper's critic reads a caption, and has other captions
of the same film as further negatives; this one is of a single goal, and a small network on a few
frames takes the place of its transformer.

It fails where demonstrations take many ways, as progress does, and where nobody failed in the way
that a policy does: what was never an end is held against nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from reward_models.base import Encoder
from reward_models.scorers.embedded_episodes import (
    EmbeddedEpisodes,
    frame_windows,
    require_successes_and_failures,
    split_episodes,
)
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from reward_models.scorers.heads import FitProblem, Head, untrained_head, value_scale
from reward_models.scorers.progress import LAGS, progress_figures
from reward_models.vision.config import HeadConfig

Array = np.ndarray

RANKING = 33.0  # the paper's weight


class Critic(EmbeddingReward):
    """See the module's text."""

    context = LAGS[-1] + 1

    def __init__(self, encoder: Encoder, head: Head, low: float, high: float):
        super().__init__(encoder)
        self.head, self.low, self.high = head, low, high

    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns the scores (n,) of frames with unit rows (n, D); see ``EmbeddingReward.rate``."""
        worth = self.head.values(rows[before[:, LAGS]]) - self.low
        worth = np.clip(worth / (self.high - self.low), 0.0, 1.0)
        return FrameScores(worth, {"worth": worth})


@dataclass(frozen=True, kw_only=True)
class CriticLoss:
    """Contrast of ends, and sequential ranking of the frames of demonstrations."""

    ranking: float = RANKING  # weight of the ranking

    def problem(self, episodes: EmbeddedEpisodes, config: HeadConfig) -> FitProblem:
        """Returns the fit of ``episodes``; see ``ScorerLoss``.

        Raises:
            ValueError: In a part of the episodes none meets its goal at the end, or all do.
        """
        fit, held, test = split_episodes(episodes, config.seed)
        met = require_successes_and_failures(episodes, fit, held, test)
        spans = episodes.spans()
        # (M, len(LAGS)), as rows
        frames = np.concatenate([frame_windows(span, LAGS) for span in spans])
        later = np.concatenate([span[1:] for span in spans])  # frames that have one before them
        later = later[met[episodes.episode[later]]]
        ends = np.array([span[-1] for span in spans])
        rows = torch.from_numpy(episodes.rows)

        def loss(head: Head, ids: Array) -> torch.Tensor:
            part = fit if fit[episodes.episode[ids[0]]] else held  # of which all of a batch is
            good, bad = ends[met & part], ends[~met & part]
            now, before, end, failed = head(
                rows[frames[np.concatenate([ids, ids - 1, good, bad])]]
            ).split([len(ids)] * 2 + [len(good), len(bad)])
            contrast = torch.nn.functional.softplus(torch.logsumexp(failed, 0) - end)
            return contrast.mean() + self.ranking * torch.relu(before - now).mean()

        def judge() -> dict[str, Any]:
            known = head.values(episodes.rows[frames[fit[episodes.episode]]])
            return {**value_scale(known), **progress_figures(head, episodes, test)}

        head = untrained_head(config, rows.shape[1], len(LAGS))
        examples, chosen = (later[part[episodes.episode[later]]] for part in (fit, held))
        settings = {"lags": LAGS, **asdict(self)}
        return FitProblem([head], [head], loss, [examples], chosen, settings, judge)
