"""Panel: what a run looks like in a terminal, and what its keys mean; the monitor's other process.

Run as a program: ``python -m real_robot.session.panel ROBOT FD``, the socket's other end the
bridge's ``Monitor``. It loads neither simulator nor drivers, so that it is there at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from real_robot.core.child_process import child_socket

REDRAW = 0.2  # s
CELLS = 25  # of a joint's bar
STOP, ESTOP, DONE = b"s", b"e", b"d"  # what is said to the bridge
TYPED = b"k"  # and then the keys, where they stop nothing
NOTES = {"device": "", "refused": "red"}  # a person's device and its keys, and what it is refused
_PACKET = 1 << 16  # bytes
_SEQUENCE = re.compile(rb"\x1b(\[[0-9;]*[@-~]|O.)")  # what arrows and function keys send


@contextlib.contextmanager
def raw_keys(fd: int) -> Iterator[None]:
    """Keys arrive as they are pressed, unseen; Ctrl-C stays a signal, Ctrl-Z is none."""
    before = termios.tcgetattr(fd)
    changed = termios.tcgetattr(fd)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    changed[6][termios.VSUSP] = b"\0"  # a bridge that stands still is killed by the bus
    termios.tcsetattr(fd, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)


def key_meaning(pressed: bytes) -> bytes:
    """STOP, ESTOP or nothing; arrows and the like begin with an Esc that is none."""
    pressed = _SEQUENCE.sub(b"", pressed)
    if set(pressed) & set(b"eE\x1b"):
        return ESTOP
    return STOP if set(pressed) & set(b" sS") else b""


def render_panel(robot: str, now: Mapping[str, Any]) -> Any:
    """What is drawn; ``now`` is all that was noted, the newest of each."""
    line = [f"{now.get('rate', 0.0):6.1f} Hz", f"late p99 {1000 * now.get('late', 0.0):.2f} ms"]
    line += [f"missed {now.get('missed', 0)}", f"policy {1000 * now.get('policy', 0.0):.2f} ms"]
    joints = Table.grid(padding=(0, 1))
    for name, (low, high), at in zip(
        now.get("joints", []), now.get("range", []), now.get("qpos", []), strict=False
    ):
        share = (at - low) / (high - low)
        cell = min(max(int(share * CELLS), 0), CELLS - 1)
        bar = "─" * cell + "●" + "─" * (CELLS - 1 - cell)
        joints.add_row(name, bar, f"{at:+.2f} rad")
    if "gripper" in now:
        full = round(now["gripper"] * CELLS)
        joints.add_row("gripper", "━" * full + "╌" * (CELLS - full), f"{now['gripper']:.2f} open")
    limits = Table.grid(padding=(0, 1))
    for stage, share in now.get("limited", {}).items():
        mark = "◂" if stage in now.get("recently", ()) else ""
        limits.add_row(stage, f"{100 * share:5.1f} %", mark)
    both = Table.grid(padding=(0, 4))
    both.add_row(joints, limits)
    ages = ", ".join(f"{name} {1000 * age:.0f} ms" for name, age in now.get("ages", {}).items())
    phase, head = now.get("phase", "offline").upper(), robot
    if now.get("dial", 1.0) != 1.0:
        line.append(f"dial {100 * now['dial']:.0f} %")
    if "episode" in now:
        of = f" of {now['episodes']}" if now["episodes"] else ""
        head += f" · episode {now['episode']}{of}, {now['successes']} reached"
    parts = ["   ".join(line), both] + ([f"seen {ages} ago"] if ages else [])
    parts += [Text(now[name], style) for name, style in NOTES.items() if now.get(name)]
    return Panel(
        Group(*parts),
        title=f"{head} · [bold]{phase}[/]",
        subtitle="space or s: stop and park · e or Esc: emergency stop · + -: dial",
        style="red" if phase in ("FAULT", "ESTOP") else "",
    )


def show_panel(robot: str, connection: socket.socket) -> None:
    """Shows the panel and sends the pressed keys over ``connection`` until the bridge closes it."""
    stdin, now = sys.stdin.fileno(), {}
    # Ctrl-C is the bridge's, which shares our terminal; the others end us, but in good order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, frame: sys.exit(0))
    with contextlib.ExitStack() as always:
        shown = always.enter_context(contextlib.ExitStack())
        live: Live | None = None

        def show() -> None:
            nonlocal live
            if live is None:
                shown.enter_context(raw_keys(stdin))
                live = Live(console=Console(stderr=True), auto_refresh=False)
                shown.enter_context(live)

        def hide() -> None:
            nonlocal live
            shown.close()
            live = None

        show()
        rendered_at = 0.0
        while True:
            if live is not None and time.monotonic() - rendered_at > REDRAW:
                live.update(render_panel(robot, now), refresh=True)
                rendered_at = time.monotonic()
            watched = [connection] + ([stdin] if live is not None else [])
            ready = select.select(watched, [], [], REDRAW)[0]
            if connection in ready:
                packet = connection.recv(_PACKET)
                if not packet:
                    break
                told = json.loads(packet)
                if "show" in told:
                    show() if told.pop("show") else hide()
                    connection.send(DONE)
                now |= told
            if stdin in ready:
                pressed = os.read(stdin, 64)
                if not pressed:  # the terminal is gone; the bridge hears of that by itself
                    break
                connection.send(key_meaning(pressed) or TYPED + pressed)
        if live is not None:
            live.update(render_panel(robot, now), refresh=True)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        show_panel(sys.argv[1], child_socket(sys.argv[2]))
