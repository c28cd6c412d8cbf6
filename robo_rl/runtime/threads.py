"""Threads and seeds: the one place that sets either."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator

import numpy as np

# OpenMP, MKL and OpenBLAS read these when they load; llvmpipe (software GL) when a context is made.
_COMPUTE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_GL = "LP_NUM_THREADS"
_WAIT = "OMP_WAIT_POLICY"  # robo_rl/__init__.py sets it, before anything can load OpenMP
CORES = "ROBO_RL_CORES"  # how many a program of ours takes, where it is not to take all of them

_simulation = 1  # threads of the simulation; 1 until they are set


def set_threads(simulation: int = 0, *, learning: int = 1) -> int:
    """Sets the thread counts of all libraries and returns that for ``BatchEnv(num_threads=...)``.

    Small networks learn fastest on one thread (SB3's SAC is slower on two), so the cores belong to
    the simulation. Software GL gets no threads of its own: they gain nothing within a frame, and
    slow down frames that are rendered side by side (``sims/rendering/render_pool.py``). Call it
    before a large library is imported: one that is loaded already keeps its threads, except torch.
    Child processes inherit the setting.

    Args:
        simulation: Threads that step and render; 0: one per core, of those that the environment
            variable ``ROBO_RL_CORES`` allows where it is set.
        learning: Threads of numerical libraries.

    Raises:
        ValueError: ``simulation`` is negative, or ``learning`` below 1.
    """
    if simulation < 0 or learning < 1:
        raise ValueError(
            f"threads must be simulation >= 0 and learning >= 1, got {simulation} and {learning}"
        )
    global _simulation
    _simulation = simulation = simulation or cores()
    for name in _COMPUTE:
        os.environ[name] = str(learning)
    os.environ[_GL] = "0"  # in the thread that draws
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(learning)
    return simulation


def simulation_threads() -> int:
    """Returns the number of simulation threads, as last given to ``set_threads``."""
    return _simulation


def cores() -> int:
    """Returns the number of cores this program may use; ValueError where ``ROBO_RL_CORES`` is not a
    number."""
    setting = os.environ.get(CORES, "")
    if not setting:
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(f"{CORES} must be a whole number from 1, got {setting!r}")
    return int(setting)


def limit_cores(count: int) -> None:
    """Limits the cores of this program and of those that it starts from now on."""
    os.environ[CORES] = str(count)


def user_environment() -> dict[str, str]:
    """Returns the environment variables without those set here, for programs that are not ours."""
    ours = (*_COMPUTE, _GL, _WAIT)
    return {name: value for name, value in os.environ.items() if name not in ours}


@contextlib.contextmanager
def lend_threads_to_torch() -> Iterator[None]:
    """Lends the simulation's threads to torch, for large work during which nothing is simulated."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(before, _simulation))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seed_everything(seed: int) -> None:
    """Seeds the global generators of Python, numpy and torch, which SB3 draws from.

    Simulators and reward models take their seed as an argument and share nothing with these.
    """
    import torch

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - SB3 shuffles and samples with the global generator
    torch.manual_seed(seed)
