"""The helper that brings an arm to rest whose bridge is gone, over the owner of its port.

That one has braked and holds. The arm is parked slowly where the bundle says how, clear of the
table and of itself, and relaxed joint by joint, by the same session as a bridge's own. What was
done goes to stderr and, as JSON, to the report file.

``bus/server.py`` starts it: ``python -m real_robot.session.rescue_process JSON MEMORY FD``.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path

from real_robot.bus.client import Bus, BusConfig
from real_robot.core.child_process import child_socket
from real_robot.core.clearance import Clearance
from real_robot.core.config import RunConfig
from real_robot.safety.fault_latch import FaultLatch
from real_robot.session.rescue import rescue
from sims import make_task


def main(told: str, memory: str, end: str) -> int:
    """0 if every joint is limp."""
    about = json.loads(told)
    config = BusConfig(robot=about["robot"], where=about["where"], options=about["options"])
    bus = Bus(config, (child_socket(end), int(memory), about["bus"]["about"]))
    clear = None
    if about["scene"] is not None:
        clear = Clearance.of(make_task(**about["scene"]), margin=RunConfig().clearance)
    latch = FaultLatch(Path(about["latch"])) if about["latch"] else None
    begun = time.monotonic()
    allowed = RunConfig(stop_s=about["stop_s"], tool_speed=about["tool_speed"])
    result = rescue(bus, about["park"], allowed, latch=latch, clearance=clear)
    report = {
        "bridge": about["bridge"],
        "seen": about["seen"],  # s, monotonic: when its end or its silence was noticed
        "braked": about["began"],  # s, monotonic: when the arm began to brake, for want of goals
        "begun": begun,
        "fault": result.fault.value,
        "reason": result.reason,
        "limp": dict(result.acks),
        "states": [t.after.value for t in result.history],
        "notes": list(result.notes),
    }
    stiff = [joint for joint, limp in result.acks.items() if not limp]
    if about["report"]:
        part = Path(about["report"] + ".part")
        part.write_text(json.dumps(report, indent=1))
        part.replace(about["report"])
    with contextlib.suppress(OSError):  # who would have read it may be gone with the bridge
        print(
            f"rescue: the bridge {about['bridge']}; the arm was held, and "
            + (
                f"TORQUE IS STILL ON: {', '.join(stiff)}"
                if stiff
                else "torque is off on every joint"
            ),
            file=sys.stderr,
            flush=True,
        )
    return bool(stiff)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
