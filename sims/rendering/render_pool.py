"""Renders frames of many stored states in parallel, on as many cores as this machine gains by.

A software-GL frame keeps one core busy whatever the number of its own threads, so states are
divided among threads: the first renders itself, each other one has a renderer subprocess
(``render_client``). Whether that gains, and how many are best, is measured once per machine and
kept in its cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import mujoco
import numpy as np

from sims.rendering.cameras import Appearance, Renderer, RenderError
from sims.rendering.render_client import SubprocessRenderer
from sims.utils.cache import cache_dir

Array = np.ndarray

SETTING = "ROBO_RL_RENDER_THREADS"  # forces the number of threads; 1 draws as one renderer does
FEW = 16  # frames that are not worth a second one who draws
CHUNK = 8  # frames a thread takes at a time: the others need not wait for a slow one
MOST = 2 * FEW // CHUNK  # who can have a part in what is measured
GAIN = 1.1  # times faster, at least, or one thread it stays
ROUNDS = 3

_Job = tuple[Callable[[Any], SubprocessRenderer | None], Future[None]]


class RenderPool:
    """Renders stored states of one model on at most ``threads`` threads (0: one per core); each
    thread but the first has a renderer subprocess.

    Frames are bit-equal whatever the number of threads. A pool belongs to the thread that made it.
    """

    def __init__(self, model: mujoco.MjModel, height: int, width: int, *, threads: int = 0):
        self._model, self._size = model, (height, width)
        self._first = Renderer(model, height, width)
        self._others: list[_Worker] = []
        self._most, self._chosen = threads or usable_cores(), requested_threads()
        if self._first.backend == "glfw" or (self._most == 1 and not self._chosen):
            self._chosen = 1  # GLFW may be used by a program's main thread alone

    def frames(self, states: Array, camera: str, look: Appearance | None = None) -> Array:
        """Returns frames (n, H, W, 3) uint8 of states (n, nstate) from ``camera``."""
        if len(states) <= FEW or self._chosen == 1:
            return self._first.frames(states, camera, look)
        if not self._chosen:
            most = min(self._most, MOST)
            rate = self._rate(states[: 2 * FEW], camera)
            self._chosen = fastest_thread_count(self._first.describe(), rate, most)
            self._drop(self._others[self._chosen - 1 :])
        return self._draw(states, camera, look, self._chosen)

    def _draw(self, states: Array, camera: str, look: Appearance | None, threads: int) -> Array:
        if threads == 1:
            return self._first.frames(states, camera, look)
        with contextlib.suppress(RenderError):  # no further one is to be had: these draw all
            while len(self._others) < threads - 1:
                self._others.append(_Worker(self._model, *self._size, self._first.backend))
        out = np.empty((len(states), *self._size, 3), np.uint8)
        drawn = np.zeros(len(states), bool)
        # Each thread takes the next chunk when it is done with one: none waits for a slow one.
        chunks = iter([slice(at, at + CHUNK) for at in range(0, len(states), CHUNK)])

        def draw(renderer: Renderer | SubprocessRenderer) -> None:
            for part in chunks:
                rows = None if look is None else look.rows(part)
                out[part] = renderer.frames(states[part], camera, rows)
                drawn[part] = True

        begun = [worker.submit(draw) for worker in self._others[: threads - 1]]
        try:
            draw(self._first)
        finally:
            problems = [future.exception() for future in begun]  # waits for each
        for worker, problem in zip(tuple(self._others), problems, strict=False):
            if isinstance(problem, RenderError):  # its process has died
                self._drop([worker])
            elif problem is not None:
                raise problem
        if not drawn.all():
            rows = None if look is None else look.rows(~drawn)
            out[~drawn] = self._first.frames(states[~drawn], camera, rows)
        return out

    def _drop(self, workers: Sequence[_Worker]) -> None:
        for worker in tuple(workers):
            self._others.remove(worker)
            worker.close()

    def _rate(self, states: Array, camera: str) -> Callable[[int], float]:
        """A measure: frames per second on so many threads."""

        def rate(threads: int) -> float:
            begun = time.perf_counter()
            self._draw(states, camera, None, threads)
            return len(states) / (time.perf_counter() - begun)

        return rate

    def close(self) -> None:
        """Frees every GL context; safe to call twice."""
        self._drop(self._others)
        self._first.close()


_CLOSING = 10.0  # s, for a thread that renders to end


class _Worker:
    """A thread with a renderer subprocess, which no other thread can reach or collect."""

    def __init__(self, model: mujoco.MjModel, height: int, width: int, backend: str):
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # Waiting for a job that never comes, it must not keep the program from ending.
        self._thread = threading.Thread(
            target=_serve, args=(self._jobs,), name="frames", daemon=True
        )
        self._thread.start()
        opened = self.submit(lambda _: SubprocessRenderer.opened(model, height, width, backend))
        try:
            opened.result()
        except RenderError:
            self.close()
            raise

    def submit(self, work: Callable[[Any], SubprocessRenderer | None]) -> Future[None]:
        future: Future[None] = Future()
        self._jobs.put((work, future))
        return future

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join(_CLOSING)  # a driver that hangs is left to the end of the program

    def __del__(self) -> None:
        self._jobs.put(None)  # also where nobody closed it, the thread ends


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Does ``work(renderer)`` for each job; the first one gives the renderer."""
    renderer: SubprocessRenderer | None = None
    while (job := jobs.get()) is not None:
        work, future = job
        try:
            renderer = work(renderer) or renderer
        except Exception as error:  # whatever it is, who waits for the job is told
            future.set_exception(error)
        else:
            future.set_result(None)
        del job, work, future  # a pool that is in them must not live as long as this thread
    if renderer is not None:
        renderer.close()


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def requested_threads() -> int:
    """Returns the number of threads that the environment variable forces; 0 for none.

    Raises:
        ValueError: its value is no number of at least 1.
    """
    said = os.environ.get(SETTING, "").strip()
    if said and (not said.isdecimal() or int(said) < 1):
        raise ValueError(f"{SETTING} must be a number of threads, at least 1, got {said!r}")
    return int(said or 0)


