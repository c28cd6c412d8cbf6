"""An arm's log (*.mcap), or a folder of them: the pictures of a camera."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from real_robot.log.recorder import read_log
from robo_rl.datasets.robot_logs import DRIVEN, decode_frame, log_files, manifest_of
from robo_rl.datasets.sources.base import SourceEpisode, SourceOptions, sentence_of
from robo_rl.goals.bundle_task import task_of_bundle

NOTHING = "holds no picture that was taken while somebody drove"


def matches(path: Path) -> bool:
    """Whether there is one."""
    return path.suffix == ".mcap" or (path.is_dir() and any(path.glob("*.mcap")))


def episodes(path: Path, watch: SourceOptions) -> Iterator[SourceEpisode]:
    """Yields an episode per log.

    It has the frames while a policy or an operator was in control, and the log's verdict.

    Args:
        path: A log, or a folder of logs.
        watch: Which episodes and frames are read.

    Raises:
        ValueError: ``path`` is a log without such frames; in a folder, such a log is left out.
    """
    for one in log_files([path])[: watch.episodes]:
        episode = _episode(one, watch)
        if episode is not None:
            yield episode
        elif one == path:
            raise ValueError(f"{one} {NOTHING}")
        else:
            watch.tell(f"left out: {one} {NOTHING}")


def _episode(path: Path, watch: SourceOptions) -> SourceEpisode | None:
    log = read_log(path, frames=True)
    if not log.run:  # its writer was killed before it had said anything
        return None
    manifest = manifest_of(log, path)
    taken = log.frames[watch.camera_of(log.frames, path)]
    phases = ("human",) if manifest.action.kind == "none" else DRIVEN
    driven = [tick["t"] for tick in log.ticks if tick["phase"] in phases]
    images = [jpeg for t, jpeg in taken if driven and driven[0] <= t <= driven[-1]]
    if not images:
        return None
    task, at = task_of_bundle(manifest), watch.at(len(images))
    text = watch.sentence(task, sentence_of(task) if manifest.goal else "", path)
    frames = np.stack([decode_frame(images[i]) for i in at])
    # What became of an episode is said of its own goal alone.
    own = watch.of_its_own(task, text)
    verdict = log.verdict if own and log.verdict.get("what") in ("success", "failure") else {}
    met = verdict["what"] == "success" if verdict else None
    return SourceEpisode(str(path), frames, at, task, text, met=met, judge=verdict.get("by", ""))
