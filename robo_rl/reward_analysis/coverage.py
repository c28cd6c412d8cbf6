"""Coverage: episodes of known actors, with all that a reward may read and all that judges it.

A distance between rewards means something only on stated transitions, and a figure only of stated
episodes. So who acted is kept with each: random moves, from where the task begins and from anywhere
in the workspace, need nobody who knows the way; an expert's, and a trained policy's, are labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.base import positions_from_start
from robo_rl.vision.episodes import (
    EXPERT,
    LOST,
    SCATTERED,
    WANDERING,
    Choose,
    EpisodesConfig,
    actors,
)
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

COVER_SEED = 400_000_000  # of the episodes; nothing is trained, chosen or quoted on it
SHORT = "an expert that stops short"
FREE = (WANDERING, SCATTERED)  # actors that know nothing of the way
LEFT = (0.5, 0.35, 0.2, 0.1)  # shares of the way at which those that stop short stop
STEPS = 400  # of an episode at most: bodies' are long, and show early what they do
SHARES = {WANDERING: 0.25, SCATTERED: 0.35, EXPERT: 0.15, LOST: 0.125, SHORT: 0.125}
POLICYS = 0.25  # as many episodes again of a run's policy, in shares of the others


@dataclass(frozen=True)
class Coverage:
    """The episodes on which rewards are compared: ``N`` columns of at most ``T`` steps. Steps after
    an episode's end are not ``valid``. Entry 0 is before the first action, entry t + 1 the
    successor of action t."""

    task: Task[Any]
    states: Array  # (T+1, N, nstate)
    obs: Array  # (T+1, N, obs_dim)
    signals: Mapping[str, Array]  # {name: (T+1, N, ...)}
    action: Array  # (T, N, act_dim)
    valid: Array  # (T, N) bool
    terminated: Array  # (T, N) bool: over for good
    last: Array  # (T, N) bool: over, or no more was recorded
    success: Array  # (T, N) bool, the simulator's judge after each action
    dense: Array  # (T, N) the task's own reward; nan where the goal has none
    distance: Array  # (T+1, N) what is missing; nan where that is no quantity
    who: Array  # (N,) str

    @property
    def length(self) -> Array:
        """(N,) steps of each episode."""
        return self.valid.sum(axis=0)

    @property
    def met(self) -> Array:
        """(N,) bool: the goal holds at the end."""
        return self.success[self.length - 1, np.arange(len(self.who))]

    def of(self, actors: tuple[str, ...]) -> Array:
        """The columns (n,) in which one of them acted."""
        return np.flatnonzero(np.isin(self.who, actors))


def collect_coverage(
    task: Task[Any],
    episodes: int = 256,
    runs: tuple[Path, ...] = (),
    *,
    seed: int = COVER_SEED,
    progress: Callable[[float], None] = lambda share: None,
) -> Coverage:
    """About ``episodes`` episodes of a task's goal, and further ones of the policies in ``runs``.

    Without an expert its share goes to random moves.
    """
    shares = {who: s for who, s in SHARES.items() if task.solved or who in FREE}
    counts = {who: round(episodes * s / sum(shares.values())) for who, s in shares.items()}
    config = EpisodesConfig(
        demonstrations=counts.get(EXPERT, 0),
        lost=counts.get(LOST, 0),
        random=counts[WANDERING],
        random_starts=counts[SCATTERED],
        run=runs,
        of_each=round(POLICYS * episodes),
    )
    cast = [
        (who, begin, count)
        for who, begin, count in actors(task, config, np.random.default_rng(seed))
        if count
    ]
    if counts.get(SHORT) and task.formula is None:
        cast.append((SHORT, _stopping(task), counts[SHORT]))
    parts = []
    for number, (who, begin, count) in enumerate(cast):
        parts.append(play_actor(task, who, begin(), count, seed + number))
        progress((number + 1) / len(cast))
    return without_failed(concatenate_coverage(parts))


def without_failed(cover: Coverage) -> Coverage:
    """Without the columns in which the simulation failed before a step was made."""
    some = cover.valid.any(axis=0)
    remaining = {
        f.name: value[some] if f.name == "who" else value[:, some]
        for f in fields(cover)
        if isinstance(value := getattr(cover, f.name), np.ndarray)
    }
    return replace(cover, **remaining, signals={n: s[:, some] for n, s in cover.signals.items()})


def concatenate_coverage(parts: list[Coverage]) -> Coverage:
    """The columns of all parts, of one task, side by side."""

    def beside(name: str) -> Array:
        return np.concatenate([getattr(p, name) for p in parts], axis=1)

    arrays = (
        "states",
        "obs",
        "action",
        "valid",
        "terminated",
        "last",
        "success",
        "dense",
        "distance",
    )
    signals = {
        name: np.concatenate([p.signals[name] for p in parts], axis=1) for name in parts[0].signals
    }
    return Coverage(
        task=parts[0].task,
        signals=signals,
        who=np.concatenate([p.who for p in parts]),
        **{name: beside(name) for name in arrays},
    )


def play_actor(task: Task[Any], who: str, choose: Choose, count: int, seed: int) -> Coverage:
    """``count`` episodes of one actor; a row that is over stays as it ended."""
    env = BatchEnv(task, count, seed=seed)
    obs = env.scatter() if who == SCATTERED else env.reset()
    measured = env.judge is None
    unknown, steps = np.full(count, np.nan), min(env.max_steps, STEPS)
    active = np.ones(count, bool)
    columns: dict[str, list[Array]] = {
        name: []
        for name in (
            "action",
            "valid",
            "terminated",
            "live",
            "success",
            "dense",
            "states",
            "obs",
            "distance",
        )
    }
    signals: list[dict[str, Array]] = []

    def look(obs: Array) -> None:
        columns["states"].append(env.state())
        columns["obs"].append(np.array(obs))
        columns["distance"].append(env.distance() if measured else unknown)
        signals.append(env.signals())

    look(obs)
    for _ in range(steps):
        step = env.step(np.clip(choose(env, obs), -1.0, 1.0), active)
        sound = active & ~step.info["diverged"]
        columns["action"].append(step.action)
        columns["valid"].append(sound)
        columns["terminated"].append(step.terminated & sound)
        columns["live"].append(active)
        columns["success"].append(np.array(step.info["success"]))
        columns["dense"].append(step.reward.astype(float))
        look(step.obs)
        active = active & ~(step.terminated | step.truncated)
        obs = step.obs
        if not active.any():
            break
    env.close()
    short = steps - len(columns["action"])  # where all were over early
    for name, arrays in columns.items():
        never = name in ("valid", "terminated", "live")
        arrays.extend([np.zeros_like(arrays[-1]) if never else arrays[-1]] * short)
    signals.extend([signals[-1]] * short)
    stacked = {name: np.stack(arrays) for name, arrays in columns.items()}
    last = positions_from_start(stacked.pop("live"), stacked["terminated"]).last
    return Coverage(
        task=task,
        signals={name: np.stack([s[name] for s in signals]) for name in signals[0]},
        who=np.full(count, who),
        last=last,
        **stacked,
    )


def _stopping(task: Task[Any]) -> Callable[[], Choose]:
    """The expert as far as a share of the way is left; then it stays where it is."""

    def begin() -> Choose:
        begun, stopped = np.zeros(0), np.zeros(0, bool)
        rng = np.random.default_rng(COVER_SEED)

        def choose(env: BatchEnv, obs: Array) -> Array:
            nonlocal begun, stopped
            if not begun.size:
                begun, stopped = env.distance(), np.zeros(env.num_envs, bool)
            stopped = stopped | (env.distance() <= np.resize(LEFT, env.num_envs) * begun)
            return np.where(stopped[:, None], 0.0, task.expert(env.views, rng))

        return choose

    return begin
