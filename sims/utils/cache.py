"""Where things that are made once per machine are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """$ROBO_RL_CACHE, else the user's cache folder."""
    root = os.environ.get("ROBO_RL_CACHE")
    if root:
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "robo-rl"
