"""An emulated UR5e: RTDE, dashboard, script and gripper ports in front of a Controller.

RTDE (port 30004, protocol 2): packets are a u16 size, a u8 type and a body, all big-endian. A
client asks for versions, sets up one list of outputs and several of inputs, starts, and then gets a
data package per period and sends its own when it likes. The dashboard (29999) answers lines of
text. Whatever comes in on the script ports (30001 to 30003) and is a whole function is taken for
the client's program. The gripper port (63352) speaks the lines of Robotiq's URCap.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from real_robot.core.pacing import Clock, VirtualClock
from real_robot.emulators.connections import Connection, Connections
from real_robot.emulators.emulator import Emulator
from real_robot.emulators.ur_controller import EMERGENCY, NORMAL, UrController
from sims.core.task import Task

RTDE, DASHBOARD, SCRIPT, GRIPPER = 30004, 29999, (30001, 30002, 30003), 63352
CYCLE = 0.002  # s, of an e-Series controller
MOST = 250  # cycles made up for at once
NEWER = 1e-7  # s, between two packages for which no time has passed
VERSION = (5, 12, 4, 1101319)
SOFTWARE = "URSoftware 5.12.4.1101319 (Sep 15 2022)"
FORMATS = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}
INPUTS = {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "standard_digital_output_mask": "UINT8",
    "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8",
    "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8",
    "tool_digital_output": "UINT8",
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
}


class _Peer(Connection):
    """One connection, on RTDE with what it has asked for."""

    def __init__(self, connection: socket.socket, host: str, port: int):
        super().__init__(connection, host, port)
        self.outputs: tuple[str, ...] = ()
        self.recipes: dict[int, tuple[tuple[str, ...], struct.Struct]] = {}
        self.period, self.due, self.started = CYCLE, 0.0, False


class Ur5eEmulator(Emulator):
    """The arm of ``task`` on the ports of a controller at ``host``.

    On a VirtualClock time stands still but for ``until``. The client waits for packages whenever
    it speaks, so they go on without it, each a little newer than the last.
    """

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
        super().__init__(task, clock=clock, seed=seed)
        self._host, self._missing, self._software = host, missing, software
        self.gripper_status = {"STA": 3, "FLT": 0}  # activated, no fault
        self._jaw = 0.0  # 0 open to 255 closed, as the gripper counts
        self.controller = UrController(self.physics, **({"start": 0.0} if self.instant else {}))
        self.rest()
        self._muted = self._silent = 0.0  # monotonic s until which stream or all ports are silent
        self._next = time.monotonic()

    def rest(self) -> None:
        """The arm is on, and the gripper where the scene has it."""
        self.controller.recover()
        closed, opened = self.physics.robot.gripper_range
        here = (self.physics.qpos[-1] - closed) / (opened - closed)
        self._jaw = 255.0 * (1.0 - float(np.clip(here, 0.0, 1.0)))

    @property
    def where(self) -> str:
        """The controller's address."""
        return self._host

    def open(self) -> None:
        """Opens all ports."""
        self._selector = selectors.DefaultSelector()
        ports = (RTDE, DASHBOARD, *SCRIPT, GRIPPER)
        self._connections = Connections(self._host, ports, _Peer, self._selector)
        self._next = time.monotonic()

    def shut(self) -> None:
        """Closes all ports."""
        self._connections.close()

    def advance(self) -> None:
        """Physics up to the present."""
        self.physics.advance(lambda dt: None)

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
        closed, opened = self.physics.robot.gripper_range
        self.physics.goal[-1] = opened + (closed - opened) * self._jaw / 255.0
        self.advance()

    def until(self, t: int) -> float:
        """Lets compressed time pass until ``t`` ns; the controller's own time then, s.

        What was written to the sockets before is heard before, as over a wire in real time.
        """
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise ValueError(
                "this emulator runs in real time; start it with --compressed to set its time"
            )
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
        peer = self._connections.welcome(server, port)
        if peer is not None and port == DASHBOARD:
            self._send(peer, b"Connected: Universal Robots Dashboard Server\n")

    def _hear(self, peer: _Peer) -> None:
        if not self._connections.heard(peer):
            self._connections.drop(peer)
        elif peer.port == RTDE:
            self._rtde(peer)
        elif peer.port in SCRIPT:
            self._script(peer)
        else:
            answer = self._dashboard if peer.port == DASHBOARD else self._gripper
            while b"\n" in peer.input:
                line, peer.input = peer.input.split(b"\n", 1)
                self._send(peer, answer(line.decode("utf-8", "replace").strip()).encode() + b"\n")

    def _send(self, peer: _Peer, data: bytes) -> None:
        try:
            peer.socket.sendall(data)
        except (BlockingIOError, OSError):
            self._connections.drop(peer)

    # RTDE.
    def _rtde(self, peer: _Peer) -> None:
        while len(peer.input) >= 3:
            size, kind = struct.unpack(">HB", peer.input[:3])
            if size < 3 or len(peer.input) < size:
                return
            body, peer.input = peer.input[3:size], peer.input[size:]
            self._packet(peer, chr(kind), body)

    def _packet(self, peer: _Peer, kind: str, body: bytes) -> None:
        if kind == "V":
            self._reply(peer, kind, struct.pack(">B", struct.unpack(">H", body)[0] == 2))
        elif kind == "v":
            self._reply(peer, kind, struct.pack(">4I", *VERSION))
        elif kind == "O":
            (rate,) = struct.unpack(">d", body[:8])
            peer.outputs = _names(body[8:])
            peer.period = max(CYCLE, 1.0 / rate if rate > 0 else CYCLE)
            types = [self._output(name)[0] for name in peer.outputs]
            self._reply(peer, kind, b"\x01" + ",".join(types).encode())
        elif kind == "I":
            names = _names(body)
            types = [_input(name) for name in names]
            number = len(peer.recipes) + 1
            if "NOT_FOUND" not in types:
                form = ">" + "".join(FORMATS[kind] for kind in types)
                peer.recipes[number] = names, struct.Struct(form)
            self._reply(peer, kind, bytes([number]) + ",".join(types).encode())
        elif kind in "SP":
            peer.started, peer.due = kind == "S", self.controller.time
            self._reply(peer, kind, b"\x01")
        elif kind == "U" and body:
            self._take(peer, body)

    def _take(self, peer: _Peer, body: bytes) -> None:
        """An input package."""
        if body[0] not in peer.recipes:
            return
        names, form = peer.recipes[body[0]]
        values = form.unpack(body[1 : 1 + form.size])
        for name, value in zip(names, values, strict=False):
            if "register" in name:
                self.controller.write(name, value)
        self.controller.hear()
        # The program sees every command, as fast as the client may clear it again.
        self.controller.cycle(0.0)

    def _output(self, name: str) -> tuple[str, tuple[float, ...]]:
        known = None if name in self._missing else self.controller.field(name)
        return ("NOT_FOUND", ()) if known is None else known

    def _stream_all(self, *, wait: bool = True) -> None:
        for peer in self._connections.peers:
            self._stream(peer, wait)

    def _stream(self, peer: _Peer, wait: bool) -> None:
        """A data package where one is due, or where nobody ``wait``s for that."""
        now = self.controller.time
        if not peer.started or (wait and now + 1e-6 < peer.due):
            return
        peer.due = max(peer.due + peer.period, now - peer.period)
        fields = [self._output(name) for name in peer.outputs]
        body = b"".join(
            struct.pack(">" + FORMATS[kind], *values) for kind, values in fields if values
        )
        self._reply(peer, "U", b"\x01" + body)

    def _reply(self, peer: _Peer, kind: str, body: bytes) -> None:
        self._send(peer, struct.pack(">HB", len(body) + 3, ord(kind)) + body)

    # The text ports.
    def _script(self, peer: _Peer) -> None:
        text = peer.input.strip()
        if text.endswith(b"end") and b"def " in text:
            peer.input = b""
            self.controller.upload()

    def _dashboard(self, line: str) -> str:
        controller, line = self.controller, line.lower()
        if line == "stop":
            controller.end("stopped from the dashboard")
            return "Stopped"
        if line == "unlock protective stop":
            if controller.unlock():
                return "Protective stop releasing"
            return "Cannot unlock protective stop until 5s after occurrence"
        if line == "restart safety":
            controller.release()
            return "Restarting safety"
        safety = {NORMAL: "NORMAL", EMERGENCY: "ROBOT_EMERGENCY_STOP"}.get(
            controller.safety, "PROTECTIVE_STOP"
        )
        return {
            "polyscopeversion": self._software,
            "version": ".".join(map(str, VERSION)),
            "get loaded program": "No program loaded",
            "isprogramsaved": "true <unnamed>",
            "get serial number": "20225501234",
            "get robot model": "UR5",
            "is in remote control": str(controller.remote).lower(),
            "robotmode": "Robotmode: RUNNING",
            "safetymode": f"Safetymode: {safety}",
            "safetystatus": f"Safetystatus: {safety}",
            "running": f"Program running: {str(controller.running).lower()}",
            "programstate": "PLAYING rtde" if controller.running else "STOPPED rtde",
            "close safety popup": "closing safety popup",
            "close popup": "closing popup",
            "power on": "Powering on",
            "brake release": "Brake releasing",
            "quit": "Disconnected",
        }.get(line, f"could not understand: '{line}'")

    def _gripper(self, line: str) -> str:
        words = line.upper().split()
        if words[:1] == ["SET"]:
            for name, value in zip(words[1::2], words[2::2], strict=False):
                if name == "POS" and value.isdigit():
                    self._jaw = float(min(int(value), 255))
            return "ack"
        closed, opened = self.physics.robot.gripper_range
        here = (self.physics.qpos[-1] - closed) / (opened - closed)
        values = {
            "POS": round(255 * (1 - float(np.clip(here, 0, 1)))),
            "ACT": 1,
            "OBJ": 0,
            "PRE": round(self._jaw),
            **self.gripper_status,
        }
        name = words[1] if len(words) > 1 else ""
        return f"{name} {values.get(name, 0)}"

    # The stage.
    def reset(self, seed: int) -> None:
        """The start of the scene; the program of a client ends."""
        self.controller.end("the scene was reset")
        super().reset(seed)

    def commands(self) -> dict[str, Callable[..., Any]]:
        """The stage, and what can happen to a controller."""
        verbs = (
            self.protective_stop,
            self.emergency_stop,
            self.release,
            self.pendant,
            self.mute,
            self.silence,
            self.cut_gripper,
            self.slide,
            self.hang_up,
            self.heal,
            self.until,
        )
        return super().commands() | {verb.__name__: self._locked(verb) for verb in verbs}

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

    def mute(self, seconds: float) -> None:
        """The RTDE stream stops, the connection stays."""
        self._muted = time.monotonic() + seconds

    def silence(self, seconds: float) -> None:
        """Nothing is heard and nothing said on any port; connections stay, the arm goes on."""
        self._silent = time.monotonic() + seconds

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
        self._muted = self._silent = 0.0
        self.controller.remote = True

    def traffic(self) -> dict[str, Any]:
        """Servo targets, their largest step, why the program ended."""
        controller = self.controller
        return {
            "targets": controller.targets,
            **controller.goals.summary(),
            "running": controller.running,
            "safety": int(controller.safety),
            "stops": controller.stops,
        }

    def heard(self, since: float = 0.0) -> list[float]:
        """When servo targets were heard, monotonic s."""
        return self.controller.goals.heard(since)


def _names(body: bytes) -> tuple[str, ...]:
    """The names in a comma-separated list, which may end in a comma."""
    return tuple(name for name in body.decode("ascii", "replace").split(",") if name)


def _input(name: str) -> str:
    """The RTDE type of input ``name``."""
    if name.startswith("input_int_register_"):
        return "INT32"
    if name.startswith("input_double_register_"):
        return "DOUBLE"
    if name.startswith("input_bit_register"):
        return "BOOL"
    return INPUTS.get(name, "NOT_FOUND")
