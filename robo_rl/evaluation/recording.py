"""record(): some episodes of a policy, kept so that they can be rendered and scored later."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reward_models.base import EpisodePosition, positions_from_start
from robo_rl.evaluation.baselines import make_evaluation_env
from robo_rl.evaluation.evaluate import VALIDATION_SEED
from robo_rl.goals.external_task import ExternalTask
from robo_rl.rollout.episode_runner import Act
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.external.gymnasium_env import GymnasiumEnv
from sims.randomization.domain_randomization import Randomize
from sims.rendering.resize import resize_frames

Array = np.ndarray

MOST_STEPS = 500  # of an episode of an external env, whose frames are kept
HEIGHT = 240  # px, of those that are shown


class RecordedFrames(NamedTuple):
    """What an external env showed: it has no states to render later."""

    shown: Array  # (T+1, N, HEIGHT, W, 3) uint8, for people
    seen: Array  # (T+1, N, h, w, 3) uint8, as a reward model looks at them


@dataclass(frozen=True)
class Recording:
    """Some episodes: as states, or of an external env as frames."""

    states: Array | None  # (T+1, N, nstate); None: see ``frames``
    signals: Mapping[str, Array]  # {name: (T+1, N, ...)}
    action: Array  # (T, N, act_dim)
    success: Array | None  # (T+1, N) bool; None: no success judge
    distance: Array | None  # (T+1, N), in the goal's unit; None: no distance
    control_dt: float  # s
    place: EpisodePosition  # of each step; unchanged after an episode ends
    frames: RecordedFrames | None = None
    reward: Array | None = None  # (T, N) the external env's own
    live: Array | None = None  # (T, N) bool, steps of the episode; None: all are looked at


def record(
    task: Task[Any] | ExternalTask,
    act: Act,
    *,
    episodes: int,
    seed: int = VALIDATION_SEED,
    judged: bool = True,
    shaped: bool = False,
    randomize: float | Randomize = 0.0,
    frame_size: tuple[int, int] | None = None,
    frame_crop: bool = False,
) -> Recording:
    """Returns ``episodes`` whole episodes of a policy.

    Args:
        task: a task, or an external env, of which no success and no distance is kept.
        act: the policy, obs (n, obs_dim) -> action (n, act_dim).
        episodes: how many, at the same time.
        seed: of the episodes.
        judged: whether the task's goal is what is meant.
        shaped: as of ``evaluate``.
        randomize: as of ``evaluate``; what is kept are MuJoCo's states alone.
        frame_size: (height, width) px of what a reward model sees of an external env; None: as it
            is rendered.
        frame_crop: whether frames are cropped to the shape of ``frame_size``, and not stretched.
    """
    external = isinstance(task, ExternalTask)
    rows = {"width": randomize, "judged": judged, "shaped": shaped}
    how = {"frames": True} if external else rows
    with closing(make_evaluation_env(task, episodes, seed=seed, **how)) as env:
        return _recorded(env, act, judged and not external, (frame_size, frame_crop))


def _recorded(
    env: BatchEnv | GymnasiumEnv, act: Act, judged: bool, seen: tuple[tuple[int, int] | None, bool]
) -> Recording:
    own = env if isinstance(env, BatchEnv) else None
    measured = own is not None and judged and own.judge is None
    looks, signals, success, distance = [], [], [], []
    actions, rewards, live, terminated = [], [], [], []

    def look() -> None:
        looks.append(_frames_now(env, *seen) if own is None else (own.mujoco_state(),))
        signals.append(env.signals())
        if measured:
            distance.append(own.distance())

    obs, over = env.reset(), np.zeros(env.num_envs, bool)
    look()
    success.append(over if own is None else own.held.copy())
    for _ in range(min(env.max_steps, MOST_STEPS) if own is None else env.max_steps):
        action = np.asarray(act(obs))
        step = env.step(action)
        live.append(~over)
        look()
        actions.append(action)
        rewards.append(step.reward)
        terminated.append(step.terminated)
        if judged:
            success.append(step.info["success"])
        over = over | step.terminated | step.truncated
        obs = step.obs
        if own is None and over.all():  # nothing moves any more
            break
    kept = [np.stack(images) for images in zip(*looks, strict=True)]
    return Recording(
        None if own is None else kept[0],
        {name: np.stack([s[name] for s in signals]) for name in signals[0]},
        np.stack(actions),
        np.stack(success) if judged else None,
        np.stack(distance) if measured else None,
        env.control_dt,
        positions_from_start(np.stack(live), np.stack(terminated)),
        RecordedFrames(*kept) if own is None else None,
        np.stack(rewards) if own is None else None,
        np.stack(live) if own is None else None,
    )


def _frames_now(env: GymnasiumEnv, size: tuple[int, int] | None, crop: bool) -> tuple[Array, Array]:
    """Returns the frames for the video and for the reward, (N, H, W, 3) uint8 each.

    They are resized at once, since an env may render a megabyte a step."""
    drawn = env.render()
    height, width = drawn.shape[1:3]
    shown = resize_frames(drawn, (HEIGHT, 2 * round(HEIGHT * width / height / 2)))
    return shown, resize_frames(drawn, size, crop)
