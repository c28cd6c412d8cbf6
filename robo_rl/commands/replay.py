"""`robo-rl replay`: a log of the robot once more, and what it says. Loads no torch."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro

from robo_rl.commands.options import Json


@dataclass(frozen=True, kw_only=True)
class ReplayCommand:
    """Runs a log of `robo-rl deploy --log` through the same states and filter, and compares."""

    log: tyro.conf.Positional[Path]  # MCAP file of the robot log
    recover: bool = False  # first recover a log whose writer was killed
    as_json: Json = False  # print JSON


def main(argv: Sequence[str]) -> int:
    """Prints how the replay came out, which limits were used, and the gap to the simulation."""
    command = tyro.cli(ReplayCommand, args=list(argv), prog="robo-rl replay")
    from real_robot.log.recorder import read_log
    from real_robot.log.recovery import recover
    from real_robot.session.replay import limit_usage, replay, simulation_gap
    from robo_rl.goals.bundle_task import task_of_bundle

    if command.recover and (saved := recover(command.log)):
        print(f"recovered {saved} messages of {command.log}", file=sys.stderr)
    again, log = replay(command.log, task_of_bundle), read_log(command.log)
    uses, demand = limit_usage(log)
    driven = sum(t["phase"] in ("run", "human") for t in log.ticks) > 1
    difference = simulation_gap(log) if driven else None
    if command.as_json:
        figures = {
            "replay": asdict(again),
            "usage": [asdict(u) for u in uses],
            "speed_demand": None if math.isnan(demand) else demand,
            "gap": None if difference is None else difference.score,
            "gap_rms_rad": None if difference is None else difference.rms.tolist(),
        }
        print(json.dumps(figures, indent=1))
        return 0 if again.same else 1
    print(f"states: {' '.join(again.states)}")
    if again.same:
        ending = "" if again.complete else "; the log is incomplete, its writer was killed"
        print(f"replay: identical, {again.answers} driver answers{ending}")
    else:
        print(f"replay: NOT identical: {again.differs}")
    for use in sorted(uses, key=lambda u: -u.share):
        if use.share > 0:
            print(
                f"limit {use.limit:12} {100 * use.share:5.1f} % of ticks, most often at {use.joint}"
            )
    if not math.isnan(demand):
        print(f"the policy asked for up to {demand:.1f} times the allowed speed")
    if difference is not None:
        worst = log.run["robot"]["joints"][int(difference.rms.argmax())]
        print(
            f"sim-to-real gap: {difference.score:.3f} of the motion; worst joint {worst}, "
            f"{difference.rms.max():.4f} rad rms"
        )
    return 0 if again.same else 1
