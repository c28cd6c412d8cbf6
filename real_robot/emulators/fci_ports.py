"""The ports of the Franka Control Interface: connections, whole commands, and states over UDP."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from real_robot.emulators import fci
from real_robot.emulators.connections import Connection, Connections

HEADERS = {fci.ROBOT_PORT: fci.ROBOT_HEADER, fci.HAND_PORT: fci.HAND_HEADER}


class FciPeer(Connection):
    """One connection, and where it wants the states."""

    states: tuple[str, int] | None = None

    def connected(self, body: bytes, version: int, form: str) -> bytes:
        """Takes its Connect, where its version fits; the answer, of struct ``form``."""
        asked, port = fci.CONNECT.unpack(body)
        self.states = (self.host, port) if asked == version else None
        return struct.pack(form, asked != version, version)


class Ports:
    """Those of arm and hand at ``host``.

    ``answer(peer, command, call, body)`` hears of whole commands on TCP, ``gone(peer)`` of
    connections that have ended, ``take(command)`` of joint commands (records) on UDP.
    """

    def __init__(
        self,
        host: str,
        answer: Callable[[FciPeer, int, int, bytes], None],
        gone: Callable[[FciPeer], None],
        take: Callable[[np.ndarray], None],
    ):
        self._answer, self._gone, self._take = answer, gone, take
        self._selector = selectors.SelectSelector()  # waits for less than a millisecond
        self._connections = Connections(host, HEADERS, FciPeer, self._selector)
        self.refused = self._connections.refused
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((host, 0))
        self._udp.setblocking(False)
        self._selector.register(self._udp, selectors.EVENT_READ, None)

    def select(self, wait: float) -> list[Any]:
        """What has come within ``wait`` s, for ``hear``."""
        return [key for key, _ in self._selector.select(wait)]

    def hear(self, keys: list[Any]) -> None:
        """Takes in what has come."""
        for key in keys:
            if key.data is None:
                self._hear_commands()
            elif isinstance(key.data, int):
                self._connections.accept(key.fileobj, key.data)
            else:
                self._hear(key.data)

    def tell(self, port: int, state: bytes) -> None:
        """Sends a state to all that have connected to ``port``."""
        for peer in self._connections.peers:
            if peer.states is not None and peer.port == port:
                with contextlib.suppress(OSError):
                    self._udp.sendto(state, peer.states)

    def reply(self, peer: FciPeer | None, command: int, call: int, body: bytes) -> None:
        """Answers a command, if who asked is still there."""
        if peer is None or peer.socket.fileno() < 0:
            return
        header = HEADERS[peer.port]
        try:
            peer.socket.sendall(header.pack(command, call, header.size + len(body)) + body)
        except OSError:
            self._drop(peer)

    def hang_up(self, *ports: int) -> None:
        """Ends all connections to ``ports``."""
        for peer in self._connections.peers:
            if peer.port in ports:
                self._drop(peer)

    def close(self) -> None:
        """Closes everything."""
        self._connections.close()

    def _hear_commands(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = self._udp.recv(4096)
                if len(packet) == fci.COMMAND.itemsize:
                    self._take(np.frombuffer(packet, fci.COMMAND)[0])

    def _hear(self, peer: FciPeer) -> None:
        if not self._connections.receive(peer):
            self._drop(peer)
            return
        header = HEADERS[peer.port]
        while len(peer.input) >= header.size:
            command, call, size = header.unpack_from(peer.input)
            if size < header.size or len(peer.input) < size:
                return
            body, peer.input = peer.input[header.size : size], peer.input[size:]
            self._answer(peer, command, call, body)

    def _drop(self, peer: FciPeer) -> None:
        self._connections.drop(peer)
        self._gone(peer)
