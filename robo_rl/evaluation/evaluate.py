"""Evaluation: ground-truth success of a deterministic policy on seeds nobody trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from reward_models.analysis.metrics import wilson
from reward_models.base import from_dict
from reward_models.goals.formula import from_data
from reward_models.goals.margins import NoMargin
from robo_rl.evaluation.arm_conditions import PLAIN, ArmConditions
from robo_rl.evaluation.baselines import (
    NAMES,
    Baselines,
    Progress,
    SuccessRate,
    make_evaluation_env,
    measure_baselines,
    play_external_baselines,
    success_of,
)
from robo_rl.evaluation.failure_analysis import failure_line, missed_goals, missed_parts
from robo_rl.goals.external_task import ExternalTask
from robo_rl.goals.goal_task import make_goal_task, observes_automaton, with_formula_goal
from robo_rl.goals.reading import task_of_config
from robo_rl.rollout.episode_runner import (
    Act,
    Choose,
    EpisodeOutcome,
    active_rows_policy,
    run_episode,
    run_episodes,
)
from sims.core.multi_goal import ANY, MultiGoalTask
from sims.core.rng import JUDGING
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import PREFIX, GymnasiumEnv
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

    goal: str  # key of the ground truth; empty: an external env, which is judged by its return
    episodes: int
    successes: int | None  # None: no success judge
    seed: int
    distance_median: float | None = None  # final distance to the goal, in ``distance_unit``
    distance_p90: float | None = None  # None: formula goals have no distance
    diverged: int = 0
    held: int = 0  # episodes with the goal met at the start, after resampling
    distance_unit: str = "m"  # empty: no unit
    floors: Baselines | None = None  # None: not measured
    randomize: float = 0.0  # domain randomisation scale
    arm: str = ""  # known arm parameters, as text
    # {part of a formula, or one of several goals: episodes that lacked it first}
    misses: dict[str, int] = field(default_factory=dict)
    return_mean: float | None = None  # of the environment's own reward (locomotion, external envs)
    return_sd: float | None = None  # over the episodes
    rate_limited: bool = False  # actions within the bridge's limits of speed, acceleration, jerk
    baseline_returns: Mapping[str, float] | None = None  # mean of each baseline; external envs
    successes_once: int | None = None  # at any step of an episode; external envs that report it

    @property
    def by_return(self) -> bool:
        """Whether an external env's own return is what counts, and success comes second."""
        return not self.goal

    @property
    def success(self) -> float | None:
        """The success rate in [0, 1]; None without a success judge."""
        return None if self.successes is None else self.successes / self.episodes

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the success rate; None without a success judge."""
        return None if self.successes is None else wilson(self.successes, self.episodes)

    @property
    def above_floor(self) -> bool:
        """Whether the interval lies above those of the floors; true where nothing is known."""
        return self.floors is None or self.interval is None or self.interval[0] > self.floors.high

    def line(self) -> str:
        """``success 97.3 % (95.8-98.3, n=1000) on the validation seed; doing nothing ...``; of an
        external env ``return 3411.2 (deviation 20.1)`` before that."""
        if self.by_return:
            return "; ".join([*self._return_parts(), *self._success_parts()])
        held = f"in {self.held} episodes the goal held from the start" if self.held else ""
        beneath = "" if self.above_floor else "not above the baselines"
        parts = [*self._success_parts(), *self._return_parts(), beneath, held]
        return "; ".join(filter(None, parts))

    def _success_parts(self) -> list[str]:
        if self.successes is None:
            return ["success not measured: the env does not report it"]
        on = SEED_NAMES.get(self.seed, f"seed {self.seed}")
        on += ", rate-limited actions" if self.rate_limited else ""
        on += f", rows randomised by {self.randomize:g}" if self.randomize else ""
        on += f", with {self.arm}" if self.arm else ""
        where = "" if self.by_return else f" on the {on}"
        parts = [f"success {SuccessRate(self.successes, self.episodes).line()}{where}"]
        if self.successes_once is not None:
            once = SuccessRate(self.successes_once, self.episodes).line(self.episodes)
            parts[0] += f" at the end of an episode, {once} at any step"
        return parts if self.floors is None else [*parts, self.floors.line(self.episodes)]

    def _return_parts(self) -> list[str]:
        if self.return_mean is None:
            return []
        if not self.by_return:
            return [f"return {self.return_mean:,.0f} (deviation {self.return_sd:,.0f})"]
        count = f", n={self.episodes}" if self.successes is None else ""
        own = f"return {self.return_mean:.1f} (deviation {self.return_sd:.1f}{count})"
        return [own, *(f"{who} {x:.1f}" for who, x in (self.baseline_returns or {}).items())]

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; of an external env with the names that its results have always had."""
        low, high = self.interval or (None, None)
        floors = None if self.floors is None else self.floors.as_dict()
        known = {**asdict(self), "floors": floors}
        beneath = known.pop("baseline_returns")
        once = known.pop("successes_once")
        if self.by_return:
            own = {"return_std": self.return_sd, "beneath": beneath, "successes_once": once}
            known |= own
        return {**known, "success": self.success, "low": low, "high": high}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Evaluation | None:
        """From ``as_dict``; None where nothing was judged."""
        if not data or not (data.get("goal") or "return_std" in data):
            return None
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        if "return_std" in data:  # older results of external envs have no other names
            own = {"return_sd": data["return_std"], "baseline_returns": data.get("beneath")}
            known = {"goal": "", **known, **own}
        if known.get("floors"):
            known["floors"] = Baselines.from_dict(known["floors"])
        return cls(**known)


