"""Where episodes to be looked at come from, told apart by what is there.

A new kind is a file with its two functions, and a line in SOURCES.

May import: datasets, evaluation, goals, runs, runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from robo_rl.datasets.sources import lerobot, minari, robot_log, run, video
from robo_rl.datasets.sources.base import SourceEpisode, SourceKind, SourceOptions

__all__ = ["SOURCES", "SourceEpisode", "SourceOptions", "source_kind", "read_episodes"]

SOURCES = {
    "run": SourceKind("a finished run", run.matches, run.episodes),
    "log": SourceKind(
        "an arm's log (*.mcap) or a folder of them", robot_log.matches, robot_log.episodes
    ),
    "minari": SourceKind("a Minari data set", minari.matches, minari.episodes),
    "lerobot": SourceKind("a LeRobotDataset", lerobot.matches, lerobot.episodes),
    "film": SourceKind("a video or a folder of .png or .jpg images", video.matches, video.episodes),
}


def source_kind(path: Path) -> str:
    """Which of SOURCES is there; ValueError where none is."""
    for name, source in SOURCES.items():
        if source.found(path):
            return name
    known = "; ".join(source.says for source in SOURCES.values())
    raise ValueError(f"{path} has no frames that can be read; expected one of: {known}")


def read_episodes(paths: Sequence[Path], watch: SourceOptions) -> Iterator[SourceEpisode]:
    """The episodes of ``paths``, one source after the other; none is kept once it was seen."""
    for path in paths:
        yield from SOURCES[source_kind(path)].episodes(path, watch)
