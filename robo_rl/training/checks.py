"""What is refused, or advised, before a training begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import atoms, parts_of
from reward_models.goals.margins import NoMargin
from robo_rl.config.resolve import ResolvedRun
from robo_rl.config.train_config import SettledConfig
from robo_rl.evaluation.baselines import make_evaluation_env
from robo_rl.evaluation.evaluate import VALIDATION_SEED
from robo_rl.goals.external_task import ExternalTask
from robo_rl.goals.feasibility import check_feasible
from robo_rl.goals.goal_task import GoalTask
from robo_rl.learners import IQLConfig, OffPolicyConfig
from robo_rl.rewards import reward_type
from robo_rl.rollout.episode_runner import run_episode, zero_action

# Options that change the simulation of our own tasks.
OURS = (
    "robot",
    "formula",
    "things",
    "scene",
    "randomize",
    "random_starts",
    "rate_limited",
    "stop_overoptimised",
    "async_scoring",
    "episode_s",
    "latency",
    "stiffness",
)


def check_run(resolved: ResolvedRun) -> None:
    """ValueError where options do not fit each other, the goal or the task; says what to give."""
    config, task, goal = resolved.config, resolved.task, resolved.goal
    if isinstance(task, ExternalTask):
        _check_external(config, task)
        return
    if config.async_scoring:
        for why in _why_not_asynchronous(resolved):
            raise ValueError(f"--async-scoring: {why}")
    for option in ("stop_at", "stop_overoptimised"):
        if getattr(config, option) and not goal.key:
            named = option.replace("_", "-")
            raise ValueError(f"--{named} needs a goal with a success judge: {goal.truth}")


def check_reachable(resolved: ResolvedRun, num_threads: int) -> None:
    """Raises DecidedAtStart or Unreachable, ValueErrors, where training could not reach the goal,
    a formula."""
    task = resolved.task
    if task.formula is None:
        return
    checked = task if isinstance(task, GoalTask) else GoalTask(inner=task)
    with suppress(NoMargin):  # a formula that cannot be measured is not checked
        check_feasible(checked, seed=resolved.config.seed, num_threads=num_threads)


def pre_run_advice(resolved: ResolvedRun) -> str:
    """Returns advice before a long training; "" if there is none."""
    config, task, goal = resolved.config, resolved.task, resolved.goal
    helped = any(getattr(config.tuning, by, None) for by in ("demos", "base", "interventions"))
    if helped or goal.formula is None or not task.solved:
        return ""
    if not {"put", "insert"} & {achieved_by(atom, goal.card) for atom in atoms(goal.formula)}:
        return ""
    return (
        "what is carried to a place and let go of there has been learned from demonstrations "
        "alone so far: with --demos 50 so many of the task's expert are part of it"
    )


def _check_external(config: SettledConfig, task: ExternalTask) -> None:
    if given := [name for name in OURS if getattr(config, name)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{task.name} is an external environment: leave out {options}")
    if config.reward == "offline":
        raise ValueError(
            f"{task.name} names no objects, so no reward can be generated for it from a "
            "sentence: use --reward clip with --clip.encoder MODEL:PRETRAINED, task, or code:FILE"
        )
    if bool(config.goal) != (config.reward in ("clip", "film")):
        raise ValueError(
            f"in {task.name}, --reward clip and film need --goal, and other rewards do not take it"
        )
    if config.stop_at and not _reports_success(task):
        raise ValueError(
            f"--stop-at needs a success rate, and {task.name} reports no success: leave it out"
        )


def _reports_success(task: ExternalTask) -> bool:
    """Whether the env says of an episode that it succeeded or did not; one is played to see it."""
    with closing(make_evaluation_env(task, 1, seed=VALIDATION_SEED)) as env:
        return run_episode(env, zero_action(env.act_dim)).success is not None


def _why_not_asynchronous(resolved: ResolvedRun) -> Iterator[str]:
    """Why a run's reward cannot be scored in a process of its own."""
    config, formula = resolved.config, resolved.goal.formula
    if not isinstance(config.tuning, OffPolicyConfig) or isinstance(config.tuning, IQLConfig):
        yield (
            f"{config.learner} has no replay buffer for rewards that arrive later: use an "
            "off-policy learner"
        )
    if config.reward in ("task", "sparse"):
        yield f"--reward {config.reward} is the simulator's and is not slow"
    if getattr(config.scoring, "answers", 0) or getattr(config.scoring, "distill", False):
        yield "this reward is refitted during training"
    parts = parts_of(formula, "and") if formula is not None else ()
    if any(len(parts_of(part, "then")) > 1 for part in parts):
        yield "a sequence of goals needs the scores of earlier steps"
    changed = config.randomize or config.rate_limited or config.latency or config.stiffness
    if reward_type(config.reward).frames and changed:
        yield (
            "frames are rendered without them: leave out "
            "--randomize, --rate-limited, --latency and --stiffness"
        )
    if config.device != "cpu":
        yield f"it scores on the CPU only, got --device {config.device}"
