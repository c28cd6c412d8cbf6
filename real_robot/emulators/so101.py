"""An emulated SO-101: six Feetech servos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from real_robot.emulators.feetech import FeetechBus
from real_robot.emulators.physics import ArmPhysics
from real_robot.emulators.servos import ServoEmulator


class So101Emulator(ServoEmulator):
    """The arm of ``task`` on a pseudo-terminal."""

    bus: FeetechBus

    def make_bus(self, physics: ArmPhysics, calibrated: bool, seed: int) -> FeetechBus:
        """Six STS3215."""
        return FeetechBus(physics, calibrated=calibrated, seed=seed)

    def commands(self) -> dict[str, Callable[..., Any]]:
        """Besides what every arm of servos offers: its supply, and servos that stay overloaded."""
        return super().commands() | self._offered(self.supply, self.stubborn)

    def supply(self, volts: float, ohm: float | None = None) -> None:
        """The supply gives ``volts`` without load, behind ``ohm``; None: as it is."""
        self.bus.power.supply = volts
        if ohm is not None:
            self.bus.power.ohm = ohm

    def stubborn(self, stubborn: bool = True) -> None:
        """An overload of any servo takes all its torque and ends with its power alone.

        Nobody documents it; some users say so of theirs.
        """
        for servo in self.bus.servos:
            servo.stubborn = stubborn
