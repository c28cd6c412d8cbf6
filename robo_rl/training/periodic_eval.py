"""EvalCallback: a policy judged while it learns; its best is kept, and good enough may be the
end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import numpy as np

from reward_models.base import RewardModel
from robo_rl.config.resolve import ResolvedRun
from robo_rl.evaluation.baselines import make_evaluation_env
from robo_rl.evaluation.evaluate import VALIDATION_SEED, evaluate
from robo_rl.evaluation.overoptimization import OveroptimizationMonitor
from robo_rl.goals.external_task import ExternalTask
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner
from robo_rl.rollout.episode_runner import Act
from robo_rl.runs.run_dir import Checkpoint, RunDir
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv
from sims.utils.prefixed_dict import add_prefix, select_prefix

Array = np.ndarray
Figures = Mapping[str, float]

SHARE = 3  # an evaluation costs at most a third of the env steps between two of them


class EvalCallback(Hook):
    """Evaluates deterministic episodes of the validation seed at intervals, and at the end.

    Quoted figures are the final policy's: the best of many evaluations is biased upwards. Each
    evaluation is a row of the run's ``looks.csv``.
    """

    name = "looks"

    def __init__(
        self,
        judge: Callable[[Act], Figures],
        run: RunDir,
        *,
        env_steps: int,
        eval_points: int,
        cost: int,
        stop_at: float = 0.0,
        stop_overoptimised: bool = False,
        on_evaluation: Callable[[Mapping[str, float]], None] = lambda row: None,
        warn: Callable[[str], None] = lambda text: None,
    ):
        """``judge`` answers figures, ``success`` or else ``return`` among them, in about ``cost``
        env steps (0: an offline learner makes none), ``eval_points`` times in ``env_steps``.
        Training ends once success is ``stop_at`` (0: never), or with ``stop_overoptimised`` once
        an evaluation finds that."""
        self._judge, self._run, self._told, self._warn = judge, run, on_evaluation, warn
        self._last, self._stop_at, self._stop_turned = env_steps, stop_at, stop_overoptimised
        self._every = max(math.ceil(env_steps / eval_points), SHARE * cost)
        self._next, self._seen_at = self._every, -1
        self.best, self.best_step = -math.inf, -1
        self._success, self._turned = -math.inf, False  # of the last evaluation

    @property
    def frames_rendered(self) -> int:
        """The frames rendered to score the policy's evaluation episodes."""
        return self._judge.frames if isinstance(self._judge, OveroptimizationMonitor) else 0

    def pause(self, learner: Learner) -> bool | None:
        """Evaluates the policy when it is due, and saves it if it is the best.

        Args:
            learner: The learner whose policy is evaluated.

        Returns:
            False ends training.

        Raises:
            ValueError: training is to end at a success rate, and the goal has no success judge.
        """
        now = learner.env_steps
        if now == self._seen_at:
            return self._enough()  # also of a run that goes on after it was found to be
        if now < min(self._next, self._last):
            return None
        self._next, self._seen_at = now + self._every, now
        figures = self._judge(learner.act)
        row = {"env_steps": now, **figures}
        self._run.evaluations.append(row)
        self._told(row)
        if (worth := figures.get("success", figures.get("return", -math.inf))) > self.best:
            self.best, self.best_step = worth, now
            tensors = learner.algorithm.policy.state_dict()
            weights = {name: tensor.numpy(force=True) for name, tensor in tensors.items()}
            self._run.save_best(Checkpoint(now, weights, {}, {"figures": dict(figures)}))
        self._turned = bool(figures.get("overoptimised", False))
        if self._stop_at and "success" not in figures:
            raise ValueError("--stop-at needs a success rate, and this goal has no success judge")
        self._success = figures.get("success", -math.inf)
        if self._turned:
            self._warn(
                f"over-optimised at {now:,} steps: reward is higher than at "
                f"{self.best_step:,} steps, but success is lower: {worth:.0%}, then "
                f"{self.best:.0%} (both differences are significant)"
            )
        return self._enough()

    def _enough(self) -> bool | None:
        """False where the last evaluation says that training ends."""
        if self._turned and self._stop_turned:
            return False
        return self._success < self._stop_at if self._stop_at else None

    def state_dict(self) -> dict[str, Array]:
        """Returns ``state`` (4,) of next, last and best step and best figure, and ``seen`` (2,)."""
        own = {
            "state": np.array([self._next, self._seen_at, self.best_step, self.best]),
            "seen": np.array([self._success, self._turned], float),
        }
        if not isinstance(self._judge, OveroptimizationMonitor):
            return own
        return own | add_prefix("judge", self._judge.state_dict())

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``state`` (4,), ``seen`` (2,) and the judge's arrays; old ones lack
        ``seen``."""
        if isinstance(self._judge, OveroptimizationMonitor):
            self._judge.load_state_dict(select_prefix(saved, "judge"))
        *steps, self.best = (float(value) for value in saved["state"])
        self._next, self._seen_at, self.best_step = (int(step) for step in steps)
        if "seen" in saved:  # an older checkpoint does not say what was found
            self._success, self._turned = float(saved["seen"][0]), bool(saved["seen"][1])


def make_eval_callback(
    run: RunDir,
    resolved: ResolvedRun,
    env: BatchEnv | GymnasiumEnv,
    reward: RewardModel | None,
    *,
    told: Callable[[Figures], None],
    warn: Callable[[str], None],
    stack: ExitStack,
    rows: Mapping[str, Any],
) -> EvalCallback:
    """Returns what evaluates a run's policy in the same episodes every time.

    Of a task of ours its figures are success and what ``reward`` pays, of an external env its own
    return, and success where it reports that.

    Args:
        run: keeps the figures and the best weights.
        resolved: what is trained.
        env: what it is trained on.
        reward: the reward model; None: the simulator's reward.
        told: hears every row of figures.
        warn: hears of a policy that is over-optimised.
        stack: closes the environments of the evaluation.
        rows: options of those, as of ``make_randomized_env``; not of external envs.
    """
    config, task, episodes = resolved.config, resolved.task, resolved.config.eval_episodes
    if isinstance(task, ExternalTask):
        judge, steps = partial(_external_figures, task, episodes), env.max_steps
    else:
        own = stack.enter_context(
            closing(make_evaluation_env(task, episodes, seed=VALIDATION_SEED, **rows))
        )
        judge = OveroptimizationMonitor(own, reward, sparse=config.reward == "sparse")
        steps = own.max_steps
    return EvalCallback(
        judge,
        run,
        env_steps=config.env_steps,
        eval_points=config.eval_points,
        cost=episodes * steps * config.tuning.makes_steps,
        stop_at=config.stop_at,
        stop_overoptimised=config.stop_overoptimised,
        on_evaluation=told,
        warn=warn,
    )


def _external_figures(task: ExternalTask, episodes: int, act: Act) -> dict[str, float]:
    found = evaluate(task, act, episodes=episodes, seed=VALIDATION_SEED, baselines=False)
    figures = {"return": found.return_mean}
    return figures if found.success is None else {**figures, "success": found.success}
