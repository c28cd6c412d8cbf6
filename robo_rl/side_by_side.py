"""Work on several things at once, each in a process of its own with its share of the cores."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from robo_rl.threads import cores, limit_cores
from sims import process

Key, Made = TypeVar("Key"), TypeVar("Made")


def side_by_side(
    work: Callable[..., Made],
    given: Mapping[Key, tuple[Any, ...]],
    jobs: int,
    died: Callable[[str], Made] | None = None,
    begun: Callable[[Key], None] = lambda key: None,
) -> Iterator[tuple[Key, Made]]:
    """(key, what ``work`` made of the arguments given for it), as they are finished.

    One after the other in this process, or ``jobs`` at once, each in one of its own, which end with
    this one: on the first error of any, on Ctrl-C, or when nobody asks for more. A process that
    ends by itself is an error too, a ChildProcessError, or what ``died`` makes of it. ``begun`` is
    told of each that begins.
    """
    if jobs == 1:
        for key, arguments in given.items():
            begun(key)
            yield key, work(*arguments)
        return
    context, share = process.spawning(), max(1, cores() // jobs)
    waiting = dict(given)
    running: dict[Connection, tuple[Key, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                key = next(iter(waiting))
                ours, theirs = context.Pipe(duplex=False)
                child = context.Process(
                    target=_answer, args=(theirs, share, work, waiting.pop(key))
                )
                running[ours] = key, child
                begin(child)
                begun(key)
                theirs.close()  # so that ours ends with the child
            for answered in wait([*running]):
                key, child = running[answered]
                try:
                    made, error = answered.recv()
                except EOFError:
                    child.join()
                    why = f"its process ended with {child.exitcode}"
                    made, error = (died(why), None) if died else (None, ChildProcessError(why))
                child.join()
                del running[answered]
                if error is not None:
                    raise error
                yield key, made
    finally:
        for _, child in running.values():
            if child.pid is not None:
                child.terminate()


def begin(child: BaseProcess) -> None:
    """Starts a process that does not hear Ctrl-C, which whoever started it sees to: its mask is
    inherited. What is pressed meanwhile waits here until the process has begun."""
    resource_tracker.ensure_running()  # else it is started on the way, and takes the mask off
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        child.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(to: Connection, share: int, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    """In the process: sends what became of it."""
    limit_cores(share)
    try:
        answer = work(*given), None
    except Exception as error:
        error.add_note(traceback.format_exc())
        answer = None, error
    to.send(answer)
