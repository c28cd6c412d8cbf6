"""Demonstrations of one of our tasks, read from a Minari data set; loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robo_rl.runs.run_dir import read_json
from sims import make_task
from sims.core.task import Task
from sims.envs.batch_env import BatchEnv
from sims.utils.versions import warn_of_engine

Array = np.ndarray

DATA = Path("data") / "main_data.hdf5"  # of a data set's folder
SAME = 1e-3  # by which an observation may differ from the one that was written


@dataclass(frozen=True, kw_only=True)
class CloneConfig:
    """Settings of behaviour cloning and of the clone's evaluation."""

    demos: int = 0  # number of episodes to clone, from the first; 0: all
    failures: bool = False  # include failed episodes
    updates: int = 3_000  # gradient steps
    batch_size: int = 256  # demonstration steps per update
    learning_rate: float = 1e-3  # Adam's step size, which decays to 0
    net: tuple[int, ...] = (256, 256)  # units of the hidden layers
    seed: int = 0  # seed of network weights and batch order
    episodes: int = 1000  # evaluation episodes at the end
    # Evaluation seeds: select is for development, test is for figures that you publish.
    eval_seeds: Literal["validation", "test"] = "validation"
    runs: Path = Path("runs")  # folder in which run folders are created
    name: str = ""  # run name; empty: built from dataset folder and seed

    def __post_init__(self) -> None:
        for name in ("updates", "batch_size", "learning_rate", "episodes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.demos < 0:
            raise ValueError(f"demos must be at least 0, got {self.demos}")


@dataclass(frozen=True)
class Demonstrations:
    """Steps of some episodes, one after the other."""

    task: Task[Any]
    obs: Array  # (n, obs_dim) f32
    action: Array  # (n, act_dim) f32
    obs_names: tuple[str, ...]  # of the columns of ``obs``
    episode: Array  # (n,) episode number of each step, from 0
    start: Array  # (episodes, nstate) state rows before the first action; (episodes, 0): not kept
    success: Array  # (episodes,) bool
    by: str  # who acted, in the data set's words
    shaped: bool = False  # within the limits that the bridge on a real arm keeps to

    @property
    def episodes(self) -> int:
        return int(self.episode[-1]) + 1


def read_demonstrations(
    folder: Path, episodes: int = 0, *, failures: bool = False
) -> Demonstrations:
    """The first ``episodes`` (0: all) of the data set in ``folder``, of those that succeeded unless
    ``failures`` are wanted too; ValueError where it is none, is of none of our tasks, or holds too
    few."""
    import h5py

    data = folder / DATA
    if not data.is_file():
        raise ValueError(f"{folder} is not a Minari dataset in HDF5: {data.name} is missing")
    metadata = read_json(folder / "data" / "metadata.json")
    if "name" not in (metadata.get("task") or {}):
        raise ValueError(
            f"{folder} does not name its robo-rl task; datasets of robo-rl demos TASK FOLDER do"
        )
    about = dict(metadata["task"])
    task = make_task(about.pop("name"), robot=about.pop("robot", None), **about)
    env = BatchEnv(task, 1)
    names, act_dim = list(env.obs_names), env.act_dim
    env.close()
    if metadata["obs_names"] != names:
        raise ValueError(
            f"{folder}: its observation must be that of {task.name} here, {names}, got "
            f"{metadata['obs_names']}: another version wrote it; write it again with robo-rl demos"
        )
    warn_of_engine(metadata.get("versions", {}), f"the dataset {folder}")
    obs, action, episode, start, success = [], [], [], [], []
    with h5py.File(data) as file:
        for group in sorted(file.values(), key=lambda group: int(group.attrs["id"])):
            succeeded = bool(group.attrs.get("success", True))
            if not (failures or succeeded):
                continue
            if episodes and len(obs) == episodes:
                break
            action.append(np.asarray(group["actions"], np.float32))
            obs.append(np.asarray(group["observations"], np.float32)[:-1])
            episode.append(np.full(len(action[-1]), len(obs) - 1))
            start.append(np.asarray(group.attrs.get("start", ())))
            success.append(succeeded)
    if not obs or len(obs) < episodes:
        kind = "" if failures else " that succeed"
        raise ValueError(
            f"{folder} has {len(obs)} episodes{kind}, expected "
            f"{f'--demos {episodes}' if episodes else 'at least one'}"
        )
    if obs[0].shape[1] != len(names) or action[0].shape[1] != act_dim:
        raise ValueError(
            f"{folder}: observations and actions must have {len(names)} and {act_dim} columns, got "
            f"{obs[0].shape[1]} and {action[0].shape[1]}"
        )
    by = str(metadata.get("algorithm_name", ""))
    return Demonstrations(
        task,
        obs=np.concatenate(obs),
        action=np.concatenate(action),
        obs_names=tuple(names),
        episode=np.concatenate(episode),
        start=np.stack(start),
        success=np.array(success),
        by=by,
        shaped=bool(metadata.get("shaped", False)),
    )


def check_same_observations(
    said: str, written: Array, names: Sequence[str], played: Array, names_here: Sequence[str]
) -> None:
    """Raises ValueError where replayed observations ``played`` (n, obs_dim) differ from the
    ``written`` ones in the columns that both have; ``said`` is the dataset's name in the message.
    """
    both = [name for name in names if name in names_here]
    there, here = ([those.index(name) for name in both] for those in (names, names_here))
    apart = np.abs(played[:, here] - written[:, there]).max()
    if not apart <= SAME:
        raise ValueError(
            f"{said}: replayed episodes differ from the stored ones (by {apart:.2g}): "
            "the task has changed since; write it again with robo-rl demos"
        )
