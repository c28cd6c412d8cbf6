"""An emulated SO-101: six Feetech servos."""

from __future__ import annotations

from real_robot.emulators.feetech import FeetechBus
from real_robot.emulators.physics import ArmPhysics
from real_robot.emulators.servos import ServoEmulator


class So101Emulator(ServoEmulator):
    """The arm of ``task`` on a pseudo-terminal."""

    def make_bus(self, physics: ArmPhysics, calibrated: bool, seed: int) -> FeetechBus:
        """Six STS3215."""
        return FeetechBus(physics, calibrated=calibrated, seed=seed)
