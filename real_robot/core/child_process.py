"""Child: one of our modules as a process beside the bridge's, with a socket between the two."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence

from sims.utils import plugins, process


def start_child(
    module: str, *arguments: str, packet: int = 0, terminal: bool = False, share: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """(process, our end of the socket); packets arrive whole, of ``packet`` bytes and more.

    The module is run as ``sims.utils.process`` runs one, with ``arguments`` and, last, the number
    of its own end of the socket, which it opens by ``child_socket``. It also gets the open files
    ``share``.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs) if packet else ():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * packet)
    child = process.start_module(
        module,
        *arguments,
        str(theirs.fileno()),
        pass_fds=[theirs.fileno(), *share],
        terminal=terminal,
        keep=(plugins.VARIABLE, *(process.TERMINAL if terminal else ())),
        stdin=None if terminal else subprocess.DEVNULL,
    )
    theirs.close()
    return child, ours


def child_socket(number: str) -> socket.socket:
    """The child's end of the socket. Its folder is taken from under it, empty as it is: whoever is
    killed, and however, nothing is left behind."""
    folder = os.getcwd()
    if os.path.basename(folder).startswith("robo-rl-"):
        os.rmdir(folder)
    return socket.socket(fileno=int(number))
