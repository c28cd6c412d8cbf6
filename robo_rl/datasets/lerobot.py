"""LeRobotDataset v3: recorded episodes in the layout that LeRobot trains from; loads no torch.

One file of each kind holds all episodes: ``data/chunk-000/file-000.parquet``, a video per camera,
``meta/episodes``, ``meta/tasks.parquet``, ``meta/stats.json``, ``meta/info.json``. A frame is a
step at the policy's rate, and LeRobot's ``timestamp`` is its number over that rate; when it was
really taken is ``taken_at``. Angles are rad (``shoulder_pan.rad``), the gripper 0 closed to 1 open
(``gripper.opening``): the names are not those of LeRobot's own robots, whose zeros are others.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.datasets.robot_logs import LoggedEpisode, LogSelection, decode_frame, episodes
from robo_rl.runs.run_dir import versions
from sims.envs.demonstrations import new_folder

Array = np.ndarray

VERSION = "v3.0"
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
FIRST = "chunk-000/file-000"
INFO = Path("meta") / "info.json"
VERSIONS = Path("meta") / "robo_rl_versions.json"  # not in INFO, whose keys are LeRobot's
PROGRESS = "sarm_progress.parquet"  # where LeRobot's sample weighting looks for scores
BOOKS = {"timestamp": "float32"} | dict.fromkeys(
    ("frame_index", "episode_index", "index", "task_index"), "int64"
)
QUANTILES = (1, 10, 50, 90, 99)  # %, by which LeRobot's policies normalise
PICTURES = 100  # at most, that a video's statistics are taken of


def write_lerobot(
    path: Path,
    paths: Sequence[Path],
    told: LogSelection,
    *,
    failures: bool = False,
    progress: Sequence[float] = (),
) -> tuple[int, int, int, list[float]]:
    """Writes the logs ``paths`` as a LeRobotDataset into the new folder ``path``.

    Args:
        path: The folder to write.
        paths: The logs to read.
        told: The task of the logs; counts those that are left out.
        failures: Whether failed episodes are written, too.
        progress: A score for each frame that is written, in their order, or none at all.

    Returns:
        (episodes, frames, successes, unsaid): ``unsaid`` has, for each step, the rad of its command
        that no action of the task expresses.

    Raises:
        ValueError: a package is missing, no episode can be exported, or ``progress`` has another
            length than there are frames.
    """
    require_packages("--format lerobot")
    with new_folder(path) as partial:
        made = _Dataset(partial, told)
        successes, unsaid = 0, []
        try:
            for one in episodes(paths, told, frames=True):
                if not (one.success or failures):
                    told.left_out["that failed (--failures takes them in)"] += 1
                    continue
                made.add(one)
                successes += one.success
                unsaid += one.unsaid.tolist()
        finally:
            made.films.close()
        if not made.lengths:
            raise ValueError(f"no episode can be exported. {told.summary()}")
        frames = sum(made.lengths)
        if len(progress) not in (0, frames):
            raise ValueError(
                f"--progress must have {frames} scores, one per frame, got {len(progress)}"
            )
        made.write(np.asarray(progress, np.float32))
    return len(made.lengths), frames, successes, unsaid


def require_packages(what: str) -> None:
    """ValueError where the packages that ``what`` needs are missing."""
    for name in ("pyarrow", "av"):
        if importlib.util.find_spec(name) is None:
            raise ValueError(f"{what} needs {name}: pip install 'robo-rl[lerobot]'")


def write_progress(path: Path, lengths: Sequence[int], progress: Array) -> None:
    """Writes LeRobot's sample weights of every frame.

    Args:
        path: The parquet file to write.
        lengths: The frames of each episode.
        progress: (n,) progress of all frames in [0, 1]; nan where it is unknown.

    Raises:
        ValueError: a value of ``progress`` is outside [0, 1].
    """
    outside = progress[(progress < 0.0) | (progress > 1.0)]
    if len(outside):
        raise ValueError(
            f"progress must be from 0 to 1, got {outside[0]:g}: robo-rl reward score SET "
            "--progress FILE writes it for any score"
        )
    columns = _numbers(lengths) | {"progress_sparse": progress.astype(np.float32)}
    _parquet(path, {name: column[:, None] for name, column in columns.items()})


def _numbers(lengths: Sequence[int]) -> dict[str, Array]:
    """Returns the index of each frame within its episode, int64, of episodes of ``lengths``."""
    return {
        "index": np.arange(sum(lengths)),
        "episode_index": np.repeat(np.arange(len(lengths)), lengths),
        "frame_index": np.concatenate([np.arange(n) for n in lengths]),
    }


class _Dataset:
    """A LeRobotDataset while it is written."""

    def __init__(self, folder: Path, told: LogSelection):
        self._folder, self._told = folder, told
        manifest, task = told.manifest, told.task
        self._fps = round(1.0 / manifest.control_dt)
        if abs(self._fps * manifest.control_dt - 1.0) > 1e-6:
            raise ValueError(
                f"LeRobot needs a whole number of frames/s, got 1 per {manifest.control_dt} s"
            )
        # Not LeRobot's ".pos": degrees, or shares of a calibrated range, from a zero of its own.
        joints = [*(f"{joint}.rad" for joint in manifest.joints), "gripper.opening"]
        columns = [
            f"{one.name}_{i}" if one.size > 1 else one.name
            for one in manifest.inputs
            for i in range(one.size)
        ]
        action = [f"action_{i}" for i in range(task.act_dim)]
        self.features: dict[str, tuple[str, list[str]]] = {
            "observation.state": ("float32", joints),
            "observation.environment_state": ("float32", columns),
            "action": ("float32", joints),
            "requested": ("float32", joints),
            "task_action": ("float32", action),
            "policy_action": ("float32", action),
            "is_intervention": ("bool", ["is_intervention"]),
            "taken_at": ("float64", ["s"]),
            "next.reward": ("float32", ["reward"]),
            "next.success": ("bool", ["success"]),
            "next.done": ("bool", ["done"]),
        }
        self.rows: dict[str, list[Array]] = {name: [] for name in self.features}
        self.lengths: list[int] = []
        self.films = _VideoWriter(folder, self._fps)
        self.sentence = task.goals()[task.goal].sentence

    def add(self, one: LoggedEpisode) -> None:
        """One more episode."""
        n = len(one.action)
        done = np.arange(n) == n - 1
        rows = {
            "observation.state": one.measured[:-1],
            "observation.environment_state": one.obs[:-1],
            "action": one.sent,
            "requested": one.wanted,
            "task_action": one.action,
            "policy_action": one.policy[:-1],
            "is_intervention": one.by_hand[:-1, None],
            "taken_at": one.t[:-1, None],
            "next.reward": np.where(done & one.success, 1.0, 0.0)[:, None],
            "next.success": (done & one.success)[:, None],
            "next.done": done[:, None],
        }
        for name, values in rows.items():
            self.rows[name].append(values.astype(self.features[name][0]))
        self.films.add(one, first=not self.lengths)
        self.lengths.append(n)

    def write(self, progress: Array) -> None:
        """All that is no film."""
        lengths = np.array(self.lengths)
        total, ends = int(lengths.sum()), np.cumsum(lengths)
        books = _numbers(self.lengths)
        books |= {"timestamp": books["frame_index"] / self._fps, "task_index": np.zeros(total)}
        books = {name: values.astype(BOOKS[name]) for name, values in books.items()}
        values = {name: np.concatenate(rows) for name, rows in self.rows.items()}
        values |= {name: column[:, None] for name, column in books.items()}
        _parquet(self._folder / "data" / f"{FIRST}.parquet", values)
        stats = {name: _stats(column) for name, column in values.items()} | self.films.stats()
        _json(self._folder / "meta" / "stats.json", stats)
        _tasks(self._folder / "meta" / "tasks.parquet", [self.sentence])
        self._episodes(values, ends)
        features = {
            name: {"dtype": kind, "shape": [len(names)], "names": names}
            for name, (kind, names) in self.features.items()
        }
        features |= {
            name: {"dtype": kind, "shape": [1], "names": None} for name, kind in BOOKS.items()
        }
        films = self.films.features()
        info = {
            "codebase_version": VERSION,
            "robot_type": self._told.manifest.arm,
            "total_episodes": len(lengths),
            "total_frames": total,
            "total_tasks": 1,
            "chunks_size": 1000,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": self._fps,
            "splits": {"train": f"0:{len(lengths)}"},
            "data_path": f"data/{FILE}.parquet",
            "video_path": f"videos/{{video_key}}/{FILE}.mp4" if films else None,
            "features": features | films,
        }
        _json(self._folder / INFO, info)
        _json(self._folder / VERSIONS, versions())
        if len(progress):
            write_progress(self._folder / PROGRESS, self.lengths, progress)

    def _episodes(self, values: dict[str, Array], ends: Array) -> None:
        """A row for each episode: where it lies, and its statistics."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table: list[dict[str, Any]] = []
        for i, (end, n) in enumerate(zip(ends, self.lengths, strict=True)):
            row: dict[str, Any] = {
                "episode_index": i,
                "tasks": [self.sentence],
                "length": n,
                "data/chunk_index": 0,
                "data/file_index": 0,
                "dataset_from_index": int(end) - n,
                "dataset_to_index": int(end),
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
            for camera in self.films.cameras:
                key = f"videos/{_key(camera)}"
                row |= {f"{key}/chunk_index": 0, f"{key}/file_index": 0}
                row |= {f"{key}/from_timestamp": (int(end) - n) / self._fps}
                row |= {f"{key}/to_timestamp": int(end) / self._fps}
            for name, column in values.items():
                statistics = _stats(column[end - n : end])
                row |= {f"stats/{name}/{what}": value for what, value in statistics.items()}
            table.append(row)
        where = self._folder / "meta" / "episodes" / f"{FIRST}.parquet"
        where.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(table), where)


