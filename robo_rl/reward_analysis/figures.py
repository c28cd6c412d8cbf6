"""Every figure by which a reward is judged on a coverage; the formulas are reward_models'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_models.analysis.metrics import (
    average_precision,
    brier,
    calibration_error,
    kendall,
    or_none,
    reliability,
    spearman,
    threshold_within_bound,
    wilson,
)
from reward_models.analysis.reward_distances import (
    DRAWS,
    StarcCanonicalizer,
    Transitions,
    bootstrap_episodes,
    canonical_distances,
    epic_form,
)
from reward_models.base import RewardModel, Segment
from reward_models.programs import ProgramReward
from robo_rl.reward_analysis.coverage import FREE, Coverage
from robo_rl.reward_analysis.scores import Pay, SelectionScores, forward, reversed_steps

Array = np.ndarray
Figures = dict[str, Any]

UNITS = 160  # of the value's features
RIDGE = 1e-3  # of the value's weights, but those of 1 and the time
WIDE = 128  # columns from which on an observation is seen through these alone
READ = 3  # columns of the observation that each of them reads
LEAST_WAY = 6  # steps, of a stretch that has an order
END = 5  # steps that are an episode's end
NEAR = 0.35  # of what was missing at the start: a failure that ends so close was near
BOUND = 0.01  # share of failing frames above a threshold
IMAGINED = 32  # successors that EPIC leaves each state for


@dataclass(frozen=True)
class JudgedReward:
    """One reward, or a control, that is evaluated."""

    name: str
    pay: Pay
    # Mean reward (T+1, N) of leaving each state for any other, but for a constant; None: the same.
    leaving: Callable[[Coverage], Array] | None = None
    threshold: bool = False  # it has one of its own: its component "success"


def state_value(model: RewardModel | None) -> Callable[[Coverage], Array] | None:
    """Returns the function that computes a reward's mean of leaving each state, which EPIC needs.

    The mean is over random successors and actions of the coverage. Only a program that reads the
    state before an action differs between the states that are left.

    Args:
        model: The reward model; None: a control.

    Returns:
        A function from a coverage to (T+1, N); None where the mean is the same for all states.
    """
    if not isinstance(model, ProgramReward):
        return None
    if not any(read.previous for read in model.program.lowered.inputs):
        return None

    def mean(cover: Coverage) -> Array:
        rng, (steps, columns) = np.random.default_rng(0), cover.valid.shape
        at, of = np.nonzero(cover.valid)
        some = rng.integers(len(at), size=IMAGINED)
        left = np.zeros((steps + 1, columns))
        for row in range(steps + 1):
            here = np.repeat(np.arange(columns), IMAGINED)
            there = np.tile(some, columns)
            signals = {
                name: np.stack([s[row, here], s[at[there] + 1, of[there]]])
                for name, s in cover.signals.items()
            }
            action = cover.action[at[there], of[there]][None]
            valid = np.ones((1, len(here)), bool)
            rewards = model.score(Segment(signals, _unseen, action, valid)).reward
            left[row] = rewards.reshape(columns, IMAGINED).mean(axis=1)
        return left

    return mean


def _unseen(camera: str, where: Array) -> Array:
    raise ValueError(f"counterfactual transitions have no frames of camera {camera!r}")


def state_features(cover: Coverage) -> Array:
    """Features (T+1, N, F) of states that values are linear in: 1, the time, the observation, and
    random hinges of a few of its columns each."""
    rng, width = np.random.default_rng(0), cover.obs.shape[2]
    obs = cover.obs.astype(float)
    spread = obs.std(axis=(0, 1))
    x = (obs - obs.mean(axis=(0, 1))) / np.where(spread > 1e-6, spread, np.inf)
    x = np.clip(x, -4.0, 4.0)
    weights = np.zeros((width, UNITS))
    for unit in range(UNITS):
        read = rng.choice(width, min(READ, width), replace=False)
        weights[read, unit] = rng.normal(size=len(read))
    hinges = np.maximum(x @ weights + rng.normal(size=UNITS), 0.0)
    time = np.broadcast_to(np.arange(len(x))[:, None, None] / len(x), (*x.shape[:2], 1))
    plain = x if width <= WIDE else x[..., :0]
    return np.concatenate([np.ones_like(time), time, plain, hinges], axis=2)


def reward_distances(
    judged: Sequence[JudgedReward],
    pays: Mapping[str, Array],
    truths: Sequence[str],
    cover: Coverage,
    columns: Array,
    gamma: float,
    draws: int = DRAWS,
) -> dict[str, Figures]:
    """{name: {"starc"|"epic": {truth: [d, low, high]}}} of rewards ``pays`` {name: (T, N)} on the
    episodes in ``columns``, with bootstrap intervals over them; None to a truth that says the same
    of all of them."""
    names = [j.name for j in judged]
    rewards = np.stack([pays[name][:, columns] for name in names], axis=-1)
    where = cover.valid[:, columns] & np.isfinite(rewards).all(axis=-1)
    features, over = state_features(cover)[:, columns], cover.terminated[:, columns]
    column, episode = np.unique(np.nonzero(where)[1], return_inverse=True)
    free = np.isin(cover.who[columns][column], FREE)
    there = np.where(over[..., None], 0.0, features[1:])[where]
    steps = Transitions(features[:-1][where], there, episode)
    flat = rewards[where]
    forms = flat.copy()
    for i, j in enumerate(judged):
        if j.leaving is not None:
            left = j.leaving(cover)[:, columns]
            forms[:, i] = epic_form(flat[:, i], left[:-1][where], left[1:][where], gamma)
    to = np.array([names.index(truth) for truth in truths])
    count = int(episode.max()) + 1
    levelling = StarcCanonicalizer(flat, steps, gamma, by=free, ridge=RIDGE, sure=2)
    found = {
        "starc": bootstrap_episodes(
            lambda w: canonical_distances(levelling.forms(w), flat, to, w[episode]),
            count,
            draws=draws,
        ),
        "epic": bootstrap_episodes(
            lambda w: canonical_distances(forms, flat, to, w[episode], centred=True),
            count,
            draws=draws,
        ),
    }
    return {
        name: {
            kind: {
                truth: [float(part[i, k]) for part in parts] if np.ptp(flat[:, to[k]]) else None
                for k, truth in enumerate(truths)
            }
            for kind, parts in found.items()
        }
        for i, name in enumerate(names)
    }


def value_order(judged: JudgedReward, rewards: Array, cover: Coverage) -> Figures:
    """Value-order correlation: mean over stretches of Spearman's between pay and time, on the way
    to each success, on the same shown backwards, and on episodes that never succeed; 0 where all
    is paid alike. ``rewards`` (T, N) along whole episodes."""
    length = cover.length
    met = (cover.success & cover.valid).any(axis=0)
    lost = np.flatnonzero(~met & (length >= LEAST_WAY))
    won = np.flatnonzero(cover.met)
    fails = np.where(cover.valid & ~cover.success, np.arange(1, len(rewards) + 1)[:, None], 0)
    done = np.minimum(fails.max(axis=0) + 1, length)  # with the step from which on it is met
    won = won[done[won] >= LEAST_WAY]
    ways = forward(won, done[won])
    found: Figures = {}
    for name, along, steps in (
        ("success", rewards[:, won], done[won]),
        ("reversed", judged.pay(cover, reversed_steps(ways)).reward, done[won]),
        ("failure", rewards[:, lost], length[lost]),
    ):
        each = [np.nan_to_num(spearman(along[:n, i], np.arange(n))) for i, n in enumerate(steps)]
        found[name] = float(np.mean(each)) if each else None
        found[f"{name} n"] = len(each)
    return found


def episode_outcomes(cover: Coverage) -> Array:
    """(N,) 2 for an episode that ends with its goal met, 1 for one that ends near it or had met it,
    0 for any other."""
    last = cover.distance[cover.length, np.arange(len(cover.who))]
    with np.errstate(invalid="ignore"):
        near = last <= NEAR * cover.distance[0]
    near |= (cover.success & cover.valid).any(axis=0)
    return np.where(cover.met, 2, near.astype(int))


def end_scores(rewards: Array, cover: Coverage) -> Array:
    """Returns the mean reward (N,) of each episode's last steps; ``rewards`` (T, N)."""
    return np.array(
        [np.nanmean(rewards[max(0, n - END) : n, i]) for i, n in enumerate(cover.length)]
    )


