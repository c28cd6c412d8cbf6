"""Child: one of our modules as a process beside the bridge's, with a socket between the two."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def start(
    module: str, *arguments: str, packet: int = 0, terminal: bool = False
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """(process, our end of the socket); packets arrive whole, of ``packet`` bytes and more.

    The module is run as a program with ``arguments`` and, last, the number of its own end. It has
    one thread, since it shares the machine with the loop, and unless the ``terminal`` is its work
    it has a session of its own: Ctrl-C is the bridge's to handle.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs) if packet else ():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * packet)
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=None if terminal else subprocess.DEVNULL,
        start_new_session=not terminal,
    )
    theirs.close()
    return process, ours