class _VideoWriter:
    """A video for each camera, all episodes one after the other."""

    def __init__(self, folder: Path, fps: int):
        self._folder, self._fps = folder, fps
        self.cameras: dict[str, tuple[int, int]] = {}  # (height, width)
        self._open: dict[str, Any] = {}
        self._seen: dict[str, list[Array]] = {}

    def add(self, one: LoggedEpisode, first: bool) -> None:
        """The pictures of an episode: at each step the newest that there was."""
        if not first and set(one.frames) != set(self.cameras):
            raise ValueError(
                f"{one.path} has frames of cameras {sorted(one.frames) or 'none'}, earlier logs of "
                f"{sorted(self.cameras) or 'none'}: write one dataset per set of cameras"
            )
        for camera, frames in one.frames.items():
            for i, image in enumerate(_newest(frames, one.t[:-1])):
                if camera not in self._open:
                    self._begin(camera, image)
                self._write(camera, image)
                if i % 10 == 0 and len(self._seen[camera]) < PICTURES:
                    self._seen[camera].append(image[::4, ::4])

    def _begin(self, camera: str, image: Array) -> None:
        import av

        height, width = image.shape[:2]
        path = self._folder / "videos" / _key(camera) / f"{FIRST}.mp4"
        path.parent.mkdir(parents=True)
        film = av.open(path, "w", format="mp4")
        stream = film.add_stream("libx264", rate=Fraction(self._fps))
        stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
        stream.options = {
            "crf": "23",
            "preset": "veryfast",
            "g": "2",
        }  # any frame is near a whole one
        self.cameras[camera], self._open[camera] = (height, width), (film, stream)
        self._seen[camera] = []

    def _write(self, camera: str, image: Array) -> None:
        import av

        film, stream = self._open[camera]
        film.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))

    def close(self) -> None:
        """Every film is whole."""
        for film, stream in self._open.values():
            film.mux(stream.encode())
            film.close()
        self._open.clear()

    def features(self) -> dict[str, Any]:
        """Returns the cameras' entries of ``info.json``."""
        return {
            _key(camera): {
                "dtype": "video",
                "shape": [height, width, 3],
                "names": ["height", "width", "channels"],
                "info": {
                    "video.height": height,
                    "video.width": width,
                    "video.codec": "h264",
                    "video.pix_fmt": "yuv420p",
                    "video.is_depth_map": False,
                    "video.fps": self._fps,
                    "video.channels": 3,
                    "has_audio": False,
                },
            }
            for camera, (height, width) in self.cameras.items()
        }

    def stats(self) -> dict[str, Any]:
        """Returns statistics of each colour, in [0, 1], over some of the frames: (3, 1, 1) as
        LeRobot has them."""
        statistics = {}
        for camera, pixel_stats in self._seen.items():
            pixels = np.stack(pixel_stats).reshape(-1, 3) / 255.0
            of = {
                n: np.reshape(v, (3, 1, 1)).tolist()
                for n, v in _stats(pixels).items()
                if n != "count"
            }
            statistics[_key(camera)] = of | {"count": [len(pixel_stats)]}
        return statistics


