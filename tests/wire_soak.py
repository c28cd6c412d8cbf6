"""Minutes of continuous running over an arm's wire: `python tests/wire_soak.py so101`.

The emulator runs in its own process, as does the empty loop that keeps the same period on the same
machine at the same time: what it misses, the machine misses.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import psutil

from real_robot import Fault, RobotFault, Target, drivers
from real_robot.driver import Response
from real_robot.emulators.control import Control
from real_robot.pacing import Pacer, RealClock, quiet

PERIOD = 0.01  # s
SWING = 0.15  # rad to either side of where each joint starts
SPEED = 0.4  # rad/s, at most


def empty(seconds: float, out: Any) -> None:
    """An empty loop: puts (periods, missed, late p99 s)."""
    out.put(loop(seconds, lambda i: None))


def loop(seconds: float, step: Any) -> tuple[int, int, float]:
    """``step(i)`` every period: (periods, missed, 99th percentile of lateness s)."""
    clock, missed, late, i = RealClock(), 0, [], 0
    end = clock.now_ns() + round(seconds * 1e9)
    with quiet():
        pacer = Pacer(PERIOD, clock)
        while clock.now_ns() < end:
            step(i)
            skipped, lateness = pacer.wait()
            missed += skipped
            late.append(lateness)
            i += 1
    return i, missed, float(np.quantile(late, 0.99))


def soak(robot: str, seconds: float, **options: Any) -> dict[str, Any]:
    """Figures of one driver."""
    command = [sys.executable, "-m", "robo_rl.cli", "emulate", robot, "--json"]
    emulator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(emulator.stdout.readline())
        control = Control(told["control"])
        arm = drivers.make(robot, told["where"], period=PERIOD, **options)
        while True:
            try:
                arm.connect()
                arm.identify()
                arm.enable()
                start = arm.read()
                break
            except RobotFault as error:
                if error.fault.response is not Response.RETRY and error.fault is not Fault.STALE:
                    raise
                arm.close()
        faults: dict[str, int] = {}
        memory: list[int] = []
        process = psutil.Process()

        def step(i: int) -> None:
            # Two beats a second between the joints, so that every pose comes up.
            phase = SPEED / SWING * PERIOD * i * np.linspace(0.7, 1.0, len(start.qpos))
            target = start.qpos + SWING * np.sin(phase)
            try:
                arm.read()
                arm.send(Target(target, 0.5 - 0.5 * np.cos(0.5 * PERIOD * i)))
            except RobotFault as error:
                if error.fault.response is not Response.RETRY and error.fault is not Fault.STALE:
                    raise
                faults[error.fault.value] = faults.get(error.fault.value, 0) + 1
            if i % 1000 == 0:
                memory.append(process.memory_info().rss)

        results: Any = multiprocessing.get_context("spawn").Queue()
        beside = multiprocessing.get_context("spawn").Process(target=empty, args=(seconds, results))
        beside.start()
        periods, missed, late = loop(seconds, step)
        acks = arm.relax()
        arm.close()
        beside.join()
        empty_periods, empty_missed, empty_late = results.get()
        traffic = control.call("traffic")
        joints = control.call("joints")
        control.close()
        return {
            "robot": robot,
            "seconds": seconds,
            "periods": periods,
            "missed": missed,
            "missed_by_an_empty_loop": empty_missed,
            "late_p99_ms": 1000 * late,
            "empty_late_p99_ms": 1000 * empty_late,
            "empty_periods": empty_periods,
            "retried": faults,
            # From the second reading on: the first comes before every page was touched.
            "memory_growth_kB": (memory[-1] - memory[min(1, len(memory) - 1)]) / 1024,
            "largest_step_rad": traffic["largest_step"],
            "beyond_limits": traffic.get("beyond_limits", 0),
            "highest_speed_rad_s": max(joints["highest_speed"][:-1]),
            "relaxed": all(acks.values()),
        }
    finally:
        emulator.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            emulator.wait(30)
        emulator.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", choices=["so101", "ur5e"])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--patient", action="store_true", help="for a machine that is not idle")
    arguments = parser.parse_args()
    slack: dict[str, Any] = {}
    if arguments.patient:
        slack = {"patience": 0.5} if arguments.robot == "so101" else {"watchdog": 0.2, "stale": 2.0}
    print(json.dumps(soak(arguments.robot, 60 * arguments.minutes, **slack), indent=1))
