"""Work on several things at once, in a few processes that have their share of the cores."""

from __future__ import annotations

import contextlib
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import sims.envs.registration  # noqa: F401  so that plug-ins' tasks can be received
from robo_rl.runtime.threads import cores, limit_cores
from sims.utils import process

Key = TypeVar("Key")
Made = TypeVar("Made")


_ENDING = 5.0  # s, for a process that has closed its pipe


def run_in_workers(
    work: Callable[..., Made],
    given: Mapping[Key, tuple[Any, ...]],
    jobs: int,
    died: Callable[[str], Made] | None = None,
    begun: Callable[[Key], None] = lambda key: None,
) -> Iterator[tuple[Key, Made]]:
    """(key, what ``work`` made of the arguments given for it), as they are finished.

    One after the other in this process, or in ``jobs`` others, which take one after the other each,
    for to begin takes seconds. They end with this one: on the first error of any, on Ctrl-C, or
    when nobody asks for more. A process that ends by itself is an error too, a ChildProcessError,
    or what ``died`` makes of it. ``begun`` is told of each that begins.
    """
    if jobs == 1:
        for key, arguments in given.items():
            begun(key)
            yield key, work(*arguments)
        return
    share, waiting = max(1, cores() // jobs), dict(given)
    workers: dict[Connection, BaseProcess] = {}
    idle: list[Connection] = []
    busy: dict[Connection, Key] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                key = next(iter(waiting))
                to = idle.pop() if idle else _start_pipe_worker(work, share, workers)
                busy[to] = key
                with contextlib.suppress(ConnectionError):  # it is gone: found out below
                    to.send(waiting.pop(key))
                begun(key)
            for answered in wait([*busy]):
                key = busy.pop(answered)
                try:
                    made, error = answered.recv()
                    idle.append(answered)
                except (EOFError, ConnectionError):
                    child = workers.pop(answered)
                    child.join(_ENDING)
                    child.kill()  # if it has closed its pipe alone
                    why = f"its process ended with {child.exitcode}"
                    if died is None:
                        raise ChildProcessError(why) from None
                    made, error = died(why), None
                if error is not None:
                    raise error
                yield key, made
    finally:
        for to, child in workers.items():
            to.close()  # with which those end that wait for more
            if to in busy:
                child.terminate()


def _start_pipe_worker(
    work: Callable[..., Any], share: int, workers: dict[Connection, BaseProcess]
) -> Connection:
    """The end of a pipe to a process that has begun, and is noted as one of ``workers``."""
    context = process.spawn_context()
    ours, theirs = context.Pipe()
    workers[ours] = context.Process(target=_answers, args=(theirs, share, work))
    start_worker(workers[ours])
    theirs.close()  # so that ours ends with the process
    return ours


def start_worker(child: BaseProcess) -> None:
    """Starts a process that does not hear Ctrl-C, which whoever started it sees to: its mask is
    inherited. What is pressed meanwhile waits here until the process has begun."""
    resource_tracker.ensure_running()  # else it is started on the way, and takes the mask off
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        child.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answers(pipe: Connection, share: int, work: Callable[..., Any]) -> None:
    """Runs in the worker: sends the result of each piece of work, until there is no more."""
    limit_cores(share)
    while True:
        try:
            given = pipe.recv()
        except EOFError:
            return
        try:
            answer = work(*given), None
        except Exception as error:
            error.add_note(traceback.format_exc())
            answer = None, error
        pipe.send(answer)
