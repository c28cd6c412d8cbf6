"""`robo-rl reward score`: what is seen, frame by frame, against a sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.console import Console

import sims
from reward_models.metrics import or_none, spearman
from reward_models.wire.judge import Said
from reward_models.wire.questions import spread
from robo_rl.commands.options import Json
from robo_rl.evaluate import TEST_SEED, make_task, record
from robo_rl.goals import read_goal
from robo_rl.policies import load_policy
from robo_rl.rewards.clip import ClipConfig, captions_for
from robo_rl.runs import RunDir
from robo_rl.video import read_frames
from robo_rl.wire import JUDGES, SHOWN, JudgeConfig, drawn_at, is_judge, judge_of, told
from sims.batch_env import BatchEnv
from sims.task import Task

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class ScoreCommand:
    """Scores what is seen against a sentence: frame by frame by an encoder, or a few frames of each
    episode by a model behind a wire."""

    source: tyro.conf.Positional[tuple[Path, ...]]  # runs, video files, or folders of images
    goal: str = ""  # the sentence; empty: the run's own
    task: str = "reach"  # whose objects the sentence is about (a run brings its own)
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    scorer: str = "clip"  # the encoder; or a model behind a wire: vlm:MODEL, robometer:URL
    ask: Literal["progress", "rating"] = "progress"  # of such a model: by frame, or at the end
    frames: int = 8  # of each episode that such a model is shown, evenly
    episodes: int = 1  # of a run's policy
    model: JudgeConfig = field(default_factory=JudgeConfig)  # where that is, what it may cost
    as_json: Json = False  # print JSON


@dataclass(frozen=True)
class Seen:
    """An episode."""

    name: str
    frames: Array  # (T, H, W, 3) uint8
    at: Array  # (T,) numbers of these frames in the episode
    task: Task[Any]
    text: str  # the sentence
    distance: Array | None = None  # (T,) m, of each frame to the goal, where the simulator says
    met: bool | None = None  # whether the goal is met at the end, where the simulator says


def main(argv: Sequence[str]) -> int:
    """Prints one score per frame; of a run, also how well it orders the frames by distance."""
    command = tyro.cli(ScoreCommand, args=list(argv), prog="robo-rl reward score")
    if command.scorer != "clip" and not is_judge(command.scorer):
        known = ", ".join(("clip", *JUDGES))
        raise ValueError(f"unknown scorer {command.scorer!r}; known: {known}")
    if not command.source:
        raise ValueError("what is to be scored? Give runs, video files, or folders of images")
    if command.frames < 2 or command.episodes < 1:
        raise ValueError(f"--frames must be at least 2 and --episodes 1, got {command.frames} and "
                         f"{command.episodes}")  # fmt: skip
    scored = _by_clip(command) if command.scorer == "clip" else _by_model(command)
    if command.as_json:
        told_ = scored[0] if len(scored) == 1 else {"episodes": scored}
        print(json.dumps(told_, indent=1, allow_nan=False))
        return 0
    low = -0.3 if command.scorer == "clip" else 0.0
    for figures in scored:
        rows = ("at", "score", "success_prob")
        print("; ".join(f"{k}: {v}" for k, v in figures.items() if k not in rows))
        for number, value in zip(figures["at"], figures["score"], strict=True):
            bar = "#" * max(0, round(30 * (value - low)))
            print(f"{number:4d} {value:+.3f} {bar}")
    return 0


def _by_clip(command: ScoreCommand) -> list[dict[str, Any]]:
    """Figures of each episode, every frame of which is looked at."""
    from reward_models.visual.encoders import make_encoder  # torch: seconds, not for --help

    encoder, scored = make_encoder(command.encoder), []
    for seen in _episodes(command):
        goal = read_goal(seen.task, seen.text)
        captions = [c.text for c in captions_for(encoder, goal, ClipConfig())[-1]]
        rows = encoder.encode(np.ascontiguousarray(seen.frames))
        cosine = (rows @ encoder.encode_texts(tuple(captions)).T).min(axis=1)
        figures = {"captions": captions} | _told(seen, cosine)
        scored.append(figures)
    return scored


def _by_model(command: ScoreCommand) -> list[dict[str, Any]]:
    """Figures of each episode, a few frames of which are shown to a model."""
    judge, budget = judge_of(command.scorer, command.model)
    seen = _episodes(command, command.frames, SHOWN)

    def ask(number: int) -> Said:
        one = seen[number]
        asked = judge.progress if command.ask == "progress" else judge.rate
        return asked(one.frames, one.text)

    scored: list[dict[str, Any]] = [{} for _ in seen]
    console = Console(stderr=True)
    for number, said in told(ask, range(len(seen)), len(seen), command.model, budget, console):
        one = seen[number]
        value = np.zeros(0) if said.value is None else np.atleast_1d(said.value)
        figures = {"scorer": judge.name, "asked": command.ask, "sentence": one.text}
        figures |= _told(one, value) | {name: x.tolist() for name, x in said.more.items()}
        scored[number] = figures | ({"said": said.why} if said.value is None else {})
    return scored


def _told(seen: Seen, score: Array) -> dict[str, Any]:
    """What is said of an episode with ``score`` of each frame, of its end alone, or none."""
    at = seen.at[len(seen.at) - len(score) :]
    figures: dict[str, Any] = {"source": seen.name, "frames": len(seen.frames)}
    if len(score) == len(seen.at):
        figures["spearman_with_time"] = or_none(spearman(score, at)) if len(at) > 2 else None
        if seen.distance is not None and len(score):
            figures |= order(score, seen.distance)
    if seen.met is not None:
        figures["success"] = seen.met
    return figures | {"at": at.tolist(), "score": score.tolist()}


def order(score: Array, distance: Array) -> dict[str, Any]:
    """Spearman of scores (n,) and nearness, minus the true distance (n,): 1 where the score falls
    with every step away. Frames at distance 0 have no order: it is that of the others, and None
    where these are fewer than three."""
    away = distance > 0.0
    rank = or_none(spearman(score[away], -distance[away])) if away.sum() >= 3 else None
    return {"spearman_with_nearness": rank, "frames_at_distance_0": int((~away).sum())}


def _episodes(command: ScoreCommand, most: int = 0, height: int = 0) -> list[Seen]:
    """What there is to be seen: all frames, or at most so many of each episode, drawn so high."""
    found = []
    for source in command.source:
        if RunDir(source).finished:
            found += _of_run(source, command, most, height)
            continue
        frames, _ = read_frames(source)
        at = spread(len(frames), most) if most else np.arange(len(frames))
        if not command.goal:
            raise ValueError(f"{source} does not say what it shows: give the sentence: --goal TEXT")
        task = sims.make_task(command.task)
        text = read_goal(task, command.goal).text
        found.append(Seen(str(source), frames[at], at, task, text))
    return found


def _of_run(path: Path, command: ScoreCommand, most: int, height: int) -> list[Seen]:
    """Fresh episodes of a run's policy."""
    run = RunDir.open(path)
    result = run.result
    task = make_task(run.config, result["truth"])
    shown = record(task, load_policy(path).act, episodes=command.episodes, seed=TEST_SEED + 1)
    steps = len(shown.states)
    at = spread(steps, most) if most else np.arange(steps)
    text = read_goal(task, command.goal or result["goal"]).text
    same = read_goal(task, text).key == task.goal
    env, found = BatchEnv(task, 1), []
    for row in range(command.episodes):
        frames = env.render_states(shown.states[at, row], size=drawn_at(env.camera(), height))
        distance = shown.distance[at, row] if same and shown.distance is not None else None
        met = bool(shown.success[-1, row]) if same and shown.success is not None else None
        name = f"{path.name}, episode {row}" if command.episodes > 1 else str(path)
        found.append(Seen(name, frames, at, task, text, distance, met))
    env.close()
    return found
