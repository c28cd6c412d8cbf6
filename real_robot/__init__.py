"""The control bridge: a policy bundle on an arm, behind a safety filter and a state machine.

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "BundleError": "core.manifest",
    "Bus": "bus.client",
    "BusConfig": "bus.client",
    "Description": "core.driver",
    "Ended": "log.result",
    "Fault": "core.driver",
    "OperatorInput": "operator.handover",
    "Operator": "operator.handover",
    "Identity": "core.driver",
    "Limits": "core.manifest",
    "Manifest": "core.manifest",
    "NullDriver": "sim.null_driver",
    "Perception": "perception.base",
    "Phase": "core.states",
    "PolicyBundle": "policy.bundle",
    "Pose": "perception.base",
    "PolicyProcess": "policy.process",
    "RealClock": "core.pacing",
    "Recorder": "log.recorder",
    "Rescue": "bus.client",
    "RobotDriver": "core.driver",
    "RobotFault": "core.driver",
    "RobotState": "core.driver",
    "RunConfig": "core.config",
    "RunResult": "log.result",
    "SafetyFilter": "safety.filter",
    "SafetyStop": "safety.filter",
    "Sent": "core.driver",
    "SimDriver": "sim.sim_driver",
    "SimPerception": "sim.sim_perception",
    "Target": "core.driver",
    "Twin": "policy.twin",
    "VirtualClock": "core.pacing",
    "read_log": "log.recorder",
    "RunOptions": "session.options",
    "run": "session.run",
    "Clearance": "core.clearance",
    "TargetSource": "safety.filter",
    "TargetRequest": "safety.filter",
    "write_manifest": "policy.bundle",
}
# What names of before are called now; they stay for two releases.
_FORMER = {
    "Hand": "OperatorInput",
    "Human": "Operator",
    "Source": "TargetSource",
    "Wish": "TargetRequest",
}

__all__ = sorted(_HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
