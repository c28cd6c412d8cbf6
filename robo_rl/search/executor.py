"""Trainings in processes of their own: limits, a deadline, signs of life, the whole group killed.

Nothing is shared with a training but files, so whatever happens to it happens to it alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.runs.run_dir import write_json
from robo_rl.runtime.threads import cores
from sims.utils import process
from sims.utils.plugins import VARIABLE

_KEPT = (*process.DRAWING, "CUDA_VISIBLE_DEVICES", VARIABLE)
_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class TrainingLimits:
    """Time and memory limits of one training."""

    seconds: float = 3600.0  # wall clock
    stall_s: float = 180.0  # without a sign of life
    memory_bytes: int = 24 << 30  # of address space, most of which torch only reserves
    file_bytes: int = 1 << 28  # of any one file


@dataclass
class _Running:
    index: int
    process: subprocess.Popen[bytes]
    path: Path
    began: float


class TrainingPool:
    """Runs jobs, at most ``workers`` at a time; every process it started ends with it."""

    def __init__(self, folder: Path, workers: int = 1, limits: TrainingLimits | None = None):
        self.folder, self.workers, self.limits = (
            folder.absolute(),
            workers,
            limits or TrainingLimits(),
        )
        self.threads = max(1, cores() // workers)
        folder.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        jobs: Sequence[Mapping[str, Any]],
        on_steps: Callable[[int], None] = lambda steps: None,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """(index of the job, answer) as they end; an answer has a ``kind`` and, unless it is
        ``trained``, a ``message``. ``on_steps`` hears the env steps of those under way."""
        waiting = list(enumerate(jobs))
        running: list[_Running] = []
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    running.append(self._start(*waiting.pop(0)))
                for one in list(running):
                    over = self._end_reason(one)
                    if one.process.poll() is None and not over:
                        continue
                    process.kill_process_tree(one.process)
                    running.remove(one)
                    yield one.index, self._answer(one, over)
                on_steps(sum(_steps(one.path) for one in running))
                time.sleep(_POLL_S)
        finally:
            for one in running:
                process.kill_process_tree(one.process)

    def _start(self, index: int, job: Mapping[str, Any]) -> _Running:
        path = self.folder / f"{job['name']}.json"
        for suffix in (".answer", ".pulse"):
            path.with_suffix(suffix).unlink(missing_ok=True)
        write_json(path, {**job, "threads": self.threads, "parent": os.getpid()})
        limits = {"AS": self.limits.memory_bytes, "FSIZE": self.limits.file_bytes, "CORE": 0}
        with path.with_suffix(".log").open("wb") as log:
            child = process.start_module(
                "robo_rl.search.worker",
                str(path),
                keep=_KEPT,
                limits=limits,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return _Running(index, child, path, time.monotonic())

    def _end_reason(self, one: _Running) -> str:
        """Why a training must end now; empty: it may go on."""
        limits, now = self.limits, time.monotonic()
        if now - one.began > limits.seconds:
            return f"not done in {limits.seconds:g} s"
        try:
            silent = time.time() - one.path.with_suffix(".pulse").stat().st_mtime
        except FileNotFoundError:
            silent = now - one.began
        return f"no sign of life for {limits.stall_s:g} s" if silent > limits.stall_s else ""

    def _answer(self, one: _Running, over: str) -> dict[str, Any]:
        steps = _steps(one.path)
        answer = one.path.with_suffix(".answer")
        if answer.exists():
            return {"env_steps": steps, **json.loads(answer.read_text())}
        if over:
            return {"kind": "timed_out", "message": over, "env_steps": steps}
        log = one.path.with_suffix(".log").read_text(errors="replace").strip().splitlines()
        last = log[-1][:300] if log else "no output"
        message = f"ended with status {one.process.returncode}: {last}"
        return {"kind": "crashed", "message": message, "env_steps": steps}


def _steps(path: Path) -> int:
    """Env steps that a job's last sign of life tells of."""
    try:
        return int(path.with_suffix(".pulse").read_text() or 0)
    except (FileNotFoundError, ValueError):
        return 0
