"""The page of faults is what `make check` writes: its own recipe, as far as pytest's options go."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_make_check_can_overwrite_the_faults_page() -> None:
    """With ``--faults docs/faults.md`` pytest took that file for where the tests are."""
    found = re.search(
        r"^check:.*\n\t\$\(BIN\)/python -m (.*)$", (ROOT / "Makefile").read_text(), re.M
    )
    assert found and (ROOT / "docs" / "faults.md").exists()
    recipe = [sys.executable, "-m", *shlex.split(found[1]), "--markers"]
    done = subprocess.run(recipe, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
