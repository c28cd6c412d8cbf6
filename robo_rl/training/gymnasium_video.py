"""Film and stills of a policy on ``gym:ID``: what was seen, and what the reward made of it.

Where nobody can judge these are what there is to look at: a reward that pays for the wrong thing
shows it in the frames that it pays most for.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from reward_models.base import EpisodePosition, RewardModel, Segment, positions_from_start
from robo_rl.config.train_config import TrainConfig
from robo_rl.runs.video import ANNOTATED, annotate, grid, write_webm
from robo_rl.training.gymnasium import Act, make_gymnasium_env
from sims.rendering.resize import resize_frames

Array = np.ndarray

FILM, PAID = "video.webm", "paid.png"
EPISODES = 3
MOST_STEPS = 500  # of an episode
MOST_FRAMES = 250  # of a film
HEIGHT = 240  # px
STILLS, APART = 8, 5  # of the highest paid; steps between two of them
COLUMNS = 4


class RecordedEpisodes(NamedTuple):
    """Some episodes of a policy; a row that is over stays as it was."""

    frames: Array  # (T+1, N, HEIGHT, W, 3) uint8, to be shown
    looked: Array  # (T+1, N, h, w, 3) uint8, as a model looks at them
    signals: dict[str, Array]  # {name: (T+1, N, k)}
    action: Array  # (T, N, act_dim)
    reward: Array  # (T, N), the env's own
    live: Array  # (T, N) bool, steps of the episode
    place: EpisodePosition  # of each of them in it
    control_dt: float  # s


def record_episodes(
    config: TrainConfig, act: Act, seed: int, size: tuple[int, int] | None, crop: bool = False
) -> RecordedEpisodes:
    """The first episodes of ``act`` on a seed, seen as the env renders itself, and by a model that
    looks at frames of ``size``, stretched or cropped to it, or as they are."""
    sim = make_gymnasium_env(config, EPISODES, seed, frames=True)
    try:
        obs = sim.reset()
        frames, model_frames, signals, actions, rewards, live = [], [], [sim.signals()], [], [], []
        terminated = []

        def look() -> None:  # not kept as it is: an env may draw a megabyte a step
            drawn = sim.render()
            height, width = drawn.shape[1:3]
            frames.append(resize_frames(drawn, (HEIGHT, 2 * round(HEIGHT * width / height / 2))))
            model_frames.append(resize_frames(drawn, size, crop))

        look()
        over = np.zeros(EPISODES, bool)
        while not over.all() and len(actions) < min(sim.max_steps, MOST_STEPS):
            live.append(~over)
            step = sim.step(act(obs))
            look()
            signals.append(sim.signals())
            actions.append(step.action)
            rewards.append(step.reward)
            terminated.append(step.terminated)
            over |= step.terminated | step.truncated
            obs = step.obs
    finally:
        sim.close()
    stacked = {name: np.stack([s[name] for s in signals]) for name in signals[0]}
    arrays = (np.stack(rows) for rows in (actions, rewards, live))
    place = positions_from_start(np.stack(live), np.stack(terminated))
    return RecordedEpisodes(
        np.stack(frames), np.stack(model_frames), stacked, *arrays, place, sim.control_dt
    )


def step_rewards(model: RewardModel | None, recorded: RecordedEpisodes) -> Array:
    """(T, N) what ``model`` pays for each step; None: the env itself."""
    if model is None:
        return np.where(recorded.live, recorded.reward, 0.0)

    def frames(camera: str, where: Array) -> Array:
        return recorded.looked[where]

    return model.score(
        Segment(recorded.signals, frames, recorded.action, recorded.live, recorded.place)
    ).reward


def write_gymnasium_video(folder: Path, recorded: RecordedEpisodes, reward: Array) -> None:
    """Writes the episodes as one video with ``reward`` (T, N) below them, and the stills of the
    steps that were paid most."""
    every = -(-len(reward) // MOST_FRAMES)
    videos = []
    for row in range(recorded.frames.shape[1]):
        curve = np.concatenate([reward[:1, row], reward[:, row]])[::every]
        videos.append(annotate(recorded.frames[::every, row], curve, None, f"episode {row + 1}"))
    together = (grid(images, len(images)) for images in zip(*videos, strict=True))
    write_webm(folder / FILM, together, fps=1.0 / (every * recorded.control_dt), comment=ANNOTATED)
    stills = [
        _titled(recorded.frames[t + 1, n], f"{reward[t, n]:.3f}")
        for t, n in highest_rewards(reward, recorded.live)
    ]
    blank = [np.zeros_like(stills[0])] * (-len(stills) % COLUMNS)
    sheet = grid([*stills, *blank], COLUMNS)
    cv2.imwrite(str(folder / PAID), sheet[..., ::-1])


def highest_rewards(reward: Array, live: Array) -> list[tuple[int, int]]:
    """(step, row) of the highest rewards (T, N), the highest first, none near another of its
    row."""
    left = np.where(live, reward, -np.inf)
    found: list[tuple[int, int]] = []
    while len(found) < STILLS and np.isfinite(left).any():
        t, n = np.unravel_index(int(np.argmax(left)), left.shape)
        found.append((int(t), int(n)))
        left[max(0, t - APART) : t + APART + 1, n] = -np.inf
    return found


def _titled(image: Array, text: str) -> Array:
    return cv2.putText(
        image.copy(), text, (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (200, 30, 90), 1, cv2.LINE_AA
    )
