"""What a run takes of memory, at most: after so many steps, and after four times as many.

Every row is commands as they are typed, each in a process of its own, which says itself what it had
at most at one time; what those that it starts have (they draw, for one) is looked at meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from robo_rl.runs.markdown import table
from robo_rl.runtime.memory import format_bytes
from robo_rl.runtime.threads import user_environment
from sims.utils import process

MORE = 4  # times as many steps
EVERY_S = 0.5  # s, between two looks at what it has started

PENDULUM = "gym:Pendulum-v1"
CAPTIONS = "docs/captions/pendulum.toml"
SAW = "seen.safetensors"
POLICY = ("--episodes", "20", "--eval-points", "1", "--eval-episodes", "20")
PPO, ENSEMBLE = ("--learner", "ppo"), ("--learner", "ensemble")
DRAWN, DISTILLED = ("--clip.no-distill",), ("--clip.distill",)
ABROAD = ("--goal", "the pendulum points up", "--clip.encoder", f"embedded:{SAW}")


@dataclass(frozen=True)
class MeasuredCommand:
    """A command that takes so many steps, or frames."""

    words: tuple[str, ...]
    count: int
    of: str = "--env-steps"


COMMANDS = {
    "reach, every frame drawn, ppo": MeasuredCommand(
        ("train", "reach", *DRAWN, *PPO, *POLICY), 20_000
    ),
    "reach, distilled, ppo": MeasuredCommand(("train", "reach", *DISTILLED, *PPO, *POLICY), 50_000),
    "reach, every frame drawn, ensemble": MeasuredCommand(
        ("train", "reach", *DRAWN, *ENSEMBLE, *POLICY), 10_000
    ),
    "reach, distilled, ensemble": MeasuredCommand(
        ("train", "reach", *DISTILLED, *ENSEMBLE, *POLICY), 10_000
    ),
    f"{PENDULUM}, every frame drawn, ppo": MeasuredCommand(
        ("train", PENDULUM, *ABROAD, *PPO, *POLICY), 10_000
    ),
    f"{PENDULUM}, every frame drawn, ensemble": MeasuredCommand(
        ("train", PENDULUM, *ABROAD, *ENSEMBLE, *POLICY), 10_000
    ),
    "a CLIP is taught on frames of reach": MeasuredCommand(
        ("reward", "train", "--task", "reach", "--steps", "5", "--no-check"), 5_000, "--frames"
    ),
}

CODE = (
    "robo_rl.cli",
    "robo_rl.commands.train",
    "robo_rl.commands.reward.train",
    "robo_rl.training.train",
    "robo_rl.runtime.memory",
    "sims.tasks.reach",
    __name__,
)

# Told by the process itself, when all is done.
TOLD = """
import sys
from robo_rl.cli import main
status = main(sys.argv[1:])
from robo_rl.runtime.memory import peak_memory
print(peak_memory())
sys.exit(status)
"""


def rows(options: Options) -> list[BenchmarkRow]:
    """One for each command."""
    return [
        BenchmarkRow(
            name, MeasuredCommand(one.words, options.scaled(one.count, least=2_000), one.of), CODE
        )
        for name, one in COMMANDS.items()
    ]


def measure(of: MeasuredCommand, place: RowFolder) -> dict[str, Any]:
    """Bytes at most after each count of steps: of its own, and of those that it started."""
    words = tuple(of.words)  # a list, where it comes from a journal
    if SAW in " ".join(words):
        trained = (
            "reward",
            "train",
            "--task",
            PENDULUM,
            "--captions",
            str(process.ROOT / CAPTIONS),
            "--frames",
            "500",
            "--steps",
            "5",
            "--no-check",
        )
        _took((*trained, "--out", SAW), place.folder)
    found = []
    for i, count in enumerate((of.count, MORE * of.count)):
        out = ("--out", f"{i}.safetensors") if words[0] == "reward" else ("--name", str(i))
        own, theirs = _took((*words, of.of, str(count), *out), place.folder)
        found.append({"count": count, "own": own, "theirs": theirs})
    return {"of": of.of, "peaks": found}


def _took(words: Sequence[str], folder: Path) -> tuple[int, int]:
    """Bytes that ``robo-rl`` had at most, and what it started had."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "said.txt").open("w") as output:
        taker = process.start_user_program(
            sys.executable,
            "-c",
            TOLD,
            *words,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=output,
            variables=user_environment() | {"PYTHONPATH": str(process.ROOT)},
            text=True,
        )
        theirs = 0
        try:
            while taker.poll() is None:
                theirs = max(theirs, _of_children(taker.pid))
                time.sleep(EVERY_S)
            last = taker.stdout.read().split()[-1:] if taker.stdout else []
        finally:
            process.kill_process_tree(taker)
    if taker.returncode or not last:
        lines = (folder / "said.txt").read_text().strip().splitlines() or ["it said nothing"]
        raise OSError(f"robo-rl {' '.join(words)}: {lines[-1]}")
    return int(last[0]), theirs


def _of_children(pid: int) -> int:
    """Bytes that all that ``pid`` has started have now; of what several share, its part to each."""
    import psutil

    total = 0
    try:
        for child in psutil.Process(pid).children(recursive=True):
            total += child.memory_full_info().pss
    except psutil.Error:  # one has ended by now
        pass
    return total


def table_text(rows: Sequence[Measured]) -> str:
    """The most of each, and what every further step took."""
    lines = []
    for row in rows:
        few, many = row["peaks"]
        each = (many["own"] - few["own"]) / (many["count"] - few["count"])
        what = "frames" if row["of"] == "--frames" else "steps"
        taken = (f"{format_bytes(one['own'])} ({one['count']:,} {what})" for one in (few, many))
        helpers = max(one["theirs"] for one in (few, many))
        lines.append(
            (
                row["name"],
                *taken,
                format_bytes(max(0.0, each)),
                format_bytes(helpers) if helpers else "",
            )
        )
    heads = ("run", "at most", "at most, four times as many", "each more", "in processes beside it")
    return table(heads, lines)


EXPERIMENT = Experiment(rows, measure, table_text)
