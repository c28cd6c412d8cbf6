"""stages(): progress bars of work that comes in named stages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


def stderr_console() -> Console:
    """Returns the console of progress and remarks; it breaks no line, so that a path can be copied
    from it and found in a file that it was piped to."""
    return Console(stderr=True, soft_wrap=True)


def stage_progress(console: Console | None) -> Any:
    """A context whose value is ``progress(stage, share, note="")``, drawn where there is a console.

    A stage that begins ends the one before it; the note stands beside its name.
    """
    if console is None:
        return nullcontext(lambda stage, share, note="": None)
    return _Stages(console)


class _Stages:
    def __init__(self, console: Console):
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Callable[..., None]:
        self._progress.start()
        return self._update

    def __exit__(self, kind: object, *_: object) -> None:
        for task in self._tasks.values() if kind is None else ():  # else it was not done
            self._progress.update(task, completed=1.0)
        self._progress.stop()

    def _update(self, stage: str, share: float, note: str = "") -> None:
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, completed=1.0)
            self._tasks[stage] = self._progress.add_task(stage, total=1.0)
        text = f"{stage:8} {note}" if note else f"{stage:8}"
        self._progress.update(self._tasks[stage], completed=share, description=text)
