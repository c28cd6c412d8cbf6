"""Demonstrations by a task's expert, with settable noise and failures, in Minari's format.

A data set is a folder: ``data/main_data.hdf5`` has a group per episode (``observations`` (T+1, k)
f32, ``actions`` (T, act_dim) f32, ``rewards``, ``terminations``, ``truncations`` (T,),
``infos/success`` (T+1,), and the attribute ``start``, the state row that it began in),
``data/metadata.json`` the spaces and totals. ``minari.MinariDataset`` opens it; nothing of ours is
needed to read it. Minari lists and loads by name what lies in the folder ``MINARI_DATASETS_PATH``,
and there a data set's name is its place. Episodes are written as they are made, so memory does not
grow with their number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from sims.core.rng import JUDGING
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.envs.registration import gymnasium_id
from sims.utils.versions import versions

Array = np.ndarray

MINARI = "0.5.3"  # the version of the format
HELD = 0.8  # share of the noise that goes on from one step to the next


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    """How demonstrations are made."""

    episodes: int = 1000  # number of episodes
    noise: float = 0.1  # standard deviation of smooth noise on actions in [-1, 1]
    failures: float = 0.0  # share of episodes that end in random actions
    rate_limited: bool = False  # rate-limit actions as the bridge of a real arm does
    num_envs: int = 64  # environments simulated together
    seed: int = 0  # random seed of scenes and noise

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.num_envs < 1:
            raise ValueError(
                f"episodes and num_envs must be at least 1, got {self.episodes}, {self.num_envs}"
            )
        if not 0 <= self.seed < JUDGING:
            raise ValueError(f"seed must be in [0, {JUDGING:,}), got {self.seed}")
        if self.noise < 0 or not 0 <= self.failures <= 1:
            raise ValueError(
                f"noise must be at least 0 and failures in [0, 1], got {self.noise}, "
                f"{self.failures}"
            )


@dataclass(frozen=True)
class DemoSummary:
    """What was written."""

    path: Path
    episodes: int
    steps: int
    successes: int
    lost: int  # episodes in which the expert was made to fail


@dataclass(frozen=True)
class EpisodeBatch:
    """One episode of each of ``n`` rows; rows end at ``length`` (n,) steps."""

    obs: Array  # (T+1, n, obs_dim) f32
    action: Array  # (T, n, act_dim) f32
    reward: Array  # (T, n)
    terminated: Array  # (T, n) bool
    truncated: Array  # (T, n) bool
    success: Array  # (T+1, n) bool
    length: Array  # (n,)
    lost: Array  # (n,) bool
    start: Array  # (n, nstate) state rows before the first action


def write_demos(
    task: Task[Any],
    path: Path,
    config: DemoConfig | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> DemoSummary:
    """Writes ``config.episodes`` episodes of the task's expert into the new folder ``path``."""
    import h5py

    config = config or DemoConfig()
    task.need_expert()
    with new_folder(path) as partial:
        (partial / "data").mkdir(parents=True)
        rows = min(config.num_envs, config.episodes)
        env = BatchEnv(task, rows, seed=config.seed, shaped=config.rate_limited)
        rng = np.random.default_rng(config.seed)
        written = steps = successes = lost = 0
        with h5py.File(partial / "data" / "main_data.hdf5", "w", track_order=True) as file:
            while written < config.episodes:
                played = play_episodes(env, config, rng)
                for row in range(min(env.num_envs, config.episodes - written)):
                    _write_episode(file, written, played, row)
                    written += 1
                    steps += int(played.length[row])
                    successes += bool(played.success[played.length[row], row])
                    lost += bool(played.lost[row])
                progress(written / config.episodes)
        metadata = minari_metadata(env, minari_name(path), written, steps, "scripted expert")
        metadata["dataset_size"] = round(
            (partial / "data" / "main_data.hdf5").stat().st_size / 1e6, 1
        )
        env.close()
        (partial / "data" / "metadata.json").write_text(json.dumps(metadata, indent=1))
    return DemoSummary(path, written, steps, successes, lost)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Where ``path`` is built, which it becomes once it is whole; nothing is left of one that is
    not. ValueError where there is something already."""
    if path.exists():
        raise ValueError(f"{path} already exists; give a new folder")
    partial = path.with_name(f".{path.name}.part")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    try:
        yield partial
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def minari_name(path: Path) -> str:
    """The name that Minari knows a data set at ``path`` by: ``reach-v0``, or ``robo/reach-v0``
    where that is its place in ``MINARI_DATASETS_PATH``. A folder named without a version opens by
    its path, but Minari lists only what has one."""
    if not re.fullmatch(r"[-\w]+-v\d+", path.name):
        return re.sub(r"[^-\w]+", "-", path.name) + "-v0"
    home = Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")
    whole, home = path.resolve(), home.resolve()
    return whole.relative_to(home).as_posix() if whole.is_relative_to(home) else path.name


def play_episodes(env: BatchEnv, config: DemoConfig, rng: np.random.Generator) -> EpisodeBatch:
    """One episode of every row."""
    n, steps = env.num_envs, env.max_steps
    obs = np.empty((steps + 1, n, env.obs_dim), np.float32)
    action = np.empty((steps, n, env.act_dim), np.float32)
    reward, success = np.empty((steps, n)), np.zeros((steps + 1, n), bool)
    terminated, truncated = np.zeros((2, steps, n), bool)
    length, over = np.full(n, steps), np.zeros(n, bool)
    lost = rng.random(n) < config.failures
    # From here on the actions of a lost expert say nothing about the task.
    until = np.where(lost, rng.integers(0, max(1, steps // 2), n), steps)
    drift = np.zeros((n, env.act_dim))
    obs[0], start = env.reset(), env.state()
    for t in range(steps):
        drift = HELD * drift + np.sqrt(1 - HELD**2) * rng.normal(size=drift.shape)
        chosen = env.task.expert(env.views, rng) + config.noise * drift
        chosen = np.where((t >= until)[:, None], drift, chosen)
        action[t] = np.clip(chosen, -1.0, 1.0)
        result = env.step(action[t])
        obs[t + 1], reward[t] = result.obs, result.reward
        terminated[t], truncated[t] = result.terminated, result.truncated
        success[t + 1] = result.info["success"]
        ended = (result.terminated | result.truncated) & ~over
        length[ended], over = t + 1, over | ended
    return EpisodeBatch(obs, action, reward, terminated, truncated, success, length, lost, start)


def _write_episode(file: Any, index: int, played: EpisodeBatch, row: int) -> None:
    end = int(played.length[row])
    group = file.create_group(f"episode_{index}")
    group.attrs["id"], group.attrs["total_steps"] = index, end
    group.attrs["success"] = bool(played.success[end, row])
    group.attrs["lost"] = bool(played.lost[row])
    group.attrs["start"] = played.start[row]
    group["observations"] = played.obs[: end + 1, row]
    group["actions"] = played.action[:end, row]
    group["rewards"] = played.reward[:end, row]
    group["terminations"] = played.terminated[:end, row]
    group["truncations"] = played.truncated[:end, row]
    group["infos/success"] = played.success[: end + 1, row]


def minari_metadata(env: BatchEnv, name: str, episodes: int, steps: int, by: str) -> dict[str, Any]:
    """What Minari keeps of a data set of ``env``'s task, in which ``by`` acted, JSON-able."""
    task = env.task
    return {
        "total_episodes": episodes,
        "total_steps": steps,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "observation_space": _box(env.obs_dim, -np.inf, np.inf),
        "action_space": _box(env.act_dim, -1.0, 1.0),
        "dataset_id": name,
        "env_spec": _env_spec(task),
        "minari_version": MINARI,
        "algorithm_name": by,
        "description": f"{task.name}: {task.goals()[task.goal].sentence}",
        "obs_names": list(env.obs_names),
        "task": task.card()["params"] | {"name": task.name, "goal": task.goal},
        "shaped": env.shaped,
        "versions": versions() | {"simulation_threads": str(env.batch.nthread)},
    }


def _env_spec(task: Task[Any]) -> str:
    """What ``MinariDataset.recover_environment`` makes the env from, JSON."""
    spec = gymnasium.spec(gymnasium_id(task.name))
    made = {f.name: getattr(task, f.name) for f in dataclasses.fields(task)}
    chosen = {name: made[name] for name in ("robot", "goal") if made.get(name)}
    return dataclasses.replace(spec, kwargs={**spec.kwargs, **chosen}).to_json()


def _box(width: int, low: float, high: float) -> str:
    """A Box space as Minari writes one."""
    return json.dumps(
        {
            "type": "Box",
            "dtype": "float32",
            "shape": [width],
            "low": [low] * width,
            "high": [high] * width,
        }
    )
