"""train(): a config in, a run folder out: policy, figures, video, report and bundle."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import sims
from real_robot.bundle import POLICY
from real_robot.layout import has_arm
from robo_rl.config import TrainConfig
from robo_rl.evaluate import Evaluation, Recording, evaluate, record
from robo_rl.export import export, export_policy
from robo_rl.goals import ReadGoal, read_goal
from robo_rl.learners.loop import learn
from robo_rl.learners.sb3 import Learner, make_learner
from robo_rl.report import write_report
from robo_rl.rewards import CODE, MadeReward, make_reward
from robo_rl.runs import RunDir, atomic_write, write_json
from robo_rl.scene import ask_labels, audit, describe, write_card
from robo_rl.threads import set_threads
from robo_rl.video import annotate, grid, write_webm
from sims.batch_env import BatchEnv
from sims.randomize import Randomize, RandomizedEnv, widened
from sims.task import Task

Array = np.ndarray

SHOWN = 6  # episodes in the video
FRAME_S = 0.04  # s, about the time between two of its frames
MOST_FRAMES = 250  # of an episode, about; long ones are shown with fewer a second
PROGRAM = "reward.py"  # a reward program's text inside its run
AUDITED = 256  # on-policy frames rendered after training to measure the distilled encoder's error


@dataclass
class Trained:
    """A finished run."""

    run: RunDir
    goal: ReadGoal
    evaluation: Evaluation
    bundle: Path | None  # None: the task moves no arm
    seconds: dict[str, float]  # wall time of reward, training, evaluation


def train(
    config: TrainConfig, *, resume: Path | None = None, console: Console | None = None
) -> Trained:
    """Trains, evaluates, reports and exports; ``resume`` continues the run in that folder."""
    threads = set_threads()
    set_threads(threads, learning=threads)  # no simulation beside it: the networks get every core
    task = sims.make_task(config.task, robot=config.robot or None)
    goal = read_goal(task, config.goal or next(iter(task.goals().values())).sentence)
    if config.reward == "clip" and goal.formula is None:
        raise ValueError(goal.refusal)
    task = sims.make_task(config.task, robot=config.robot or None, goal=goal.key or None)
    say = console.print if console else lambda *_: None
    say(f"goal: [bold]{goal.text}[/bold] = {goal.formula}; {goal.truth}")

    path = resume or run_path(config, goal)
    if resume is None:
        RunDir.check_free(path)
    seconds: dict[str, float] = {}
    start = time.monotonic()
    num_envs = config.tuning.num_envs
    env = training_env(task, config, threads)
    data_env = BatchEnv(task, max(num_envs, 128), seed=config.seed + 1, num_threads=threads)
    reward = config.reward
    if resume is not None and (path / PROGRAM).exists():
        reward = f"{CODE}{path / PROGRAM}"  # as it was, whatever became of the file since
    with stages(console) as progress:
        made = make_reward(
            reward, goal, data_env, config.clip, device=config.device, progress=progress
        )
    seconds["reward"] = time.monotonic() - start
    # Only now: whatever could not be had so far leaves no folder behind.
    run = RunDir.open(path) if resume else RunDir.create(path, config)
    say(f"reward: {config.reward}: {escape(made.text)}")
    if made.scene is not None:
        say(f"scene: {describe(made.scene.report)}; {seconds['reward']:.0f} s")
        write_card(made.scene, run.path / "scene.json")
    if made.program is not None:
        atomic_write(run.path / PROGRAM, made.program.text.encode())

    start = time.monotonic()
    set_threads(threads)
    learner = make_learner(config.tuning, env, made.model, seed=config.seed, device=config.device)
    labels = Labels(config, made, data_env, learner)
    learn(
        learner,
        config.env_steps,
        run=run,
        checkpoint_every=config.checkpoint_every,
        resume=resume is not None,
        console=console,
        on_row=lambda row: (labels(row), widen(learner, config))[0],
    )
    seconds["train"] = time.monotonic() - start
    labels_asked, rendered = labels.frames, env_frames(learner)
    env.close()

    start = time.monotonic()
    evaluation = evaluate(task, learner.act, judged=bool(goal.key), episodes=config.episodes)
    shown = record(task, learner.act, episodes=SHOWN)
    within: dict[str, Any] = {}
    if config.shaped:
        judged = evaluate(
            task, learner.act, judged=bool(goal.key), episodes=config.episodes, shaped=True
        )
        within = {"evaluation_shaped": judged.as_dict()}
    result = {
        "goal": goal.text,
        "formula": str(goal.formula),
        "truth": goal.key,
        "reward": config.reward,
        "captions": made.text,
        "evaluation": evaluation.as_dict(),
        **within,
        "env_steps": learner.env_steps,
        "frames": {"scene": made.frames, "training": rendered, "labels": labels_asked},
    }
    reward_curve = judge_recording(made, learner, shown)
    if made.scene is not None and made.model is not None:
        result["audit"] = on_policy_audit(made, data_env, shown_act=learner.act)
    make_video(run.path / "video.webm", task, shown, reward_curve)
    bundle = None
    if has_arm(task):
        bundle = export(
            learner,
            task,
            goal,
            made.text,
            evaluation.as_dict(),
            run.path / "bundle",
            reward_hash=made.program.hash if made.program is not None else "",
            training=how(config, learner.env_steps),
        )
    else:
        export_policy(learner, task, run.path / POLICY)
    seconds["evaluate"] = time.monotonic() - start
    result["seconds"] = {name: round(value, 1) for name, value in seconds.items()}
    write_json(run.path / "result.json", result)
    write_report(run)
    data_env.close()
    return Trained(run, goal, evaluation, bundle, seconds)


def training_env(task: Task[Any], config: TrainConfig, threads: int) -> BatchEnv:
    """The rows to train on: all the same, or randomised from a width of 0 on.

    Their episodes may be shorter than those that are judged: what happens after the first seconds
    (lying where it fell, say) may be nothing to learn from.
    """
    if config.episode_s:
        task = replace(task, episode_s=config.episode_s)
    options = {"seed": config.seed, "num_threads": threads, "shaped": config.shaped}
    if not config.randomize:
        return BatchEnv(task, config.tuning.num_envs, **options)
    env = RandomizedEnv(
        task, config.tuning.num_envs, randomize=Randomize(width=config.randomize), **options
    )
    env.width = 0.0
    return env


def how(config: TrainConfig, env_steps: int) -> dict[str, Any]:
    """What a bundle says of its training; with no ``randomize`` there was no noise and no delay."""
    spread = asdict(Randomize(width=config.randomize)) if config.randomize else {}
    return {
        "reward": config.reward,
        "learner": config.learner,
        "env_steps": env_steps,
        "seed": config.seed,
        "randomize": spread,
        "shaped": config.shaped,
    }


def widen(learner: Learner, config: TrainConfig) -> None:
    """Lets the spread of randomised rows grow with training."""
    sim = learner.env.sim
    if isinstance(sim, RandomizedEnv):
        sim.width = widened(sim.randomize, learner.env_steps / config.env_steps)


class Labels:
    """Asks for labels during training: called with each metrics row by ``learn``."""

    def __init__(self, config: TrainConfig, made: MadeReward, env: BatchEnv, learner: Learner):
        self.config, self.made, self.env, self.learner = config, made, env, learner
        self.frames, self._rows = 0, 0
        self._rng = np.random.default_rng(config.seed)

    def __call__(self, row: dict[str, float]) -> None:
        self._rows += 1
        scene = self.made.scene
        if scene is None or not self.config.labels or self._rows % self.config.labels_every:
            return
        encoder = self.made.model.embedder.encoder
        before = scene.surrogate.version
        asked = ask_labels(
            scene,
            self.env,
            encoder,
            self.learner.act,
            count=self.config.labels,
            threshold=self.config.labels_above,
            rng=self._rng,
        )
        self.frames += int(asked["labels"])
        relabel = getattr(self.learner.buffer, "relabel", None)
        if scene.surrogate.version != before and relabel is not None:
            relabel()


def run_path(config: TrainConfig, goal: ReadGoal) -> Path:
    """``runs/reach-the-gripper-touches-the-red-cube-clip-0``."""
    slug = re.sub(r"[^a-z0-9]+", "-", (goal.key or goal.text).lower()).strip("-")[:60]
    reward = config.reward
    if reward.startswith(CODE):
        reward = f"code-{re.sub(r'[^A-Za-z0-9_]+', '-', Path(reward.removeprefix(CODE)).stem)}"
    name = config.name or f"{config.task}-{slug}-{reward}-{config.learner}-{config.seed}"
    return config.runs / name


def stages(console: Console | None) -> Any:
    """A context whose value is ``progress(stage, share)``, drawn where there is a console."""
    if console is None:
        return nullcontext(lambda stage, share: None)
    return _Stages(console)


class _Stages:
    def __init__(self, console: Console):
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Callable[[str, float], None]:
        self._progress.start()
        return self._update

    def __exit__(self, *_: object) -> None:
        for task in self._tasks.values():
            self._progress.update(task, completed=1.0)
        self._progress.stop()

    def _update(self, stage: str, share: float) -> None:
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, completed=1.0)
            self._tasks[stage] = self._progress.add_task(f"{stage:8}", total=1.0)
        self._progress.update(self._tasks[stage], completed=share)


def env_frames(learner: Learner) -> int:
    """Frames that training itself rendered."""
    return learner.env.observer.frames_rendered


def judge_recording(made: MadeReward, learner: Learner, shown: Recording) -> Array:
    """The learned reward (T, N) along a recording, or minus the true distance without one."""
    from reward_models.base import Segment

    steps, rows = shown.action.shape[:2]
    if made.model is None:
        return -shown.distance[1:]

    def frames(camera: str, where: Array) -> Array:
        return learner.env.sim.render_states(shown.states[where], camera)

    segment = Segment(shown.signals, frames, shown.action, np.ones((steps, rows), bool))
    return made.model.score(segment).reward


def on_policy_audit(
    made: MadeReward, env: BatchEnv, shown_act: Callable[[Array], Array]
) -> dict[str, float]:
    """The distilled encoder against frames rendered on the finished policy's own states."""
    states, signals = [], []
    obs = env.reset()
    for _ in range(env.max_steps):
        obs = env.step(shown_act(obs)).obs
        states.append(env.state())
        signals.append(env.signals())
    pick = np.random.default_rng(0).permutation(len(states) * env.num_envs)[:AUDITED]
    names = made.scene.surrogate.names
    rows = {name: np.concatenate([s[name] for s in signals])[pick] for name in names}
    encoder = made.model.embedder.encoder
    frames = env.render_states(np.concatenate(states)[pick], encoder.camera)
    return audit(made.scene.surrogate, rows, encoder.encode(frames)) | {"frames": float(AUDITED)}


def make_video(path: Path, task: Task[Any], shown: Recording, reward: Array) -> None:
    """Writes the recorded episodes as one video with their reward curves."""
    env = BatchEnv(task, 1)
    videos = []
    steps = len(shown.action)
    every = max(1, round(FRAME_S / shown.control_dt), steps // MOST_FRAMES)
    for row in range(shown.states.shape[1]):
        frames = env.render_states(shown.states[::every, row], size=(288, 288))
        curve = np.concatenate([reward[:1, row], reward[:, row]])[::every]
        videos.append(annotate(frames, curve, shown.success[::every, row], f"episode {row + 1}"))
    env.close()
    write_webm(path, grid(videos, 3), fps=1.0 / (every * shown.control_dt))
