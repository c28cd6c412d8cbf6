"""Learning on an emulated arm in real time while its processes are killed at random moments:
`python tests/learn_soak.py BUNDLE`.

Actor (the side that drives), learner, policy and the owner of the port, one or two of them at once,
by SIGKILL; the emulator lives on, and its record says what the arm did. Whoever ends is begun again
as an operator would: `learn-on-arm --resume RUN --if-torque-on park --clear-fault`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from arms import punctual

from real_robot import PolicyBundle
from real_robot.emulators.control_port import Control
from robo_rl.goals.bundle_task import task_of_bundle
from robo_rl.on_robot_learning.config import EPISODES, LearnerStatus

CLI = [sys.executable, "-m", "robo_rl.cli"]
MODULES = {  # of the actor's children
    "learner": "robo_rl.on_robot_learning.learner",
    "policy": "policy_process",
    "bus": "bus_process",
}
TRIES = 3  # to begin a run at all
APART = 3.0, 25.0  # s from one blow to the next
TWO = 0.25  # share of blows that meet two at once
# s after which the arm must have come to rest: braked by the owner of the port, or at the device's
# last goal, until the side that drives begins with another owner.
RESTING = {"actor": 0.4, "bus": 0.08}
LOOKED = 0.05  # s, in which it is then seen to rest
PARKED = 60.0  # s that whoever is left may take to bring it to rest


class Soak:
    """A run on an arm, and who is killed in it."""

    def __init__(self, robot: str, bundle: Path, run: Path, seed: int, options: Sequence[str]):
        self._run, self._rng = run, random.Random(seed)
        task = task_of_bundle(PolicyBundle.load(bundle).manifest)
        self._emulator = subprocess.Popen(
            [*CLI, "emulate", robot, "--goal", task.goal, "--json", "--parent", str(os.getpid())],
            stdout=subprocess.PIPE,
            text=True,
        )
        told = json.loads(self._emulator.stdout.readline())
        punctual(self._emulator)
        self._control = Control(told["control"])
        where = "--host" if "host" in told else "--port"
        self._first = [
            str(bundle),
            "--robot",
            robot,
            where,
            told["where"],
            "--control",
            str(told["control"]),
            "--minutes",
            "600",
            "--updates",
            "2",
            "--publish-every",
            "3",
            "--runs",
            str(run.parent),
            "--name",
            run.name,
            "--if-torque-on",
            "park",
            "--clear-fault",
            *options,
        ]
        self._actor: subprocess.Popen[bytes] | None = None
        self.blows: list[dict[str, Any]] = []
        self.begun, self.ended = 0, Counter[int]()
        self.regressions: list[str] = []  # what was there and is not any more

    def begin(self) -> None:
        """The actor, for the first time or again."""
        told = ["--resume", str(self._run), "--if-torque-on", "park", "--clear-fault"]
        options = told if self._run.exists() else self._first
        said_in = self._run.parent / "said.txt"
        if self.begun >= TRIES and not self._run.exists():
            raise RuntimeError(f"it does not begin: {said_in.read_text().splitlines()[-1]}")
        with open(said_in, "ab") as said:
            self._actor = subprocess.Popen(
                [*CLI, "learn-on-arm", *options], stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        self.begun += 1

    def found(self) -> dict[str, int]:
        """{who: pid} of those that live."""
        assert self._actor is not None
        alive = {"actor": self._actor.pid} if self._actor.poll() is None else {}
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._actor.pid).children(recursive=True):
                words = " ".join(child.cmdline())
                alive |= {name: child.pid for name, module in MODULES.items() if module in words}
        return alive

    def kept(self) -> tuple[list[dict[str, str]], LearnerStatus]:
        """Rows of finished episodes, and what the learner has told."""
        rows = self._run / "episodes.csv"
        with contextlib.suppress(FileNotFoundError):
            return list(csv.DictReader(rows.read_text().splitlines())), LearnerStatus.read(
                self._run
            )
        return [], LearnerStatus()

    def strike(self) -> None:
        """Kills whom it falls on, and looks what becomes of the arm."""
        alive = self.found()
        count = min(len(alive), 2 if self._rng.random() < TWO else 1)
        whom = sorted(self._rng.sample(sorted(alive), count))
        stiff, moving = self._stiff(), self._moving()
        rows, told = self.kept()
        at = time.monotonic()
        for name in whom:
            with contextlib.suppress(ProcessLookupError):
                os.kill(alive[name], signal.SIGKILL)
        blow: dict[str, Any] = {"whom": " and ".join(whom), "stiff": stiff, "moving": moving}
        if waits := [RESTING[name] for name in RESTING if name in whom]:
            time.sleep(min(waits))
            blow["told_to_move_s"] = max(0.0, self._control.call("traffic")["moved"] - at)
            before, held = self._joints(), self._stiff()
            blow["fell"] = bool(stiff and moving and not held)
            time.sleep(LOOKED)
            blow["moved_on_rad"] = float(np.abs(self._joints() - before).max())
        self._follow(blow)
        after_rows, after = self.kept()
        if len(after_rows) < len(rows) or after.episodes < told.episodes:
            self.regressions.append(
                f"blow {len(self.blows)}: {len(rows)} rows and {told.episodes} episodes before, "
                f"{len(after_rows)} and {after.episodes} after"
            )
        self.blows.append(blow)

    def _follow(self, blow: dict[str, Any]) -> None:
        """Until the actor works on, or has ended and the arm is at rest and it is begun anew."""
        assert self._actor is not None
        if "actor" not in blow["whom"]:
            if {"bus", "policy"} & set(blow["whom"].split(" and ")):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._actor.wait(5.0)
            if self._actor.poll() is None:
                return
        self.ended[self._actor.wait()] += 1
        until = time.monotonic() + PARKED
        while self._stiff() and time.monotonic() < until and "bus" not in blow["whom"]:
            time.sleep(0.1)
        blow["left_stiff"] = self._stiff()
        self.begin()

    def _joints(self) -> np.ndarray:
        return np.array(self._control.call("joints")["qpos"])

    def _stiff(self) -> bool:
        told = self._control.call("traffic")
        if "running" in told:
            return bool(told["running"])
        return all(self._control.call("joints")["torque"])

    def _moving(self) -> bool:
        return time.monotonic() - self._control.call("traffic")["moved"] < 0.1

    def last(self, seconds: float) -> dict[str, Any]:
        """Blow after blow for ``seconds``, then what it came to."""
        until = time.monotonic() + seconds
        self.begin()
        while time.monotonic() < until:
            pause = time.monotonic() + self._rng.uniform(*APART)
            while time.monotonic() < pause:
                if self._actor.poll() is not None:  # it ended by itself
                    self._follow({"whom": ""})
                time.sleep(0.1)
            self.strike()
            print(json.dumps(self.blows[-1]), file=sys.stderr, flush=True)
        _, told = self.kept()
        time.sleep(60.0)  # and in peace it goes on
        rows, later = self.kept()
        self._actor.send_signal(signal.SIGINT)
        self._actor.wait(180)
        traffic = self._control.call("traffic")
        numbers = [int(float(row["episode"])) for row in rows]
        logs = sorted((self._run / EPISODES).glob("*.mcap"))
        struck = [b for b in self.blows if "told_to_move_s" in b and b["moving"]]
        return {
            "seconds": seconds,
            "blows": len(self.blows),
            "whom": dict(Counter(b["whom"] for b in self.blows)),
            "while_it_moved": len(struck),
            "told_to_move_s_at_most": max((b["told_to_move_s"] for b in struck), default=None),
            "moved_on_rad_at_most": max((b["moved_on_rad"] for b in struck), default=None),
            "fell": sum(b["fell"] for b in struck),
            "left_stiff": sum(b.get("left_stiff", False) for b in self.blows),
            "begun": self.begun,
            "ended": {str(k): v for k, v in self.ended.items()},
            "episodes_begun": len(logs),
            "episodes_in_the_table": len(rows),
            "numbers_missing": sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers)),
            "numbers_twice": sorted(n for n, times in Counter(numbers).items() if times > 1),
            "rows_or_counts_lost": self.regressions,
            "updates": told.updates,
            "published": told.published,
            "in_a_minute_of_peace": {
                "episodes": later.episodes - told.episodes,
                "updates": later.updates - told.updates,
            },
            "beyond_limits": traffic.get("beyond_limits", 0),
        }

    def close(self) -> None:
        """Ends everything."""
        if self._actor is not None and self._actor.poll() is None:
            self._actor.kill()
        self._control.close()
        self._emulator.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._emulator.wait(30)
        self._emulator.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--robot", default="so101")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, help="kept there; else in a folder that is removed")
    given, options = parser.parse_known_args()  # the rest is for learn-on-arm
    with tempfile.TemporaryDirectory() as folder:
        run = given.run or Path(folder) / "run"
        run.parent.mkdir(parents=True, exist_ok=True)
        soak = Soak(given.robot, given.bundle, run, given.seed, options)
        try:
            print(json.dumps(soak.last(60 * given.minutes), indent=1))
        finally:
            soak.close()
