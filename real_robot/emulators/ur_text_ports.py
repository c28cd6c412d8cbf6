"""The text ports of an emulated UR: dashboard, script, and the gripper of Robotiq's URCap.

The dashboard answers lines of text. Whatever comes in on a script port and is a whole function is
taken for the client's program.
"""

from __future__ import annotations

import numpy as np

from real_robot.emulators.connections import Connection
from real_robot.emulators.physics import ArmPhysics
from real_robot.emulators.rtde import VERSION
from real_robot.emulators.ur_controller import EMERGENCY, NORMAL, UrController


class Dashboard:
    """The dashboard server of ``controller``, which runs ``software``."""

    GREETING = "Connected: Universal Robots Dashboard Server"

    def __init__(self, controller: UrController, software: str):
        self._controller, self.software = controller, software

    def answer(self, line: str) -> str:
        """The reply to one line."""
        controller, line = self._controller, line.lower()
        if line == "stop":
            controller.end("stopped from the dashboard")
            return "Stopped"
        if line == "unlock protective stop":
            if controller.unlock():
                return "Protective stop releasing"
            return "Cannot unlock protective stop until 5s after occurrence"
        if line == "restart safety":
            controller.release()
            return "Restarting safety"
        safety = {NORMAL: "NORMAL", EMERGENCY: "ROBOT_EMERGENCY_STOP"}.get(
            controller.safety, "PROTECTIVE_STOP"
        )
        return {
            "polyscopeversion": self.software,
            "version": ".".join(map(str, VERSION)),
            "get loaded program": "No program loaded",
            "isprogramsaved": "true <unnamed>",
            "get serial number": "20225501234",
            "get robot model": "UR5",
            "is in remote control": str(controller.remote).lower(),
            "robotmode": "Robotmode: RUNNING",
            "safetymode": f"Safetymode: {safety}",
            "safetystatus": f"Safetystatus: {safety}",
            "running": f"Program running: {str(controller.running).lower()}",
            "programstate": "PLAYING rtde" if controller.running else "STOPPED rtde",
            "close safety popup": "closing safety popup",
            "close popup": "closing popup",
            "power on": "Powering on",
            "brake release": "Brake releasing",
            "quit": "Disconnected",
        }.get(line, f"could not understand: '{line}'")


class ScriptPort:
    """Takes programs for ``controller``."""

    def __init__(self, controller: UrController):
        self._controller = controller

    def hear(self, peer: Connection) -> None:
        """Uploads what has come from ``peer`` once it is a whole function."""
        text = peer.input.strip()
        if text.endswith(b"end") and b"def " in text:
            peer.input = b""
            self._controller.upload()


class RobotiqGripper:
    """The gripper on the arm of ``physics``."""

    def __init__(self, physics: ArmPhysics):
        self._physics = physics
        self.status = {"STA": 3, "FLT": 0}  # activated, no fault
        self._jaw = 0.0  # 0 open to 255 closed, as the gripper counts

    def rest(self) -> None:
        """It stays where the scene has it."""
        self._jaw = 255.0 * (1.0 - self._opening())

    def _opening(self) -> float:
        """How far it is open, 0 to 1."""
        closed, opened = self._physics.robot.gripper_range
        return float(np.clip((self._physics.qpos[-1] - closed) / (opened - closed), 0.0, 1.0))

    def move(self) -> None:
        """Sets the joint's target to the last command."""
        closed, opened = self._physics.robot.gripper_range
        self._physics.goal[-1] = opened + (closed - opened) * self._jaw / 255.0

    def answer(self, line: str) -> str:
        """The reply to one line."""
        words = line.upper().split()
        if words[:1] == ["SET"]:
            for name, value in zip(words[1::2], words[2::2], strict=False):
                if name == "POS" and value.isdigit():
                    self._jaw = float(min(int(value), 255))
            return "ack"
        values = {
            "POS": round(255 * (1 - self._opening())),
            "ACT": 1,
            "OBJ": 0,
            "PRE": round(self._jaw),
            **self.status,
        }
        name = words[1] if len(words) > 1 else ""
        return f"{name} {values.get(name, 0)}"
