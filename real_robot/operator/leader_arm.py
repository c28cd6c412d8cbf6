"""LeaderArm: a second arm of the same kind, limp, whose joints the first one follows.

Its driver reads it in a thread of its own, so a slow wire delays no target. Nothing is ever sent to
its motors but to let go. Whoever takes the arm has to hold the leader near it (``human.LEAD``);
what difference is left fades in the handover.
"""

from __future__ import annotations

import threading
import time

from real_robot import arms, drivers
from real_robot.core.driver import RobotDriver, RobotFault
from real_robot.core.threads import join_or_leave
from real_robot.operator.devices import DeviceContext
from real_robot.operator.handover import OperatorInput

PERIOD = 0.01  # s between two looks at it
TRIES = 100  # looks in a row that may fail: for a second
PATIENCE = 0.02  # s for a reply, where a driver asks: no target waits for this one


class LeaderArm:
    """The arm at ``where``, a port or a host.

    Raises:
        ValueError: The arm does not answer, or keeps its torque.
    """

    def __init__(self, where: str, around: DeviceContext):
        name = around.robot.name
        options = {"patience": PATIENCE} if "patience" in arms.spec(name).settings else {}
        self._driver: RobotDriver = drivers.make(name, where, **options)
        self._newest: OperatorInput | None = None
        try:
            self._driver.connect()
            self._driver.identify()
            stiff = [joint for joint, limp in self._driver.relax().items() if not limp]
            if stiff:
                raise ValueError(f"the leader arm at {where} keeps torque on at {', '.join(stiff)}")
        except RobotFault as error:
            self._driver.close()
            raise ValueError(f"no leader arm at {where}: {error}") from error
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="leader")
        self._thread.start()

    def read(self) -> OperatorInput | None:
        """Where its joints were when it was last looked at."""
        return self._newest

    def _look(self) -> None:
        state = self._driver.read()
        self._newest = OperatorInput(state.t_host, True, qpos=state.qpos, gripper=state.gripper)

    def _watch(self) -> None:
        """Looks until it is closed; what fails for long leaves a hand that grows old."""
        failed = 0
        while not self._stopping.is_set() and failed < TRIES:
            begun = time.monotonic()
            try:
                self._look()
                failed = 0
            except RobotFault:
                failed += 1
            self._stopping.wait(max(0.0, begun + PERIOD - time.monotonic()))

    def close(self) -> None:
        """Hangs up; the arm stays limp."""
        self._stopping.set()
        join_or_leave(self._thread, "the leader arm's thread")
        self._driver.close()
