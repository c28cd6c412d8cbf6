"""Child: one of our modules as a process beside the bridge's, with a socket between the two."""

from __future__ import annotations

import os
import socket
import subprocess


def start(
    module: str, *arguments: str, packet: int = 0, terminal: bool = False
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """(process, our end of the socket); packets arrive whole, of ``packet`` bytes and more.

    The module is run as ``sims.process`` runs one, with ``arguments`` and, last, the number of its
    own end of the socket, which it opens by ``own_end``.
    """
    from sims import plugins, process  # the child's side does without what that loads

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs) if packet else ():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * packet)
    child = process.start(
        module, *arguments, str(theirs.fileno()),
        pass_fds=[theirs.fileno()], terminal=terminal,
        keep=(plugins.VARIABLE, *(process.TERMINAL if terminal else ())),
        stdin=None if terminal else subprocess.DEVNULL,
    )  # fmt: skip
    theirs.close()
    return child, ours


def own_end(number: str) -> socket.socket:
    """The child's end of the socket. Its folder is taken from under it, empty as it is: whoever is
    killed, and however, nothing is left behind."""
    folder = os.getcwd()
    if os.path.basename(folder).startswith("robo-rl-"):
        os.rmdir(folder)
    return socket.socket(fileno=int(number))
