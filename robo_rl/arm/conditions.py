"""What a policy is put to on a simulated arm: what its perception, its wire and its servos add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from real_robot.pacing import Clock
from real_robot.perception import Perception, SimPerception

Array = np.ndarray
Poses = Callable[[], Mapping[str, tuple[Array, Array]]]
Offset = tuple[float, float, float]
STRAIGHT: Offset = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Nothing, unless told."""

    noise: float = 0.0  # m, standard deviation of perceived positions
    bias: float = 0.0  # m, by which each thing is seen off for an episode, each to another side
    offset: Offset = STRAIGHT  # m, by which all are off: x y z, as after a camera was moved
    latency: float = 0.0  # s, half of it to a measurement, half to a target
    stiffness: float | None = None  # N m/rad, at most, of the servos; None: the arm's own

    def eyes(self, poses: Poses, clock: Clock, seed: int, latency: float = 0.0) -> Perception:
        """What is perceived of the true ``poses``, ``latency`` s late."""
        return SimPerception(
            poses, clock, noise=self.noise, bias=self.bias, offset=self.offset, latency=latency,
            seed=seed,
        )  # fmt: skip

    def sight(self, poses: Poses, clock: Clock, seed: int) -> Perception | None:
        """What a person sees where perception is off for all; None: as perception does."""
        return (
            SimPerception(poses, clock, noise=self.noise, seed=seed) if any(self.offset) else None
        )

    def told(self, *, tags: bool = False) -> str:
        """For people; with ``tags`` perception is what it is."""
        parts = [] if tags else [f"{1000 * self.noise:g} mm of noise on perceived positions"]
        if self.bias and not tags:
            parts.append(f"each off by {1000 * self.bias:g} mm")
        if any(self.offset) and not tags:
            parts.append(f"all off by ({', '.join(f'{1000 * x:g}' for x in self.offset)}) mm")
        parts.append(f"{1000 * self.latency:g} ms of latency")
        if self.stiffness is not None:
            parts.append(f"servos of {self.stiffness:g} N m/rad")
        return ", ".join(parts)


PLAIN = Conditions()
