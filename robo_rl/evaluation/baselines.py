"""Baselines: what a success stands on. How often doing nothing, and a policy that has learned
nothing, succeed in the very same episodes.

They are measured once for each task, arm, goal, seed and number of episodes, and kept in the cache
folder under a hash of the scene and of the code that simulates and judges it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import sims
from reward_models.analysis.metrics import wilson
from robo_rl.goals.external_task import ExternalTask
from robo_rl.rollout import episode_runner
from robo_rl.rollout.episode_runner import (
    Act,
    EpisodeOutcome,
    active_rows_policy,
    run_episodes,
    zero_action,
)
from robo_rl.runs.run_dir import jsonable, write_json
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv
from sims.randomization.domain_randomization import Randomize, make_randomized_env
from sims.utils.cache import cache_dir

Array = np.ndarray

HIDDEN = (128, 128)  # units of the untrained policy, as PPO's defaults have them
# A floor need not be as sharp as what stands on it: of episodes of a thousand steps the first of
# those that are judged will do. Arm tasks have all of theirs.
MOST_STEPS, FEWEST = 200_000, 100
NAMES = {"still": "doing nothing", "untrained": "untrained"}  # of the baselines, for people
ROWS = 32  # environments of an external env that are stepped together
Progress = Callable[[str, float], None]  # (stage, share of it that is done)


@dataclass(frozen=True)
class SuccessRate:
    """Successes among episodes."""

    successes: int
    episodes: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, 95 %."""
        return wilson(self.successes, self.episodes)

    def line(self, beside: int = 0) -> str:
        """``97.3 % (95.8-98.3, n=1000)``; without n where the figure ``beside`` has the same."""
        low, high = (100 * x for x in self.interval)
        n = "" if self.episodes == beside else f", n={self.episodes}"
        return f"{100 * self.successes / self.episodes:.1f} % ({low:.1f}-{high:.1f}{n})"

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        low, high = self.interval
        return {**vars(self), "success": self.successes / self.episodes, "low": low, "high": high}


@dataclass(frozen=True)
class Baselines:
    """Success of the zero action and of the untrained policy."""

    still: SuccessRate  # zero action
    untrained: SuccessRate  # untrained PPO policy

    @property
    def high(self) -> float:
        """The upper end of both intervals: a success whose lower end is not above is no more."""
        return max(self.still.interval[1], self.untrained.interval[1])

    def line(self, beside: int = 0) -> str:
        """``doing nothing 0.0 % (0.0-0.4), untrained 0.1 % (0.0-0.6)``."""
        return f"doing nothing {self.still.line(beside)}, untrained {self.untrained.line(beside)}"

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"still": self.still.as_dict(), "untrained": self.untrained.as_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Baselines:
        """From ``as_dict``."""
        rates = (data[name] for name in ("still", "untrained"))
        return cls(*(SuccessRate(rate["successes"], rate["episodes"]) for rate in rates))


def make_evaluation_env(
    task: Task[Any] | ExternalTask, episodes: int, *, seed: int, frames: bool = False, **rows: Any
) -> BatchEnv | GymnasiumEnv:
    """Returns environments to judge ``episodes`` episodes in: one each, fewer of an external env.

    ``frames``: also an external env is rendered. ``rows`` are of ``make_randomized_env``, and not
    of external envs.
    """
    if isinstance(task, ExternalTask):
        return task.make_env(min(episodes, ROWS), seed, frames=frames)
    return make_randomized_env(task, episodes, seed=seed, **rows)


def untrained_policy(obs_dim: int, act_dim: int, seed: int = 0) -> Act:
    """A policy that has learned nothing: the network that PPO begins with, deterministic.

    Tanh layers with orthogonal weights times sqrt 2, the last times .01 (Stable-Baselines3's).
    """
    rng = np.random.default_rng(seed)
    widths, layers = (obs_dim, *HIDDEN, act_dim), []
    for rows, columns in zip(widths[:-1], widths[1:], strict=True):
        tall = rng.normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diag(r))
        gain = 0.01 if columns == act_dim and len(layers) == len(HIDDEN) else np.sqrt(2.0)
        layers.append(gain * (q if rows >= columns else q.T))

    def act(obs: Array) -> Array:
        x = np.asarray(obs, float)
        for layer in layers[:-1]:
            x = np.tanh(x @ layer)
        return np.clip(x @ layers[-1], -1.0, 1.0)

    return act