def summary_line(evaluation: Evaluation | None) -> str:
    """Returns one line on an evaluation, also of a run without a success judge; first what is
    missing, if known."""
    if evaluation is None:
        return NOT_JUDGED
    return "\n".join(filter(None, (failure_line(evaluation.misses), evaluation.line())))


def evaluate(
    task: Task[Any] | ExternalTask,
    act: Act,
    *,
    episodes: int = 1000,
    seed: int = TEST_SEED,
    shaped: bool = False,
    progress: Progress = lambda stage, share: None,
    randomize: float | Randomize = 0.0,
    baselines: bool = True,
) -> Evaluation:
    """Returns what ``episodes`` episodes of a policy come to.

    Args:
        task: a task with its goal's ground truth, or an external env.
        act: the policy, obs (n, obs_dim) -> action (n, act_dim).
        episodes: how many; each is one of those that ``seed`` gives.
        seed: of the episodes.
        shaped: within the limits that the bridge on a real arm keeps to.
        progress: called with the stage and the share of it that is done, in [0, 1].
        randomize: the width of what environments differ in, and of the errors in what they sense
            (``sims/randomization/domain_randomization.py``), or what exactly.
        baselines: also measure what is reached without learning, in the same episodes.
    """

    def choose(env: BatchEnv | GymnasiumEnv) -> Choose:
        return active_rows_policy(act, env.act_dim)

    if isinstance(task, ExternalTask):
        return _evaluated_external(task, choose, episodes, seed, progress, baselines)
    rows = {"seed": seed, "shaped": shaped, "width": randomize}
    return _evaluated(task, choose, episodes, rows, progress, baselines)


def evaluate_expert(
    task: Task[Any],
    *,
    episodes: int = 1000,
    seed: int = TEST_SEED,
    shaped: bool = False,
    progress: Progress = lambda stage, share: None,
) -> Evaluation:
    """The task's own expert on the same episodes."""
    rng = np.random.default_rng(seed)

    def choose(env: BatchEnv) -> Choose:
        return lambda obs, active: task.expert(env.views, rng)

    return _evaluated(task, choose, episodes, {"seed": seed, "shaped": shaped}, progress)


def _evaluated(
    task: Task[Any],
    chooser: Callable[[BatchEnv], Choose],
    episodes: int,
    rows: Mapping[str, Any],
    progress: Progress,
    baselines: bool = True,
) -> Evaluation:
    env = make_randomized_env(task, episodes, **rows)
    outcome = run_episode(env, chooser(env), progress=partial(progress, "evaluate"))
    env.close()
    if not baselines:
        return summarize(env, outcome)
    floors = measure_baselines(task, episodes=episodes, **rows, progress=progress)
    return summarize(env, outcome, floors)


def _evaluated_external(
    task: ExternalTask,
    chooser: Callable[[GymnasiumEnv], Choose],
    episodes: int,
    seed: int,
    progress: Progress,
    baselines: bool,
) -> Evaluation:
    """By the return that the env gives, and by success where it reports that."""
    with closing(make_evaluation_env(task, episodes, seed=seed)) as env:
        outcome = run_episodes(env, chooser(env), episodes, partial(progress, "evaluate"))
    played = play_external_baselines(task, episodes, seed, progress) if baselines else {}
    won = None if outcome.success is None else int(outcome.success.sum())
    returns = {NAMES[name]: float(one.returned.mean()) for name, one in played.items()}
    return Evaluation(
        "",
        episodes,
        won,
        seed,
        floors=None if won is None else success_of(played),
        return_mean=float(outcome.returned.mean()),
        return_sd=float(outcome.returned.std()),
        baseline_returns=returns or None,
        successes_once=None if won is None else int(outcome.once.sum()),
    )


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


def randomization_of(
    config: Mapping[str, Any], task: Task[Any], width: float = 0.0
) -> float | Randomize:
    """What rows of a run's config are like: of the arm as it is known, and randomised by ``width``
    in all else."""
    latency, stiffness = config.get("latency", 0.0), config.get("stiffness")  # older runs: none
    known = ArmConditions(latency=latency, stiffness=stiffness or None)
    return width if known == PLAIN else known.randomization(task, width)


def conditions_of(
    config: Mapping[str, Any], task: Task[Any] | ExternalTask, width: float = 0.0
) -> dict[str, Any]:
    """What the policy of a run's config is judged and recorded under, as arguments of ``evaluate``
    and ``record``: the rate limits and the arm that it was trained for, and randomisation by
    ``width``."""
    rows = randomization_of(config, task, width)
    return {"shaped": bool(config.get("rate_limited")), "randomize": rows}


def task_of_run(config: Mapping[str, Any], key: str) -> Task[Any] | ExternalTask:
    """The task of a run's config with ground truth ``key``, a formula perhaps; empty: the
    task's first goal. The external env of a run that is of one."""
    if config["task"].startswith(PREFIX):
        return ExternalTask.of(config)
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
