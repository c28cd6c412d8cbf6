"""A video file, or a folder of images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import sims
from robo_rl.shown.video import IMAGES, read_frames
from robo_rl.sources.base import Seen, Watch


def found(path: Path) -> bool:
    """Whether it may be one: whatever is no folder, or has images in it."""
    return not path.is_dir() or any(f.suffix.lower() in IMAGES for f in path.iterdir())


def episodes(path: Path, watch: Watch) -> Iterator[Seen]:
    """All of it is one episode, of whatever camera."""
    task = sims.make_task(watch.task)
    text = watch.sentence(task, "", path)
    frames, _ = read_frames(path)
    at = watch.at(len(frames))
    yield Seen(str(path), frames[at], at, task, text)
