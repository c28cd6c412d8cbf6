"""A LeRobotDataset v3: its episodes are cut from its videos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sims
from robo_rl.datasets.lerobot import INFO, VERSIONS, require_packages
from robo_rl.datasets.sources.base import Array, SourceEpisode, SourceOptions
from robo_rl.runs.run_dir import read_json
from sims.utils.versions import warn_of_engine

PICTURES = "observation.images."  # which the names of cameras begin with


def matches(path: Path) -> bool:
    """Whether there is one, of whatever version."""
    return (path / INFO).is_file()


def episodes(path: Path, watch: SourceOptions) -> Iterator[SourceEpisode]:
    """Yields the episodes of a LeRobotDataset, each with the sentence of its task.

    Args:
        path: The dataset's folder.
        watch: Which episodes and frames are read.

    Raises:
        ValueError: a package is missing, the dataset is not v3.x or has images in place of videos,
            or an episode has several sentences and ``--goal`` is not given.
    """
    require_packages(f"{path} is a LeRobotDataset; to read it")
    info = read_json(path / INFO)
    if not str(info.get("codebase_version")).startswith("v3."):
        raise ValueError(
            f"{path} must be a LeRobotDataset v3.x, got {info.get('codebase_version')}: LeRobot "
            "converts older ones"
        )
    if (path / VERSIONS).is_file():
        warn_of_engine(read_json(path / VERSIONS), f"the dataset {path}")
    keys = {
        name.removeprefix(PICTURES): name
        for name, feature in info["features"].items()
        if feature["dtype"] == "video"
    }
    if not keys and any(f["dtype"] == "image" for f in info["features"].values()):
        raise ValueError(f"{path} stores images in data/*.parquet; only videos are supported")
    key = keys[watch.camera_of(keys, path)]
    task = sims.make_task(watch.task)
    for row in _rows(path, key)[: watch.episodes]:
        name = f"{path.name}, episode {row['episode_index']}"
        tasks = row["tasks"]
        if len(tasks) > 1 and not watch.goal:
            raise ValueError(
                f"{name} of {path} has several sentences, {tasks}: give one: --goal TEXT"
            )
        text = watch.sentence(task, tasks[0] if tasks else "", path)
        place = {n: row[f"videos/{key}/{n}"] for n in ("chunk_index", "file_index")}
        film = path / info["video_path"].format(video_key=key, **place)
        at = watch.at(row["length"])
        start = row[f"videos/{key}/from_timestamp"]
        yield SourceEpisode(name, _cut(film, start, info["fps"], at), at, task, text)


def _rows(path: Path, key: str) -> list[dict[str, Any]]:
    """What is kept of each episode, in order."""
    import pyarrow.parquet as pq

    where = [f"videos/{key}/{n}" for n in ("chunk_index", "file_index", "from_timestamp")]
    columns = ["episode_index", "tasks", "length", *where]
    files = sorted((path / "meta" / "episodes").glob("*/*.parquet"))
    rows = [row for file in files for row in pq.read_table(file, columns=columns).to_pylist()]
    if not rows:
        raise ValueError(f"{path} has no episodes: meta/episodes is empty")
    return sorted(rows, key=lambda row: row["episode_index"])


def _cut(film: Path, start: float, fps: float, at: Array) -> Array:
    """Frames (n, H, W, 3) RGB uint8, those with the numbers ``at`` (n,) behind ``start`` s."""
    import av

    wanted, frames = set(at.tolist()), {}
    with av.open(str(film)) as video:
        stream = video.streams.video[0]
        assert stream.time_base is not None
        # To the whole frame before it, from which the others are decoded.
        video.seek(int(start / stream.time_base), stream=stream)
        for frame in video.decode(stream):
            number = round((frame.time - start) * fps)
            if number in wanted:
                frames[number] = frame.to_ndarray(format="rgb24")
            if number >= at[-1]:
                break
    if missing := wanted - set(frames):
        raise ValueError(
            f"{film} has no frame at {start + min(missing) / fps:.2f} s, which meta/episodes "
            "lists: the video may be truncated"
        )
    return np.stack([frames[number] for number in at.tolist()])
