"""What a policy is put to on a simulated arm: what its perception, its wire and its servos add."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from real_robot.core.pacing import Clock
from real_robot.perception.base import Perception
from real_robot.sim.sim_perception import SimPerception
from sims.core.task import Task
from sims.randomization.domain_randomization import ArmServos, Randomize

Array = np.ndarray
Poses = Callable[[], Mapping[str, tuple[Array, Array]]]
Offset = tuple[float, float, float]
STRAIGHT: Offset = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class ArmConditions:
    """Noise, latency and servo stiffness of an arm; none by default."""

    noise: float = 0.0  # m, standard deviation of perceived positions
    bias: float = 0.0  # m, constant position bias of each object in an episode
    offset: Offset = STRAIGHT  # m, position offset of all objects, x y z (moved camera)
    latency: float = 0.0  # s, split equally between sensing and actuation
    stiffness: float | None = None  # N m/rad, servo stiffness limit; None: the arm's own

    def perception(self, poses: Poses, clock: Clock, seed: int, latency: float = 0.0) -> Perception:
        """Perception of the true ``poses`` with this noise, ``latency`` s late."""
        return SimPerception(
            poses,
            clock,
            noise=self.noise,
            bias=self.bias,
            offset=self.offset,
            latency=latency,
            seed=seed,
        )

    def operator_view(self, poses: Poses, clock: Clock, seed: int) -> Perception | None:
        """What the operator sees where perception has an offset; None: as perception does."""
        return (
            SimPerception(poses, clock, noise=self.noise, seed=seed) if any(self.offset) else None
        )

    def randomization(self, task: Task[Any], width: float = 0.0) -> Randomize:
        """Rows of ``task`` that are all under these, and differ by ``width`` in all else.

        ValueError where nobody knows how soft the servos of its arm may be, and where all is seen
        off to one side, which rows cannot be.
        """
        if any(self.offset):
            raise ValueError(
                f"an offset of all objects, {self.offset} m, is not supported here: leave it out"
            )
        half = self.latency / 2 / task.control_dt  # control steps
        if half >= 10:
            raise ValueError(
                f"--latency must be below {20 * task.control_dt:g} s, 10 control steps each way, "
                f"got {self.latency:g}"
            )
        known: dict[str, float] = {}
        if self.latency:
            late = math.ceil(half) - half  # the bridge's eyes are late by whole actions
            known |= {"action_delay": half, "obs_delay": half, "pose_delay": late}
        if self.stiffness is not None:
            known["soft"] = ArmServos.of(task, task.model()).softness_of(self.stiffness)
        if self.noise:
            known["pose_noise"] = self.noise
        if self.bias:
            known["pose_bias"] = self.bias / math.sqrt(3)
        return Randomize(width=width, told=tuple(known), **known)

    @classmethod
    def worst_trained(cls, training: Mapping[str, Any], task: Task[Any]) -> ArmConditions:
        """The worst that a policy of ``training``, as a bundle tells it, has met on ``task``."""
        spread = training.get("randomize") or {}
        names = [field.name for field in fields(Randomize) if field.name != "told"]
        rows = Randomize(
            **{name: spread.get(name, 0.0) for name in names},  # older ones have fewer
            told=tuple(spread.get("told", ())),
        )
        half = {name: rows.half(name, rows.width) for name in names}
        servos = ArmServos.of(task, task.model())
        soft = half["soft"] if "soft" in rows.told else min(1.0, half["soft"])
        return cls(
            noise=half["pose_noise"],
            bias=math.sqrt(3) * half["pose_bias"],
            latency=2 * min(half["action_delay"], half["obs_delay"]) * task.control_dt,
            stiffness=servos.stiffness_at(soft) if soft and len(servos.ids) else None,
        )

    @classmethod
    def known_in(cls, training: Mapping[str, Any], task: Task[Any]) -> ArmConditions:
        """Returns the arm parameters known to a policy with these ``training`` metadata, which held
        in every environment."""
        rows = training.get("randomize") or {}
        return cls.worst_trained({"randomize": {**rows, "width": 0.0}}, task)

    def beyond(self, met: ArmConditions, *, tags: bool = False) -> str:
        """What of it is worse than what was ``met``, for people; "" if nothing is. ``tags``: as of
        ``told``."""
        worse = {n: getattr(self, n) > 1.05 * getattr(met, n) for n in ("noise", "bias", "latency")}
        only = {name: getattr(self, name) for name, is_worse in worse.items() if is_worse}
        if self.stiffness is not None and self.stiffness < 0.95 * (met.stiffness or math.inf):
            only["stiffness"] = self.stiffness
        if any(self.offset):
            only["offset"] = self.offset
        return ArmConditions(**only).known_text(tags=tags, only=True)

    def known_text(self, *, tags: bool = False, only: bool = False) -> str:
        """For people; with ``tags`` perception is what it is. ``only``: nothing that is none."""
        parts = []
        if not tags and (self.noise or not only):
            parts.append(f"{1000 * self.noise:.2g} mm of noise on perceived positions")
        if self.bias and not tags:
            parts.append(f"each off by {1000 * self.bias:.2g} mm")
        if any(self.offset) and not tags:
            parts.append(f"all off by ({', '.join(f'{1000 * x:g}' for x in self.offset)}) mm")
        if self.latency or not only:
            parts.append(f"{1000 * self.latency:g} ms of latency")
        if self.stiffness is not None:
            parts.append(f"servos of {self.stiffness:.3g} N m/rad")
        return ", ".join(parts)


PLAIN = ArmConditions()
