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

HEADERS = {fci.ROBOT_PORT: fci.ROBOT_HEADER, fci.HAND_PORT: fci.HAND_HEADER}


class Peer:
    """One connection."""

    def __init__(self, connection: socket.socket, host: str, port: int):
        self.socket, self.host, self.port = connection, host, port
        self.input = b""
        self.states: tuple[str, int] | None = None  # where they are sent

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
        answer: Callable[[Peer, int, int, bytes], None],
        gone: Callable[[Peer], None],
        take: Callable[[np.ndarray], None],
    ):
        self._answer, self._gone, self._take = answer, gone, take
        self._peers: dict[int, Peer] = {}
        self.refused: set[int] = set()  # ports on which nobody is taken in
        self._selector = selectors.SelectSelector()  # waits for less than a millisecond
        for port in HEADERS:
            server = socket.create_server((host, port))
            server.setblocking(False)
            self._selector.register(server, selectors.EVENT_READ, port)
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
                self._welcome(key.fileobj, key.data)
            else:
                self._hear(key.data)

    def tell(self, port: int, state: bytes) -> None:
        """Sends a state to all that have connected to ``port``."""
        for peer in self._peers.values():
            if peer.states is not None and peer.port == port:
                with contextlib.suppress(OSError):
                    self._udp.sendto(state, peer.states)

    def reply(self, peer: Peer | None, command: int, call: int, body: bytes) -> None:
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
        for peer in [peer for peer in self._peers.values() if peer.port in ports]:
            self._drop(peer)

    def close(self) -> None:
        """Closes everything."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        self._peers.clear()

    def _hear_commands(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = self._udp.recv(4096)
                if len(packet) == fci.COMMAND.itemsize:
                    self._take(np.frombuffer(packet, fci.COMMAND)[0])

    def _welcome(self, server: Any, port: int) -> None:
        connection, (host, *_) = server.accept()
        if port in self.refused:
            connection.close()
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(connection, host, port)
        self._peers[connection.fileno()] = peer
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _hear(self, peer: Peer) -> None:
        try:
            data = peer.socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._drop(peer)
            return
        peer.input += data
        header = HEADERS[peer.port]
        while len(peer.input) >= header.size:
            command, call, size = header.unpack_from(peer.input)
            if size < header.size or len(peer.input) < size:
                return
            body, peer.input = peer.input[header.size : size], peer.input[size:]
            self._answer(peer, command, call, body)

    def _drop(self, peer: Peer) -> None:
        if self._peers.pop(peer.socket.fileno(), None) is not None:
            self._selector.unregister(peer.socket)
            peer.socket.close()
        self._gone(peer)
