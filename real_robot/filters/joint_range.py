"""JointRange: wishes end where the joints do, less a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from real_robot.filters.stage import EPS, Array, Moment, Motion, Stage


@dataclass(frozen=True, eq=False)
class JointRange(Stage):
    """Clips a wish into the range of the joints and of the gripper."""

    name: ClassVar[str] = "range"
    position: Array  # (n, 2) rad, low and high, margin taken off
    margin: float = 0.0  # rad, that was taken off

    @property
    def pressing(self) -> float:  # type: ignore[override]
        """rad; to wish for the very end of a joint is not to ask for what the arm cannot do: a
        simulated one goes there."""
        return self.margin + EPS

    def step(self, motion: Motion, moment: Moment, own: Any) -> tuple[Motion, Any]:
        gripper = min(max(motion.gripper, 0.0), 1.0)
        low, high = self.position.T
        qpos = np.minimum(np.maximum(motion.qpos, low), high)
        if (qpos == motion.qpos).all():
            return motion._replace(gripper=gripper), own
        inside = np.abs(qpos - motion.qpos) <= EPS
        return motion._replace(qpos=qpos, qvel=motion.qvel * inside, gripper=gripper), own
