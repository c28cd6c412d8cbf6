"""The process that draws for another one (``render_client``): answers each request with what came
of it, or with the error, and ends with who asks."""

from __future__ import annotations

import contextlib
import sys
from multiprocessing.connection import Connection
from typing import Any

import mujoco

from sims.rendering.cameras import Renderer


def _serve(line: Connection) -> None:
    renderer: Renderer | None = None
    while True:
        try:
            what, *given = line.recv()
        except EOFError:
            return
        answer: Any = None
        try:
            if what == "open":
                binary, height, width, backend = given
                model = mujoco.MjModel.from_binary_path("scene.mjb", {"scene.mjb": binary})
                renderer = Renderer(model, height, width, backend=backend)
            elif what == "frames":
                answer = renderer.frames(*given)
            elif renderer is not None:
                renderer, last = None, renderer
                last.close()
        except Exception as error:  # whatever it is, who waits is told
            answer = error
        line.send(answer)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        _serve(Connection(int(sys.argv[1])))
