"""FaultLatch: a fault that stopped an arm is kept on disk until an operator clears it.

FAULT and ESTOP are states of a run, and a run ends with its process; what was wrong with the arm
does not. So it is written down beside the arm's address, and no run begins before a person has
looked at the arm and said so.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from real_robot.core.driver import Fault, RobotDriver, RobotFault
from real_robot.core.usb import serial_of


class LatchedError(ValueError):
    """A fault that only an operator may clear."""


@dataclass(frozen=True)
class FaultLatch:
    """The latched fault of one arm; ``path`` is its file, which is there while there is one."""

    path: Path

    @classmethod
    def of(cls, robot: str, where: str) -> FaultLatch:
        """That of the arm ``robot`` at ``where``, in the user's folder for such state.

        A USB adapter is known by its serial number, whichever port it is at.
        """
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        where = serial_of(where) if "/" in where else where  # a path: of a port
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{robot}_{where}")
        return cls(state / "robo-rl" / "latched" / f"{name}.json")

    def reason(self) -> str:
        """The fault, in words and with its date; "" where there is none."""
        try:
            told = json.loads(self.path.read_text())
            return f"{told['reason']} ({told['when']})"
        except FileNotFoundError:
            return ""
        except (ValueError, KeyError, TypeError):
            return f"{self.path} cannot be read"  # somebody wrote it: a fault all the same

    def check(self) -> None:
        """LatchedError while there is one."""
        if why := self.reason():
            raise LatchedError(
                f"this arm has a latched fault: {why}. Inspect the arm, then clear the fault "
                "with robo-rl deploy --clear-fault"
            )

    def set(self, fault: Fault, reason: str) -> None:
        """Keeps ``fault``; the first one stays, since what follows may come of it."""
        if self.path.exists():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"fault": fault.value, "reason": reason, "when": when}))
        part.replace(self.path)

    def clear(self, driver: RobotDriver) -> None:
        """An operator's word: clears the device's fault and this one.

        RobotFault if the device still reports one, and then this one stays, too.
        """
        try:
            driver.connect()
            driver.identify()
            driver.clear_fault()
            if (fault := driver.read().fault) is not Fault.NONE:
                raise RobotFault(fault, "the arm still reports the fault")
        finally:
            driver.close()
        self.path.unlink(missing_ok=True)
