"""judge(): any rewards of a goal against the simulator's truth, beside controls; JSON-able.

Nothing here decides what a reward is or what success is: rewards are made as training makes them,
the truth is the task's judge, and every figure is of the same stated episodes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from real_robot.core.manifest import Manifest
from real_robot.policy.bundle import MANIFEST, write_manifest
from reward_models.analysis.reward_distances import DRAWS
from reward_models.base import EpisodePosition, RewardModel
from robo_rl.evaluation.recording import Recording
from robo_rl.evaluation.reward_tables import REPORT
from robo_rl.goals.reading import ReadGoal
from robo_rl.reward_analysis.coverage import COVER_SEED, FREE, Coverage, collect_coverage
from robo_rl.reward_analysis.figures import (
    Figures,
    JudgedReward,
    classification_metrics,
    end_scores,
    episode_outcomes,
    reward_distances,
    state_value,
    value_order,
)
from robo_rl.reward_analysis.language import language_figures
from robo_rl.reward_analysis.scores import (
    by_entry,
    by_model,
    clock,
    dense,
    random,
    shaped,
    sparse,
    whole_episodes,
)
from robo_rl.rewards import make_reward, reward_type
from robo_rl.rewards.base import BuiltReward, RewardConfig
from robo_rl.runs.run_dir import RunDir, write_json
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.utils.prefixed_dict import select_prefix

Array = np.ndarray

SHOWN = 6  # failures in the film, at most, in rows of three
OWN = {"task": dense, "sparse": sparse}  # rewards that are read off the simulator's steps


@dataclass(frozen=True)
class Subject:
    """The task, goal and rewards of a report."""

    task: Task[Any]
    goal: ReadGoal
    rewards: Mapping[str, RewardConfig | None]  # {as `--reward` takes them: settings}
    made_as: Mapping[str, str]  # {one of those: as it is made now, where that is otherwise}
    gamma: float  # discount per control step of the learner
    runs: tuple[Path, ...] = ()  # runs whose policies add episodes
    restore: Callable[[RewardModel], None] = field(default=lambda model: None)


@dataclass(frozen=True)
class RewardReport:
    """The result of ``judge_rewards``."""

    report: dict[str, Any]
    cover: Coverage
    paid: Mapping[str, Array]  # {reward: (T, N)}


def judge_rewards(
    subject: Subject,
    *,
    episodes: int = 256,
    draws: int = DRAWS,
    words: bool = True,
    device: str = "cpu",
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> RewardReport:
    """Evaluates rewards of one goal. Raises ValueError where the goal has no success judge."""
    task, goal = subject.task, subject.goal
    if not goal.key:
        raise ValueError(
            f"a reward can be evaluated only for a goal with a success judge: {goal.truth}"
        )
    made: dict[str, BuiltReward] = {}
    spoken: dict[str, Figures | None] = {}
    with contextlib.closing(BatchEnv(task, 1)) as env:
        for name, settings in subject.rewards.items():
            options = {"device": device, "progress": progress}
            as_made = subject.made_as.get(name, name)
            made[name] = make_reward(as_made, goal, env, settings, **options)
            if (model := made[name].model) is not None:
                subject.restore(model)
        for name, settings in subject.rewards.items():
            if words:
                progress("words", 0.0)
                settings = settings or reward_type(name).settings()
                spoken[name] = language_figures(name, goal, task, settings, env)
    coverage = collect_coverage(
        task, episodes, subject.runs, progress=lambda share: progress("episodes", share)
    )
    known = np.isfinite(coverage.dense).any()
    judged = [_judged(name, made[name].model) for name in subject.rewards]
    beside = [name for name in OWN if name not in made and (name == "sparse" or known)]
    judged += [_judged(name, None) for name in beside]
    controls = _controls(coverage, subject.gamma)
    way = whole_episodes(coverage)
    pays = {}
    for number, j in enumerate([*judged, *controls]):
        pays[j.name] = j.pay(coverage, way)
        progress("pay", (number + 1) / (len(judged) + len(controls)))
    rewards_paid = {name: pay.reward for name, pay in pays.items()}
    truths = [name for name in ("sparse", "task") if name in rewards_paid]
    everyone = [*judged, *controls]
    far = {}
    for number, (part, columns) in enumerate(
        (("free", coverage.of(FREE)), ("all", np.arange(len(coverage.who))))
    ):
        progress("distance", number / 2)
        far[part] = reward_distances(
            everyone, rewards_paid, truths, coverage, columns, subject.gamma, draws
        )
    rows = {
        j.name: {
            **{part: found[j.name] for part, found in far.items()},
            "order in time": value_order(j, rewards_paid[j.name], coverage),
            **classification_metrics(j, pays[j.name], coverage, draws),
        }
        for j in everyone
    }
    for name, reward in made.items():
        description = {"sees": reward.sees, "text": reward.text, "scorer": reward.about}
        rows[name] |= {**description, "language": spoken.get(name)}
    return RewardReport(
        {
            "task": task.name,
            "robot": getattr(task, "robot", ""),
            "goal": goal.text,
            "truth": goal.key,
            "gamma": subject.gamma,
            "seed": COVER_SEED,
            "draws": draws,
            "expert-free": list(FREE),
            "coverage": _covered(coverage),
            "truths": truths,
            "judged": list(made),
            "rewards": {j.name: rows[j.name] for j in judged},
            "controls": {j.name: rows[j.name] for j in controls},
        },
        coverage,
        rewards_paid,
    )


def _judged(name: str, model: RewardModel | None) -> JudgedReward:
    if model is None:
        return JudgedReward(name, by_entry(OWN[name]))
    own = name.startswith("success:")
    return JudgedReward(name, by_model(model), state_value(model), threshold=own)


def _controls(coverage: Coverage, gamma: float) -> list[JudgedReward]:
    """A reward about nothing, one about time, and the truth again in another shape."""
    found = [JudgedReward("random", by_entry(random)), JudgedReward("time", clock)]
    if np.isfinite(coverage.distance).all():
        pay = by_entry(lambda cover: shaped(cover, gamma))
        found.append(JudgedReward("truth, shaped", pay, lambda cover: 10.0 * cover.distance))
    return found


def _covered(coverage: Coverage) -> dict[str, Figures]:
    result, names = episode_outcomes(coverage), ("fail", "near", "success")
    return {
        str(who): {
            "episodes": int((coverage.who == who).sum()),
            **{n: int(((coverage.who == who) & (result == i)).sum()) for i, n in enumerate(names)},
        }
        for who in dict.fromkeys(coverage.who)
    }


def best_paid_failures(verdict: RewardReport, name: str, columns: Array) -> Array:
    """Returns those of ``columns`` that end in failure, by the reward at their ends, highest first.

    Args:
        verdict: The evaluated rewards on a coverage.
        name: The reward.
        columns: (n,) episodes of the coverage.
    """
    pay, lost = end_scores(verdict.paid[name], verdict.cover), episode_outcomes(verdict.cover) < 2
    some = columns[lost[columns]]
    return some[np.argsort(-pay[some], kind="stable")]


def write_failure_video(
    verdict: RewardReport, name: str, path: Path, policys: Sequence[str] = ()
) -> int:
    """Writes a video of the failures with the most reward, of a run's policy where it has three,
    else of any actor. Returns how many are shown; 0 where they fill no row."""
    from robo_rl.evaluation.rollout_video import COLUMNS, write_rollout_video

    coverage = verdict.cover
    own = best_paid_failures(verdict, name, coverage.of(tuple(policys)))
    some = (
        own
        if len(own) >= COLUMNS
        else best_paid_failures(verdict, name, np.arange(len(coverage.who)))
    )
    some = some[: min(SHOWN, len(some) // COLUMNS * COLUMNS)]
    if not len(some):
        return 0
    held = np.concatenate([np.zeros_like(coverage.success[:1]), coverage.success])[:, some]
    last = coverage.last[:, some]
    recording = Recording(
        coverage.states[:, some],
        {n: s[:, some] for n, s in coverage.signals.items()},
        coverage.action[:, some],
        held,
        coverage.distance[:, some],
        coverage.task.control_dt,
        EpisodePosition(np.indices(last.shape)[0], last, coverage.terminated[:, some]),
    )
    write_rollout_video(path, coverage.task, recording, np.nan_to_num(verdict.paid[name][:, some]))
    return len(some)


def subject_of_run(path: Path) -> Subject:
    """Returns the subject of a finished run; ValueError where its reward cannot be evaluated."""
    from robo_rl.config.resolve import resolve
    from robo_rl.config.train_config import SettledConfig, from_json
    from robo_rl.training.train import reward_name

    run = RunDir.open(path)
    _ = run.judged  # ValueError before it has been
    if run.config["task"].startswith("gym:"):
        raise ValueError(f"{path}: task {run.config['task']} has no success judge")
    if run.config.get("learner") == "clone":
        raise ValueError(f"{path} is a behaviour-cloning run and has no reward")
    resolved = resolve(from_json(SettledConfig, run.config))
    config, task = resolved.config, resolved.task

    def restore(model: RewardModel) -> None:
        from robo_rl.learners.checkpoint import Stateful

        last = run.latest_checkpoint()
        if last is not None and isinstance(model, Stateful):
            model.load_state_dict(select_prefix(last.state, "reward"))

    return Subject(
        task,
        resolved.goal,
        {config.reward: config.scoring},
        {config.reward: reward_name(config, path)},
        config.tuning.gamma(task.control_dt),
        (path,),
        restore,
    )


def keep_report(run: RunDir, verdict: RewardReport) -> None:
    """Leaves the report in a run, its page and its bundle's manifest."""
    from robo_rl.training.report import write_report

    write_json(run.path / REPORT, verdict.report)
    write_report(run)
    bundle = run.path / "bundle"
    if (bundle / MANIFEST).exists():
        manifest = Manifest.from_json((bundle / MANIFEST).read_text(encoding="utf-8"))
        metrics = {**manifest.metrics, "reward_report": brief_figures(verdict.report)}
        write_manifest(bundle, dataclasses.replace(manifest, metrics=metrics))


def brief_figures(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the judged reward that a bundle carries."""
    [name] = report["judged"]
    row = report["rewards"][name]
    return json.loads(
        json.dumps(
            {
                "reward": name,
                "starc": {part: row[part]["starc"] for part in ("free", "all")},
                "auc": row["auc all"],
                "order": row["order"],
                "order in time": row["order in time"]["success"],
                "false positives": row["threshold"]["false positives"],
            }
        )
    )