def measure_baselines(
    task: Task[Any],
    *,
    episodes: int,
    seed: int,
    shaped: bool = False,
    width: float | Randomize = 0.0,
    progress: Progress = lambda stage, share: None,
) -> Baselines:
    """Returns the baselines of ``task``'s goal in the first of ``episodes`` episodes of ``seed``,
    with domain randomisation scale ``width``."""
    steps = max(1, round(task.episode_s / task.control_dt))
    count = min(episodes, max(FEWEST, MOST_STEPS // steps))
    return _cached(
        task,
        {"episodes": count, "seed": seed, "shaped": shaped, "width": width},
        lambda: make_randomized_env(task, count, seed=seed, shaped=shaped, width=width),
        progress,
    )


def baselines_of_scenes(task: Task[Any], seeds: Sequence[int]) -> Baselines:
    """Returns the baselines of the scenes with which the arm's simulation starts, one for each of
    ``seeds``."""
    return _cached(task, {"scenes": list(seeds)}, lambda: _Scenes(task, seeds))


class _Scenes(BatchEnv):
    """Rows that begin as ``BatchEnv(task, 1, seed=seed)`` does, one for each of ``seeds``."""

    def __init__(self, task: Task[Any], seeds: Sequence[int]):
        super().__init__(task, len(seeds))
        one, begun = BatchEnv(task, 1), []
        for seed in seeds:
            one.reseed(seed)
            one.reset()
            begun.append((one.state()[0], one.held[0]))
        self._begun = [np.array(part) for part in zip(*begun, strict=True)]

    def reset(self, mask: Array | None = None) -> Array:
        super().reset(mask)
        states, held = self._begun
        self.set_state(states)
        self.held[:] = held
        return self._obs()


def _cached(
    task: Task[Any],
    facts: Mapping[str, Any],
    made: Callable[[], BatchEnv],
    progress: Progress = lambda stage, share: None,
) -> Baselines:
    """The floors of ``made`` episodes, from the cache if they are known there."""
    kind = type(task).__qualname__  # another one observes otherwise
    facts = {"task": task.name, "kind": kind, "goal": task.goal, **facts}
    facts["params"] = task.card()["params"]
    facts = jsonable(facts | {"code": _code(task), "mujoco": mujoco.__version__})
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    path = cache_dir() / "floors" / f"{task.name}-{key[:24]}.json"
    if path.exists():
        return Baselines.from_dict(json.loads(path.read_text())["floors"])
    played = _play_baselines(
        made, lambda name, share: progress("baselines", ([*NAMES].index(name) + share) / len(NAMES))
    )
    found = success_of(played)
    assert found is not None  # a task of ours is judged
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"floors": found.as_dict(), "of": facts})
    return found


def play_external_baselines(
    task: ExternalTask, episodes: int, seed: int, progress: Progress
) -> dict[str, EpisodeOutcome]:
    """Returns {baseline: outcome of its episodes}, the first of ``episodes`` of ``seed``.

    They are measured each time, since a change of an external env cannot be detected."""
    few = min(episodes, FEWEST)
    made = partial(make_evaluation_env, task, few, seed=seed)
    return _play_baselines(made, lambda name, share: progress(NAMES[name], share), few)


def success_of(played: Mapping[str, EpisodeOutcome]) -> Baselines | None:
    """The baselines' success in the episodes ``played``; None without a success judge."""
    rates = {
        name: SuccessRate(int(outcome.success.sum()), len(outcome.success))
        for name, outcome in played.items()
        if outcome.success is not None
    }
    return Baselines(**rates) if len(rates) == len(NAMES) else None


def _play_baselines(
    made: Callable[[], BatchEnv | GymnasiumEnv], progress: Progress, episodes: int = 0
) -> dict[str, EpisodeOutcome]:
    """Returns the outcome of each baseline in the same episodes; ``made`` makes its env."""
    played = {}
    for name in NAMES:
        env = made()
        act = untrained_policy(env.obs_dim, env.act_dim)
        still = name == "still"
        choose = zero_action(env.act_dim) if still else active_rows_policy(act, env.act_dim)
        played[name] = run_episodes(env, choose, episodes or env.num_envs, partial(progress, name))
        env.close()
    return played


def _code(task: Task[Any]) -> str:
    """sha256 of the compiled scene, of what simulates and judges it, and of the task's own file."""
    model = task.model()
    scene = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, scene)
    found = hashlib.sha256(scene.tobytes())
    files = set(Path(sims.__file__).parent.rglob("*.py"))
    files |= {Path(__file__), Path(episode_runner.__file__)}
    for kind in type(task).__mro__:  # a person's own task lies elsewhere
        if kind.__module__ not in sys.stdlib_module_names and kind is not object:
            files.add(Path(inspect.getfile(kind)))
    for file in sorted(files):
        found.update(file.read_bytes())
    return found.hexdigest()
