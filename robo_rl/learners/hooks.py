"""Hook: what goes on beside a learner, saved in its checkpoints and restored with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robo_rl.learners.learner import Learner

Array = np.ndarray


class Hook:
    """Asked at the seams of learning; each method may stay as it is here, which does nothing.

    Whatever a hook draws comes from generators of its own: SB3 draws from the global ones, and a
    run must go on after a crash as it would have gone on without.
    """

    name = ""  # under which checkpoints keep its state; empty: it has none

    def start(self, learner: Learner) -> None:
        """Called once the learner is made, before a checkpoint is loaded."""

    def row(self, row: Mapping[str, float]) -> bool | None:
        """A metrics row was written, before its update; False ends training after the update."""

    def pause(self, learner: Learner) -> bool | None:
        """Between an update and the next rollout, with nothing half done; False ends training."""

    def state_dict(self) -> Mapping[str, Array]:
        """Returns the state that a resumed run needs."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Array]) -> None:
        """Continues from ``state_dict``."""
