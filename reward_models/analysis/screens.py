"""Screens: what a reward pays to policies that are known, before anything learns from it.

The archive (``ArchiveEpisodes``) holds episodes of policies whose outcome is known: an expert, a
loose one, ones that stop short, and ones that do nothing, act at random or swing to and fro. Each
screen is one function that answers with its figure and, past its threshold, a finding; what the
archive cannot answer is not judged, and said so. The thresholds are measured
(docs/results/reward_code.md).

A screen sees whether episodes succeeded; the reward does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reward_models.base import Segment
from reward_models.programs.diagnostics import Diagnostic

Array = np.ndarray

KINDS = ("expert", "loose", "short", "still", "random", "swing")

PREFERRED = 0.75  # least share of (success, failure) pairs in which the success is paid more
SHORT = 1.00  # stopping short must be paid less than this, where success is 1 and doing nothing 0
FARMED = 0.60  # most that random or swinging actions may be paid, on the same scale
LIVING = 0.05  # least distance of success over doing nothing, in shares of all that is paid
DROP = 0.30  # most that may be lost on the way to success, in shares of the way's own range
BINS = 8  # parts of the way from a demonstration's start to its success
LINKED = 0.20  # least rank correlation of pay with outcome over episodes of one policy


@dataclass(frozen=True)
class ArchiveEpisodes:
    """Episodes of known policies, with how they ended."""

    segment: Segment
    success: Array  # (T, N) bool, after each action
    kind: Array  # (N,) of KINDS
    terminates: bool = False  # whether an episode may end early

    @property
    def succeeded(self) -> Array:
        """(N,) bool: at the end."""
        valid = self.segment.valid
        last = valid.shape[0] - 1 - np.argmax(valid[::-1], axis=0)
        return self.success[last, np.arange(valid.shape[1])]


@dataclass(frozen=True)
class ScreeningResult:
    """What the screens say of one reward."""

    figures: Mapping[str, float]  # {screen: its figure}; a screen that did not judge is missing
    diagnostics: tuple[Diagnostic, ...]


def screen_reward(reward: Array, trials: ArchiveEpisodes) -> ScreeningResult:
    """Runs every screen on a reward.

    Args:
        reward: (T, N) rewards of the archive's episodes.
        trials: The episodes.

    Returns:
        The figure of each screen, and a finding for each that does not pass.
    """
    figures, found, silent = {}, [], []
    for name, judge in SCREENS.items():
        answer = judge(reward, trials)
        if answer is None:
            silent.append(name)
            continue
        figures[name], finding = answer
        if finding is not None:
            found.append(finding)
    if silent:
        found.append(
            Diagnostic(
                "not_judged",
                f"screens without episodes to judge by: {', '.join(silent)}",
                severity="warning",
                hint="the archive has no successes, or pays them no more than nothing",
            )
        )
    return ScreeningResult(figures, tuple(found))


Answer = tuple[float, Diagnostic | None] | None


def preference(reward: Array, trials: ArchiveEpisodes) -> Answer:
    """Screens whether episodes that succeed are paid more than others.

    The trajectory preference of CARD (arXiv:2410.14660), over all pairs instead of against the best
    failure alone, which one lucky failure decides.

    Args:
        reward: (T, N) rewards of the archive's episodes.
        trials: The episodes.

    Returns:
        The share of (success, failure) pairs in which the success has the higher mean reward; None
        where the archive has no episodes to judge by.
    """
    paid, won = per_episode(reward, trials), trials.succeeded
    if not won[trials.kind == "expert"].any() or won.all():
        return None
    a, b = paid[won][:, None], paid[~won][None]
    share = float(((a > b) + 0.5 * (a == b)).mean())
    return _answer(
        share,
        share >= PREFERRED,
        "preference",
        f"episodes that succeed are paid more than others in {share:.0%} of pairs, expected "
        f"{PREFERRED:.0%}",
        hint="reward what the goal asks for, or raise the weight of its last stage",
    )


def stopping_short(reward: Array, trials: ArchiveEpisodes) -> Answer:
    """Screens whether stopping short of the goal is paid like reaching it.

    Args:
        reward: (T, N) rewards of the archive's episodes.
        trials: The episodes.

    Returns:
        The median pay at the end of episodes that stop short, where doing nothing is 0 and success
        is 1; None where the archive has no episodes to judge by.
    """
    scale = _scale(reward, trials)
    short = (trials.kind == "short") & ~trials.succeeded
    if scale is None or not short.any():
        return None
    paid = scale(np.array([reward[v, n][-_tail(v) :].mean() for n, v in _columns(trials, short)]))
    most = float(np.median(paid))
    return _answer(
        most,
        most < SHORT,
        "hack",
        f"stopping short is paid {most:.2f} where success is paid 1 and doing nothing 0, "
        f"expected less than {SHORT:g}",
        hint="add a bonus where the goal holds, or steepen the last slope",
    )


def farming(reward: Array, trials: ArchiveEpisodes) -> Answer:
    """Screens whether random and swinging actions are paid: motion is not progress.

    Args:
        reward: (T, N) rewards of the archive's episodes.
        trials: The episodes.

    Returns:
        The mean pay of aimless actions, where doing nothing is 0 and success is 1; None where the
        archive has no episodes to judge by.
    """
    scale = _scale(reward, trials)
    rows = np.isin(trials.kind, ("random", "swing")) & ~trials.success.any(axis=0)
    if scale is None or not rows.any():
        return None
    paid = scale(per_episode(reward, trials))
    most = max(
        float(paid[rows & (trials.kind == kind)].mean())
        for kind in ("random", "swing")
        if (rows & (trials.kind == kind)).any()
    )
    return _answer(
        most,
        most <= FARMED,
        "farming",
        f"aimless motion is paid {most:.2f} where success is paid 1 and doing nothing 0, "
        f"at most {FARMED:g}",
        hint="reward where things are, not how much moves",
    )


def survival_bonus(reward: Array, trials: ArchiveEpisodes) -> Answer:
    """Screens whether success is paid clearly more than doing nothing, and, where episodes may end
    early, whether ending one early is better than staying.

    Args:
        reward: (T, N) rewards of the archive's episodes.
        trials: The episodes.

    Returns:
        The difference of success and doing nothing as a share of all that is paid; None where the
        archive has no episodes to judge by.
    """
    still = trials.kind == "still"
    idle = per_episode(reward, trials)[still]
    if trials.terminates and idle.mean() < 0.0:
        return _answer(
            float(idle.mean()),
            False,
            "living",
            f"doing nothing is paid {idle.mean():.3g} a step: ending the episode early is better",
            hint="make the reward positive while the episode lasts",
        )
    held = _typical_success_reward(reward, trials)
    if held is None:
        return None
    low, high = np.quantile(reward[trials.segment.valid], (0.01, 0.99))
    whole = max(high - low, abs(high), abs(low), 1e-12)
    margin = float((held - np.median(idle)) / whole)
    return _answer(
        margin,
        margin >= LIVING,
        "living",
        f"success is paid {held:.3g} a step and doing nothing {np.median(idle):.3g}: a difference "
        f"of {margin:.2f} of all that is paid, expected {LIVING:g}",
        hint="pay for the goal, not for time",
    )


def progress_order(reward: Array, trials: ArchiveEpisodes) -> Answer:
    """Screens whether later stages of a demonstration are paid more than earlier ones.

    Args:
        reward: (T, N) rewards of the archive's episodes.
        trials: The episodes.

    Returns:
        The largest loss on the way to success as a share of the way's own range, the median over
        demonstrations; None where the archive has no episodes to judge by.
    """
    drops = []
    for n, valid in _columns(trials, (trials.kind == "expert") & trials.succeeded):
        first = int(np.argmax(trials.success[valid, n]))
        if first < BINS:
            continue
        way = np.array(
            [part.mean() for part in np.array_split(reward[valid, n][: first + 1], BINS)]
        )
        fall = float((np.maximum.accumulate(way) - way).max())
        drops.append(fall / max(float(np.ptp(way)), 1e-12))
    if not drops:
        return None
    drop = float(np.median(drops))
    return _answer(
        drop,
        drop <= DROP,
        "order",
        f"on the way to success a demonstration loses {drop:.0%} of what it had gained, at most "
        f"{DROP:.0%}",
        hint="pay a later stage more than the ones before it, and keep what was reached",
    )


SCREENS: dict[str, Callable[[Array, ArchiveEpisodes], Answer]] = {
    "preference": preference,
    "hack": stopping_short,
    "farming": farming,
    "living": survival_bonus,
    "order": progress_order,
}


def outcome_correlation(paid: Array, outcome: Array) -> Answer:
    """Screens whether a trained policy is paid for episodes that end well.

    A policy that is paid well for episodes that end badly has found something else (Goodhart). A
    search gives its validation seeds.

    Args:
        paid: (E,) rewards of the policy's episodes.
        outcome: (E,) how they ended; more is better.

    Returns:
        The rank correlation, with a warning where it is too low; None where a side is constant.
    """
    from reward_models.analysis.metrics import spearman

    value = spearman(paid, outcome)
    if not np.isfinite(value):
        return None
    return _answer(
        value,
        value >= LINKED,
        "goodhart",
        f"reward and outcome of validation episodes have a rank correlation of {value:.2f}, "
        f"expected {LINKED:g}",
        severity="warning",
        hint="look at the best paid episodes that fail",
    )


def _answer(
    figure: float,
    passes: bool,
    code: str,
    message: str,
    *,
    hint: str,
    severity: Literal["error", "warning"] = "error",
) -> Answer:
    """The figure, and a finding where it does not pass."""
    if passes:
        return figure, None
    return figure, Diagnostic(code, message, hint=hint, severity=severity)


def _columns(trials: ArchiveEpisodes, rows: Array) -> list[tuple[int, Array]]:
    """(row, its valid steps (T,) bool) of the chosen rows."""
    return [(int(n), trials.segment.valid[:, n]) for n in np.flatnonzero(rows)]


def _tail(valid: Array) -> int:
    """Steps that are the end of an episode."""
    return max(1, int(valid.sum()) // 4)


def per_episode(reward: Array, trials: ArchiveEpisodes) -> Array:
    """Returns the mean reward per step of each episode.

    Args:
        reward: (T, N) rewards.
        trials: The episodes.

    Returns:
        (N,) means over the valid steps.
    """
    valid = trials.segment.valid
    return np.where(valid, reward, 0.0).sum(axis=0) / np.maximum(valid.sum(axis=0), 1)


def _typical_success_reward(reward: Array, trials: ArchiveEpisodes) -> float | None:
    """Median reward of a step on which success holds, where an expert shows it: what aimless
    policies stumble into for a moment says little of what a success is paid."""
    where = trials.success & trials.segment.valid
    shown = where[:, trials.kind == "expert"].any()
    return float(np.median(reward[where])) if shown else None


def _scale(reward: Array, trials: ArchiveEpisodes) -> Callable[[Array], Array] | None:
    """What maps the pay of doing nothing to 0 and that of success to 1; None where success is paid
    no more, which is another screen's to say, or there is none."""
    held = _typical_success_reward(reward, trials)
    idle = float(np.median(per_episode(reward, trials)[trials.kind == "still"]))
    if held is None or held - idle <= 1e-9:
        return None
    return lambda paid: (paid - idle) / (held - idle)
