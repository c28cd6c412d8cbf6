"""An emulated arm of servos: their bus on a pseudo-terminal, like the arm's USB adapter."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
import time
import tty
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from real_robot.core.pacing import Clock
from real_robot.emulators.emulator import Emulator
from real_robot.emulators.physics import ArmPhysics
from real_robot.emulators.servo_base import EmulatedServoBus
from real_robot.emulators.wire_faults import BYTE_S, WireFault
from sims.core.task import Task

LATENCY = 0.0005  # s, of the USB adapter, there and back
TICK = 0.005  # s, physics goes on at least this often


class ServoEmulator(Emulator):
    """The arm of ``task`` on a pseudo-terminal; ``port`` is its path.

    ``link`` is kept pointing at the present port, as /dev/serial/by-id does, across unplug and
    plug. A pseudo-terminal has no baud rate: the time of each byte at 1 Mbaud and the adapter's
    latency are added here.
    """

    def __init__(
        self,
        task: Task[Any],
        *,
        clock: Clock | None = None,
        seed: int = 0,
        calibrated: bool = True,
        latency: float = LATENCY,
        link: Path | None = None,
    ):
        super().__init__(task, clock=clock, seed=seed)
        self.bus: EmulatedServoBus = self.make_bus(self.physics, calibrated, seed)
        self.port = ""
        self.bytes_heard = 0  # so far
        self._latency, self._link = latency, link
        self._master = self._slave = -1
        self._frozen = 0.0  # monotonic s until which nothing is answered
        self._out: list[tuple[float, int, bytes]] = []  # when due, order, bytes
        self._order = 0
        self._wake: tuple[int, int] | None = None

    @abstractmethod
    def make_bus(self, physics: ArmPhysics, calibrated: bool, seed: int) -> EmulatedServoBus:
        """The servos that move ``physics``; ``seed`` decides how they are mounted."""

    @property
    def where(self) -> str:
        """The port, or the link to it."""
        return self.port if self._link is None else str(self._link)

    def open(self) -> None:
        """Opens the pseudo-terminal."""
        self._wake = os.pipe()
        self.plug()

    def plug(self) -> str:
        """The cable goes in; the port may have another name than before."""
        with self.lock:
            master, self._slave = os.openpty()
            tty.setraw(self._slave)
            os.set_blocking(master, False)
            self._master, self.port = master, os.ttyname(self._slave)
        if self._link is not None:
            fresh = self._link.with_name(self._link.name + ".new")
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(self.port)
            fresh.replace(self._link)
        self._poke()
        return self.port

    def unplug(self) -> None:
        """The cable comes out; the servos keep their power and their goals."""
        with self.lock:  # else the serving thread reads from whatever next gets the same number
            for fd in (self._slave, self._master):
                if fd >= 0:
                    os.close(fd)
            self._master = self._slave = -1
            self._out.clear()

    def shut(self) -> None:
        """Closes the pseudo-terminal."""
        self.unplug()
        if self._link is not None:
            self._link.unlink(missing_ok=True)
        for fd in self._wake or ():
            os.close(fd)
        self._wake = None

    def stop(self) -> None:
        """Ends the thread, then closes the port."""
        self._stopping.set()
        self._poke()
        super().stop()

    def _poke(self) -> None:
        """Wakes the serving thread."""
        if self._wake is not None:
            os.write(self._wake[1], b".")

    def serve(self) -> None:
        """Waits for bytes or for the next reply to be due."""
        assert self._wake is not None
        now = time.monotonic()
        wait = TICK if not self.instant else 0.5
        if self._out:
            wait = min(wait, max(0.0, self._out[0][0] - now))
        fds = [self._wake[0]] + ([self._master] if self._master >= 0 else [])
        try:
            ready, _, _ = select.select(fds, [], [], wait)
        except (OSError, ValueError):  # unplugged by another thread in between
            return
        if self._wake[0] in ready:
            os.read(self._wake[0], 4096)
        with self.lock:
            heard = self._master in ready
            if not self.instant:
                self.bus.advance(heard)
            if heard:
                self._hear()
            self._speak()

    def _hear(self) -> None:
        """Takes in what has come and puts the answers into the queue."""
        try:
            data = os.read(self._master, 4096)
        except OSError as error:
            if error.errno not in (errno.EIO, errno.EAGAIN, errno.EBADF):
                raise
            return
        self.bytes_heard += len(data)
        now = time.monotonic()
        if now < self._frozen:
            return
        self.bus.speed = termios.tcgetattr(self._slave)[5]
        for reply in self.bus.feed(data):
            spent = 0.0 if self.instant else self._latency + len(data) * BYTE_S + reply.wire
            self._order += 1
            self._out.append((now + spent + reply.late, self._order, reply.data))
        self._out.sort()

    def _speak(self) -> None:
        """Sends what is due."""
        now = time.monotonic()
        if not self._out or self._out[0][0] > now:
            return
        # Replies that follow one another arrive together: the adapter sends them as one packet.
        due = [reply for t, _, reply in self._out if t <= now]
        del self._out[: len(due)]
        with contextlib.suppress(BlockingIOError):
            if self._master >= 0:
                os.write(self._master, b"".join(due))

    def advance(self) -> None:
        """Physics up to the present."""
        self.bus.advance()

    # What tests may break.
    def commands(self) -> dict[str, Callable[..., Any]]:
        """The stage, and the faults of this bus."""
        return super().commands() | self._offered(
            self.wire,
            self.heal,
            self.breakdown,
            self.reboot,
            self.glitch,
            self.unplug,
            self.plug,
            self.freeze,
            self.registers,
            self.register,
        )

    def wire(self, kind: str, **options: Any) -> None:
        """Replies to come are spoilt: drop delay corrupt duplicate truncate garbage wrong_id."""
        self.bus.wire.schedule(WireFault(kind, **options))

    def heal(self) -> None:
        """Everything works again."""
        self.bus.wire.clear()
        self._frozen = 0.0
        for servo in self.bus.servos:
            servo.heal()

    def breakdown(self, joint: int, kind: str) -> None:
        """Servo ``joint`` (from 0) raises an error bit until healed, and acts on it.

        Raises:
            ValueError: Its servos have no such error bit.
        """
        if kind not in self.bus.bits:
            raise ValueError(f"unknown breakdown {kind!r}; available: {', '.join(self.bus.bits)}")
        self.bus.servos[joint].forced |= self.bus.bits[kind]

    def reboot(self, joint: int) -> None:
        """Servo ``joint`` loses power for a moment."""
        self.bus.servos[joint].reboot()

    def glitch(self, joint: int, readings: int = 1) -> None:
        """The encoder of ``joint`` is a third of a turn off for some readings."""
        self.bus.servos[joint].glitches = readings

    def freeze(self, seconds: float) -> None:
        """Nothing is heard for a while; the servos keep their goals."""
        self._frozen = time.monotonic() + seconds

    def registers(self, joint: int) -> dict[str, int]:
        """All registers of servo ``joint``, as last measured."""
        servo = self.bus.servos[joint]
        return {name: servo.get(name) for name in self.bus.registers}

    def register(self, joint: int, name: str, value: int) -> None:
        """Sets a register behind the bus's back."""
        self.bus.servos[joint].put(name, value)

    def traffic(self) -> dict[str, Any]:
        """Packets, goals and their largest step, as the servos saw them; wire faults played."""
        seen = self.bus.traffic
        return {
            **vars(seen),
            **self.bus.joint_targets.summary(),
            "refused": int(np.sum([servo.refused for servo in self.bus.servos])),
            "played": self.bus.wire.played,
        }

    def heard(self, since: float = 0.0) -> list[float]:
        """Returns when the servos received targets after ``since``, monotonic s."""
        return self.bus.joint_targets.heard(since)
