"""Training, scoring, evaluation and the command line; the only package that imports the others."""

from __future__ import annotations

import importlib
from typing import Any

# Loaded when first used: importing torch takes two seconds that `robo-rl --help` need not wait for.
_HOME = {"train": "train", "TrainConfig": "config", "evaluate": "evaluate"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
