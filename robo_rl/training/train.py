"""train(): a config in, a run folder out: policy, figures, video, report and bundle."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from reward_models.base import from_dict
from reward_models.goals.formula import parts_of
from robo_rl.config.resolve import ResolvedRun, resolve
from robo_rl.config.train_config import SettledConfig, TrainConfig, from_json, resumed_config
from robo_rl.evaluation.baselines import measure_baselines
from robo_rl.evaluation.evaluate import EVAL_SEEDS, Evaluation, conditions_of, evaluate
from robo_rl.evaluation.recording import record
from robo_rl.evaluation.reward_tables import overoptimised
from robo_rl.evaluation.rollout_video import (
    BEST_PAID,
    VIDEO,
    recording_reward,
    write_best_paid,
    write_rollout_video,
)
from robo_rl.goals.goal_task import GoalTask
from robo_rl.learners.fit import FitResult, check_device, fit
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner
from robo_rl.learners.tensorboard import TensorBoardWriter
from robo_rl.rewards import CODE, BuiltReward, make_reward
from robo_rl.runs.run_dir import RunDir, run_folder, slug
from robo_rl.runtime.memory import peak_memory
from robo_rl.runtime.progress_bars import stage_progress
from robo_rl.runtime.threads import set_threads
from robo_rl.training.artifacts import export_best_policy, export_bundle, keep_reward
from robo_rl.training.checks import check_reachable, check_run, pre_run_advice
from robo_rl.training.on_policy_labels import OnPolicyLabels, on_policy_audit
from robo_rl.training.periodic_eval import EvalCallback, make_eval_callback
from robo_rl.training.report import write_report
from robo_rl.training.run_envs import (
    PROGRAM,
    RandomizationCurriculum,
    async_scoring_recipe,
    scoring_env,
    training_env,
)
from robo_rl.training.trained import Trained
from robo_rl.vision.distilled_scene import describe
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv
from sims.tasks.scene.mjcf import scene_label

SHOWN, SHOWN_EXTERNAL = 6, 3  # episodes in the video, of our tasks and of external envs
BOARD = "tensorboard"  # folder of a run


def train(
    config: TrainConfig | ResolvedRun | None = None,
    *,
    resume: Path | None = None,
    console: Console | None = None,
) -> Trained:
    """Trains, evaluates, reports and exports; returns the finished run.

    Args:
        config: what to train; None: the defaults, or what the resumed run began with.
        resume: folder of a run to continue, with what ``config`` changes of it and may
            (``env_steps`` extends it).
        console: shows messages and progress; None: silent.

    Raises:
        ValueError: options that do not fit each other, the goal or the task, a run folder that is
            taken, or a goal that is not read or cannot be reached; nothing was trained then.
        OSError: the run folder cannot be written, or an external env failed.
    """
    resolved = config if isinstance(config, ResolvedRun) else _resolved(config, resume)
    check_device(resolved.config.device)
    check_run(resolved)
    threads = set_threads()
    set_threads(threads, learning=threads)  # no simulation beside it: the networks get every core
    training = _Training(resolved, resume, console, threads)
    training.say_goal()
    if resume is None:
        RunDir.check_free(training.path)
        check_reachable(resolved, threads)
    training.prepare()
    set_threads(threads)
    with RunDir.under_way(training.path, resolved.config, resume=resume is not None) as run:
        keep_reward(run, training.made)
        return training.finish(run, training.learn(run))


def reward_name(config: SettledConfig, resume: Path | None) -> str:
    """Returns the reward's name; a resumed run uses its own copy of a reward program."""
    if resume is not None and (resume / PROGRAM).exists():
        return f"{CODE}{resume / PROGRAM}"
    return config.reward


def run_path(resolved: ResolvedRun) -> Path:
    """Returns ``runs/reach-touch-red-cube-clip-ppo-0``; an arm, things or a scene that were asked
    for stand after the task."""
    config, goal = resolved.config, resolved.goal
    words = goal.text if goal.key.startswith("[") else goal.key or goal.text
    if resolved.external:
        words = ""
    scene = scene_label(config.scene) if config.scene else ""
    asked = [config.robot, *(slug(text) for text in (config.things, scene, words))]
    reward, _, file = config.reward.partition(":")
    if file:
        reward = f"{reward}-{re.sub(r'[^A-Za-z0-9_]+', '-', Path(file).stem)}"
    task = config.task.replace("/", "-").replace(":", "-")
    parts = [task, *asked, reward, config.learner, str(config.seed)]
    return run_folder(config.runs, config.name or "-".join(filter(None, parts)))