def _key(camera: str) -> str:
    return f"observation.images.{camera}"


def _newest(frames: Sequence[tuple[float, bytes]], t: Array) -> Iterator[Array]:
    """At each of ``t`` (n,) s the newest picture (H, W, 3) RGB, the first where there was none."""
    taken = np.array([when for when, _ in frames])
    last, image = -1, None
    for at in np.maximum(np.searchsorted(taken, t, side="right") - 1, 0):
        if at != last:
            image = decode_frame(frames[at][1])
            # yuv420p has one colour for two by two.
            image = image[: len(image) // 2 * 2, : image.shape[1] // 2 * 2]
            last = at
        yield np.ascontiguousarray(image)


def _stats(values: Array) -> dict[str, list[float]]:
    """Returns statistics of each column of ``values`` (n, k)."""
    numbers = values.astype(float)
    return {
        "min": numbers.min(axis=0).tolist(),
        "max": numbers.max(axis=0).tolist(),
        "mean": numbers.mean(axis=0).tolist(),
        "std": numbers.std(axis=0).tolist(),
        **{f"q{q:02d}": np.quantile(numbers, q / 100, axis=0).tolist() for q in QUANTILES},
        "count": [len(values)],
    }


def _parquet(path: Path, columns: dict[str, Array]) -> None:
    """Columns (n, k): plain ones where k is 1, lists of k elsewhere."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, values in columns.items():
        flat = pa.array(np.ascontiguousarray(values).ravel())
        width = values.shape[1]
        arrays[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays), path)


def _tasks(path: Path, sentences: Sequence[str]) -> None:
    """The sentences, as the index of a data frame, which is where LeRobot looks for them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    pandas = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {
                "name": name,
                "field_name": name,
                "pandas_type": kind,
                "numpy_type": stored,
                "metadata": None,
            }
            for name, (kind, stored) in kinds.items()
        ],
        "pandas_version": "2.0.0",
    }
    table = pa.table({"task_index": np.arange(len(sentences)), "task": list(sentences)})
    table = table.replace_schema_metadata({"pandas": json.dumps(pandas)})
    pq.write_table(table, path)


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
