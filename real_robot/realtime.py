"""Real time, as far as the system permits: the loop's thread first, and no page of it swapped out.

The process's other threads are raised too, to just above everybody else: one of them that holds the
interpreter while some other program holds its processor would keep the loop waiting.

On a stock kernel this takes the lateness of a 100 Hz loop from milliseconds to microseconds when
other programs run. It needs a privilege; without it the loop runs as before and says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator

AVAILABLE = sys.platform == "linux"
PRIORITY = 50  # of SCHED_FIFO, below the kernel's own threads
HELPERS = 10  # of the log writer and the like
_CURRENT_AND_FUTURE = 1 | 2  # MCL_CURRENT | MCL_FUTURE


@contextlib.contextmanager
def realtime() -> Iterator[tuple[str, ...]]:
    """SCHED_FIFO for this thread and locked memory inside; yields what was not permitted."""
    missing = []
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    others = {t.native_id for t in threading.enumerate()} - {threading.get_native_id(), None}
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        for thread in others:
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(HELPERS))
    except PermissionError:
        missing.append("SCHED_FIFO is not permitted: other programs can delay the loop")
    locked = _libc().mlockall(_CURRENT_AND_FUTURE) == 0
    if not locked:
        missing.append("mlockall is not permitted: the loop's memory can be swapped out")
    try:
        yield tuple(missing)
    finally:
        if locked:
            _libc().munlockall()
        os.sched_setscheduler(0, *before)
        for thread in others & {t.native_id for t in threading.enumerate()}:
            os.sched_setscheduler(thread, *before)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
