"""`robo-rl reward score`: what is seen, frame by frame, against a sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import sims
from reward_models.metrics import spearman
from robo_rl.commands.options import Json
from robo_rl.evaluate import TEST_SEED, make_task, record
from robo_rl.goals import read_goal
from robo_rl.policies import load_policy
from robo_rl.rewards.clip import ClipConfig, captions_for
from robo_rl.runs import RunDir
from robo_rl.video import read_frames
from sims.batch_env import BatchEnv
from sims.task import Task

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class ScoreCommand:
    """Scores what is seen against a sentence, frame by frame."""

    source: tyro.conf.Positional[Path]  # a run, a video file, or a folder of images
    goal: str = ""  # the sentence; empty: the run's own
    task: str = "reach"  # whose objects the sentence is about (a run brings its own)
    encoder: str = "embedded"  # embedded[:PATH], or MODEL[:PRETRAINED] of open_clip
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints one score per frame; of a run, also how well it orders the frames by distance."""
    command = tyro.cli(ScoreCommand, args=list(argv), prog="robo-rl reward score")
    from reward_models.visual.encoders import make_encoder  # torch: seconds, not for --help

    encoder = make_encoder(command.encoder)
    task, distance = sims.make_task(command.task), None
    text = command.goal
    if RunDir(command.source).finished:
        frames, task, distance, text = _run_frames(command.source, text)
    else:
        frames, _ = read_frames(command.source)
    if not text:
        raise ValueError("give the sentence: --goal TEXT")
    goal = read_goal(task, text)
    captions = [c.text for c in captions_for(encoder, goal, ClipConfig())[-1]]
    rows = encoder.encode(np.ascontiguousarray(frames))
    cosine = (rows @ encoder.encode_texts(tuple(captions)).T).min(axis=1)
    figures: dict[str, Any] = {"captions": captions, "frames": len(frames)}
    if distance is not None and goal.key == task.goal:
        figures |= order(cosine, distance)
    if command.as_json:
        print(json.dumps(figures | {"score": cosine.tolist()}, indent=1))
        return 0
    print("; ".join(f"{k}: {v}" for k, v in figures.items()))
    for index, value in enumerate(cosine):
        bar = "#" * max(0, round(30 * (value + 0.3)))
        print(f"{index:4d} {value:+.3f} {bar}")
    return 0


def order(score: Array, distance: Array) -> dict[str, Any]:
    """Spearman of scores (n,) and nearness, minus the true distance (n,): 1 where the score falls
    with every step away. Frames at distance 0 have no order: it is that of the others, and None
    where these are fewer than three."""
    away = distance > 0.0
    rank = float(spearman(score[away], -distance[away])) if away.sum() >= 3 else None
    return {"spearman_with_nearness": rank, "frames_at_distance_0": int((~away).sum())}


def _run_frames(path: Path, text: str) -> tuple[Array, Task[Any], Array, str]:
    """(frames (T+1, H, W, 3), task, true distance (T+1,) m, sentence) of one fresh episode of a
    run's policy."""
    run = RunDir.open(path)
    result = run.result
    task = make_task(run.config, result["truth"])
    shown = record(task, load_policy(path).act, episodes=1, seed=TEST_SEED + 1)
    env = BatchEnv(task, 1)
    frames = env.render_states(shown.states[:, 0])
    env.close()
    return frames, task, shown.distance[:, 0], text or result["goal"]
