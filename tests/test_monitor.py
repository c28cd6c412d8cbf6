"""The live monitor in a real pseudo-terminal: what it shows, what its keys do, how it leaves."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import pytest
import reach_bundle

from real_robot import read_log
from real_robot.session.panel import ESTOP, STOP, key_meaning, render_panel

WAIT = 60.0  # s, for a machine that is busy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    reach_bundle.write(folder, "so101")
    return folder


class Terminal:
    """``robo-rl deploy`` of a simulated arm in real time, in a terminal of its own."""

    def __init__(self, folder: Path, log: Path, *options: str):
        self.log = log
        self._master, self._slave = pty.openpty()
        ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.before = termios.tcgetattr(self._slave)
        self.seen = b""
        command = [sys.executable, "-m", "robo_rl.cli", "deploy", str(folder), "--emulate"]
        command += [
            "--realtime",
            "--policy-timeout",
            "1",
            "--episodes",
            "50",
            "--log",
            str(log),
            *options,
        ]
        self.process = subprocess.Popen(
            command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            preexec_fn=self._lead,
            env=os.environ | {"TERM": "xterm"},
        )

    def _lead(self) -> None:
        os.setsid()
        ioctl(self._slave, termios.TIOCSCTTY, 0)

    def read(self, seconds: float) -> None:
        if select.select([self._master], [], [], seconds)[0]:
            self.seen += os.read(self._master, 65536)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + WAIT
        while text.encode() not in self.seen:
            self.read(0.1)
            assert time.monotonic() < deadline, (text, self.seen[-3000:])

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def end(self) -> int:
        """Its exit status."""
        deadline = time.monotonic() + WAIT
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.1)
        self.read(0.2)
        return self.process.wait(1)

    @property
    def restored(self) -> bool:
        hidden, shown = self.seen.rfind(b"\x1b[?25l"), self.seen.rfind(b"\x1b[?25h")
        return termios.tcgetattr(self._slave) == self.before and hidden < shown

    def states(self) -> list[str]:
        return [t["after"] for t in read_log(sorted(self.log.glob("*.mcap"))[-1]).transitions]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def terminal(folder: Path, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def make(*options: str) -> Terminal:
        made.append(Terminal(folder, tmp_path / "log", *options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_monitor_stop_key_parks_the_arm(terminal: Callable[..., Terminal]) -> None:
    one = terminal()
    one.until("RUN")
    for shown in ("so101", "episode 1 of 50", "Hz", "late p99", "shoulder_pan", "●", "seen "):
        one.until(shown)
    assert termios.tcgetattr(one._slave) != one.before
    one.press(b"\x1b[A")  # an arrow is no Esc
    one.press(b" ")
    assert one.end() == 1 and one.restored
    assert one.states()[-5:] == ["hold", "park", "relax", "connected", "offline"]
    assert b"interrupted: asked to stop" in one.seen


@pytest.mark.slow
@pytest.mark.parametrize("key", [b"e", b"\x1b"])
def test_monitor_emergency_stop_latches_without_parking(
    terminal: Callable[..., Terminal], key: bytes
) -> None:
    one = terminal()
    one.until("RUN")
    one.press(key)
    assert one.end() == 1 and one.restored
    assert "park" not in one.states() and "estop" in one.states()
    assert len(list(one.log.glob("*.mcap"))) == 1  # no further episode
    assert b"the operator's emergency stop" in one.seen


@pytest.mark.slow
def test_monitor_emergency_stop_while_parking(terminal: Callable[..., Terminal]) -> None:
    one = terminal()
    one.until("RUN")
    one.press(b"s")
    one.until("PARK")
    one.press(b"e")
    assert one.end() == 1 and one.restored
    assert one.states()[-2:] == ["park", "estop"]


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["bridge", "monitor", "ctrl-c"])
def test_terminal_is_restored_after_any_end(terminal: Callable[..., Terminal], whom: str) -> None:
    import psutil

    one = terminal()
    one.until("RUN")
    bridge = psutil.Process(one.process.pid)
    (monitor,) = [p for p in bridge.children() if any("panel" in word for word in p.cmdline())]
    if whom == "bridge":
        bridge.kill()
        monitor.wait(20)
        one.read(0.5)
        assert one.restored
        return
    if whom == "monitor":  # the run goes on, and Ctrl-C still stops it
        monitor.kill()
        time.sleep(1.0)
        assert one.process.poll() is None
        os.kill(one.process.pid, signal.SIGINT)
    else:
        one.press(b"\x03")
    assert one.end() == 1 and one.restored
    assert one.states()[-5:] == ["hold", "park", "relax", "connected", "offline"]


@pytest.mark.slow
def test_no_monitor_leaves_the_terminal_alone(terminal: Callable[..., Terminal]) -> None:
    one = terminal("--no-monitor")
    time.sleep(3.0)
    assert termios.tcgetattr(one._slave) == one.before
    one.until("arm ")  # the progress bar


@pytest.mark.slow
def test_plain_output_without_a_terminal(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "robo_rl.cli", "deploy", str(folder), "--emulate"]
    command += ["--realtime", "--policy-timeout", "1", "--episodes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert "episode 1 of 1: done, 1 reached so far" in done.stderr and "\x1b" not in done.stderr


def test_monitor_key_bindings() -> None:
    assert [key_meaning(k) for k in (b" ", b"s", b"S", b"\x1b[A ")] == [STOP] * 4
    assert [key_meaning(k) for k in (b"e", b"\x1b", b"se")] == [ESTOP] * 3
    assert [key_meaning(k) for k in (b"x", b"\x1b[A", b"\x1bOP", b"\r")] == [b""] * 4


def test_panel_renders_without_data() -> None:
    from rich.console import Console

    console = Console(width=100, record=True, file=open(os.devnull, "w"))
    console.print(render_panel("so101", {}))
    assert "OFFLINE" in console.export_text()


def test_panel_shows_the_episode_count() -> None:
    for episodes, said in ((20, "episode 3 of 20, 1 reached"), (None, "episode 3, 1 reached")):
        told = render_panel("so101", {"episode": 3, "episodes": episodes, "successes": 1})
        assert said in str(told.title)
