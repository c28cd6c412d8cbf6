"""How far two rewards are apart: STARC (arXiv:2309.15257) and EPIC (arXiv:2006.13900).

Both remove what changes the rank of no policy, then compare what is left. Potential shaping,
``R + gamma Phi(s') - Phi(s)``, is removed by a canonical form C(R), linear in R; a positive factor
by a norm over the transitions of a coverage distribution D:

    d(R1, R2) = 1/2 | C(R1) / |C(R1)| - C(R2) / |C(R2)| |,    |X|^2 = E_D[X^2]

so d is 0 for equal incentives, 1 for opposite ones, and sqrt(1/2) = .707 for unrelated ones; it is
a pseudometric. A form that is 0 stays 0: a reward that pays the same whatever is done is at 1/2
from every other. What differs is C:

- STARC, here with value-adjusted levelling: ``C(R)(s, a, s') = R(s, a, s') - V(s) + gamma V(s')``,
  V the value under R of a policy that acted in D. The paper takes the mean over successors; a
  simulator has but one. V is linear in features of the state and found by LSTD on that policy's
  own transitions, so shaping by any potential that is linear in them is removed exactly, others as
  far as they are.
- EPIC: ``C(R)(s, a, s') = R(s, a, s') + E[gamma R(s', A, S') - R(s, A, S') - gamma R(S, A, S')]``
  with S, S' and A drawn from D independently, and X centred on its mean in the norm (Pearson's
  distance). Most such transitions are impossible; what a learned reward pays there means little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

TRIVIAL = 1e-5  # of a reward's own norm: a canonical form no larger is 0
RIDGE = 1e-9  # of the features' mean square: keeps columns that repeat one another apart
DRAWS = 100  # of a bootstrap


@dataclass(frozen=True)
class Transitions:
    """Where ``M`` transitions of a coverage distribution led, as features of states."""

    here: Array  # (M, F), of the state before; the first is 1
    there: Array  # (M, F), of the successor; 0 where the episode was over for good
    episode: Array  # (M,) int, from 0


class StarcCanonicalizer:
    """STARC's canonical forms of rewards (M, R) on the same transitions, for any weights of their
    episodes: what the value is solved from is summed up once for each episode."""

    def __init__(
        self,
        reward: Array,
        steps: Transitions,
        gamma: float,
        *,
        by: Array | None = None,
        ridge: float = RIDGE,
        sure: int = 1,
    ):
        """``by`` (E,) bool are the episodes whose behaviour's value V is, by default all: one
        policy, as far as that goes, where others acted too. ``ridge`` holds the value's weights
        down, in shares of the features' mean square, but those of the first ``sure`` ones: few
        episodes need it, at the price that shaping is removed less exactly."""
        self._reward, self._episode = reward, steps.episode
        self._ahead = steps.here - gamma * steps.there
        count, width = int(steps.episode.max()) + 1, steps.here.shape[1]
        self._moments = np.zeros((count, width * width))
        self._paid = np.zeros((count, width * reward.shape[1]))
        for number in range(count):
            ids = np.flatnonzero(steps.episode == number)
            here = steps.here[ids].T
            self._moments[number] = (here @ self._ahead[ids]).ravel()
            self._paid[number] = (here @ reward[ids]).ravel()
        self._ridge = np.full(width, ridge * (steps.here**2).sum() / (count * width))
        self._ridge[:sure] *= RIDGE
        self._by = np.ones(count) if by is None else np.asarray(by, float)

    def forms(self, weight: Array | None = None) -> Array:
        """Returns the canonical forms (M, R), with each episode counted ``weight`` (E,) times."""
        weight = np.ones(len(self._moments)) if weight is None else weight
        width, weight = self._ahead.shape[1], weight * self._by
        moments = (weight @ self._moments).reshape(width, width)
        moments[np.diag_indices(width)] += self._ridge * weight.sum()
        value = np.linalg.solve(moments, (weight @ self._paid).reshape(width, -1))
        return self._reward - self._ahead @ value


def epic_form(reward: Array, here: Array, there: Array, gamma: float) -> Array:
    """EPIC's canonical form (M,) of rewards (M,), from the mean reward that its states (M,) and
    their successors (M,) would be left with; one that does not look at the state it leaves has
    equal means everywhere, and is its own form but for a constant."""
    return reward + gamma * there - here - gamma * here.mean()


def canonical_distances(
    forms: Array, rewards: Array, to: Array, weight: Array | None = None, *, centred: bool = False
) -> Array:
    """Returns the distances of rewards in canonical form.

    Args:
        forms: (M, R) canonical forms.
        rewards: (M, R) the rewards themselves.
        to: (K,) int, the columns that distances are measured to.
        weight: (M,) how often each transition counts; 1 if missing.
        centred: Whether to subtract each form's mean, as EPIC does.

    Returns:
        (R, K) distances in [0, 1].
    """
    weight = np.ones(len(forms)) if weight is None else weight
    share = (weight / weight.sum())[:, None]
    if centred:
        forms = forms - (share * forms).sum(axis=0)
    norm, own = (np.sqrt((share * x**2).sum(axis=0)) for x in (forms, rewards))
    scaled = forms / np.where(norm > TRIVIAL * own, norm, np.inf)
    apart = (share * scaled**2).sum(axis=0)
    square = apart[:, None] + apart[to] - 2.0 * (share * scaled).T @ scaled[:, to]
    return np.sqrt(np.maximum(square, 0.0)) / 2.0


def starc_distances(rewards: Array, steps: Transitions, to: Array, gamma: float) -> Array:
    """Returns STARC's distances (R, K) of rewards (M, R) to those in columns ``to`` (K,) int."""
    return canonical_distances(StarcCanonicalizer(rewards, steps, gamma).forms(), rewards, to)


def bootstrap_episodes(
    figure: Callable[[Array], Array], count: int, *, draws: int = DRAWS, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Returns a figure with its bootstrap interval over episodes.

    Args:
        figure: Computes the figure from how often each episode counts, (count,).
        count: The number of episodes.
        draws: The number of bootstrap samples.
        seed: Of the samples.

    Returns:
        (figure, low, high), a 95 % interval.
    """
    rng = np.random.default_rng(seed)
    once = figure(np.ones(count))
    drawn = [
        figure(np.bincount(rng.integers(count, size=count), minlength=count).astype(float))
        for _ in range(draws)
    ]
    low, high = np.nanquantile(np.stack(drawn), (0.025, 0.975), axis=0)
    return once, low, high
