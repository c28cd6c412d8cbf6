"""The one place where rewards are scaled, mixed, shaped and normalised.

Shaping by a potential, gamma Phi(s') - Phi(s), leaves the best policy what it was (Ng, Harada and
Russell 1999). It is meant on top of a base reward: alone, with time limits that are bootstrapped,
it gives every policy the same return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from reward_models.base import RewardModel, RewardOutput, Segment

Array = np.ndarray
Shaping = Literal["raw", "potential"]


@dataclass(frozen=True)
class Term:
    """One reward model in a mix."""

    model: RewardModel
    weight: float = 1.0
    shaping: Shaping = "raw"


class Combined:
    """A weighted sum of reward models; ``gamma`` is the learner's discount, for potential terms.

    ``freeze`` sets each term's mean and deviation once, from a warm-up segment; until then terms
    pass as they are. Statistics that moved while a policy learns would change what it is told.
    """

    def __init__(self, terms: Mapping[str, Term], *, gamma: float = 0.97):
        if not terms:
            raise ValueError("a mix needs at least one term")
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma must be in (0, 1], got {gamma}")
        self.terms, self.gamma = dict(terms), gamma
        self.needs = frozenset().union(*(t.model.needs for t in terms.values()))
        # A potential term also reads the score of the state before.
        self.context = max(t.model.context + (t.shaping == "potential") for t in terms.values())
        self.causal = all(t.model.causal for t in terms.values())
        self.statistics: dict[str, tuple[float, float]] = {}

    def freeze(self, segment: Segment) -> None:
        """Normalises each term from here on by its mean and deviation over ``segment``."""
        for name, term in self.terms.items():
            out = term.model.score(segment)
            values = out.reward[out.scored]
            if not len(values):
                raise ValueError(f"term {name!r} scored nothing of the warm-up segment")
            self.statistics[name] = float(values.mean()), max(float(values.std()), 1e-6)

    def state_dict(self) -> dict[str, Array]:
        """The frozen statistics, and the states of the terms that have one."""
        saved = {f"statistics/{name}": np.array(s) for name, s in self.statistics.items()}
        for name, term in self.terms.items():
            inner = getattr(term.model, "state_dict", dict)()
            saved |= {f"term/{name}/{key}": value for key, value in inner.items()}
        return saved

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``state_dict()``."""
        self.statistics = {
            key.removeprefix("statistics/"): (float(value[0]), float(value[1]))
            for key, value in saved.items()
            if key.startswith("statistics/")
        }
        for name, term in self.terms.items():
            prefix = f"term/{name}/"
            inner = {k.removeprefix(prefix): v for k, v in saved.items() if k.startswith(prefix)}
            if inner:
                term.model.load_state_dict(inner)

    def score(self, segment: Segment) -> RewardOutput:
        outputs = {name: term.model.score(segment) for name, term in self.terms.items()}
        total = np.zeros(segment.valid.shape, np.float32)
        scored = segment.valid.copy()
        components: dict[str, Array] = {}
        for name, term in self.terms.items():
            out = outputs[name]
            mean, std = self.statistics.get(name, (0.0, 1.0))
            value = (out.reward - mean) / std
            if term.shaping == "potential":
                value = potential(value, segment.valid, self.gamma)
            total += term.weight * np.where(out.scored, value, 0.0)
            scored &= out.scored
            components[name] = out.reward
            components |= {f"{name}/{key}": c for key, c in out.components.items()}
        doubts = [o.uncertainty for o in outputs.values() if o.uncertainty is not None]
        return RewardOutput(
            reward=np.where(scored, total, 0.0).astype(np.float32),
            scored=scored,
            components=components,
            uncertainty=np.maximum.reduce(doubts) if doubts else None,
            version=sum(o.version for o in outputs.values()) + bool(self.statistics),
        )


def potential(phi: Array, valid: Array, gamma: float) -> Array:
    """gamma phi[t] - phi[t-1], (T, N), of potentials after each action; 0 for the first step.

    The state before a fragment's first action is not scored by a reward model of transitions, so
    that step carries no shaping: a constant per episode, which changes no policy.
    """
    before = np.concatenate([np.full_like(phi[:1], np.nan), phi[:-1]])
    shaped = gamma * phi - before
    return np.where(valid & np.isfinite(before), shaped, 0.0)


class Scaled:
    """``weight * reward + offset`` of another model; version and components pass through."""

    def __init__(self, model: RewardModel, weight: float = 1.0, offset: float = 0.0):
        self.model, self.weight, self.offset = model, weight, offset
        self.needs, self.context, self.causal = model.needs, model.context, model.causal

    def score(self, segment: Segment) -> RewardOutput:
        out = self.model.score(segment)
        reward = np.where(out.scored, self.weight * out.reward + self.offset, 0.0)
        return replace(out, reward=reward.astype(np.float32))


class Constant:
    """The same reward everywhere: the control that shows what a policy learns from nothing."""

    needs: frozenset[str] = frozenset()
    context, causal = 1, True

    def score(self, segment: Segment) -> RewardOutput:
        return RewardOutput(np.zeros(segment.valid.shape, np.float32), segment.valid.copy())
