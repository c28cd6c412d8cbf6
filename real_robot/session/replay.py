"""Replay: a log through the same loop, filter and states once more; and what a log says.

``replay`` needs nothing but the log: the driver's, the eyes' and the policy's answers are on its
tape. ``limit_usage`` says how much each limit was in the way, ``simulation_gap`` how the arm
differs from its simulation under the very targets that were sent.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from real_robot.core.config import RunConfig
from real_robot.core.driver import Description, Target
from real_robot.core.manifest import Manifest
from real_robot.core.pacing import VirtualClock
from real_robot.log.recorder import Log, read_log
from real_robot.log.tape import ReplayDiverged, TapeEnd, TapePlayer, decode
from real_robot.policy.bundle import PolicyBundle
from real_robot.session.run import run, task_of_manifest
from real_robot.sim.sim_driver import SimDriver
from sims.core.task import Task

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """How a log came out the second time."""

    same: bool  # every state and every target
    answers: int  # of the tape, that were asked for again
    states: tuple[str, ...]  # as the log has them
    differs: str  # the first difference in words; "" if there is none
    complete: bool  # False: the log's writer was killed, and the replay ends where it does


class _RecordedDriver:
    """Stands where something is taped: it is never really called."""

    def __init__(self, robot: Description | None = None):
        self._robot = robot

    def describe(self) -> Description | None:
        return self._robot


def replay(
    path: str | Path, task_of: Callable[[Manifest], Task[Any]] = task_of_manifest
) -> ReplayResult:
    """Runs the log at ``path`` again and compares states and targets, bit for bit; ``task_of`` says
    through what the policy saw the world.

    Raises:
        ValueError: The log holds no answers to replay.
    """
    log = read_log(path)
    if not log.tape:
        why = "was written by another version" if log.complete else "ends before the run began"
        raise ValueError(
            f"{path} has no recording of the driver's answers to replay: the log {why}"
        )
    manifest = Manifest.from_json(json.dumps(log.run["manifest"]))
    robot = Description(**{f.name: _tuple(log.run["robot"][f.name]) for f in fields(Description)})
    present, reel = log.run["present"], TapePlayer(log.tape)
    periods = log.run["periods"]
    differs = ""
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "again.mcap"
        try:
            run(
                _RecordedDriver(robot),  # type: ignore[arg-type]
                PolicyBundle.unanswering(manifest),
                task=task_of(manifest),
                seconds=None if periods is None else periods * robot.period,
                perception=_RecordedDriver() if "eyes" in present else None,  # type: ignore[arg-type]
                policy=_RecordedDriver() if "policy" in present else None,  # type: ignore[arg-type]
                human=_RecordedDriver() if "human" in present else None,  # type: ignore[arg-type]
                stop=(lambda: False) if "stop" in present else None,
                config=RunConfig(**log.run["config"]),
                shadow=log.run["shadow"],
                log=again,
                tape=reel,
            )
        except TapeEnd:
            differs = (
                "the replay reads more driver answers than the log holds" if log.complete else ""
            )
        except ReplayDiverged as error:
            differs = str(error)
        second = read_log(again)
    differs = differs or _difference(log, second)
    return ReplayResult(
        same=not differs,
        answers=reel.played,
        states=tuple(t["after"] for t in log.transitions),
        differs=differs,
        complete=log.complete,
    )


def _difference(first: Log, second: Log) -> str:
    """The first thing in which two logs differ, as far as both go."""
    pairs = {
        "state": (first.transitions, second.transitions),
        "target": ([t["filtered"] for t in first.ticks], [t["filtered"] for t in second.ticks]),
    }
    for what, (one, other) in pairs.items():
        if first.complete and len(one) != len(other):
            return f"{len(one)} {what}s in the log, {len(other)} in the replay"
        for k, (a, b) in enumerate(zip(one, other, strict=False)):
            if a != b:
                return f"{what} {k}: the log has {a}, the replay {b}"
    return ""


@dataclass(frozen=True)
class LimitUsage:
    """How much one limit was in the way while the policy drove."""

    limit: str
    share: float  # of ticks in which it limited some joint
    joint: str  # the joint it limited most


def limit_usage(log: Log) -> tuple[tuple[LimitUsage, ...], float]:
    """Each limit's use, and the largest demanded speed in units of the allowed one."""
    ticks = [t for t in log.ticks if t["phase"] in ("run", "human", "shadow")]
    if not ticks:
        return (), math.nan
    joints = log.run["robot"]["joints"]
    uses = []
    for name in ticks[0]["flags"]:
        flags = np.array([t["flags"][name] for t in ticks], bool)
        worst = joints[int(flags.mean(axis=0).argmax())] if flags.any() else "-"
        uses.append(LimitUsage(name, float(flags.any(axis=1).mean()), worst))
    wanted = np.array([t["requested"]["qpos"] for t in ticks], float)
    sent = np.array([t["filtered"]["qpos"] for t in ticks], float)
    speed = np.abs(wanted[1:] - sent[:-1]) / log.run["robot"]["period"]
    demand = speed / np.array(log.run["robot"]["velocity"])
    return tuple(uses), float(np.nanmax(demand)) if len(demand) else 0.0


@dataclass(frozen=True)
class SimulationGap:
    """How far the arm was from its simulation under the same targets."""

    rms: Array  # (n,) rad
    score: float  # rms in units of how far the arm moved: 0 the same, 1 as if it had not moved


def simulation_gap(log: Log) -> SimulationGap:
    """Drives the simulated arm with the targets that were sent, and compares what was measured.

    The objects are where they were first seen.

    Raises:
        ValueError: The log holds no ticks in which a policy or the operator drove.
    """
    ticks = [t for t in log.ticks if t["phase"] in ("run", "human")]
    if len(ticks) < 2:
        raise ValueError("the log has no ticks with an active controller")
    manifest = Manifest.from_json(json.dumps(log.run["manifest"]))
    clock = VirtualClock(1.0)
    period = log.run["robot"]["period"]
    driver = SimDriver(task_of_manifest(manifest), clock=clock, period=period, encoder=0.0)
    scene, begun = driver.scene, clock.now_ns()
    driver.connect()
    seen = (decode(outcome) for name, outcome in log.tape if name == "eyes.read")
    scene.place({name: (p.pos, p.quat) for name, p in next(filter(None, seen), {}).items()})
    scene.qpos[scene.arm.qpos] = ticks[0]["state"]["qpos"]
    scene.qvel[scene.arm.qvel] = ticks[0]["state"]["qvel"]
    driver.enable()
    measured, simulated = [], []
    for tick in ticks:
        clock.sleep_until_ns(begun + round((tick["state"]["t_host"] - ticks[0]["t"]) * 1e9))
        simulated.append(driver.read().qpos)
        measured.append(tick["state"]["qpos"])
        driver.send(Target(np.array(tick["sent"]["qpos"]), tick["sent"]["gripper"]))
    one, other = np.array(measured), np.array(simulated)
    rms = np.sqrt(((one - other) ** 2).mean(axis=0))
    moved = np.sqrt(((one - one[0]) ** 2).mean())
    return SimulationGap(rms, float(np.sqrt((rms**2).mean()) / max(moved, 1e-9)))


def _tuple(value: Any) -> Any:
    return (
        tuple(value) if isinstance(value, list) and value and isinstance(value[0], str) else value
    )
