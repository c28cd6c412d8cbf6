"""A vendor's client at its worst: it can wait with the interpreter's lock held, die, and refuse."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from real_robot.child import own_end
from real_robot.client_process import Refused, serve


def hang(seconds: int, file: str) -> None:
    """Holds the interpreter for ``seconds``, then does what it was told: too late."""
    ctypes.PyDLL(None).sleep(seconds)
    Path(file).touch()


def refuse(fault: str) -> None:
    raise Refused(fault, "as asked")


if __name__ == "__main__":
    verbs = {"add": lambda a, b: a + b, "hang": hang, "refuse": refuse, "die": lambda: os._exit(3)}
    serve(verbs, own_end(sys.argv[1]))
