"""Evaluation: ground-truth success of a deterministic policy on seeds nobody trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from reward_models.analysis.metrics import wilson
from reward_models.base import EpisodePosition, from_dict, positions_from_start
from reward_models.goals.formula import from_data
from reward_models.goals.margins import NoMargin
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from robo_rl.evaluation.baselines import Baselines, SuccessRate, measure_baselines
from robo_rl.evaluation.failure_analysis import failure_line, missed_goals, missed_parts
from robo_rl.goals.goal_task import make_goal_task, observes_automaton, with_formula_goal
from robo_rl.goals.reading import task_of_config
from robo_rl.rollout.episode_runner import (
    Act,
    Choose,
    EpisodeOutcome,
    active_rows_policy,
    run_episode,
)
from sims.core.multi_goal import ANY, MultiGoalTask
from sims.core.rng import JUDGING
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.randomization.domain_randomization import Randomize, RandomizedEnv, make_randomized_env

Array = np.ndarray

# Streams are keyed by seed: training uses small ones, these belong to nothing else.
VALIDATION_SEED = JUDGING  # choosing between candidates, and all of development
TEST_SEED = 700_000_000  # quoted figures
EVAL_SEEDS = {"validation": VALIDATION_SEED, "test": TEST_SEED}
SEED_NAMES = {VALIDATION_SEED: "validation seed", TEST_SEED: "test seed"}

NOT_JUDGED = "success not measured: no ground truth for this sentence"


@dataclass(frozen=True)
class Evaluation:
    """Success at the end of ``episodes`` episodes, with its Wilson 95 % interval and its floors."""

    goal: str  # key of the ground truth
    episodes: int
    successes: int
    seed: int
    distance_median: float | None  # final distance to the goal, in ``distance_unit``
    distance_p90: float | None  # None: formula goals have no distance
    diverged: int
    held: int = 0  # episodes with the goal met at the start, after resampling
    distance_unit: str = "m"  # empty: no unit
    floors: Baselines | None = None  # None: not measured
    randomize: float = 0.0  # domain randomisation scale
    arm: str = ""  # known arm parameters, as text
    # {part of a formula, or one of several goals: episodes that lacked it first}
    misses: dict[str, int] = field(default_factory=dict)
    return_mean: float | None = None  # of the task's dense reward (locomotion)
    return_sd: float | None = None  # over the episodes
    rate_limited: bool = False  # actions within the bridge's limits of speed, acceleration, jerk

    @property
    def success(self) -> float:
        return self.successes / self.episodes

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.successes, self.episodes)

    @property
    def above_floor(self) -> bool:
        """Whether the interval lies above those of the floors."""
        return self.floors is None or self.interval[0] > self.floors.high

    def line(self) -> str:
        """``success 97.3 % (95.8-98.3, n=1000) on the validation seed; doing nothing ...``."""
        on = SEED_NAMES.get(self.seed, f"seed {self.seed}")
        on += ", rate-limited actions" if self.rate_limited else ""
        on += f", rows randomised by {self.randomize:g}" if self.randomize else ""
        on += f", with {self.arm}" if self.arm else ""
        parts = [f"success {SuccessRate(self.successes, self.episodes).line()} on the {on}"]
        if self.floors is not None:
            parts.append(self.floors.line(self.episodes))
        if self.return_mean is not None:
            parts.append(f"return {self.return_mean:,.0f} (deviation {self.return_sd:,.0f})")
        if not self.above_floor:
            parts.append("not above its floor")
        if self.held:
            parts.append(f"in {self.held} episodes the goal held from the start")
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        low, high = self.interval
        baselines = None if self.floors is None else self.floors.as_dict()
        known = {**asdict(self), "floors": baselines}
        return {**known, "success": self.success, "low": low, "high": high}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Evaluation | None:
        """From ``as_dict``; None where nothing was judged."""
        if not data or not data["goal"]:
            return None
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        if known.get("floors"):
            known["floors"] = Baselines.from_dict(known["floors"])
        return cls(**known)


def summary_line(evaluation: Any) -> str:
    """Returns one line on an evaluation, also of a run without a success judge; first what is
    missing, if known."""
    if evaluation is None:
        return NOT_JUDGED
    missing = failure_line(evaluation.misses) if isinstance(evaluation, Evaluation) else ""
    return "\n".join(filter(None, (missing, evaluation.line())))


def evaluate(
    task: Task[Any],
    act: Act,
    *,
    episodes: int = 1000,
    seed: int = TEST_SEED,
    shaped: bool = False,
    progress: Callable[[str, float], None] = lambda stage, share: None,
    randomize: float | Randomize = 0.0,
) -> Evaluation:
    """Runs ``act`` (obs (n, obs_dim) -> action (n, act_dim)) for one episode in every row.

    ``shaped``: within the limits that the bridge on a real arm keeps to. ``randomize``: the width
    of what rows differ in, and of the errors in what they sense
    (``sims/randomization/domain_randomization.py``), or what exactly.
    """
    return _evaluated(
        task,
        lambda env: active_rows_policy(act, env.act_dim),
        episodes,
        {"seed": seed, "shaped": shaped, "width": randomize},
        progress,
    )


def evaluate_expert(
    task: Task[Any],
    *,
    episodes: int = 1000,
    seed: int = TEST_SEED,
    shaped: bool = False,
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> Evaluation:
    """The task's own expert on the same episodes."""
    rng = np.random.default_rng(seed)
    return _evaluated(
        task,
        lambda env: lambda *_: task.expert(env.views, rng),
        episodes,
        {"seed": seed, "shaped": shaped},
        progress,
    )


