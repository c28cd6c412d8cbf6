"""How processes begin: the one place that decides it.

``start_module`` runs a module of ours with this interpreter and this copy of our code, in an empty
folder of its own, with the variables that any program needs and those that are named: no keys.
``start_user_program`` runs what a person set up for themselves, with their variables, where they
work. The folder that somebody works in is on nobody's path, so that a file called ``json.py`` there
is never run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_SAFE = {"PYTHONSAFEPATH": "1"}  # is `python -P`, also for what a child starts in its turn
_NEEDED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# What some need besides: to draw, to use a terminal.
DRAWING = (
    "MUJOCO_GL",
    "PYOPENGL_PLATFORM",
    "MUJOCO_EGL_DEVICE_ID",
    "LIBGL_ALWAYS_SOFTWARE",
    "GALLIUM_DRIVER",
    "LP_NUM_THREADS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "ROBO_RL_RENDER_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "LIBGL_DRIVERS_PATH",
    "MESA_LOADER_DRIVER_OVERRIDE",
    "EGL_PLATFORM",
    "__EGL_VENDOR_LIBRARY_DIRS",
    "__EGL_VENDOR_LIBRARY_FILENAMES",
)
TERMINAL = ("TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES")


def start_module(
    module: str,
    *arguments: str,
    keep: Iterable[str] = (),
    limits: Mapping[str, int] | None = None,
    terminal: bool = False,
    **pipes: Any,
) -> subprocess.Popen[Any]:
    """A process that runs ``module`` of ours; it computes on one thread. Paths that it is told must
    be absolute.

    ``keep``: further variables that it gets. ``limits``: {name: most} of resource's RLIMIT_name,
    set before anything of ours is imported. Unless the ``terminal`` is its work it has a session of
    its own: Ctrl-C is its parent's to handle, and ``kill_process_tree`` reaches what it started as
    well. ``pipes`` go to Popen.
    """
    folder = tempfile.mkdtemp(prefix="robo-rl-")
    names = (*_NEEDED, *keep)
    variables = {name: os.environ[name] for name in names if name in os.environ} | _ONE_THREAD
    if ROOT.name not in ("site-packages", "dist-packages"):  # which any child finds by itself
        variables["PYTHONPATH"] = str(ROOT)
    try:
        process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(limits or {}), module, *arguments],
            env=variables | _SAFE,
            cwd=folder,
            start_new_session=not terminal,
            **pipes,
        )
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(process, shutil.rmtree, folder, ignore_errors=True)
    return process


def start_user_program(
    python: str | Path,
    *command: str,
    variables: Mapping[str, str] | None = None,
    terminal: bool = False,
    **pipes: Any,
) -> subprocess.Popen[Any]:
    """A process that runs ``command`` (a file, or "-m" or "-c" and what follows) in a person's own
    interpreter ``python``, with their ``variables`` (all of ours unless given), where they work."""
    return subprocess.Popen(
        [str(python), *command],
        env={**(os.environ if variables is None else variables), **_SAFE},
        start_new_session=not terminal,
        **pipes,
    )


def spawn_context() -> SpawnContext:
    """Returns multiprocessing's "spawn" context for workers of this program.

    Workers inherit the environment variables and ``sys.path``. Sets ``PYTHONSAFEPATH`` in this
    process too.
    """
    # A worker imports modules before it gets our sys.path: without this from the working directory.
    os.environ.update(_SAFE)
    return multiprocessing.get_context("spawn")


def kill_process_tree(process: subprocess.Popen[Any]) -> None:
    """Kills a process and whatever it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _begin(limits: str, module: str, arguments: Sequence[str]) -> None:
    """The child's side: becomes ``module``, within its limits."""
    import resource

    for name, most in json.loads(limits).items():
        what = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(what)[1]
        most = most if hard < 0 else min(most, hard)  # whoever started us may have less
        resource.setrlimit(what, (most, most))
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _begin(sys.argv[1], sys.argv[2], sys.argv[3:])
