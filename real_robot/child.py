"""Child: one of our modules as a process beside the bridge's, with a socket between the two."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


def start(
    module: str,
    *arguments: str,
    packet: int = 0,
    terminal: bool = False,
    share: Sequence[int] = (),
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """(process, our end of the socket); packets arrive whole, of ``packet`` bytes and more.

    The module is run as ``sims.process`` runs one, with ``arguments`` and, last, the number of its
    own end of the socket, which it opens by ``own_end``. It also gets the open files ``share``.
    """
    plugins, process = _light("plugins"), _light("process")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs) if packet else ():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * packet)
    child = process.start(
        module, *arguments, str(theirs.fileno()),
        pass_fds=[theirs.fileno(), *share], terminal=terminal,
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


def _light(name: str) -> ModuleType:
    """A module of ``sims`` that needs nothing of it, also where the simulation is not loaded."""
    if (known := sys.modules.get(f"sims.{name}")) is not None:
        return known
    file = Path(__file__).parents[1] / "sims" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_light_{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
