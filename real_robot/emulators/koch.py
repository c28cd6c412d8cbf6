"""An emulated Koch v1.1: two XL430 and four XL330 servos."""

from __future__ import annotations

from real_robot.emulators.dynamixel import DynamixelBus
from real_robot.emulators.dynamixel_registers import XL330, XL430
from real_robot.emulators.physics import ArmPhysics
from real_robot.emulators.servos import ServoEmulator


class KochEmulator(ServoEmulator):
    """The arm of ``task`` on a pseudo-terminal."""

    def make_bus(self, physics: ArmPhysics, calibrated: bool, seed: int) -> DynamixelBus:
        """Shoulder and lift are stronger than the rest."""
        models = (XL430, XL430, XL330, XL330, XL330, XL330)
        return DynamixelBus(physics, models, calibrated=calibrated, seed=seed)
