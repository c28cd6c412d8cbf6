"""The same command with the same seed gives the same weights, whatever else the machine does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from robo_rl.runs.run_dir import SCORER, WEIGHTS

STARTS, MOST_BUSY = 20, 4
STEPS = 512
COMMAND = [
    str(Path(sys.executable).with_name("robo-rl")),
    "train",
    "reach",
    "--goal",
    "touch the red cube",
    "--reward",
    "clip",
    "--clip.scene.frames",
    "128",
    "--env-steps",
    str(STEPS),
    "--tuning.num-envs",
    "16",
    "--tuning.n-steps",
    "16",
    "--episodes",
    "8",
    "--eval-points",
    "0",
    "--seed",
    "3",
]


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """While ``count`` processes beside this one compute all the time."""
    spin = [sys.executable, "-c", "while True: sum(range(100_000))"]
    beside = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def started(runs: Path, name: str) -> tuple[str, str]:
    """(number format, sha256 of the final weights) of one start, ended once both are written."""
    run = runs / name
    weights = run / "checkpoints" / f"step_{STEPS:08d}" / WEIGHTS
    process = subprocess.Popen(
        [*COMMAND, "--runs", str(runs), "--name", name], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 300
    try:
        while not weights.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    dtype = json.loads((run / SCORER).read_text())["dtype"]
    return dtype, hashlib.sha256(weights.read_bytes()).hexdigest()


@pytest.mark.slow
def test_same_seed_gives_identical_runs_under_load(tmp_path: Path) -> None:
    formats, hashes = Counter[str](), Counter[str]()
    for number in range(STARTS):
        with busy(number % (MOST_BUSY + 1)):
            dtype, digest = started(tmp_path, f"start-{number}")
        formats[dtype] += 1
        hashes[digest] += 1
    print(f"{STARTS} starts: {len(formats)} number format, {len(hashes)} sha256 of the weights")
    print(dict(formats), dict(hashes))
    assert formats == {"float32": STARTS} and hashes.most_common() == [(*hashes, STARTS)]
