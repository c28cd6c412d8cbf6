"""What is inside STS3215 servos: position loop, motor, supply and heat, for all servos at once.

The maker publishes registers and a data sheet, not the loop. Known: stall 30 kg cm at 2.7 A and 45
rpm at 0.18 A without load, at 12 V (data sheet, as quoted in issues 132 and 134 of
TheRobotStudio/SO-ARM100); factory values and units of the registers (Feetech's memory table); that
the loop's duty is the gain register times the angle error, up to a limit (Rhoban/bam at 1b5a1ce,
with an oscilloscope: 0.166 a rad at gain 1, so 7.8 N m/rad at gain 16). The simulated joint's
damping of 0.60 N m s/rad is bam's, 0.55 of it this motor's back-EMF: a torque here is the duty's
share of the stall torque, without it. Ours, for want of a source: that D opposes the speed and I
adds up the error, and how much of it a unit is; that only the error beyond the dead band counts,
and the dead band's two sides; the supply's resistance; that the loop sees parts of a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

VOLTS = 12.0  # V, at which the data sheet's numbers hold
STALL = 30 * 9.81 / 100  # N m
RESISTANCE = VOLTS / 2.7  # ohm, from the current that stalls it
BACK_EMF = (VOLTS - 0.18 * RESISTANCE) / (45 * 2 * np.pi / 60)  # V s/rad, from that without load
GAIN_P, GAIN_D = 16, 32  # registers at which the arm's stiffness and damping hold

SUPPLY_OHM = 0.15  # ohm of adapter and cables: ours; 12 V fall to 11.2 when two servos are blocked
ROOM = 25.0  # deg C
# 1.47 N m held it at 48 deg C, reached within 10 minutes (issue 134): 23 K from 8.0 W, and a time
# constant of about a third of that, which 60 g of metal and plastic would have.
KELVIN_PER_WATT = 2.9
JOULE_PER_KELVIN = 65.0


class Gains(NamedTuple):
    """What the registers make of the loops of n servos, all (n,)."""

    p: Array  # duty a rad
    d: Array  # duty a rad/s
    i: Array  # duty a rad and s
    below: Array  # rad, dead band for goals below the joint
    above: Array  # rad, for goals above it
    least: Array  # duty, start-up force: what is given at least where anything is
    most: Array  # duty, torque limit; 0: limp


class Loops:
    """The position loops of ``n`` servos."""

    def __init__(self, n: int):
        self._sum = np.zeros(n)  # duty, of I

    def duty(self, error: Array, speed: Array, gains: Gains, dt: float) -> Array:
        """Duties (n,) of -1 to 1 after ``dt`` s of ``error`` rad to the goal at ``speed`` rad/s."""
        beyond = error - np.minimum(np.maximum(error, -gains.below), gains.above)
        push = gains.p * beyond
        weak = (np.abs(push) < gains.least) & (beyond != 0.0)
        push = np.where(weak, np.copysign(gains.least, beyond), push)
        if gains.i.any():
            self._sum += gains.i * beyond * dt
            self._sum = np.minimum(np.maximum(self._sum, -gains.most), gains.most)
            push = push + self._sum
        push = push - gains.d * speed
        return np.minimum(np.maximum(push, -gains.most), gains.most)


class Power:
    """The supply of ``n`` servos, their motors' currents and their heat."""

    def __init__(self, n: int):
        self.supply, self.ohm = VOLTS, SUPPLY_OHM  # V without load; ohm up to the servos
        self.volts = self.supply  # V at the servos
        self.current = np.zeros(n)  # A, of the motors
        self.heat = np.full(n, ROOM)  # deg C
        self._squares, self._span = np.zeros(n), 0.0  # A^2 s, s: heat still to be made of

    def step(self, duty: Array, speed: Array, stiff: Array, dt: float) -> None:
        """``dt`` s at ``duty`` (n,) and ``speed`` (n,) rad/s; a motor not ``stiff`` has no current.

        What a motor draws from the supply is the duty's share of its current; one that brakes gives
        nothing back.
        """
        self.current = (duty * self.volts - BACK_EMF * speed) * stiff / RESISTANCE
        drawn = float(np.maximum(duty * self.current, 0.0).sum())
        self.volts = max(0.0, self.supply - self.ohm * drawn)
        self._squares += self.current * self.current * dt
        self._span += dt

    def warm(self) -> None:
        """Turns the currents since the last call into heat; as good once in 0.1 s as always."""
        lost = RESISTANCE * self._squares - (self.heat - ROOM) / KELVIN_PER_WATT * self._span
        self.heat += lost / JOULE_PER_KELVIN
        self._squares[:] = 0.0
        self._span = 0.0
