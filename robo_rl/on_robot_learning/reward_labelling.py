"""Paying: what a recorded episode is worth, step by step, to a reward model or to the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from real_robot.core.driver import RobotState
from real_robot.operator.handover import FILTER
from real_robot.perception.base import Pose
from real_robot.policy.twin import Twin
from reward_models.analysis.metrics import auc
from reward_models.base import RewardModel, Segment, positions_from_start
from robo_rl.datasets.robot_logs import LoggedEpisode, decode_frame
from robo_rl.goals.reading import read_goal
from robo_rl.on_robot_learning.config import STATE, VERDICT, OnRobotConfig
from robo_rl.rewards import make_reward, reward_type
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv

Array = np.ndarray
Pay = Callable[[LoggedEpisode], Array]  # (T,) f32 of the steps of an episode

DOUBT = 0.1  # of an AUC, by which a reward must fall to lose what it had
FEWEST = 5  # successes, and failures, without which there is no telling a reward's worth
RARER = 0.2  # share of the rarer of the two, below which a reward that counts goes on counting


def make_reward_labeller(config: OnRobotConfig, task: Task[Any]) -> Pay | None:
    """Returns what labels logged episodes with ``config``'s reward; None: only the verdict is used.
    Raises ValueError where the reward cannot be computed from a log."""
    if config.reward == VERDICT:
        return None
    if config.reward == STATE:
        return _ByState(task)
    kind = reward_type(config.reward)
    settings = kind.settings()
    if getattr(settings, "distill", False):  # on an arm there are pictures, and no true signals
        settings = replace(settings, distill=False)
    if hasattr(settings, "encoder"):
        settings = replace(settings, encoder=config.encoder, dtype=config.dtype)
    with closing(BatchEnv(task, 128, seed=config.seed + 1)) as env:
        goal = read_goal(task, task.goal)
        made = make_reward(config.reward, goal, env, settings, option="--")
    if made.model is None:
        raise ValueError(
            f"--reward {config.reward} needs the simulator's state, which a real arm does "
            f"not have: use {VERDICT}, {STATE}, clip, or another reward on images"
        )
    return _ByModel(made.model, task, config.view or made.camera)


class _LogTwin(Twin):
    """A twin of which signals and rewards are asked."""

    def observed_signals(self) -> Mapping[str, Array]:
        """{name: (1, ...)} of what was last observed."""
        return self.task.signals(self._views)

    def worth(self, action: Array) -> float:
        """The dense reward of an action (act_dim,) that led to what was last observed."""
        goal = self.task.goals()[self.task.goal]
        return float(sum(np.asarray(v)[0] for v in goal.reward(self._views, action[None]).values()))


def states(one: LoggedEpisode) -> list[tuple[RobotState, Mapping[str, Pose]]]:
    """What was measured and perceived at each of the T+1 observations."""
    still = np.zeros(one.measured.shape[1] - 1)
    return [
        (RobotState(t, t, 0, row[:-1].astype(float), still, still, float(row[-1])), poses)
        for t, row, poses in zip(one.t, one.measured, one.poses, strict=True)
    ]


class _ByState:
    """The task's own dense reward of what was perceived."""

    def __init__(self, task: Task[Any]):
        self._task = task

    def __call__(self, one: LoggedEpisode) -> Array:
        twin, rewards = _LogTwin(self._task), []
        for t, (state, poses) in enumerate(states(one)):
            twin.observe(state, poses)
            if t:
                rewards.append(twin.worth(one.action[t - 1]))
        return np.array(rewards, np.float32)


class _ByModel:
    """A reward model of pictures, of signals, or of both."""

    def __init__(self, model: RewardModel, task: Task[Any], camera: str):
        self._model, self._task, self._camera = model, task, camera
        self._size = getattr(model, "frame_size", None)
        self.episodic = getattr(model, "episodic", False)

    def __call__(self, one: LoggedEpisode) -> Array:
        signals: Mapping[str, Array] = {}
        if "signals" in self._model.needs:
            twin, rows = _LogTwin(self._task), []
            for state, poses in states(one):
                twin.observe(state, poses)
                rows.append({name: value.copy() for name, value in twin.observed_signals().items()})
            signals = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        images = (
            episode_frames(one, self._camera, self._size) if "frames" in self._model.needs else None
        )

        def frames(camera: str, where: Array) -> Array:
            assert images is not None, "the reward model declares no frames"
            return images[where[:, 0]]

        action = one.action[:, None]
        every = np.ones(action.shape[:2], bool)
        # As the learner has it: time that is up ends nothing, the filter's stop does.
        place = positions_from_start(every, every & (one.judge == FILTER))
        segment = Segment(signals, frames, action, every, place)
        return self._model.score(segment).reward[:, 0].astype(np.float32)


def episode_frames(one: LoggedEpisode, camera: str, size: tuple[int, int] | None) -> Array:
    """Returns the newest frame of ``camera`` at each observation, (T+1, H, W, 3) uint8.

    Args:
        one: The episode.
        camera: The camera's name in the log.
        size: (height, width) px of the frames; None: as they were taken.

    Raises:
        ValueError: the log has no frames of this camera.
    """
    taken = one.frames.get(camera, [])
    if not taken:
        known = ", ".join(one.frames) or "none"
        raise ValueError(
            f"{one.path} has no images of camera {camera!r}; available: {known}. Give "
            "--view NAME of a camera with the view that the reward was made for"
        )
    times = np.array([t for t, _ in taken])
    newest = np.maximum(np.searchsorted(times, one.t + 1e-6, side="right") - 1, 0)
    drawn = {}
    for i in set(newest.tolist()):
        drawn[i] = decode_frame(taken[i][1])
        if size is not None and drawn[i].shape[:2] != size:
            drawn[i] = cv2.resize(drawn[i], size[::-1], interpolation=cv2.INTER_AREA)
    return np.stack([drawn[i] for i in newest.tolist()])


def reward_trust(
    score: Array, success: Array, config: OnRobotConfig, trusted: bool
) -> tuple[float | None, bool]:
    """(AUC of the scores (n,) of episodes' ends against their verdicts (n,) bool, whether the
    reward may count).

    Only the newest ``2 * verdicts`` count. Without enough successes and failures among them the
    AUC is None. A reward that was ``trusted`` stays so until it is clearly worse: the rare failures
    of a good policy are near misses, which a reward cannot tell from successes.
    """
    if len(score) < config.verdicts:
        return None, False
    score, success = score[-2 * config.verdicts :], success[-2 * config.verdicts :]
    rarer = min(success.sum(), (~success).sum())
    if rarer < FEWEST or trusted and rarer < RARER * len(success):
        return None, trusted
    found = auc(score, success)
    return found, found >= config.min_auc - (DOUBT if trusted else 0.0)
