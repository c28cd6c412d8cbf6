"""StopSignals: Ctrl-C and friends are requests to stop the arm, not exceptions in mid-tick."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, kill, terminal lost


class StopSignals:
    """Counts stop signals while it is entered; the handlers from before come back afterwards.

    Python delivers signals to the main thread alone; entered in another this does nothing.
    """

    def __init__(self) -> None:
        self.count, self.last = 0, ""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._before = {s: signal.signal(s, self._handle) for s in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for which, handler in self._before.items():
            signal.signal(which, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count, self.last = self.count + 1, signal.Signals(number).name