def classification_metrics(
    judged: JudgedReward, scores: SelectionScores, cover: Coverage, draws: int = DRAWS
) -> Figures:
    """Ranking of frames and episodes by success, false positives at the threshold, calibration."""
    rewards = scores.reward
    where = cover.valid & np.isfinite(rewards)
    column = np.nonzero(where)[1]
    score, truth = rewards[where], cover.success[where]
    free = np.isin(cover.who, FREE)[column]
    found: Figures = {"frames": len(score), "positives": float(truth.mean())}
    for part, ids in (("all", np.arange(len(score))), ("free", np.flatnonzero(free))):
        found[f"auc {part}"] = _auc_between(score[ids], truth[ids], column[ids], draws)
        found[f"average precision {part}"] = or_none(average_precision(score[ids], truth[ids]))
        found[f"positives {part}"] = float(truth[ids].mean()) if len(ids) else None
    found["order"] = or_none(kendall(end_scores(rewards, cover), episode_outcomes(cover)))
    found["outcomes"] = np.bincount(episode_outcomes(cover), minlength=3).tolist()
    away = np.isfinite(cover.distance[1:][where]) & (cover.distance[1:][where] > 0)
    nearness = -cover.distance[1:][where][away]
    found["nearness"] = or_none(spearman(score[away], nearness)) if away.any() else None
    found["threshold"] = _threshold(judged, scores, cover, where)
    if (chance := scores.parts.get("probability")) is not None:
        probability = chance[where]
        base = brier(np.full(len(probability), truth.mean()), truth)
        found["calibration"] = {
            "auc": _auc_between(probability, truth, column, draws),  # also where the pay is 0 or 1
            "brier": brier(probability, truth),
            "brier of the base rate": base,
            "expected error": calibration_error(probability, truth),
            "reliability": reliability(probability, truth),
        }
    return found


