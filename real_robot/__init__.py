"""The control bridge: a policy bundle on an arm, behind a safety filter and a state machine.

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "BundleError": "manifest",
    "Bus": "bus",
    "BusConfig": "bus",
    "Description": "driver",
    "Ended": "report",
    "Fault": "driver",
    "Hand": "human",
    "Human": "human",
    "Identity": "driver",
    "Limits": "manifest",
    "Manifest": "manifest",
    "NullDriver": "null_driver",
    "Perception": "perception",
    "Phase": "states",
    "PolicyBundle": "bundle",
    "Pose": "perception",
    "PolicyProcess": "policy_process",
    "RealClock": "pacing",
    "Recorder": "recorder",
    "Rescue": "bus",
    "RobotDriver": "driver",
    "RobotFault": "driver",
    "RobotState": "driver",
    "RunConfig": "config",
    "RunResult": "report",
    "SafetyFilter": "safety",
    "SafetyStop": "safety",
    "Sent": "driver",
    "SimDriver": "sim_driver",
    "SimPerception": "perception",
    "Target": "driver",
    "Twin": "twin",
    "VirtualClock": "pacing",
    "read_log": "recorder",
    "run": "loop",
    "Clearance": "clearance",
    "Source": "safety",
    "Wish": "safety",
    "write_manifest": "bundle",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
