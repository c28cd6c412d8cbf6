"""TCP connections to the ports of an emulated controller, and the bytes received on each."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar


class Connection:
    """A connection and its input that is not processed yet."""

    def __init__(self, connection: socket.socket, host: str, port: int):
        self.socket, self.host, self.port = connection, host, port
        self.input = b""


P = TypeVar("P", bound=Connection)


class Connections(Generic[P]):
    """Listens on ``ports`` of ``host``; ``peer`` makes each connection."""

    def __init__(
        self,
        host: str,
        ports: Iterable[int],
        peer: Callable[[socket.socket, str, int], P],
        selector: selectors.BaseSelector,
    ):
        self._make, self._selector = peer, selector
        self._peers: dict[int, P] = {}
        self.refused: set[int] = set()  # ports that accept no connection
        for port in ports:
            server = socket.create_server((host, port))
            server.setblocking(False)
            selector.register(server, selectors.EVENT_READ, port)

    @property
    def peers(self) -> list[P]:
        """The open connections; a copy, so that one can be dropped in a loop over it."""
        return list(self._peers.values())

    def accept(self, server: Any, port: int) -> P | None:
        """Accepts a connection to ``port``.

        Args:
            server: The listening socket of the port.
            port: Its number.

        Returns:
            The connection; None where the port refuses connections.
        """
        connection, (host, *_) = server.accept()
        if port in self.refused:
            connection.close()
            return None
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = self._make(connection, host, port)
        self._peers[connection.fileno()] = peer
        self._selector.register(connection, selectors.EVENT_READ, peer)
        return peer

    def receive(self, peer: P) -> bool:
        """Appends the bytes received from ``peer`` to its input; False where it disconnected."""
        try:
            data = peer.socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            data = b""
        peer.input += data
        return bool(data)

    def shut(self, port: int) -> None:
        """Closes all connections to ``port`` and its listening socket."""
        for peer in self.peers:
            if peer.port == port:
                self.drop(peer)
        for key in list(self._selector.get_map().values()):
            if key.data == port:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()

    def drop(self, peer: P) -> None:
        """Closes the connection ``peer`` if it is open."""
        if self._peers.pop(peer.socket.fileno(), None) is not None:
            self._selector.unregister(peer.socket)
            peer.socket.close()

    def close(self) -> None:
        """Closes all connections, the listening sockets and the selector."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        self._peers.clear()
