"""The guard of the look: 32 state rows with their frames, kept beside the embedded CLIP's weights.

A network trained on one look of the scene fails quietly on another. A test renders the rows again
and compares; when the look has drifted it names the command that retrains.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sims.batch_env import BatchEnv

Array = np.ndarray

ROWS = 32
TOLERANCE = 2.0  # mean absolute difference of a frame's 8-bit values; drivers round differently


def write_guard(env: BatchEnv, states: Array, path: Path) -> None:
    """Keeps ``ROWS`` of ``states`` and their plain frames."""
    rows = states[:: max(1, len(states) // ROWS)][:ROWS]
    np.savez_compressed(path, states=rows, frames=env.render_states(rows))


def drift(env: BatchEnv, path: Path) -> float:
    """Largest mean absolute difference over the stored frames, 0 to 255."""
    with np.load(path, allow_pickle=False) as stored:
        states, frames = stored["states"], stored["frames"]
    if states.shape[1] != env.nstate:
        return float("inf")
    now = env.render_states(states).astype(float)
    return float(np.abs(now - frames).mean(axis=(1, 2, 3)).max())
