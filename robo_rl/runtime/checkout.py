"""The benchmarks of a checkout; an installed package comes without them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def benchmarks(module: str = "") -> ModuleType:
    """The package ``benchmarks``, or a module of it; ValueError outside a checkout."""
    folder = ROOT / "benchmarks"
    if not (folder / "__init__.py").is_file():
        raise ValueError(
            f"no benchmarks in {ROOT}: they are part of the repository, not of the "
            "installed package; use a checkout, installed by `pip install -e .`"
        )
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    package = importlib.import_module("benchmarks")
    if Path(package.__file__ or "").parent != folder:
        raise ValueError(f"another package named benchmarks shadows ours: {package.__file__}")
    return importlib.import_module(f"benchmarks.{module}") if module else package
