"""The progress bar of a search."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class SearchProgressBar:
    """Env steps done of those planned; nothing without a console."""

    def __init__(self, console: Console | None, planned: int):
        self._done = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"),
            TimeElapsedColumn(),
            console=console,
            disable=console is None,
        )
        self._task = self._progress.add_task("search", total=planned)

    def __enter__(self) -> SearchProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def stage(self, words: str) -> None:
        self._progress.update(self._task, description=words)

    def done(self, steps: int) -> None:
        self._done += steps
        self.under_way(0)

    def under_way(self, steps: int) -> None:
        self._progress.update(self._task, completed=self._done + steps)
