"""RTDE, protocol 2: the stream of a UR controller's measurements, and its input registers.

Packets are a u16 size, a u8 type and a body, all big-endian. A client asks for versions, sets up
one list of outputs and several of inputs, starts, and then gets a data package per period and sends
its own when it likes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from real_robot.emulators.connections import Connection
from real_robot.emulators.ur_controller import UrController

CYCLE = 0.002  # s, of an e-Series controller
VERSION = (5, 12, 4, 1101319)
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


class RtdePeer(Connection):
    """One connection, with what it has asked for."""

    def __init__(self, connection: socket.socket, host: str, port: int):
        super().__init__(connection, host, port)
        self.outputs: tuple[str, ...] = ()
        self.recipes: dict[int, tuple[tuple[str, ...], struct.Struct]] = {}
        self.period, self.due, self.started = CYCLE, 0.0, False


class RtdeServer:
    """The port of ``controller``; ``send`` writes bytes to a peer.

    Output fields that are ``missing`` are answered as by a controller that does not have them.
    """

    def __init__(
        self,
        controller: UrController,
        missing: tuple[str, ...],
        send: Callable[[RtdePeer, bytes], None],
    ):
        self._controller, self._missing, self._send = controller, missing, send

    def hear(self, peer: RtdePeer) -> None:
        """Answers the whole packets of what has come from ``peer``."""
        while len(peer.input) >= 3:
            size, kind = struct.unpack(">HB", peer.input[:3])
            if size < 3 or len(peer.input) < size:
                return
            body, peer.input = peer.input[3:size], peer.input[size:]
            self._packet(peer, chr(kind), body)

    def _packet(self, peer: RtdePeer, kind: str, body: bytes) -> None:
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
            peer.started, peer.due = kind == "S", self._controller.time
            self._reply(peer, kind, b"\x01")
        elif kind == "U" and body:
            self._take(peer, body)

    def _take(self, peer: RtdePeer, body: bytes) -> None:
        """An input package."""
        if body[0] not in peer.recipes:
            return
        names, form = peer.recipes[body[0]]
        values = form.unpack(body[1 : 1 + form.size])
        for name, value in zip(names, values, strict=False):
            if "register" in name:
                self._controller.write(name, value)
        self._controller.hear()
        # The program sees every command, as fast as the client may clear it again.
        self._controller.cycle(0.0)

    def _output(self, name: str) -> tuple[str, tuple[float, ...]]:
        known = None if name in self._missing else self._controller.field(name)
        return ("NOT_FOUND", ()) if known is None else known

    def stream(self, peer: RtdePeer, wait: bool) -> None:
        """Sends a data package; with ``wait``, only once one is due."""
        now = self._controller.time
        if not peer.started or (wait and now + 1e-6 < peer.due):
            return
        peer.due = max(peer.due + peer.period, now - peer.period)
        fields = [self._output(name) for name in peer.outputs]
        body = b"".join(
            struct.pack(">" + FORMATS[kind], *values) for kind, values in fields if values
        )
        self._reply(peer, "U", b"\x01" + body)

    def _reply(self, peer: RtdePeer, kind: str, body: bytes) -> None:
        self._send(peer, struct.pack(">HB", len(body) + 3, ord(kind)) + body)


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
