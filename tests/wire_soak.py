"""Minutes of continuous running over an arm's wire: `python tests/wire_soak.py so101`.

The emulator runs in its own process, as does the empty loop that keeps the same period on the same
machine at the same time: what it misses, the machine misses.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil
from arms import punctual

from real_robot import Bus, BusConfig, Clearance, Fault, RobotFault, SafetyFilter, Target, arms
from real_robot.core.config import RunConfig
from real_robot.core.driver import FaultResponse
from real_robot.core.pacing import Pacer, RealClock, low_latency_interpreter
from real_robot.core.realtime import realtime
from real_robot.emulators.control_port import Control
from real_robot.safety.guarded_driver import GuardedDriver
from sims import make_task

PERIOD = 0.01  # s
SWING = 0.15  # rad to either side of where each joint starts
SPEED = 0.4  # rad/s, at most
SETTLE = 5.0  # s until everything has been imported


def empty(seconds: float, go: Any, out: Any) -> None:
    """An empty loop in real time from ``go`` on: puts (periods, missed, late p99 s, notes)."""
    out.put(loop(seconds, go.wait, lambda i: None))


def loop(seconds: float, begin: Any, step: Any) -> tuple[int, int, float, tuple[str, ...]]:
    """``step(i)`` every period: (periods, missed, 99th percentile of lateness s, notes).

    In real time where that is permitted, as the bridge runs; the notes say where it is not.
    """
    clock, missed, i = RealClock(), 0, 0
    late = np.zeros(round(seconds / PERIOD) + 2)  # whole from the start: memory is looked at
    with low_latency_interpreter(), realtime() as notes:
        begin()
        end = clock.now_ns() + round(seconds * 1e9)
        pacer = Pacer(PERIOD, clock)
        while clock.now_ns() < end:
            step(i)
            skipped, lateness = pacer.wait()
            missed += skipped
            late[i] = lateness
            i += 1
    return i, missed, float(np.quantile(late[:i], 0.99)), notes


EDGES = (0.0, 5.0, 8.0, 9.5, 10.5, 12.0, 15.0, 20.0, 30.0, 50.0, 100.0, np.inf)  # ms
GRAIN = 0.01  # s, in which /proc/stat counts


class Threads:
    """How long the threads of processes have waited, ready to run (Linux)."""

    def __init__(self, *pids: int):
        tasks = [f"/proc/{pid}/task" for pid in pids]
        self._files = [
            os.open(f"{task}/{thread}/schedstat", os.O_RDONLY)
            for task in tasks
            for thread in os.listdir(task)
        ]

    def waited(self) -> float:
        """s so far; nothing is opened for it, since it is asked in every period."""
        total = 0
        for file in self._files:
            with contextlib.suppress(ProcessLookupError):  # a thread that has ended
                total += int(os.pread(file, 64, 0).split()[1])
        return total * 1e-9


def gaps(
    heard: np.ndarray, taken: np.ndarray, slow: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    """Of the times (s) between two targets at the device: how many of which length, how many are
    misses (more than 1.5 periods), and what of the machine's doing stands beside those: processor
    time that the host took, or that a process waited for (``taken`` (k, 3) s: the time, and both so
    far), an emulator that was ``slow`` from s until s, as no device is."""
    apart = np.diff(heard)
    beside, alone = dict.fromkeys(("stolen_time", "waiting", "a_slow_emulator"), 0), []
    for i in np.flatnonzero(apart > 1.5 * PERIOD):
        since, until = np.searchsorted(taken[:, 0], [heard[i] - 2 * GRAIN, heard[i + 1] + GRAIN])
        was = taken[min(until, len(taken) - 1), 1:] - taken[min(since, len(taken) - 1), 1:]
        if was[0] >= GRAIN:
            beside["stolen_time"] += 1
        elif was[1] > 0.2 * PERIOD:
            beside["waiting"] += 1
        elif any(begun < heard[i + 1] and end > heard[i] for begun, end in slow):
            beside["a_slow_emulator"] += 1
        else:
            alone.append(round(1000 * apart[i], 1))
    counts, _ = np.histogram(1000 * apart, EDGES)
    return {
        "gaps_ms": {
            f"{a:g}-{b:g}": int(n) for a, b, n in zip(EDGES[:-1], EDGES[1:], counts, strict=True)
        },
        "gap_p99_ms": 1000 * float(np.quantile(apart, 0.99)),
        "gap_longest_ms": 1000 * float(apart.max()),
        "misses": int((apart > 1.5 * PERIOD).sum()),
        **{f"misses_beside_{what}": count for what, count in beside.items()},
        "misses_beside_nothing_ms": alone,
    }


# For a machine that is not idle: what a reply may take, what the controller's watchdog bears.
PATIENT: dict[str, dict[str, Any]] = {
    "so101": {"patience": 0.5},
    "ur5e": {"watchdog": 0.5, "stale": 2.0},
    "koch": {"watchdog": 2.0, "patience": 0.5},
}


def patiently(call: Any) -> None:
    """``call()``, again where the next try may help."""
    for _ in range(20):
        try:
            call()
            return
        except RobotFault as error:
            if error.fault.response is not FaultResponse.RETRY and error.fault is not Fault.STALE:
                raise
    call()


def soak(
    robot: str, seconds: float, *, patient: bool = False, pinned: bool = False
) -> dict[str, Any]:
    """Figures of one driver behind the safety filter; ``patient`` on a machine that is not idle,
    ``pinned``: who owns the port stays on the last processor."""
    command = [
        sys.executable,
        "-m",
        "robo_rl.cli",
        "emulate",
        robot,
        "--realtime",
        "--json",
        "--parent",
    ]
    emulator = subprocess.Popen([*command, str(os.getpid())], stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(emulator.stdout.readline())
        punctual(emulator)
        control = Control(told["control"])
        options = {"period": PERIOD, **(PATIENT[robot] if patient else {})}
        bus = {"deadline": 2.0, "patience": 20.0, "silence": 20.0} if patient else {}
        driver = Bus(BusConfig(robot=robot, where=told["where"], options=options, **bus))
        arm: GuardedDriver
        clearance = Clearance.of(make_task("reach", robot=robot))
        n, memory = len(driver.describe().joints), list[int]()
        start, process = np.zeros(n), psutil.Process()
        silence = [0, 0]  # periods in a row without a measurement: now, at most
        taken: list[tuple[float, float, float]] = []  # s: when, what the host took, what we waited
        threads: list[Threads] = []  # once all are there

        def begin() -> None:
            # In real time already, so that the client's own threads are too, as in the bridge.
            nonlocal arm
            patiently(driver.connect)
            patiently(driver.identify)
            safety = SafetyFilter.build(
                driver.describe(), clearance=clearance, max_age=3.0 if patient else 0.1
            )
            arm = GuardedDriver(driver, safety, RealClock(), RunConfig(max_retries=20))
            patiently(driver.enable)
            arm.seed()
            start[:] = arm.memory.qpos
            if pinned:
                for thread in os.listdir(f"/proc/{driver.pid}/task"):
                    os.sched_setaffinity(int(thread), {max(os.sched_getaffinity(0))})
            threads.append(Threads(os.getpid(), driver.pid, emulator.pid))
            go.set()

        def step(i: int) -> None:
            # Two beats a second between the joints, so that every pose comes up.
            phase = SPEED / SWING * PERIOD * i * np.linspace(0.7, 1.0, n)
            target = Target(start + SWING * np.sin(phase), 0.5 - 0.5 * np.cos(0.5 * PERIOD * i))
            before = arm.retries
            arm.exchange(lambda state: target)
            silence[:] = [silence[0] + 1 if arm.retries > before else 0, max(silence)]
            taken.append((time.monotonic(), psutil.cpu_times().steal, threads[0].waited()))
            if i % 1000 == 0:
                memory.append(process.memory_info().rss)

        spawn = multiprocessing.get_context("spawn")
        results, go = spawn.Queue(), spawn.Event()
        beside = spawn.Process(target=empty, args=(seconds, go, results), daemon=True)
        beside.start()
        time.sleep(SETTLE)
        stolen = psutil.cpu_times().steal
        periods, missed, late, notes = loop(seconds, begin, step)
        stolen = psutil.cpu_times().steal - stolen
        about, traffic = driver.describe(), control.call("traffic")
        heard = np.array(control.call("heard", since=taken[50][0]))
        slow = control.call("slow")
        own = psutil.Process(driver.pid).cpu_times()
        spent, braked = own.user + own.system, driver.braked
        acks = driver.relax()
        driver.close()
        beside.join()
        empty_periods, empty_missed, empty_late, _ = results.get()
        control.close()
        low, high = (np.array(traffic[end][:n]) for end in ("goal_low", "goal_high"))
        room = np.minimum(low - about.position[:, 0], about.position[:, 1] - high)
        return {
            "robot": robot,
            "seconds": seconds,
            "periods": periods,
            "missed": missed,
            "missed_by_an_empty_loop": empty_missed,
            "late_p99_ms": 1000 * late,
            "empty_late_p99_ms": 1000 * empty_late,
            "empty_periods": empty_periods,
            # What a virtual machine's host gave to others: more than nothing, and periods are lost.
            "stolen_share": stolen / (seconds * psutil.cpu_count()),
            "retried": arm.retries,
            "retried_in_a_row": max(silence),
            "processor_s": process.cpu_times().user + process.cpu_times().system,
            "processor_s_of_the_bus": spent,
            "periods_braked_for_want_of_a_goal": braked,
            # From the second reading on: the first comes before every page was touched.
            "memory_growth_kB": (memory[-1] - memory[min(1, len(memory) - 1)]) / 1024,
            # As the device end saw the targets.
            "room_to_joint_limits_rad": float(room.min()),
            "highest_speed_rad_s": float(np.max(traffic["goal_step"][:n]) / PERIOD),
            "share_of_speed_limit": float(
                (np.array(traffic["goal_step"][:n]) / PERIOD / about.velocity).max()
            ),
            "beyond_limits": traffic.get("beyond_limits", 0),
            "relaxed": all(acks.values()),
            "notes": notes,
            **gaps(heard[heard <= taken[-1][0]], np.array(taken), slow),
        }
    finally:
        emulator.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            emulator.wait(30)
        emulator.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", choices=arms.ARMS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--patient", action="store_true", help="for a machine that is not idle")
    parser.add_argument("--pinned", action="store_true", help="the bus on one processor")
    arguments = parser.parse_args()
    seconds, how = 60 * arguments.minutes, {n: getattr(arguments, n) for n in ("patient", "pinned")}
    told = soak(arguments.robot, seconds, **how)
    print(json.dumps(told, indent=1))
