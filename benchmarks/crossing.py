"""The files that a sentence crosses from the shell to the first reward.

`robo-rl train` runs in a process of its own until the first rollout is rewarded; counted are our
files in which a function was called, be it for the first sentence of the day or the thousandth:
what only runs as a module is imported is not crossed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import BenchmarkRow, Experiment, Measured, Options, RowFolder
from benchmarks.fingerprint import OURS, ROOT
from robo_rl.runs.markdown import table
from robo_rl.runtime.threads import user_environment
from sims.utils import process

COMMAND = ("train", "reach", "--goal", "the gripper touches the red cube")
SMALL = ("--tuning.num-envs", "8", "--tuning.n-steps", "8")  # the first rollout comes soon
REWARDS = {
    "every frame drawn": ("--reward", "clip", "--clip.no-distill"),
    "program written from the sentence": ("--reward", "offline"),
}
READER = "reward_models/goals/grammar/"

TRACED = """
import json, os, sys, threading
root, packages, args = sys.argv[1] + os.sep, tuple(json.loads(sys.argv[2])), sys.argv[3:]
crossed, seen, out = [], set(), os.fdopen(os.dup(1), "w")

def crossing(frame, event, _):
    code = frame.f_code
    if event == "call" and code not in seen:
        file = os.path.relpath(code.co_filename, root) if root in code.co_filename else ""
        up = frame
        while up is not None and "importlib" not in up.f_code.co_filename:
            up = up.f_back
        if up is None:
            seen.add(code)
            if file.startswith(packages) and code.co_name != "<module>" and file not in crossed:
                crossed.append(file)
    elif event == "return" and code.co_qualname == "Scorer.score":
        print(json.dumps(crossed), file=out, flush=True)
        os._exit(0)

from robo_rl.cli import main
threading.setprofile(crossing)
sys.setprofile(crossing)
main(args)
sys.exit("no rollout was scored")
"""


def crossed(reward: Sequence[str], root: Path = ROOT) -> list[str]:
    """Our files in the order in which they are entered, in the checkout ``root``; OSError with the
    command's last line where it comes to no reward."""
    with tempfile.TemporaryDirectory() as runs:
        args = [*COMMAND, *reward, *SMALL, "--env-steps", "64", "--runs", runs]
        traced = process.start_user_program(
            sys.executable,
            "-c",
            TRACED,
            str(root),
            json.dumps(OURS),
            *args,
            cwd=runs,
            variables=user_environment() | {"PYTHONPATH": str(root)},
            terminal=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said, complained = traced.communicate()
    if traced.returncode:
        lines = complained.strip().splitlines() or ["it said nothing"]
        raise OSError(f"robo-rl {' '.join(args)} produced no reward: {lines[-1]}")
    return json.loads(said.splitlines()[-1])


def rows(options: Options) -> list[BenchmarkRow]:
    """One for each kind of reward."""
    code = (
        "robo_rl.cli",
        "robo_rl.commands.train",
        "robo_rl.training.train",
        "sims.tasks.reach",
        "reward_models.goals.grammar",
        "reward_models.writers",
        __name__,
    )
    return [BenchmarkRow(name, list(args), code) for name, args in REWARDS.items()]


def measure(reward: Sequence[str], place: RowFolder) -> dict[str, Any]:
    """The files."""
    return {"files": crossed(reward)}


def table_text(rows: Sequence[Measured]) -> str:
    """How many, by package; the reader of sentences apart."""
    lines = []
    for row in rows:
        count = Counter(
            "reader" if file.startswith(READER) else file.split("/")[0] for file in row["files"]
        )
        lines.append((row["name"], count.total(), *(count[part] for part in (*OURS, "reader"))))
    return table(("reward", "files", *OURS, "of them the reader's"), lines)


EXPERIMENT = Experiment(rows, measure, table_text)
