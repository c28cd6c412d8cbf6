"""film(): a policy's episodes as a video, each above the curve of its reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reward_models.base import RewardModel, Segment
from robo_rl.evaluation.evaluate import Recording
from robo_rl.runs.video import ANNOTATED, annotate, grid, write_webm
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray

COLUMNS = 3
FRAME_S = 0.04  # s, about the time between two frames
MOST_FRAMES = 250  # of an episode, about; long ones are shown with fewer a second


def recording_reward(model: RewardModel | None, env: BatchEnv, recording: Recording) -> Array:
    """The reward (T, N) that ``model`` gives to a recording; without one, minus what is missing.

    ``env`` draws the frames that the model looks at.
    """
    if model is None:
        assert recording.distance is not None, "the task's own reward is that of a known goal"
        return -recording.distance[1:]

    def frames(camera: str, where: Array) -> Array:
        size = getattr(model, "frame_size", None)
        return env.render_states(recording.states[where], camera, size=size)

    valid = np.ones(recording.action.shape[:2], bool)
    return model.score(
        Segment(recording.signals, frames, recording.action, valid, recording.place)
    ).reward


def write_rollout_video(path: Path, task: Task[Any], recording: Recording, reward: Array) -> None:
    """Writes the recorded episodes as one video with their ``reward`` (T, N) below them."""
    steps, episodes = recording.action.shape[:2]
    every = max(1, round(FRAME_S / recording.control_dt), steps // MOST_FRAMES)
    env = BatchEnv(task, 1)
    videos = []
    for row in range(episodes):
        frames = env.render_states(recording.states[::every, row], size=(288, 288))
        curve = np.concatenate([reward[:1, row], reward[:, row]])[::every]
        held = None if recording.success is None else recording.success[::every, row]
        videos.append(annotate(frames, curve, held, f"episode {row + 1}"))
    env.close()
    together = (grid(images, COLUMNS) for images in zip(*videos, strict=True))
    write_webm(path, together, fps=1.0 / (every * recording.control_dt), comment=ANNOTATED)
