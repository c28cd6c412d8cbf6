"""Memory: what is free, what this process has taken at most, and a refusal of what is too much."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

USED = 0.9  # of what is free, at most; the rest is for what else a run takes

_UNITS = (1e9, "GB"), (1e6, "MB"), (1e3, "kB")

# Files of a control group, by version: its limit, what it has, and the line of memory.stat that
# says how much of that the system would give back.
_GROUP = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def free_memory() -> int:
    """Bytes that this process may yet take: of the machine, and of what a container may have."""
    import psutil

    return min([psutil.virtual_memory().available, *_of_groups()])


def peak_memory() -> int:
    """Bytes that this process had at most at one time since it began."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10
    except (OSError, IndexError):  # not Linux, where this one counts whoever began it, too
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10


def check_free(wanted: float, what: str, way_out: str) -> None:
    """ValueError where ``what``, which takes ``wanted`` bytes, is more than there is room for."""
    there = free_memory()
    if wanted > USED * there:
        raise ValueError(
            f"{what}: needs {format_bytes(wanted)} of memory, {format_bytes(there)} "
            f"are free; "
            f"{way_out}"
        )


def format_bytes(count: float) -> str:
    """``1.3 GB`` of so many bytes."""
    unit, name = next(one for one in _UNITS if count >= one[0] or one is _UNITS[-1])
    return f"{count / unit:,.1f} {name}"


def _of_groups(root: Path = Path("/sys/fs/cgroup"), mine: Path = Path("/proc/self/cgroup")) -> list:
    """Returns the memory left under each limit of this process's control groups."""
    found: list[int] = []
    try:
        lines = mine.read_text().splitlines()
    except OSError:  # not Linux
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        version = 1 if controllers else 2
        if version == 1 and "memory" not in controllers.split(","):
            continue
        top = root / "memory" if version == 1 else root
        inside = Path(path.strip("/"))
        # Those that it is part of limit it, too; in a container its own may be the topmost seen.
        for folder in (top / inside, *(top / parent for parent in inside.parents)):
            limit, used, cached = (_number(folder, *name) for name in _files(version))
            if limit is not None and used is not None:
                found.append(max(0, limit - used + (cached or 0)))
    return found


def _files(version: int) -> list[tuple[str, ...]]:
    limit, used, cached = _GROUP[version]
    return [(limit,), (used,), ("memory.stat", cached)]


def _number(folder: Path, name: str, line: str = "") -> int | None:
    """Returns the number in a file, or in one of its lines; None without one."""
    try:
        words = (folder / name).read_text().split()
        return int(words[words.index(line) + 1] if line else words[0])
    except (OSError, ValueError, IndexError):
        return None
