"""train(): a config in, a run folder out: policy, figures, video, report and bundle."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape

from real_robot.core.arm_layout import has_arm
from real_robot.policy.bundle import POLICY
from reward_models.base import RewardModel
from reward_models.goals.duration import achieved_by
from reward_models.goals.formula import atoms, parts_of
from reward_models.goals.margins import NoMargin
from robo_rl.bundles.export import check, deterministic_actor, export, export_policy, to_onnx
from robo_rl.config.resolve import ResolvedRun, resolve
from robo_rl.config.train_config import SettledConfig, TrainConfig, from_json, resumed_config
from robo_rl.evaluation.baselines import measure_baselines
from robo_rl.evaluation.evaluate import (
    EVAL_SEEDS,
    Evaluation,
    conditions_of,
    evaluate,
    randomization_of,
    record,
)
from robo_rl.evaluation.reward_tables import overoptimised
from robo_rl.evaluation.rollout_video import recording_reward, write_rollout_video
from robo_rl.goals.external_task import ExternalTask
from robo_rl.goals.feasibility import check_feasible
from robo_rl.goals.goal_task import GoalTask, training_task
from robo_rl.goals.reading import ReadGoal, read_goal
from robo_rl.learners import IQLConfig, OffPolicyConfig
from robo_rl.learners.fit import FitResult, check_device, fit
from robo_rl.learners.hooks import Hook
from robo_rl.learners.learner import Learner
from robo_rl.learners.tensorboard import TensorBoardWriter
from robo_rl.rewards import CODE, BuiltReward, make_reward, reward_type
from robo_rl.rollout.subprocess_scorer import Recipe
from robo_rl.rollout.vec_sim import VecSim
from robo_rl.runs.policy import BEST_POLICY, Policy, load_graph
from robo_rl.runs.run_dir import SCORER, RunDir, atomic_write, run_folder, slug, write_json
from robo_rl.runtime.memory import peak_memory
from robo_rl.runtime.progress_bars import stage_progress
from robo_rl.runtime.threads import set_threads
from robo_rl.training.gymnasium import (
    evaluate_gymnasium,
    gymnasium_reward,
    make_gymnasium_env,
    reports_success,
)
from robo_rl.training.gymnasium_video import record_episodes, step_rewards, write_gymnasium_video
from robo_rl.training.on_policy_labels import OnPolicyLabels, on_policy_audit
from robo_rl.training.periodic_eval import (
    EvalCallback,
    make_eval_callback,
    make_gymnasium_eval_callback,
)
from robo_rl.training.report import write_report
from robo_rl.training.trained import Trained
from robo_rl.vision.distilled_scene import describe, write_card
from sims.core.multi_goal import MultiGoalTask
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.randomization.domain_randomization import (
    Randomize,
    RandomizedEnv,
    curriculum_width,
    make_randomized_env,
)
from sims.tasks.scene.mjcf import scene_label

SHOWN = 6  # episodes in the video
PROGRAM = "reward.py"  # a reward program's text inside its run
BOARD = "tensorboard"  # folder of a run
CHECKED_STEPS = 64  # of a foreign env, whose observations its policy's graph is checked on


def train(
    config: TrainConfig | ResolvedRun | None = None,
    *,
    resume: Path | None = None,
    console: Console | None = None,
) -> Trained:
    """Trains, evaluates, reports and exports.

    ``resume`` continues the run in that folder: as it began without a ``config``, else with what
    the config changes and may (``env_steps``: a run goes on for more).
    """
    resolved = config if isinstance(config, ResolvedRun) else _resolved(config, resume)
    config, task, goal, judged = resolved.config, resolved.task, resolved.goal, resolved.judged
    check_device(config.device)
    if isinstance(task, ExternalTask):
        return _train_gymnasium(config, resume, console)
    threads = set_threads()
    set_threads(threads, learning=threads)  # no simulation beside it: the networks get every core
    if config.async_scoring:
        check_async_scoring(config, goal)
    for option in ("stop_at", "stop_overoptimised"):
        if getattr(config, option) and not goal.key:
            named = option.replace("_", "-")
            raise ValueError(f"--{named} needs a goal with a success judge: {goal.truth}")
    say = console.print if console else lambda *_: None
    read = f" = {escape(str(goal.formula))}" if goal.formula is not None else ""
    say(f"goal: [bold]{escape(goal.text)}[/bold]{read}; {goal.truth}")
    if advised := pre_run_advice(resolved):
        say(advised)
    path = resume or run_path(config, goal)
    if resume is None:
        RunDir.check_free(path)
        if task.formula is not None:
            checked_task = task if isinstance(task, GoalTask) else GoalTask(inner=task)
            with suppress(NoMargin):  # what can be told and not measured may be anything
                check_feasible(checked_task, seed=config.seed, num_threads=threads)

    timer = _PhaseTimer()
    env = training_env(task, config, threads, judged)
    config.tuning.check(env)
    data_env = BatchEnv(task, max(env.num_envs, 128), seed=config.seed + 1, num_threads=threads)
    eval_kwargs = {"episodes": config.episodes, "seed": EVAL_SEEDS[config.eval_seeds]}
    conditions = conditions_of(vars(config), task)  # it is judged as it is trained
    rows = {"width": conditions["randomize"], "shaped": conditions["shaped"]}
    with stage_progress(console) as progress:
        made = make_reward(
            reward_name(config, resume),
            goal,
            data_env,
            config.scoring,
            device=config.device,
            progress=progress,
        )
        timer.end_phase("reward")
        if judged:
            baselines = measure_baselines(task, **eval_kwargs, **rows, progress=progress)
            say(f"what learns nothing reaches: {baselines.line()}")
            timer.end_phase("floors")
    recipe = async_scoring_recipe(resolved, path, made) if config.async_scoring else None
    labels = OnPolicyLabels(config, made.scene, data_env) if made.scene is not None else None
    hooks: list[Hook] = [hook for hook in (labels, made.asks) if hook is not None]
    set_threads(threads)
    with (
        RunDir.under_way(path, config, resume=resume is not None) as run,
        closing(TensorBoardWriter(run.path / BOARD)) as board,
        closing(
            make_randomized_env(task, config.eval_episodes, **rows, num_threads=threads)
        ) as look_env,
    ):
        keep_reward(run, made)
        say(f"reward: {config.reward}: {escape(made.text)}")
        say(f"it sees: {made.sees}")
        if not isinstance(task, GoalTask) and len(parts_of(goal.formula, "then")) > 1:
            say(
                "the policy is not told which part it is at; it is with "
                f'--formula "{escape(str(goal.formula))}" in place of --goal'
            )
        if made.scene is not None:
            say(f"scene: {describe(made.scene.report)}; {timer.seconds['reward']:.0f} s")
        hooks += [RandomizationCurriculum(env, config.env_steps), board]
        if judged and config.eval_points:
            hooks.append(make_eval_callback(run, config, look_env, board, made.model, say))
        fitted = _fitted(env, made.model, config, run, resume is not None, hooks, console, recipe)
        learner = fitted.learner
        timer.end_phase("train")
        frames = {
            "scene": made.frames,
            "training": learner.env.observer.frames_rendered,
            "labels": sum(asks.frames for asks in (labels, made.asks) if asks is not None),
            "looks": sum(hook.frames for hook in hooks if isinstance(hook, EvalCallback)),
        }
        env.close()

        evaluation = None
        if judged:
            with stage_progress(console) as progress:
                evaluation = evaluate(
                    task, learner.act, **eval_kwargs, **conditions, progress=progress
                )
        result = {
            "goal": goal.text,
            "formula": "" if goal.formula is None else str(goal.formula),
            "truth": goal.key,
            "reward": config.reward,
            "captions": made.text,
            "sees": made.sees,
            "scorer": made.about,
            "evaluation": None if evaluation is None else evaluation.as_dict(),
            "env_steps": learner.env_steps,
            "peak_memory_gb": round(peak_memory() / 1e9, 3),
            "frames": frames,
            "scene": scene_label(config.scene) if config.scene else "",
        }
        if len(turned := overoptimised(run.looks.read())):
            result["overoptimised"] = turned
        if config.rate_limited and judged:
            without = evaluate(task, learner.act, **eval_kwargs, **conditions | {"shaped": False})
            result["evaluation_unlimited"] = without.as_dict()
            say(f"for comparison, without the rate limits it was trained in: {without.line()}")
        if made.scene is not None:
            result["audit"] = on_policy_audit(made.scene, data_env, learner.act)
        recording = record(
            task, learner.act, episodes=SHOWN, seed=eval_kwargs["seed"], judged=judged, **conditions
        )
        write_rollout_video(
            run.path / "video.webm",
            task,
            recording,
            recording_reward(made.model, data_env, recording),
        )
        bundle = export_bundle(run, config, learner, task, goal, made, evaluation)
        best = export_best_policy(run, fitted)
        data_env.close()
        timer.end_phase("evaluate")
        result["seconds"] = timer.rounded()
        run.finish(result)
        write_report(run)
        return Trained(run, fitted, best, evaluation, bundle, timer.seconds)


def _resolved(config: TrainConfig | None, resume: Path | None) -> ResolvedRun:
    """Returns the resolved settings of a new run, or of one that is resumed with ``config``'s
    changes."""
    if resume is None:
        return resolve(config or TrainConfig())
    stored = from_json(SettledConfig, RunDir.open(resume).config)
    return resolve(resumed_config(resume, stored, vars(config) if config else {}))


def _train_gymnasium(
    config: SettledConfig, resume: Path | None, console: Console | None
) -> Trained:
    """The same on ``gym:ID``: its own reward, or one of what is seen there; return beside success,
    the policy's graph alone."""
    ours = (
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
    if given := [name for name in ours if getattr(config, name)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{config.task} is an external environment: leave out {options}")
    if config.reward == "offline":
        raise ValueError(
            f"{config.task} names no objects, so no reward can be generated for it from a "
            "sentence: use --reward clip with --clip.encoder MODEL:PRETRAINED, task, or code:FILE"
        )
    if bool(config.goal) != (config.reward in ("clip", "film")):
        raise ValueError(
            f"in {config.task}, --reward clip and film need --goal, and other rewards do not take "
            "it"
        )
    set_threads()
    made = re.sub("[/:]", "-", f"{config.task}-{config.reward}-{config.learner}-{config.seed}")
    path = resume or run_folder(config.runs, config.name or made)
    if resume is None:
        RunDir.check_free(path)
    timer = _PhaseTimer()
    with stage_progress(console) as progress:
        made, goal = gymnasium_reward(config, reward_name(config, resume), progress)
    timer.end_phase("reward")
    size = getattr(made.model, "frame_size", None)
    crop = getattr(made.model, "frame_crop", False)
    frame_options = {"frames": True, "frame_size": size, "frame_crop": crop} if made.camera else {}
    sim = make_gymnasium_env(config, config.tuning.num_envs, config.seed, **frame_options)
    config.tuning.check(sim)
    if config.stop_at and not reports_success(config):
        raise ValueError(
            f"--stop-at needs a success rate, and {config.task} reports no success: leave it out"
        )
    with (
        RunDir.under_way(path, config, resume=resume is not None) as run,
        closing(TensorBoardWriter(run.path / BOARD)) as board,
    ):
        keep_reward(run, made)
        if console is not None:
            console.print(f"reward: {config.reward}: {escape(made.text)}; it sees: {made.sees}")
        hooks: list[Hook] = [board]
        if config.eval_points:
            hooks.append(make_gymnasium_eval_callback(run, config, sim, board))
        fitted = _fitted(sim, made.model, config, run, resume is not None, hooks, console)
        timer.end_phase("train")
        observations = [sim.reset()]
        for _ in range(CHECKED_STEPS):
            observations.append(sim.step(fitted.act(observations[-1])).obs)
        obs = np.concatenate(observations)
        graph = to_onnx(deterministic_actor(fitted.learner.algorithm), sim.obs_dim)
        error = check(graph, obs, fitted.act(obs))
        atomic_write(run.path / POLICY, graph)
        best = export_best_policy(run, fitted)
        sim.close()
        sample = config.episodes, EVAL_SEEDS[config.eval_seeds]
        with stage_progress(console) as progress:
            evaluation = evaluate_gymnasium(config, fitted.act, *sample, progress=progress)
        if made.camera:
            recorded = record_episodes(config, fitted.act, sample[1], size, crop)
            write_gymnasium_video(run.path, recorded, step_rewards(made.model, recorded))
        timer.end_phase("evaluate")
        rendered = fitted.learner.env.observer.frames_rendered
        result = {
            "goal": goal.text,
            "formula": "",
            "truth": "",
            "reward": config.reward,
            "captions": made.text,
            "sees": made.sees,
            "scorer": made.about,
            "evaluation": evaluation.as_dict(),
            "env_steps": fitted.learner.env_steps,
            "peak_memory_gb": round(peak_memory() / 1e9, 3),
            "frames": {"scene": made.frames, "training": rendered, "labels": 0},
            "export_error": error,
            "seconds": timer.rounded(),
        }
        run.finish(result)
        write_report(run)
        return Trained(run, fitted, best, evaluation, None, timer.seconds)


def _fitted(
    sim: VecSim,
    reward: RewardModel | None,
    config: SettledConfig,
    run: RunDir,
    resume: bool,
    hooks: Sequence[Hook],
    console: Console | None,
    recipe: Recipe | None = None,
) -> FitResult:
    """``fit`` as the config says, into the run's folder."""
    return fit(
        sim,
        reward,
        config.tuning,
        env_steps=config.env_steps,
        seed=config.seed,
        device=config.device,
        run=run,
        resume=resume,
        checkpoint_every=config.checkpoint_every,
        console=console,
        hooks=hooks,
        recipe=recipe,
    )


def check_async_scoring(config: SettledConfig, goal: ReadGoal) -> None:
    """ValueError where a run's reward cannot be scored in a process of its own."""
    kind = reward_type(config.reward)
    plain = isinstance(config.tuning, OffPolicyConfig) and not isinstance(config.tuning, IQLConfig)
    parts = parts_of(goal.formula, "and") if goal.formula is not None else ()
    in_turn = any(len(parts_of(part, "then")) > 1 for part in parts)
    queries = getattr(config.scoring, "answers", 0) or getattr(config.scoring, "distill", False)
    for refused, why in (
        (
            not plain,
            f"{config.learner} has no replay buffer for rewards that arrive later: use an "
            "off-policy learner",
        ),
        (
            config.reward in ("task", "sparse"),
            f"--reward {config.reward} is the simulator's and is not slow",
        ),
        (bool(queries), "this reward is refitted during training"),
        (in_turn, "a sequence of goals needs the scores of earlier steps"),
        (
            kind.frames
            and bool(config.randomize or config.rate_limited or config.latency or config.stiffness),
            "frames are rendered without them: leave out "
            "--randomize, --rate-limited, --latency and --stiffness",
        ),
        (config.device != "cpu", f"it scores on the CPU only, got --device {config.device}"),
    ):
        if refused:
            raise ValueError(f"--async-scoring: {why}")


def async_scoring_recipe(resolved: ResolvedRun, path: Path, made: BuiltReward) -> Recipe:
    """Returns what a subprocess needs to make the reward of the run in ``path``."""
    config = resolved.config
    stored_program = made.program is not None and config.reward.startswith(
        CODE
    )  # whatever becomes of a file
    name = f"{CODE}{(path / PROGRAM).resolve()}" if stored_program else config.reward
    return partial(_async_reward, resolved, name)


def _async_reward(resolved: ResolvedRun, name: str) -> tuple[RewardModel, BatchEnv]:
    """The reward of a run, and an env that its frames are drawn in; in the judge's process."""
    config = resolved.config
    env = BatchEnv(resolved.task, 128, seed=config.seed + 1, num_threads=1)
    made = make_reward(name, resolved.goal, env, config.scoring)
    assert made.model is not None  # or nobody would have asked for it
    return made.model, env


def reward_name(config: SettledConfig, resume: Path | None) -> str:
    """The reward's name; a run that goes on keeps its program, whatever became of the file."""
    if resume is not None and (resume / PROGRAM).exists():
        return f"{CODE}{resume / PROGRAM}"
    return config.reward


def keep_reward(run: RunDir, made: BuiltReward) -> None:
    """Leaves in the run what its reward was made of."""
    if made.scene is not None:
        write_card(made.scene, run.path / "scene.json")
    if made.about:
        write_json(run.path / SCORER, made.about)
    if made.program is not None:
        atomic_write(run.path / PROGRAM, made.program.text.encode())


def export_bundle(
    run: RunDir,
    config: TrainConfig,
    learner: Learner,
    task: Task[Any],
    goal: ReadGoal,
    made: BuiltReward,
    evaluation: Evaluation | None,
) -> Path | None:
    """The policy's bundle, where the task moves an arm; its graph alone, and None, elsewhere."""
    if not has_arm(task):
        export_policy(learner, task, run.path / POLICY)
        return None
    figures = {} if evaluation is None else evaluation.as_dict()
    if isinstance(
        task, MultiGoalTask
    ):  # a bundle is of one: of the first, until another is asked for
        figures = {"all_goals": figures}
        task = replace(task, only=task.keys[0])
        goal = read_goal(task.inner, task.only)
    return export(
        learner,
        task,
        goal,
        made.text,
        figures,
        run.path / "bundle",
        reward_hash=made.program.hash if made.program is not None else "",
        training=training_metadata(config, task, learner.env_steps),
    )


def export_best_policy(run: RunDir, fitted: FitResult) -> Policy | None:
    """The graph of the weights that the looks found best; None where the final ones are those."""
    from stable_baselines3.common.preprocessing import get_flattened_obs_dim

    (run.path / BEST_POLICY).unlink(missing_ok=True)
    best = run.best()
    if best is None or best.step == fitted.learner.env_steps:
        return None
    policy = fitted.learner.algorithm.policy
    final = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    weights = {name: torch.tensor(array) for name, array in best.weights.items()}
    policy.load_state_dict(weights)
    try:
        obs_dim = get_flattened_obs_dim(policy.observation_space)
        graph = to_onnx(deterministic_actor(fitted.learner.algorithm), obs_dim)
    finally:
        policy.load_state_dict(final)
    atomic_write(run.path / BEST_POLICY, graph)
    return load_graph(run.path / BEST_POLICY)


class _PhaseTimer:
    """Wall time s of each part of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def end_phase(self, name: str) -> None:
        """Books the time since the last call to phase ``name``."""
        now = time.monotonic()
        self.seconds[name], self._since = now - self._since, now

    def rounded(self) -> dict[str, float]:
        """Returns the seconds rounded to tenths."""
        return {name: round(value, 1) for name, value in self.seconds.items()}


def pre_run_advice(resolved: ResolvedRun) -> str:
    """Returns advice that saves a long run; "" without any."""
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


def training_env(
    task: Task[Any], config: SettledConfig, threads: int, judged: bool = True
) -> BatchEnv:
    """The rows to train on: all the same, or randomised from a width of 0 on.

    Their episodes may be shorter than those that are judged: what happens after the first seconds
    (lying where it fell, say) may be nothing to learn from.
    """
    if config.episode_s:
        task = replace(task, episode_s=config.episode_s)
    if isinstance(task, GoalTask):
        # Frames do not show what is to count as done: who looks at them begins at the beginning.
        task = (
            training_task(task, 0.0) if reward_type(config.reward).frames else training_task(task)
        )
    options = {
        "seed": config.seed,
        "num_threads": threads,
        "shaped": config.rate_limited,
        "judged": judged,
        "sparse": config.reward == "sparse",
        "scattered": config.random_starts,
    }
    width = randomization_of(vars(config), task, config.randomize)
    env = make_randomized_env(task, config.tuning.num_envs, width=width, **options)
    if isinstance(env, RandomizedEnv):
        env.width = 0.0
    return env


def training_metadata(config: TrainConfig, task: Task[Any], env_steps: int) -> dict[str, Any]:
    """Returns the training section of a bundle's manifest; with no ``randomize`` there was no noise
    and no delay."""
    rows = randomization_of(vars(config), task, config.randomize)
    if rows and not isinstance(rows, Randomize):
        rows = Randomize(width=rows)
    return {
        "reward": config.reward,
        "learner": config.learner,
        "env_steps": env_steps,
        "seed": config.seed,
        "randomize": asdict(rows) if rows else {},
        "shaped": config.rate_limited,
    }


class RandomizationCurriculum(Hook):
    """Lets the spread of randomised rows grow with training."""

    def __init__(self, env: BatchEnv, env_steps: int):
        self._env, self._env_steps = env, env_steps

    def row(self, row: Mapping[str, float]) -> None:
        if isinstance(self._env, RandomizedEnv):
            self._env.width = curriculum_width(
                self._env.randomize, row["env_steps"] / self._env_steps
            )


def run_path(config: TrainConfig, goal: ReadGoal) -> Path:
    """``runs/reach-touch-red-cube-clip-ppo-0``; an arm, things or a scene that were asked for stand
    after the task."""
    words = goal.text if goal.key.startswith("[") else goal.key or goal.text
    scene = scene_label(config.scene) if config.scene else ""
    name_parts = [config.robot, *(slug(text) for text in (config.things, scene, words))]
    reward, _, file = config.reward.partition(":")
    if file:
        reward = f"{reward}-{re.sub(r'[^A-Za-z0-9_]+', '-', Path(file).stem)}"
    parts = [config.task, *name_parts, reward, config.learner, str(config.seed)]
    return run_folder(config.runs, config.name or "-".join(filter(None, parts)))
