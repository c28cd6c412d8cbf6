"""A video file, or a folder of images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import sims
from robo_rl.datasets.sources.base import SourceEpisode, SourceOptions
from robo_rl.runs.video import IMAGES, read_frames


def matches(path: Path) -> bool:
    """Whether it may be one: whatever is no folder, or has images in it."""
    return not path.is_dir() or any(f.suffix.lower() in IMAGES for f in path.iterdir())


def episodes(path: Path, watch: SourceOptions) -> Iterator[SourceEpisode]:
    """All of it is one episode, of whatever camera."""
    task = sims.make_task(watch.task)
    text = watch.sentence(task, "", path)
    frames, _ = read_frames(path)
    at = watch.at(len(frames))
    yield SourceEpisode(str(path), frames[at], at, task, text)
