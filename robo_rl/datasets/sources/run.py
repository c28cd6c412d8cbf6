"""A finished run: fresh episodes of its policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from robo_rl.datasets.sources.base import SourceEpisode, SourceOptions, render_episode
from robo_rl.evaluation.evaluate import TEST_SEED, conditions_of, task_of_run
from robo_rl.evaluation.recording import record
from robo_rl.runs.policy import load_policy
from robo_rl.runs.run_dir import RunDir
from sims.envs.batch_env import BatchEnv


def matches(path: Path) -> bool:
    """Whether there is one."""
    return RunDir(path).finished


def episodes(path: Path, watch: SourceOptions) -> Iterator[SourceEpisode]:
    """Episodes of the policy, one unless more are wanted."""
    run, count = RunDir.open(path), watch.episodes or 1
    task = task_of_run(run.config, run.result["truth"])
    text = watch.sentence(task, run.result["goal"], path)
    under = conditions_of(run.config, task)
    recording = record(task, load_policy(path).act, episodes=count, seed=TEST_SEED + 1, **under)
    env = BatchEnv(task, 1)
    for row in range(count):
        distance = None if recording.distance is None else recording.distance[:, row]
        met = None if recording.success is None else bool(recording.success[-1, row])
        name = f"{path.name}, episode {row}" if count > 1 else str(path)
        yield render_episode(env, recording.states[:, row], watch, name, text, distance, met)
    env.close()