def fastest_thread_count(renderer: str, rate: Callable[[int], float], most: int) -> int:
    """The number of threads, at most ``most``, with the best ``rate``: as this machine's cache
    says, else measured."""
    path = cache_dir() / "render_processes.json"
    own = os.environ.get("LP_NUM_THREADS", "default")  # threads of software GL itself
    machine = (
        f"{platform.machine()}, {most} of {usable_cores()} cores, {renderer}, LP_NUM_THREADS {own}"
    )
    known = _read(path)
    if machine in known:
        return known[machine]
    rates = measure_rates(rate, most)
    best = max(rates, key=lambda threads: rates[threads])
    if rates[best] < GAIN * rates[1]:
        best = 1
    # That nothing gains on cores which others are using says nothing about this machine.
    if best > 1 or not machine_is_busy():
        known[machine] = best
        with contextlib.suppress(OSError):  # where nothing can be kept, it is measured again
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.{os.getpid()}")
            partial.write_text(json.dumps(known, indent=1))
            partial.replace(path)
    return best


def machine_is_busy() -> bool:
    """Whether others have been using half of the cores or more, beside this process."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] - 1.0 >= 0.5 * usable_cores()


def measure_rates(rate: Callable[[int], float], most: int) -> dict[int, float]:
    """{threads: best rate of some interleaved rounds}; the first round only warms up."""
    rounds = [{n: rate(n) for n in _candidates(most)} for _ in range(ROUNDS + 1)]
    return {n: max(r[n] for r in rounds[1:]) for n in rounds[0]}


def _candidates(most: int) -> Iterator[int]:
    """1, 2, 4, ... and the most."""
    number = 1
    while number < most:
        yield number
        number *= 2
    yield most


def _read(path: Path) -> dict[str, int]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}  # not there yet, or not ours
