"""TensorBoardWriter: TensorBoard's event files beside a run's metrics.csv."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robo_rl.learners.hooks import Hook


class TensorBoardWriter(Hook):
    """Writes every metrics row, as it is made, to ``folder``: ``tensorboard --logdir runs``."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._writer: Any = None  # made with the first row, which says what a crash left too much
        try:
            from torch.utils.tensorboard import SummaryWriter

            self._make = SummaryWriter
        except ImportError:
            self._make = None
            warnings.warn(
                "no TensorBoard files, only metrics.csv: tensorboard is not installed; "
                "install it with: pip install 'robo-rl[train]'",
                stacklevel=2,
            )

    def row(self, row: Mapping[str, float]) -> None:
        """Adds a row; figures without a group of their own belong to ``run``."""
        if self._make is None:
            return
        step = int(row["env_steps"])
        if self._writer is None:
            self._writer = self._make(str(self._folder), purge_step=step)
        for name, value in row.items():
            self._writer.add_scalar(name if "/" in name else f"run/{name}", value, step)
        self._writer.flush()

    def log_evaluation(self, row: Mapping[str, float]) -> None:
        """Adds a row of ``looks.csv``."""
        self.row({"env_steps": row["env_steps"]} | {f"look/{k}": v for k, v in row.items()})

    def close(self) -> None:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()