def _evaluated(
    task: Task[Any],
    chooser: Callable[[BatchEnv], Choose],
    episodes: int,
    rows: Mapping[str, Any],
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> Evaluation:
    env = make_randomized_env(task, episodes, **rows)
    outcome = run_episode(env, chooser(env), progress=lambda share: progress("evaluate", share))
    env.close()
    baselines = measure_baselines(task, episodes=episodes, **rows, progress=progress)
    return summarize(env, outcome, baselines)


def summarize(
    env: BatchEnv, outcome: EpisodeOutcome, baselines: Baselines | None = None
) -> Evaluation:
    """What one episode of every row of ``env`` came to."""
    formula, body = env.judge is not None, not getattr(env.task, "robot", "")
    returned = outcome.returned if body and np.isfinite(outcome.returned).all() else None
    return Evaluation(
        env.task.goal,
        env.num_envs,
        int(outcome.success.sum()),
        env.seed,
        None if formula else float(np.median(outcome.distance)),
        None if formula else float(np.quantile(outcome.distance, 0.9)),
        env.num_diverged,
        int(outcome.held.sum()),
        "" if formula else env.task.goals()[env.task.goal].unit,
        baselines,
        env.width if isinstance(env, RandomizedEnv) else 0.0,
        known_arm_text(env),
        _misses(env, outcome.success),
        None if returned is None else float(returned.mean()),
        None if returned is None else float(returned.std()),
        env.shaped,
    )


def known_arm_text(env: BatchEnv) -> str:
    """Returns the arm parameters known to all environments of ``env``, in words; empty: none."""
    if not isinstance(env, RandomizedEnv) or not env.randomize.told:
        return ""
    return ArmConditions.known_in({"randomize": asdict(env.randomize)}, env.task).known_text(
        only=True
    )


def _misses(env: BatchEnv, success: Array) -> dict[str, int]:
    if env.task.goal == ANY:
        return missed_goals(env.task.requested(env.views), success)
    return {} if env.judge is None else missed_parts(env.judge, from_dict(env.card), success)


@dataclass(frozen=True)
class Recording:
    """Some episodes, kept as states so that they can be drawn and scored later."""

    states: Array  # (T+1, N, nstate)
    signals: Mapping[str, Array]  # {name: (T+1, N, ...)}
    action: Array  # (T, N, act_dim)
    success: Array | None  # (T+1, N) bool; None: no success judge
    distance: Array | None  # (T+1, N), in the goal's unit; None: no distance
    control_dt: float
    place: EpisodePosition  # of each step; unchanged after an episode ends


def record(
    task: Task[Any],
    act: Act,
    *,
    episodes: int,
    seed: int = VALIDATION_SEED,
    judged: bool = True,
    shaped: bool = False,
    randomize: float | Randomize = 0.0,
) -> Recording:
    """``episodes`` whole episodes of ``act``; without ``judged`` the task's goal is not meant.

    ``shaped`` and ``randomize`` as of ``evaluate``; the states are MuJoCo's alone.
    """
    options = {"seed": seed, "judged": judged, "shaped": shaped}
    env = make_randomized_env(task, episodes, width=randomize, **options)
    obs = env.reset()
    states, signals, actions = [env.mujoco_state()], [env.signals()], []
    measured = judged and env.judge is None
    success, distance = [env.held.copy()], [env.distance()] if measured else []
    live, terminated, over = [], [], np.zeros(episodes, bool)
    for _ in range(env.max_steps):
        action = np.asarray(act(obs))
        step = env.step(action)
        live.append(~over)
        terminated.append(step.terminated)
        over = over | step.terminated | step.truncated
        states.append(env.mujoco_state())
        signals.append(env.signals())
        actions.append(action)
        if judged:
            success.append(step.info["success"])
        if measured:
            distance.append(env.distance())
        obs = step.obs
    env.close()
    return Recording(
        np.stack(states),
        {name: np.stack([s[name] for s in signals]) for name in signals[0]},
        np.stack(actions),
        np.stack(success) if judged else None,
        np.stack(distance) if measured else None,
        env.control_dt,
        positions_from_start(np.stack(live), np.stack(terminated)),
    )


def randomization_of(
    config: Mapping[str, Any], task: Task[Any], width: float = 0.0
) -> float | Randomize:
    """What rows of a run's config are like: of the arm as it is known, and randomised by ``width``
    in all else."""
    latency, stiffness = config.get("latency", 0.0), config.get("stiffness")  # older runs: none
    known = ArmConditions(latency=latency, stiffness=stiffness or None)
    return width if known == PLAIN else known.randomization(task, width)


def conditions_of(config: Mapping[str, Any], task: Task[Any], width: float = 0.0) -> dict[str, Any]:
    """Returns arguments of ``evaluate`` and ``record`` for a run's policy: the rate limits and arm
    parameters of its training, and domain randomisation scale ``width``."""
    rows = randomization_of(config, task, width)
    return {"shaped": bool(config.get("rate_limited")), "randomize": rows}


def task_of_run(config: Mapping[str, Any], key: str) -> Task[Any]:
    """The task of a run's config with ground truth ``key``, a formula perhaps; empty: the
    task's first goal."""
    task = task_of_config(config)
    if key.startswith("["):
        wanted = from_data(json.loads(key))
        if not observes_automaton(config):
            return with_formula_goal(task, wanted)
        try:
            return make_goal_task(task, wanted)
        except NoMargin:  # nor did its policy observe any account
            return with_formula_goal(task, wanted)
    return MultiGoalTask(inner=task) if key == ANY else replace(task, goal=key or task.goal)
