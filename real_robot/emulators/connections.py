"""The TCP ports of an emulated controller: who has connected, and what has come from whom."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar


class Connection:
    """One connection, and what of its input was not taken yet."""

    def __init__(self, connection: socket.socket, host: str, port: int):
        self.socket, self.host, self.port = connection, host, port
        self.input = b""


P = TypeVar("P", bound=Connection)


class Connections(Generic[P]):
    """Those to ``ports`` at ``host``, each a ``peer``; what waits for them is ``selector``."""

    def __init__(
        self,
        host: str,
        ports: Iterable[int],
        peer: Callable[[socket.socket, str, int], P],
        selector: selectors.BaseSelector,
    ):
        self._make, self._selector = peer, selector
        self._peers: dict[int, P] = {}
        self.refused: set[int] = set()  # ports on which nobody is taken in
        for port in ports:
            server = socket.create_server((host, port))
            server.setblocking(False)
            selector.register(server, selectors.EVENT_READ, port)

    @property
    def peers(self) -> list[P]:
        """Who is there; stays as it is where one of them goes meanwhile."""
        return list(self._peers.values())

    def welcome(self, server: Any, port: int) -> P | None:
        """Who calls at ``port``; None if nobody is taken in there."""
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

    def heard(self, peer: P) -> bool:
        """Takes in what has come from ``peer``: False where it has hung up."""
        try:
            data = peer.socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            data = b""
        peer.input += data
        return bool(data)

    def shut(self, port: int) -> None:
        """Ends all connections to ``port``; nobody listens there any more."""
        for peer in self.peers:
            if peer.port == port:
                self.drop(peer)
        for key in list(self._selector.get_map().values()):
            if key.data == port:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()

    def drop(self, peer: P) -> None:
        """Ends a connection, if it is there."""
        if self._peers.pop(peer.socket.fileno(), None) is not None:
            self._selector.unregister(peer.socket)
            peer.socket.close()

    def close(self) -> None:
        """Ends everything that the selector waits for."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        self._peers.clear()
