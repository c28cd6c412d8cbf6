"""Where episodes to be looked at come from, told apart by what is there.

A new kind is a file with its two functions, and a line in SOURCES.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from robo_rl.sources import film, lerobot, log, minari, run
from robo_rl.sources.base import Seen, Source, Watch

__all__ = ["SOURCES", "Seen", "Watch", "kind_of", "watched"]

SOURCES = {
    "run": Source("a finished run", run.found, run.episodes),
    "log": Source("an arm's log (*.mcap) or a folder of them", log.found, log.episodes),
    "minari": Source("a Minari data set", minari.found, minari.episodes),
    "lerobot": Source("a LeRobotDataset", lerobot.found, lerobot.episodes),
    "film": Source("a video or a folder of .png or .jpg images", film.found, film.episodes),
}


def kind_of(path: Path) -> str:
    """Which of SOURCES is there; ValueError where none is."""
    for name, source in SOURCES.items():
        if source.found(path):
            return name
    known = "; ".join(source.says for source in SOURCES.values())
    raise ValueError(f"nothing in {path} can be looked at; expected one of: {known}")


def watched(paths: Sequence[Path], watch: Watch) -> Iterator[Seen]:
    """The episodes of ``paths``, one source after the other; none is kept once it was seen."""
    for path in paths:
        yield from SOURCES[kind_of(path)].episodes(path, watch)
