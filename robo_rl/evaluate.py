"""Evaluation: ground-truth success of a deterministic policy on seeds nobody trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import sims
from reward_models.metrics import wilson
from sims.batch_env import BatchEnv
from sims.task import Task

Array = np.ndarray
Act = Callable[[Array], Array]

# Streams are keyed by seed: training uses small ones, these belong to nothing else.
SELECT_SEED = 500_000_000  # choosing between candidates
TEST_SEED = 700_000_000  # quoted figures


@dataclass(frozen=True)
class Evaluation:
    """Success at the end of ``episodes`` episodes, with its Wilson 95 % interval."""

    goal: str  # key of the ground truth; empty: there is none, and success says nothing
    episodes: int
    successes: int
    seed: int
    distance_median: float  # m, true distance to the goal at the end
    distance_p90: float
    diverged: int

    @property
    def success(self) -> float:
        return self.successes / self.episodes

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.successes, self.episodes)

    def line(self) -> str:
        """``success 97.3 % (95.8-98.3, n=1000)``, or that there is no ground truth."""
        if not self.goal:
            return "success not measured: no ground truth for this sentence"
        low, high = (100 * x for x in self.interval)
        return f"success {100 * self.success:.1f} % ({low:.1f}-{high:.1f}, n={self.episodes})"

    def as_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {**asdict(self), "success": self.success, "low": low, "high": high}


def evaluate(
    task: Task[Any],
    act: Act,
    *,
    judged: bool = True,
    episodes: int = 1000,
    seed: int = TEST_SEED,
    shaped: bool = False,
) -> Evaluation:
    """Runs ``act`` (obs (N, obs_dim) -> action (N, act_dim)) for one episode in every row.

    ``shaped``: within the limits that the bridge on a real arm keeps to.
    """
    env = BatchEnv(task, episodes, seed=seed, shaped=shaped)
    success, distance = run_episode(env, act)
    env.close()
    return summary(task.goal if judged else "", seed, success, distance, env)


def summary(goal: str, seed: int, success: Array, distance: Array, env: BatchEnv) -> Evaluation:
    return Evaluation(
        goal,
        len(success),
        int(success.sum()),
        seed,
        float(np.median(distance)),
        float(np.quantile(distance, 0.9)),
        env.num_diverged,
    )


def run_episode(env: BatchEnv, act: Act) -> tuple[Array, Array]:
    """(success (N,), distance (N,) m) at the end of one episode of every row.

    A row that terminates early is judged at that step; a diverged row has failed.
    """
    obs = env.reset()
    over = np.zeros(env.num_envs, bool)
    failed = np.zeros(env.num_envs, bool)
    success = np.zeros(env.num_envs, bool)
    distance = np.zeros(env.num_envs)
    for _ in range(env.max_steps):
        step = env.step(act(obs))
        failed |= step.info["diverged"] & ~over
        now = ~over
        success[now] = step.info["success"][now]
        distance[now] = env.distance()[now]
        over |= step.terminated | step.truncated
        if over.all():
            break
        obs = step.obs
    return success & ~failed, distance


def evaluate_expert(task: Task[Any], *, episodes: int = 1000, seed: int = TEST_SEED) -> Evaluation:
    """The task's own expert on the same episodes."""
    env = BatchEnv(task, episodes, seed=seed)
    rng = np.random.default_rng(seed)
    success, distance = run_episode(env, lambda obs: task.expert(env.views, rng))
    env.close()
    return summary(task.goal, seed, success, distance, env)


@dataclass(frozen=True)
class Recording:
    """Some episodes, kept as states so that they can be drawn and scored later."""

    states: Array  # (T+1, N, nstate)
    signals: Mapping[str, Array]  # {name: (T+1, N, ...)}
    action: Array  # (T, N, act_dim)
    success: Array  # (T+1, N) bool
    distance: Array  # (T+1, N) m
    control_dt: float


def record(task: Task[Any], act: Act, *, episodes: int, seed: int = TEST_SEED) -> Recording:
    """``episodes`` whole episodes of ``act``."""
    env = BatchEnv(task, episodes, seed=seed)
    obs = env.reset()
    goal = task.goals()[task.goal]
    states, signals, actions = [env.state()], [env.signals()], []
    success, distance = [np.array(goal.success(env.views))], [env.distance()]
    for _ in range(env.max_steps):
        action = np.asarray(act(obs))
        step = env.step(action)
        states.append(env.state())
        signals.append(env.signals())
        actions.append(action)
        success.append(step.info["success"])
        distance.append(env.distance())
        obs = step.obs
    env.close()
    return Recording(
        np.stack(states),
        {name: np.stack([s[name] for s in signals]) for name in signals[0]},
        np.stack(actions),
        np.stack(success),
        np.stack(distance),
        env.control_dt,
    )


def make_task(config: Mapping[str, Any], key: str) -> Task[Any]:
    """The task of a run's config with ground truth ``key`` (or the task's first goal)."""
    return sims.make_task(config["task"], robot=config["robot"] or None, goal=key or None)
