"""An emulated UR5e: RTDE, dashboard, script and gripper ports in front of a UrController."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from typing import Any

from real_robot.core.pacing import Clock
from real_robot.emulators.connections import Connections
from real_robot.emulators.controller_emulator import ControllerEmulator
from real_robot.emulators.rtde import CYCLE, RtdePeer, RtdeServer
from real_robot.emulators.ur_controller import UrController
from real_robot.emulators.ur_text_ports import Dashboard, RobotiqGripper, ScriptPort
from sims.core.task import Task

RTDE, DASHBOARD, SCRIPT, GRIPPER = 30004, 29999, (30001, 30002, 30003), 63352
MOST = 250  # cycles made up for at once
NEWER = 1e-7  # s, between two packages for which no time has passed
SOFTWARE = "URSoftware 5.12.4.1101319 (Sep 15 2022)"


class Ur5eEmulator(ControllerEmulator):
    """The arm of ``task`` on the ports of a controller at ``host``.

    On a VirtualClock time stands still but for ``until``. The client waits for packages whenever
    it speaks, so they go on without it, each a little newer than the last.
    """

    controller: UrController

    def __init__(
        self,
        task: Task[Any],
        *,
        clock: Clock | None = None,
        seed: int = 0,
        host: str = "127.0.0.1",
        missing: tuple[str, ...] = (),  # output fields that this controller does not have
        software: str = SOFTWARE,  # as the dashboard tells it
    ):
        super().__init__(task, clock=clock, seed=seed, host=host)
        self.controller = UrController(self.physics, **({"start": 0.0} if self.instant else {}))
        self.gripper = RobotiqGripper(self.physics)
        self.dashboard = Dashboard(self.controller, software)
        self._rtde = RtdeServer(self.controller, missing, self._send)
        self._script = ScriptPort(self.controller)
        self.rest()

    def rest(self) -> None:
        """The arm is on, and the gripper where the scene has it."""
        self.controller.recover()
        self.gripper.rest()

    def open(self) -> None:
        """Opens all ports."""
        self._selector = selectors.DefaultSelector()
        ports = (RTDE, DASHBOARD, *SCRIPT, GRIPPER)
        self._connections = Connections(self._host, ports, RtdePeer, self._selector)
        self._next = time.monotonic()

    def shut(self) -> None:
        """Closes all ports."""
        self._connections.close()

    def serve(self) -> None:
        """One cycle of the controller."""
        wait = max(0.0, self._next - time.monotonic())
        silent = time.monotonic() < self._silent
        if silent:
            time.sleep(wait)
        for key, _ in () if silent else self._selector.select(wait):
            with self.lock:
                if isinstance(key.data, int):
                    self._welcome(key.fileobj, key.data)
                else:
                    self._hear(key.data)
        now = time.monotonic()
        if now < self._next:
            return
        if self.instant:
            self._next = now + CYCLE
            with self.lock:
                self.controller.cycle(NEWER)
                self._stream_all(wait=False)
            return
        # A process that was starved for long goes on from now; the controller's clock is right.
        cycles = 1 + int((now - self._next) / CYCLE)
        self._next += cycles * CYCLE
        with self.lock:
            for _ in range(min(cycles, MOST)):
                self.controller.cycle(CYCLE)
            self.controller.time += max(0, cycles - MOST) * CYCLE
            self._move()
            if now >= max(self._muted, self._silent):
                self._stream_all()

    def _move(self) -> None:
        """The gripper's goal, and physics up to the present."""
        self.gripper.move()
        self.advance()

    def until(self, t: int) -> float:
        """Lets compressed time pass until ``t`` ns; the controller's own time then, s.

        What was written to the sockets before is heard before, as over a wire in real time.
        """
        clock = self._compressed()
        for peer in self._connections.peers:
            self._hear(peer)
        while (left := (t - clock.now_ns()) * 1e-9) > 0:
            step = min(CYCLE, left)
            clock.advance(step)
            self.controller.cycle(step)
            self._move()
        self._stream_all(wait=False)
        return self.controller.time

    # Connections.
    def _welcome(self, server: Any, port: int) -> None:
        peer = self._connections.accept(server, port)
        if peer is not None and port == DASHBOARD:
            self._send(peer, Dashboard.GREETING.encode() + b"\n")

    def _hear(self, peer: RtdePeer) -> None:
        if not self._connections.receive(peer):
            self._connections.drop(peer)
        elif peer.port == RTDE:
            self._rtde.hear(peer)
        elif peer.port in SCRIPT:
            self._script.hear(peer)
        else:
            server = self.dashboard if peer.port == DASHBOARD else self.gripper
            while b"\n" in peer.input:
                line, peer.input = peer.input.split(b"\n", 1)
                reply = server.answer(line.decode("utf-8", "replace").strip())
                self._send(peer, reply.encode() + b"\n")

    def _send(self, peer: RtdePeer, data: bytes) -> None:
        try:
            peer.socket.sendall(data)
        except (BlockingIOError, OSError):
            self._connections.drop(peer)

    def _stream_all(self, *, wait: bool = True) -> None:
        for peer in self._connections.peers:
            self._rtde.stream(peer, wait)

    # The stage.
    def reset(self, seed: int) -> None:
        """The start of the scene; the program of a client ends."""
        self.controller.end("the scene was reset")
        super().reset(seed)

    def commands(self) -> dict[str, Callable[..., Any]]:
        """The stage, and what can happen to a controller."""
        return super().commands() | self._offered(
            self.protective_stop,
            self.emergency_stop,
            self.release,
            self.pendant,
            self.cut_gripper,
            self.slide,
        )

    def protective_stop(self) -> None:
        """As after a collision."""
        self.controller.protective_stop("a test")

    def emergency_stop(self) -> None:
        """Someone hits the button."""
        self.controller.emergency_stop()

    def release(self) -> None:
        """The button is turned back."""
        self.controller.release()

    def pendant(self, remote: bool = False) -> None:
        """Someone stops the program from the pendant and takes over, or hands back."""
        self.controller.remote = remote
        self.controller.end("stopped from the pendant")

    def cut_gripper(self) -> None:
        """The gripper hangs up and takes no more calls."""
        self._connections.shut(GRIPPER)

    def slide(self, share: float) -> None:
        """Someone moves the speed slider of the pendant."""
        self.controller.slider = share

    def hang_up(self) -> None:
        """All connections are cut."""
        for peer in self._connections.peers:
            with contextlib.suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)
            self._connections.drop(peer)

    def heal(self) -> None:
        """Everything works again, except what a person must clear."""
        super().heal()
        self.controller.remote = True

    def traffic(self) -> dict[str, Any]:
        """Servo targets, their largest step, why the program ended."""
        controller = self.controller
        return {
            "targets": controller.targets,
            **controller.joint_targets.summary(),
            "running": controller.running,
            "safety": int(controller.safety),
            "stops": controller.stops,
        }
