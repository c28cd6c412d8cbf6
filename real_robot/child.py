"""Child: one of our modules as a process beside the bridge's, with a socket between the two."""

from __future__ import annotations

import socket
import subprocess

from sims import process


def start(
    module: str, *arguments: str, packet: int = 0, terminal: bool = False
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """(process, our end of the socket); packets arrive whole, of ``packet`` bytes and more.

    The module is run as ``sims.process`` runs one, with ``arguments`` and, last, the number of its
    own end of the socket.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs) if packet else ():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * packet)
    child = process.start(
        module, *arguments, str(theirs.fileno()),
        pass_fds=[theirs.fileno()], terminal=terminal,
        keep=process.TERMINAL if terminal else (), stdin=None if terminal else subprocess.DEVNULL,
    )  # fmt: skip
    theirs.close()
    return child, ours
