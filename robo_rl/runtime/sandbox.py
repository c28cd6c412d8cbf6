"""Pre-flight: rewards are judged on probes in a process that can be killed.

The process has limits on memory, processor time and files, and a deadline for each job, after which
its whole group is killed; the jobs that are left go to a new one.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from reward_models.base import TaskCard
from reward_models.programs import Diagnostic
from reward_models.programs.preflight import Job
from sims.utils import process

__all__ = ["Job", "ProcessLimits", "preflight"]

PATIENCE = 20.0  # a busy machine is not the program's fault


@dataclass(frozen=True)
class ProcessLimits:
    """Resource limits of the subprocess."""

    seconds: float = 10.0  # per job, of processor time; of wall time PATIENCE times as many
    memory: int = 2 << 30  # bytes of address space
    files: int = 16  # open at once


def preflight(
    jobs: Sequence[Job], card: TaskCard, limits: ProcessLimits | None = None
) -> list[list[Diagnostic]]:
    """Returns the findings on each job; an empty list for a program that may be trained with."""
    limits = limits or ProcessLimits()
    found: list[list[Diagnostic]] = []
    while len(found) < len(jobs):
        found += _batch(jobs[len(found) :], card, limits)
    return found


def _batch(jobs: Sequence[Job], card: TaskCard, limits: ProcessLimits) -> list[list[Diagnostic]]:
    """Answers of one process: all of them, or up to the first job that it did not survive."""
    word = secrets.token_hex(16)
    order = {"word": word, "card": asdict(card), "jobs": [asdict(job) for job in jobs]}
    reading, writing = os.pipe()
    try:
        child = process.start_module(
            "reward_models.programs.preflight",
            str(writing),
            pass_fds=(writing,),
            limits={
                "AS": limits.memory,
                "CPU": int(limits.seconds * len(jobs)) + 20,
                "FSIZE": 0,
                "NOFILE": limits.files,
                "CORE": 0,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        os.close(writing)
    found: list[list[Diagnostic]] = []
    try:
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(order).encode())
            child.stdin.close()
        except BrokenPipeError:
            pass
        for answer in _answers(reading, child.pid, limits.seconds, len(jobs)):
            if isinstance(answer, Diagnostic):
                found.append([answer])
                break
            if word.encode() not in answer:
                found.append([Diagnostic("killed", "the process wrote invalid output")])
                break
            found.append([Diagnostic(**d) for d in json.loads(answer)["diagnostics"]])
    finally:
        os.close(reading)
        process.kill_process_tree(child)
    return found


def _answers(reading: int, child: int, seconds: float, count: int) -> Iterator[bytes | Diagnostic]:
    """Lines of the pipe; a Diagnostic in place of one that did not come."""
    buffer, got = b"", 0
    begun, used = time.monotonic(), 0.0  # of the job at hand: wall time, the child's time before it
    while got < count:
        while b"\n" not in buffer:
            if not select.select([reading], [], [], 0.2)[0]:
                waited = time.monotonic() - begun
                if waited > PATIENCE * seconds or _processor_time(child, waited) - used > seconds:
                    yield Diagnostic("timeout", f"not finished within {seconds:g} s")
                    return
                continue
            data = os.read(reading, 1 << 16)
            if not data:
                yield Diagnostic("killed", "its process died: out of memory or time, or crashed")
                return
            buffer += data
        line, _, buffer = buffer.partition(b"\n")
        begun, used = time.monotonic(), _processor_time(child, 0.0)
        if line != b"ready":  # imports are done: from here each job has its own time
            got += 1
            yield line


def _processor_time(child: int, otherwise: float) -> float:
    """Seconds of processor time that a process has used; ``otherwise`` where /proc has none."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return otherwise
