"""Value of a frame for a sentence, fitted to demonstrations (ARP, arXiv:2309.10790; LIV,
arXiv:2306.00958).

V(x) = k cos(x + A(x), u + B(u)) of an embedding x and the sentence's u, with k the encoder's own
scale. A and B are small networks that begin at 0, so V begins as the encoder's likeness. Fitted to
lower, over a frame x_s of a demonstration and two successive ones x_t, x_t+1 behind it,

    VIP (arXiv:2210.00030)   -(1 - g) E V(x_s) + log E exp(V(x_t) + 1 - g V(x_t+1)),  g = .98;
                             the 1, what a step costs, is 0 from the goal on
    inverse dynamics         |a - I(x_t + A(x_t), u + B(u), x_t+1 + A(x_t+1))|^2 of the action a
                             between the two, so that what actions change is not lost
    contrast (LIV's second)  a demonstration's end is of this sentence, not of the task's others,
                             and of this sentence are such ends, not those of episodes that fail

The first two are ARP's, the first and the last LIV's, but for its goals that are pictures; ends
that somebody rated are in the last alone. The reward is V on a scale from the 5 % to the 99.5 %
quantile of the frames fitted on, cut off below 0 and above 1.

Demonstrations of one goal say little of other sentences: asked for another, B is only what tells
that one from this. It fails where demonstrations take many ways, as progress does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from reward_models.base import Encoder
from reward_models.scorers.embedded_episodes import (
    EmbeddedEpisodes,
    require_successes_and_failures,
    split_episodes,
)
from reward_models.scorers.embedding_reward import EmbeddingReward, FrameScores
from reward_models.scorers.heads import FitProblem, Head, untrained_head, value_scale
from reward_models.scorers.progress import progress_figures, success_step
from reward_models.vision.config import HeadConfig

Array = np.ndarray

DISCOUNT = 0.98  # the paper's


class Likeness(nn.Module):
    """V of the newest frame, with what it is fitted by."""

    text: torch.Tensor

    def __init__(self, frames: Head, texts: Head, text: Array, scale: float):
        """``text`` (1 + K, D): unit rows of the sentence and of K others."""
        super().__init__()
        self.frames, self.texts, self.scale = frames, texts, scale
        self.register_buffer("text", torch.from_numpy(text))

    def seen(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns unit rows (n, D) of frames (n, D)."""
        return F.normalize(rows + self.frames(rows[:, None]), dim=1)

    def said(self) -> torch.Tensor:
        """Returns unit rows (1 + K, D) of the sentences."""
        return F.normalize(self.text + self.texts(self.text[:, None]), dim=1)

    def values(self, rows: Array) -> Array:
        """Returns V (n,) float32 of frames (n, k, D), of which the first counts."""
        self.eval()
        with torch.inference_mode():
            parts = torch.from_numpy(np.ascontiguousarray(rows[:, 0], np.float32)).split(8192)
            of = self.said()[0]
            return np.concatenate([(self.scale * self.seen(part) @ of).numpy() for part in parts])


class Value(EmbeddingReward):
    """See the module's text."""

    def __init__(self, encoder: Encoder, likeness: Likeness, low: float, high: float):
        super().__init__(encoder)
        self.likeness, self.low, self.high = likeness, low, high

    def rate(self, rows: Array, before: Array) -> FrameScores:
        """Returns the scores (n,) of frames with unit rows (n, D); see ``EmbeddingReward.rate``."""
        value = (self.likeness.values(rows[:, None]) - self.low) / (self.high - self.low)
        value = np.clip(value, 0.0, 1.0)
        return FrameScores(value, {"value": value})


@dataclass(frozen=True)
class ValueLoss:
    """VIP's loss, inverse dynamics and contrast."""

    texts: Array  # (1 + K, D) unit rows of the sentence and of the task's others
    scale: float  # the encoder's k
    inverse: float = 1.0  # weight of the inverse dynamics
    contrast: float = 1.0  # weight of the contrast

    def problem(self, episodes: EmbeddedEpisodes, config: HeadConfig) -> FitProblem:
        """Returns the fit of ``episodes``; its heads are A and B. See ``ScorerLoss``.

        Raises:
            ValueError: In a part of the episodes none meets its goal at the end, or all do.
        """
        fit, held, test = split_episodes(episodes, config.seed)
        met = require_successes_and_failures(episodes, fit, held, test)
        spans, rng = episodes.spans(), np.random.default_rng(config.seed)
        ends = np.array([span[-1] for span in spans])
        later = np.concatenate([span[1:] for span in spans])
        later = later[met[episodes.episode[later]]]
        begun, done = np.zeros((2, len(episodes.rows)), int)  # one before it; whether at the goal
        for span in spans:
            begun[span[1:]] = span[rng.integers(np.arange(1, len(span)))]
            done[span[success_step(episodes, span) :]] = 1
        rows, actions = torch.from_numpy(episodes.rows), torch.from_numpy(episodes.actions)

        def loss(model: Likeness, ids: Array) -> torch.Tensor:
            part = fit if fit[episodes.episode[ids[0]]] else held  # of which all of a batch is
            good, bad = ends[met & part], ends[~met & part]
            start, now, after, end, failed = model.seen(
                rows[np.concatenate([begun[ids], ids - 1, ids, good, bad])]
            ).split([len(ids)] * 3 + [len(good), len(bad)])
            said = model.said()
            k, of = model.scale, said[0]
            cost = 1.0 - torch.from_numpy(done[ids - 1]).float()
            ahead = k * now @ of + cost - DISCOUNT * k * after @ of
            value = (DISCOUNT - 1) * k * (start @ of).mean() + ahead.logsumexp(0) - np.log(len(ids))
            if self.inverse:
                told = model.inverse(torch.stack([now, of.expand_as(now), after], dim=1))
                error = F.mse_loss(told.view_as(actions[ids]), actions[ids])
                value = value + self.inverse * error
            if self.contrast:
                by_text = k * end @ said.T
                others = (k * failed @ of).expand(len(good), -1)
                for logits in (by_text, torch.cat([by_text[:, :1], others], dim=1)):
                    value = value - self.contrast * logits.log_softmax(1)[:, 0].mean()
            return value

        def judge() -> dict[str, Any]:
            known = model.values(episodes.rows[fit[episodes.episode]][:, None])
            return {**value_scale(known), **progress_figures(model, episodes, test)}

        model, heads = self._untrained(config, rows.shape[1], actions.shape[1])
        before = progress_figures(model, episodes, test)  # the encoder's own likeness
        settings = {
            "inverse": self.inverse,
            "contrast": self.contrast,
            "sentences": len(self.texts),
            "likeness": {n: before[n] for n in ("order", "auc_of_the_end", "order_by_worth")},
        }
        examples, chosen = (later[part[episodes.episode[later]]] for part in (fit, held))
        return FitProblem([model], heads, loss, [examples], chosen, settings, judge)

    def _untrained(self, config: HeadConfig, dim: int, act_dim: int) -> tuple[Likeness, list[Head]]:
        """A model that is the encoder's likeness, and its heads A and B."""
        both = [untrained_head(config, dim, member=i, outputs=dim) for i in range(2)]
        for last in (head.net[-1] for head in both):
            for parameter in last.parameters():
                nn.init.zeros_(parameter)
        model = Likeness(*both, self.texts.astype(np.float32), self.scale)
        # The head of the inverse dynamics is fitted too, and not saved.
        model.add_module("inverse", untrained_head(config, dim, 3, member=2, outputs=act_dim))
        return model, both