def _auc_between(score: Array, truth: Array, column: Array, draws: int) -> list[float] | None:
    """[AUC, low, high] over episodes; None where frames of one kind are missing."""
    if len(np.unique(truth)) < 2:
        return None
    _, episode = np.unique(column, return_inverse=True)
    _, level = np.unique(score, return_inverse=True)

    def area(weight: Array) -> Array:
        each = weight[episode]
        positive = np.bincount(level, np.where(truth, each, 0.0))
        negative = np.bincount(level, np.where(truth, 0.0, each))
        below = np.cumsum(negative) - negative / 2.0
        total = positive.sum() * negative.sum()
        return np.array((positive * below).sum() / total if total > 0 else np.nan)

    return [float(x) for x in bootstrap_episodes(area, int(episode.max()) + 1, draws=draws)]


def _threshold(
    judged: JudgedReward, scores: SelectionScores, cover: Coverage, where: Array
) -> Figures:
    """What a threshold on the pay comes to: the scorer's own, or the lowest that keeps to ``BOUND``
    on half of the expert-free episodes; judged on all others, by who acted."""
    column = np.nonzero(where)[1]
    score, truth = scores.reward[where], cover.success[where]
    chosen = np.isin(cover.who, FREE) & (np.arange(len(cover.who)) % 2 == 0)
    by = chosen[column]
    if judged.threshold:
        fires, value = scores.parts["success"][where] > 0.5, None
    else:
        value = threshold_within_bound(score[by], truth[by], BOUND)
        fires = score >= value
    rest = np.ones(len(score), bool) if judged.threshold else ~by
    return {
        "value": value,
        "own": judged.threshold,
        "false positives": _share(fires, rest & ~truth),
        "false positives by": {
            str(who): _share(fires, rest & ~truth & (cover.who[column] == who))
            for who in dict.fromkeys(cover.who)
        },
        "found": _share(fires, rest & truth),
    }


def _share(fires: Array, where: Array) -> Figures | None:
    n = int(where.sum())
    if not n:
        return None
    low, high = wilson(int(fires[where].sum()), n)
    return {"share": float(fires[where].mean()), "low": low, "high": high, "frames": n}