def _resolved(config: TrainConfig | None, resume: Path | None) -> ResolvedRun:
    """What is to be trained, of a new run, or of one that is resumed with ``config``'s changes."""
    if resume is None:
        return resolve(config or TrainConfig())
    stored = from_json(SettledConfig, RunDir.open(resume).config)
    return resolve(resumed_config(resume, stored, vars(config) if config else {}))


class _Training:
    """One run on its way: first ``prepare``, then ``learn``, then ``finish``.

    A goal without a success judge, or an external env, goes the same way: what is not known of it
    is None, and what is not there (baselines, a bundle) is left out.
    """

    env: BatchEnv | GymnasiumEnv  # trained on
    data_env: BatchEnv | GymnasiumEnv  # in which the reward is made, and its frames are rendered
    made: BuiltReward
    labels: OnPolicyLabels | None
    frames: dict[str, int]  # rendered, by purpose

    def __init__(
        self, resolved: ResolvedRun, resume: Path | None, console: Console | None, threads: int
    ):
        self.resolved, self.config, self.task = resolved, resolved.config, resolved.task
        self.resume, self.console, self.threads = resume, console, threads
        self.path = resume or run_path(resolved)
        self.say = console.print if console else lambda *_: None
        self.timer = _PhaseTimer()
        self.exam: dict[str, Any] = {
            "episodes": self.config.episodes,
            "seed": EVAL_SEEDS[self.config.eval_seeds],
        }
        self.conditions = conditions_of(vars(self.config), self.task)  # judged as it is trained

    def say_goal(self) -> None:
        """Says the goal as read, how it is judged, and what should be known of it."""
        goal = self.resolved.goal
        if self.resolved.external:
            return
        read = f" = {escape(str(goal.formula))}" if goal.formula is not None else ""
        self.say(f"goal: [bold]{escape(goal.text)}[/bold]{read}; {goal.truth}")
        if advised := pre_run_advice(self.resolved):
            self.say(advised)

    def prepare(self) -> None:
        """Makes the environments and the reward, and measures what is reached without learning."""
        self.timer.restart()
        config, task = self.config, self.task
        self.env = training_env(task, config, self.threads, self.resolved.judged)
        config.tuning.check(self.env)
        self.data_env = scoring_env(self.resolved, self.threads)
        with stage_progress(self.console) as progress:
            goal, card = self.resolved.goal, from_dict(self.data_env.card)
            self.made = make_reward(
                reward_name(config, self.resume),
                replace(goal, card=card) if self.resolved.external else goal,
                self.data_env,
                config.scoring,
                device=config.device,
                progress=progress,
            )
            self.timer.end_phase("reward")
            if self.resolved.judged:
                rows = {**self.exam, **self._rows(), "progress": progress}
                baselines = measure_baselines(task, **rows)
                self.say(f"baselines: {baselines.line()}")
                self.timer.end_phase("floors")
        if isinstance(self.env, GymnasiumEnv):
            self.env.frame_size = getattr(self.made.model, "frame_size", None)
            self.env.frame_crop = getattr(self.made.model, "frame_crop", False)
            self.data_env.close()  # it has no states that could be rendered or labelled later
        scene = self.made.scene
        self.labels = None if scene is None else OnPolicyLabels(config, scene, self.data_env)

    def learn(self, run: RunDir) -> FitResult:
        """Trains in ``run``, with periodic evaluations, and closes what was trained on."""
        config, made = self.config, self.made
        self._say_reward()
        recipe = None
        if config.async_scoring:
            recipe = async_scoring_recipe(self.resolved, self.path, made)
        hooks: list[Hook] = [hook for hook in (self.labels, made.asks) if hook is not None]
        with ExitStack() as stack:
            board = stack.enter_context(closing(TensorBoardWriter(run.path / BOARD)))
            hooks += [RandomizationCurriculum(self.env, config.env_steps), board]
            if config.eval_points and (self.resolved.judged or self.resolved.external):
                hooks.append(self._eval_callback(run, board, stack))
            fitted = fit(
                self.env,
                made.model,
                config.tuning,
                env_steps=config.env_steps,
                seed=config.seed,
                device=config.device,
                run=run,
                resume=self.resume is not None,
                checkpoint_every=config.checkpoint_every,
                console=self.console,
                hooks=hooks,
                recipe=recipe,
            )
        self.timer.end_phase("train")
        self.frames = {
            "scene": made.frames,
            "training": fitted.learner.env.observer.frames_rendered,
            "labels": sum(asks.frames for asks in (self.labels, made.asks) if asks is not None),
            "looks": sum(hook.frames_rendered for hook in hooks if isinstance(hook, EvalCallback)),
        }
        self.env.close()
        return fitted

    def finish(self, run: RunDir, fitted: FitResult) -> Trained:
        """Evaluates the final policy, writes the video, the bundle, the result and the report."""
        learner, made = fitted.learner, self.made
        evaluation = self._evaluation(learner)
        result = self._result(run, learner, evaluation)
        if self.config.rate_limited and evaluation is not None:
            under = {**self.exam, **self.conditions, "shaped": False}
            without = evaluate(self.task, learner.act, **under)
            result["evaluation_unlimited"] = without.as_dict()
            self.say(f"for comparison, without the rate limits it was trained in: {without.line()}")
        if made.scene is not None:
            result["audit"] = on_policy_audit(made.scene, self.data_env, learner.act)
        self._write_video(run, learner)
        bundle, error = export_bundle(run, self.resolved, learner, made, evaluation)
        if bundle is None:
            result["export_error"] = error
        best = export_best_policy(run, fitted)
        self.data_env.close()
        self.timer.end_phase("evaluate")
        run.finish({**result, "seconds": self.timer.rounded()})
        write_report(run)
        return Trained(run, fitted, best, evaluation, bundle, self.timer.seconds)

    def _say_reward(self) -> None:
        goal, made = self.resolved.goal, self.made
        self.say(f"reward: {self.config.reward}: {escape(made.text)}")
        self.say(f"it sees: {made.sees}")
        if not isinstance(self.task, GoalTask) and len(parts_of(goal.formula, "then")) > 1:
            self.say(
                "the policy is not told which part it is at; it is with "
                f'--formula "{escape(str(goal.formula))}" in place of --goal'
            )
        if made.scene is not None:
            seconds = self.timer.seconds["reward"]
            self.say(f"scene: {describe(made.scene.report)}; {seconds:.0f} s")

    def _eval_callback(
        self, run: RunDir, board: TensorBoardWriter, stack: ExitStack
    ) -> EvalCallback:
        """What evaluates the policy while it learns; its environments are closed by ``stack``."""
        return make_eval_callback(
            run,
            self.resolved,
            self.env,
            self.made.model,
            told=board.log_evaluation,
            warn=self.say,
            stack=stack,
            rows={**self._rows(), "num_threads": self.threads},
        )

    def _rows(self) -> dict[str, Any]:
        """What the environments differ in and keep to in which the policy is judged."""
        return {"width": self.conditions["randomize"], "shaped": self.conditions["shaped"]}

    def _evaluation(self, learner: Learner) -> Evaluation | None:
        """What the final policy came to; None where there is nothing to judge it by."""
        if not (self.resolved.judged or self.resolved.external):
            return None
        with stage_progress(self.console) as progress:
            under = {**self.exam, **self.conditions, "progress": progress}
            return evaluate(self.task, learner.act, **under)

    def _result(
        self, run: RunDir, learner: Learner, evaluation: Evaluation | None
    ) -> dict[str, Any]:
        goal, made, scene = self.resolved.goal, self.made, self.config.scene
        result = {
            "goal": goal.text,
            "formula": "" if goal.formula is None else str(goal.formula),
            "truth": goal.key,
            "reward": self.config.reward,
            "captions": made.text,
            "sees": made.sees,
            "scorer": made.about,
            "evaluation": None if evaluation is None else evaluation.as_dict(),
            "env_steps": learner.env_steps,
            "peak_memory_gb": round(peak_memory() / 1e9, 3),
            "frames": self.frames,
            "scene": scene_label(scene) if scene else "",
        }
        turned = overoptimised(run.evaluations.read())
        return result | ({"overoptimised": turned} if turned else {})

    def _write_video(self, run: RunDir, learner: Learner) -> None:
        """Writes episodes as a video and, without a success judge, the frames of highest reward."""
        external, made = self.resolved.external, self.made
        if external and not made.camera:
            return  # an external env is rendered for a reward that looks at it, or not at all
        shown = record(
            self.task,
            learner.act,
            episodes=SHOWN_EXTERNAL if external else SHOWN,
            seed=self.exam["seed"],
            judged=self.resolved.judged,
            **self.conditions,
            frame_size=getattr(made.model, "frame_size", None),
            frame_crop=getattr(made.model, "frame_crop", False),
        )
        reward = recording_reward(made.model, None if external else self.data_env, shown)
        write_rollout_video(run.path / VIDEO, self.task, shown, reward)
        if shown.success is None:
            write_best_paid(run.path / BEST_PAID, self.task, shown, reward)


class _PhaseTimer:
    """Wall time s of each part of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        """The next phase begins now."""
        self._since = time.monotonic()

    def end_phase(self, name: str) -> None:
        """What ran since the last call was ``name``."""
        now = time.monotonic()
        self.seconds[name], self._since = now - self._since, now

    def rounded(self) -> Mapping[str, float]:
        """To tenths, for files."""
        return {name: round(value, 1) for name, value in self.seconds.items()}
