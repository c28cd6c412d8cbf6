"""Writes a policy's episodes as a video, each above the curve of its reward, and the frames with
the highest reward.

Without a success judge, those frames show whether the reward is high for the wrong thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from reward_models.base import RewardModel, Segment
from robo_rl.evaluation.recording import Recording
from robo_rl.goals.external_task import ExternalTask
from robo_rl.runs.video import ANNOTATED, annotate, grid, write_webm
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray
Images = Callable[[Any], Array]  # index into (T+1, N) -> frames (k, H, W, 3) uint8

VIDEO, BEST_PAID = "video.webm", "paid.png"  # of a run
COLUMNS = 3
SIZE = (288, 288)  # px, of frames of our scenes
FRAME_S = 0.04  # s, about the time between two frames
MOST_FRAMES = 250  # of an episode, about; long ones are shown with fewer a second
STILLS, STILL_COLUMNS, APART = 8, 4, 5  # of the highest paid; steps between two of them


def recording_reward(model: RewardModel | None, env: BatchEnv | None, shown: Recording) -> Array:
    """Returns the reward (T, N) that ``model`` gives to a recording.

    Without a model that is the external env's own, or minus the distance that is missing to the
    goal. ``env`` renders the states that the model looks at; None: frames were recorded.
    """
    live = np.ones(shown.action.shape[:2], bool) if shown.live is None else shown.live
    if model is None:
        if shown.reward is not None:
            return np.where(live, shown.reward, 0.0)
        assert shown.distance is not None, "the task's own reward is that of a known goal"
        return -shown.distance[1:]

    def frames(camera: str, where: Array) -> Array:
        if shown.frames is not None:
            return shown.frames.seen[where]
        assert env is not None
        size = getattr(model, "frame_size", None)
        return env.render_states(shown.states[where], camera, size=size)

    return model.score(Segment(shown.signals, frames, shown.action, live, shown.place)).reward


def write_rollout_video(
    path: Path, task: Task[Any] | ExternalTask, shown: Recording, reward: Array
) -> None:
    """Writes the recorded episodes as one video with their ``reward`` (T, N) below them."""
    steps, episodes = shown.action.shape[:2]
    every = max(1, round(FRAME_S / shown.control_dt), steps // MOST_FRAMES)
    videos = []
    with _images_of(task, shown) as images:
        for row in range(episodes):
            frames = images(np.s_[::every, row])
            curve = np.concatenate([reward[:1, row], reward[:, row]])[::every]
            held = None if shown.success is None else shown.success[::every, row]
            videos.append(annotate(frames, curve, held, f"episode {row + 1}"))
    together = (grid(images, COLUMNS) for images in zip(*videos, strict=True))
    write_webm(path, together, fps=1.0 / (every * shown.control_dt), comment=ANNOTATED)


def write_best_paid(
    path: Path, task: Task[Any] | ExternalTask, shown: Recording, reward: Array
) -> None:
    """Writes the frames after the steps with the highest ``reward`` (T, N) as one image."""
    live = np.ones(reward.shape, bool) if shown.live is None else shown.live
    with _images_of(task, shown) as images:
        stills = [
            _titled(images(np.s_[t + 1 : t + 2, n])[0], f"{reward[t, n]:.3f}")
            for t, n in highest_rewards(reward, live)
        ]
    blank = [np.zeros_like(stills[0])] * (-len(stills) % STILL_COLUMNS)
    sheet = grid([*stills, *blank], STILL_COLUMNS)
    cv2.imwrite(str(path), sheet[..., ::-1])


def highest_rewards(reward: Array, live: Array) -> list[tuple[int, int]]:
    """Returns (step, row) of the highest of ``reward`` (T, N) where ``live`` (T, N) bool, the
    highest first, none near another of its row."""
    left = np.where(live, reward, -np.inf)
    found: list[tuple[int, int]] = []
    while len(found) < STILLS and np.isfinite(left).any():
        t, n = np.unravel_index(int(np.argmax(left)), left.shape)
        found.append((int(t), int(n)))
        left[max(0, t - APART) : t + APART + 1, n] = -np.inf
    return found


@contextmanager
def _images_of(task: Task[Any] | ExternalTask, shown: Recording) -> Iterator[Images]:
    """What gives the recorded frames, or those of the recorded states."""
    if shown.frames is not None:
        recorded = shown.frames.shown
        yield lambda where: recorded[where]
        return
    with closing(BatchEnv(task, 1)) as env:
        yield lambda where: env.render_states(shown.states[where], size=SIZE)


def _titled(image: Array, text: str) -> Array:
    return cv2.putText(
        image.copy(), text, (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (200, 30, 90), 1, cv2.LINE_AA
    )
