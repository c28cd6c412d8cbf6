"""A renderer in a process of its own, for drawing side by side.

In one process one renderer draws at a time (``cameras``). A process is begun once and serves one
pool after the other. It ends with the program that began it, however that ends.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from sims.rendering.cameras import Appearance, RenderError
from sims.utils import process

Array = np.ndarray

_idle: list[SubprocessRenderer] = []
_all: weakref.WeakSet[SubprocessRenderer] = weakref.WeakSet()
_guard = threading.Lock()


def renderer_pids() -> list[int]:
    """The pids of the processes that draw for this one."""
    return [far.pid for far in tuple(_all) if far.alive]


def renderer_cpu_seconds() -> float:
    """s that these have had of the processor, as far as the system tells."""
    return sum(map(process_cpu_seconds, renderer_pids()))


def process_cpu_seconds(pid: int) -> float:
    """s that a process has had of the processor; 0 where the system does not tell."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


class SubprocessRenderer:
    """As ``Renderer``, in another process; any thread may use it, one at a time."""

    def __init__(self) -> None:
        """RenderError where no further process can begin."""
        try:
            self._line, far = multiprocessing.Pipe()
            with far:
                self._process = process.start_module(
                    "sims.rendering.render_worker",
                    str(far.fileno()),
                    keep=process.DRAWING,
                    pass_fds=[far.fileno()],
                )
        except OSError as error:
            raise RenderError(f"cannot start the render subprocess: {error}") from error
        _all.add(self)

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether its process is."""
        return self._process.poll() is None

    @classmethod
    def opened(
        cls, model: mujoco.MjModel, height: int, width: int, backend: str
    ) -> SubprocessRenderer:
        """One that draws ``model``; RenderError where it gets no GL context."""
        with _guard:
            _idle[:] = [far for far in _idle if far.alive]
            far = _idle.pop() if _idle else cls()
        binary = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, binary)
        try:
            far._ask("open", binary.tobytes(), height, width, backend)
        except BaseException:
            far._end()
            raise
        return far

    def frames(self, states: Array, camera: str, look: Appearance | None = None) -> Array:
        """Frames (n, H, W, 3) uint8 of state rows (n, nstate) from ``camera``."""
        return self._ask("frames", states, camera, look)

    def close(self) -> None:
        """Frees the GL context, and leaves the process to who draws next."""
        try:
            self._ask("close")
        except RenderError:
            self._end()
            return
        with _guard:
            _idle.append(self)

    def _ask(self, *request: Any) -> Any:
        try:
            self._line.send(request)
            answer = self._line.recv()
        except (EOFError, OSError) as error:
            raise RenderError("the render subprocess has died") from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _end(self) -> None:
        self._line.close()
        process.kill_process_tree(self._process)
