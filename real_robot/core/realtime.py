"""Real time, as far as the system permits: the loop's thread first, and no page of it swapped out.

The process's other threads are raised too, to just above everybody else: one of them that holds the
interpreter while some other program holds its processor would keep the loop waiting. The policy's
process, which has a part of a period to answer in, comes between: what looks through cameras does
not keep it waiting.

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
STREAM = 70  # of SCHED_FIFO: of a client's own thread that answers its arm every millisecond
OWNER = 60  # of SCHED_FIFO, below the kernel's own threads: of who owns the arm's port
PRIORITY = 50
POLICY = 30
HELPERS = 10  # of what looks through cameras, of the log writer and the like
_CURRENT_AND_FUTURE = 1 | 2  # MCL_CURRENT | MCL_FUTURE


@contextlib.contextmanager
def realtime(policy: int = 0, priority: int = PRIORITY) -> Iterator[tuple[str, ...]]:
    """SCHED_FIFO for this thread and locked memory inside; yields what was not permitted.

    ``policy`` is the policy's process, 0 if it has none; it keeps its priority, as it may be asked
    again.
    """
    missing = []
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    others = {t.native_id for t in threading.enumerate()} - {threading.get_native_id(), None}
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        for thread in others:
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(HELPERS))
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just died
            for thread in os.listdir(f"/proc/{policy}/task") if policy else ():
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(POLICY))
    except PermissionError:
        missing.append("SCHED_FIFO is not permitted: other programs can delay the control loop")
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
