"""A bridge in a process of its own, patient with a starved machine:
`python tests/bridge_ride.py ROBOT WHERE CONTROL BUNDLE LOG [STOP_S]`. Says what came of it on
stderr."""

from __future__ import annotations

import sys
from pathlib import Path

from real_robot import Bus, BusConfig, PolicyBundle, PolicyProcess, Rescue, RunConfig, run
from robo_rl.arm.connected import ControlPoses

OPTIONS = {
    "so101": {"patience": 0.2},
    "ur5e": {"stale": 1.0, "watchdog": 2.0, "patience": 20.0},
    "fr3": {"stale": 1.0, "patience": 20.0},
}


def main(robot: str, where: str, control: str, folder: str, log: str, stop_s: str = "") -> int:
    """0 where the run came to its end."""
    within = float(stop_s) if stop_s else None
    bundle, park = PolicyBundle.load(folder), PolicyBundle.load(folder).manifest.park
    about = bundle.manifest
    scene = {**about.task_config, "name": about.task, "robot": robot, "goal": None}
    report = str(Path(log) / "rescue.json")
    rescue = Rescue(park=park, scene=scene, report=report, stop_s=within)
    bus = Bus(
        BusConfig(
            robot=robot,
            where=where,
            options=OPTIONS[robot],
            rescue=rescue,
            deadline=0.5,
            patience=20.0,
        )
    )
    eyes = ControlPoses(int(control))
    with PolicyProcess(bundle, folder, budget=1.0) as policy:
        result = run(
            bus,
            bundle,
            perception=eyes,
            policy=policy,
            log=Path(log) / "ride.mcap",
            config=RunConfig(
                max_age=2.0,
                max_pose_age=3.0,
                max_gap=5.0,
                max_missed=1.0,
                settle=20.0,
                realtime=True,
                stop_s=within,
            ),
        )
    eyes.close()
    print(result.ended.value, result.reason, result.notes, file=sys.stderr)
    return int(result.ended.value != "done")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
