"""Threads that are waited for, but not for ever."""

from __future__ import annotations

import sys
import threading

WAIT = 5.0  # s, for a thread that was asked to end


def join_or_leave(thread: threading.Thread, what: str, seconds: float | None = None) -> bool:
    """Waits for a daemon thread that is to end.

    A call into a device, or a library, may never return. Then the thread is left behind, which ends
    with the program, and a line on stderr says of ``what``.

    Args:
        thread: the thread, which is a daemon.
        what: what it does, for people.
        seconds: how long to wait for it; None: ``WAIT``.

    Returns:
        Whether it has ended.
    """
    seconds = WAIT if seconds is None else seconds
    thread.join(seconds)
    if thread.is_alive():
        print(f"{what} did not end within {seconds:g} s and is left behind", file=sys.stderr)
    return not thread.is_alive()
