"""A Minari data set of one of our tasks: it holds no frames, so its episodes are played again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robo_rl.datasets.demonstrations import DATA, check_same_observations, read_demonstrations
from robo_rl.datasets.sources.base import SourceEpisode, SourceOptions, render_episode, sentence_of
from sims.envs.batch_env import BatchEnv


def matches(path: Path) -> bool:
    """Whether there is one."""
    return (path / DATA).is_file()


def episodes(path: Path, watch: SourceOptions) -> Iterator[SourceEpisode]:
    """Yields the episodes of a Minari dataset, failed ones too, by replaying their actions.

    Args:
        path: The dataset's folder.
        watch: Which episodes and frames are read.

    Raises:
        ValueError: the dataset has no initial states to replay the actions from, or the replayed
            observations differ from those in it.
    """
    demos = read_demonstrations(path, failures=True)
    if not demos.start.shape[1]:
        raise ValueError(
            f"{path} has neither frames nor initial states to render them from: "
            "score the logs that it was made of, or write it again with robo-rl demos TASK"
        )
    env = BatchEnv(demos.task, 1)
    text = watch.sentence(env.task, sentence_of(env.task), path)
    env.reset()
    for number, start in enumerate(demos.start[: watch.episodes]):
        mine = demos.episode == number
        obs, states = [env.set_state(start[None])[0]], [start]
        distance = [] if env.judge else [env.distance()[0]]
        for action in demos.action[mine]:
            step = env.step(action[None])
            obs.append(step.obs[0])
            states.append(env.state()[0])
            distance += [] if env.judge else [env.distance()[0]]
        check_same_observations(
            str(path), demos.obs[mine], demos.obs_names, np.stack(obs[:-1]), env.obs_names
        )
        away = np.array(distance) if distance else None
        met = bool(step.info["success"][0])
        yield render_episode(
            env, np.stack(states), watch, f"{path.name}, episode {number}", text, away, met
        )
    env.close()
