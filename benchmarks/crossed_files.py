"""Counts the files and folders whose code runs while a sentence is read, imports included.

PYTHONPATH=CHECKOUT python benchmarks/crossed_files.py
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from types import FrameType

SENTENCE = "touch the red cube, then hover 5 cm above the can"


def main() -> None:
    """Prints both counts for the checkout that PYTHONPATH names."""
    root = Path(os.environ["PYTHONPATH"]).resolve()
    crossed: set[Path] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and root in file.parents:
            crossed.add(file)

    from robo_rl.cli import main as robo_rl

    sys.setprofile(note)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        robo_rl(["reward", "read", SENTENCE, "--task", "reach", "--json"])
    sys.setprofile(None)
    print(f"{len(crossed)} files in {len({file.parent for file in crossed})} folders")


if __name__ == "__main__":
    main()
