"""`robo-rl doctor`: what works on this machine, and what to do about what does not."""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from robo_rl.commands.options import Json
from robo_rl.runtime.threads import CORES, cores
from sims.utils.cache import cache_dir
from sims.utils.process import DRAWING, start_module

State = Literal["ok", "note", "broken"]
SPACE, SCARCE = 1e9, 5e9  # bytes free below which a folder is broken, and below which it is noted
RENDER_S = 60.0  # s that a first frame may take
PORTS = ("/dev/ttyUSB*", "/dev/ttyACM*")
COLOURS = {"ok": "green", "note": "yellow", "broken": "red"}


@dataclass(frozen=True, kw_only=True)
class DoctorCommand:
    """Checks rendering, threads, CUDA, serial ports and disk space; exits 1 if something is broken.

    A note is something that works but is slower or smaller than it could be.
    """

    runs: Path = Path("runs")  # folder of runs, whose disk is checked
    as_json: Json = False  # print JSON


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    name: str
    state: State
    found: str  # what there is
    remedy: str = ""  # what to do, where it is not ok


def main(argv: Sequence[str]) -> int:
    """Prints all findings; 1 where one is broken."""
    command = tyro.cli(DoctorCommand, args=list(argv), prog="robo-rl doctor")
    found = list(findings(command.runs))
    if command.as_json:
        print(json.dumps([dataclasses.asdict(one) for one in found], indent=1))
    else:
        table = Table(box=None, show_header=False)
        for one in found:
            text = f"{one.found}\n{one.remedy}" if one.remedy else one.found
            table.add_row(f"[{COLOURS[one.state]}]{one.state}[/]", one.name, escape(text))
        Console(width=None if sys.stdout.isatty() else 250).print(table)
    return int(any(one.state == "broken" for one in found))


def findings(runs: Path) -> Iterator[Finding]:
    """All checks of this machine, one after another.

    Args:
        runs: folder of runs; it need not exist.
    """
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _opengl,
        _threads,
        _cuda,
        _serial_ports,
        lambda: _folder("runs folder", runs),
        lambda: _folder("cache folder", cache_dir()),
        _temporary_folder,
    )
    for check in checks:
        yield from check()


def _opengl() -> Iterator[Finding]:
    """A frame is rendered in a process of its own: a broken driver may end that process."""
    process = start_module(
        "sims.rendering.try_backend",
        keep=DRAWING,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, errors = process.communicate(timeout=RENDER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = "", f"no frame within {RENDER_S:g} s"
    if process.returncode == 0:
        yield Finding("OpenGL", "ok", out.strip())
        return
    lines = errors.strip().splitlines() or [f"the process ended with {process.returncode}"]
    yield Finding(
        "OpenGL",
        "broken",
        lines[-1],
        "Install a backend, for example apt install libegl1 libgl1-mesa-dri, or choose one with "
        "MUJOCO_GL=egl, osmesa or glfw",
    )


def _threads() -> Iterator[Finding]:
    try:
        usable = cores()
    except ValueError as error:
        yield Finding("threads", "broken", str(error), f"unset {CORES}, or set it to a number")
        return
    there = os.cpu_count() or 1
    found = f"{usable} of {there} cores"
    if CORES in os.environ and usable < there:
        yield Finding("threads", "note", found, f"{CORES} limits it; unset it to use all cores")
    else:
        yield Finding("threads", "ok", found)


def _cuda() -> Iterator[Finding]:
    if find_spec("torch") is None:
        yield Finding(
            "CUDA", "note", "torch is not installed", "To train: pip install 'robo-rl[train]'"
        )
        return
    import torch

    if torch.cuda.is_available():
        yield Finding("CUDA", "ok", f"{torch.cuda.get_device_name(0)}, for --device cuda")
    elif Path("/dev/nvidiactl").exists():
        yield Finding(
            "CUDA",
            "note",
            f"there is an NVIDIA GPU, but torch {torch.__version__} cannot use it",
            "Update the driver, or install the build of torch for its CUDA version (pytorch.org)",
        )
    else:
        yield Finding("CUDA", "ok", "no GPU: everything runs on the processor")


def _serial_ports() -> Iterator[Finding]:
    ports = sorted(port for pattern in PORTS for port in glob.glob(pattern))
    if not ports:
        yield Finding("serial ports", "ok", "no USB serial adapter is connected")
    for port in ports:
        if os.access(port, os.R_OK | os.W_OK):
            yield Finding("serial ports", "ok", f"{port} can be read and written")
        else:
            yield Finding(
                "serial ports",
                "broken",
                f"{port} cannot be opened by this user",
                f"sudo usermod -aG {_group(port)} $USER, then log in again",
            )


def _group(port: str) -> str:
    try:
        return Path(port).group()
    except (KeyError, OSError):
        return "dialout"


def _folder(name: str, path: Path) -> Iterator[Finding]:
    """Whether ``path`` can be written, or made, and how much space its disk has."""
    there = next(
        folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists()
    )
    if not there.is_dir() or not os.access(there, os.W_OK):
        yield Finding(name, "broken", f"{path}: {there} is not writable", "Choose another folder")
        return
    free = shutil.disk_usage(there).free
    found = f"{path}, {free / 1e9:.1f} GB free"
    if free < SPACE:
        remedy = (
            "Free some space: robo-rl runs prune --checkpoints removes what only resuming needs"
        )
        yield Finding(name, "broken", found, remedy)
    elif free < SCARCE:
        yield Finding(name, "note", found, "A run with a replay buffer takes up to some GB")
    else:
        yield Finding(name, "ok", found)


def _temporary_folder() -> Iterator[Finding]:
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        yield Finding(
            "temporary folder", "broken", str(error), "Set TMPDIR to a folder that can be written"
        )
        return
    for one in _folder("temporary folder", folder):
        remedy = "Set TMPDIR to a folder on a larger disk" if one.remedy else ""
        yield dataclasses.replace(one, remedy=remedy)
