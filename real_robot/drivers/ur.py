"""UR e-Series: RobotDriver over ur_rtde, the gripper over Robotiq's text port.

The client is used as it is; what it leaves open is closed here. It goes on returning the last
measurement after the link has died, so a measurement counts by the controller's own timestamp: the
same one twice is waited for and then stale. It passes NaN on and answers commands with booleans, so
targets are checked before it and False after it is a fault. The controller's watchdog stops the
program if this process falls silent; what the controller stops, a person starts again.

Such an arm never goes limp: when no program moves it, its controller holds it. ``relax`` ends our
program, and its acknowledgement says that nothing of ours moves the joint any more.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator

import dashboard_client
import numpy as np
import rtde_control
import rtde_receive

from real_robot.driver import Description, Fault, Identity, RobotFault, RobotState, Sent, Target
from real_robot.pacing import Clock, RealClock
from sims import robots
from sims.robots import Robot
from sims.robots.robot import TARGET_DT

Array = np.ndarray

RATE = 500.0  # Hz, of the stream of measurements
LOOKAHEAD, GAIN = 0.05, 500.0  # s and 1, of servoj: the short end of what the maker allows
STALE = 3  # stream periods without a new measurement, plus PATIENCE
PATIENCE = 0.01  # s, for the host's own lateness
WATCHDOG = 10.0  # Hz: the controller stops the program after 1 / WATCHDOG s of silence
KICK = 0.02  # s without a target after which the watchdog is fed by hand
BRAKE = 4.0  # rad/s^2, of servoStop
RUNNING = 7  # robot mode: powered, brakes released
NORMAL, REDUCED = 1, 2  # safety modes in which it moves
PROTECTIVE_BITS, EMERGENCY_BITS = 1 << 2, 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9
FIELDS = (
    "timestamp", "actual_q", "actual_qd", "joint_control_output", "robot_mode", "safety_mode",
    "runtime_state", "robot_status_bits", "safety_status_bits",
)  # fmt: skip
GRIPPER_PORT = 63352


class UrDriver:
    """The controller at ``host``; ``gripper`` says whether a Robotiq gripper is on it.

    The controller stops the program after 1 / ``watchdog`` s without a word from us; a measurement
    that does not come within ``stale`` s is a fault.
    """

    def __init__(
        self,
        host: str,
        *,
        robot: str = "ur5e",
        gripper: bool = True,
        clock: Clock | None = None,
        period: float = TARGET_DT,
        watchdog: float = WATCHDOG,
        stale: float = STALE / RATE + PATIENCE,
    ):
        self._host, self._period = host, period
        self._watchdog, self._stale = watchdog, stale
        self._clock = clock or RealClock()
        self._robot: Robot = robots.get(robot)
        self._has_gripper = gripper
        self._receive: rtde_receive.RTDEReceiveInterface | None = None
        self._dashboard: dashboard_client.DashboardClient | None = None
        self._control: rtde_control.RTDEControlInterface | None = None
        self._gripper: _Gripper | None = None
        self._enabled = False
        self._seen = -math.inf  # s, timestamp of the last measurement handed out
        self._offset = math.inf  # s, host's clock less the controller's, as measured best
        self._spoke = 0.0  # s, when the controller last heard of us
        self._seq = 0

    def describe(self) -> Description:
        """Names and limits of the arm; those set on its pendant may be narrower."""
        # Its controller watches torques itself and stops by its own rules.
        return Description.of(self._robot, self._period, effort=None)

    @property
    def newest(self) -> float:
        """Controller's time of the newest measurement that has come, s; inf while there is none."""
        return math.inf if self._receive is None else self._receive.getTimestamp()

    # Connecting.
    def connect(self) -> None:
        """Opens dashboard, stream and gripper; nothing moves."""
        if self._receive is not None:
            return
        _check_fields(self._host, FIELDS)
        try:
            self._dashboard = dashboard_client.DashboardClient(self._host)
            self._dashboard.connect()
            self._receive = rtde_receive.RTDEReceiveInterface(self._host, RATE, list(FIELDS))
            if self._has_gripper:
                self._gripper = _Gripper(self._host)
        except (RuntimeError, OSError, ValueError) as error:
            self.close()
            raise RobotFault(Fault.DISCONNECTED, f"{self._host}: {error}") from error
        self._seen, self._offset = -math.inf, math.inf

    def identify(self) -> Identity:
        """Model, serial number and software of the controller."""
        self._open()
        assert self._dashboard is not None
        with self._wire():
            model = self._dashboard.getRobotModel()
            serial = self._dashboard.getSerialNumber()
            version = self._dashboard.polyscopeVersion()
        if not self._robot.name.startswith(model.lower()):
            raise RobotFault(
                Fault.CONFIG, f"{self._host} is a {model}, expected {self._robot.name}"
            )
        return Identity(model, serial, version, "")

    # Motion.
    def enable(self) -> None:
        """Uploads the client's program, which holds the arm where it is, and sets the watchdog."""
        self._open()
        state = self.read()
        if state.fault is not Fault.NONE:
            raise RobotFault(state.fault, "the controller reports it; clear_fault() first")
        assert self._dashboard is not None and self._receive is not None
        with self._wire():
            if self._receive.getRobotMode() != RUNNING:
                raise RobotFault(
                    Fault.CONFIG,
                    f"robot mode {self._receive.getRobotMode()}, expected {RUNNING} (running); "
                    "power it on and release the brakes",
                )
            if not self._dashboard.isInRemoteControl():
                raise RobotFault(Fault.CONFIG, "the pendant is in local control; set it to remote")
            if self._control is None:
                self._control = rtde_control.RTDEControlInterface(self._host, RATE)
            elif not self._control.isProgramRunning():
                self._control.reuploadScript()
                self._await_program()
            if not self._control.setWatchdog(self._watchdog):
                raise RobotFault(Fault.CONFIG, "the controller refused the watchdog")
            self._spoke = time.monotonic()
            self._enabled = True
            self._servo(np.asarray(self._receive.getActualQ()))

    def _await_program(self) -> None:
        assert self._control is not None
        patience = time.monotonic() + 5.0
        while not self._control.isProgramRunning():
            if time.monotonic() > patience:
                raise RobotFault(Fault.CONFIG, "the client's program does not start")
            time.sleep(0.005)

    def read(self) -> RobotState:
        """The newest measurement, waited for where the last one was the newest."""
        receive = self._open()
        deadline = time.monotonic() + self._stale
        with self._wire():
            while True:
                stamp = receive.getTimestamp()
                if stamp != self._seen:
                    qpos = np.asarray(receive.getActualQ())
                    qvel = np.asarray(receive.getActualQd())
                    effort = np.asarray(receive.getJointControlOutput())
                    if receive.getTimestamp() == stamp:  # not torn between two packages
                        break
                elif time.monotonic() > deadline:
                    self._lost(receive)
                else:
                    time.sleep(0.0005)
            fault = self._fault(receive)
        now = self._clock.now_ns() * 1e-9
        # A package that came faster than all others tells the clocks' difference best; it may
        # grow by 100 ppm, as clocks drift.
        self._offset = min(now - stamp, self._offset + 1e-4 * max(0.0, stamp - self._seen))
        if stamp < self._seen:  # the controller was started anew
            self._offset = now - stamp
        self._seen = stamp
        self._seq += 1
        if self._enabled and time.monotonic() - self._spoke > KICK and fault is Fault.NONE:
            assert self._control is not None
            with self._wire():
                self._control.kickWatchdog()
            self._spoke = time.monotonic()
        return RobotState(
            t_device=stamp,
            t_host=stamp + self._offset,
            seq=self._seq,
            qpos=qpos,
            qvel=qvel,
            effort=effort,
            gripper=0.0 if self._gripper is None else self._gripper.opening(),
            fault=fault,
        )

    def _lost(self, receive: rtde_receive.RTDEReceiveInterface) -> None:
        """No new measurement: says why."""
        if not receive.isConnected():
            raise RobotFault(Fault.DISCONNECTED, f"{self._host} has gone")
        raise RobotFault(Fault.STALE, f"no new measurement within {self._stale:.3f} s")

    def _fault(self, receive: rtde_receive.RTDEReceiveInterface) -> Fault:
        """What the controller reports."""
        bits = receive.getSafetyStatusBits()
        if bits & EMERGENCY_BITS:
            return Fault.ESTOP
        if bits & PROTECTIVE_BITS or receive.getSafetyMode() not in (NORMAL, REDUCED):
            return Fault.PROTECTIVE_STOP
        # A program that ended without us: by the pendant, by the watchdog, by an error in it.
        if self._enabled and not receive.getRobotStatus() & 2:
            return Fault.PROTECTIVE_STOP
        return Fault.NONE

    def send(self, target: Target) -> Sent:
        """One servoj, one gripper position where it has changed."""
        self._open()
        if not self._enabled:
            raise RobotFault(Fault.DISCONNECTED, "call enable() first")
        if not (np.isfinite(target.qpos).all() and np.isfinite(target.gripper)):
            raise RobotFault(Fault.NONFINITE, f"target {target} cannot be encoded")
        qpos = np.clip(target.qpos, *self._robot.joint_range.T)
        opening = float(np.clip(target.gripper, 0.0, 1.0))
        with self._wire():
            self._servo(qpos)
            if self._gripper is not None:
                opening = self._gripper.move(opening)
        return Sent(qpos, opening, self._clock.now_ns() * 1e-9)

    def _servo(self, qpos: Array) -> None:
        assert self._control is not None
        if not self._control.servoJ(qpos.tolist(), 0.0, 0.0, self._period, LOOKAHEAD, GAIN):
            receive = self._open()
            fault = self._fault(receive)
            if fault is Fault.NONE:
                fault = Fault.PROTECTIVE_STOP if receive.isConnected() else Fault.DISCONNECTED
            raise RobotFault(fault, "the controller did not take a target")
        self._spoke = time.monotonic()

    def hold(self) -> None:
        """Brakes to a halt; the controller holds the arm there."""
        self._open()
        if not self._enabled:
            return
        assert self._control is not None
        with self._wire():
            stopped = self._control.servoStop(BRAKE)
        self._spoke = time.monotonic()
        # A controller that has stopped by itself already needs no stopping.
        if not stopped and self._fault(self._open()) is Fault.NONE:
            raise RobotFault(Fault.TORQUE, "the controller did not take the stop")

    def relax(self) -> dict[str, bool]:
        """Ends our program: nothing of ours moves any joint; the controller holds them all."""
        receive = self._open()
        self._enabled = False
        ended = True
        with self._wire():
            if self._control is not None and self._control.isProgramRunning():
                self._control.stopScript()
                patience = time.monotonic() + 1.0
                while receive.getRobotStatus() & 2 and time.monotonic() < patience:
                    time.sleep(0.002)
            ended = not receive.getRobotStatus() & 2
        return dict.fromkeys(self._robot.actuators, ended)

    def clear_fault(self) -> None:
        """Unlocks a protective stop; an emergency stop is released at its button alone."""
        receive = self._open()
        assert self._dashboard is not None
        with self._wire():
            if receive.getSafetyStatusBits() & EMERGENCY_BITS:
                raise RobotFault(Fault.ESTOP, "release the button and restart safety at the arm")
            self._dashboard.closeSafetyPopup()
            if receive.getSafetyStatusBits() & PROTECTIVE_BITS:
                self._dashboard.unlockProtectiveStop()

    def close(self) -> None:
        """Ends our program and hangs up."""
        for part in (self._control, self._receive, self._dashboard, self._gripper):
            if part is not None:
                with contextlib.suppress(RuntimeError, OSError):
                    part.disconnect()
        self._control = self._receive = self._dashboard = self._gripper = None
        self._enabled = False

    # Below the contract.
    def _open(self) -> rtde_receive.RTDEReceiveInterface:
        if self._receive is None:
            raise RobotFault(Fault.DISCONNECTED, "call connect() first")
        return self._receive

    @contextlib.contextmanager
    def _wire(self) -> Iterator[None]:
        """What the client throws becomes a fault."""
        try:
            yield
        except (RuntimeError, OSError, ValueError) as error:
            if isinstance(error, RobotFault):
                raise
            raise RobotFault(Fault.DISCONNECTED, f"{self._host}: {error}") from error


class _Gripper:
    """Robotiq's text port; in a running loop answers are read when they are there."""

    OLD = 0.05  # s: an answer to an older question is waited for anew
    PATIENCE = 0.02  # s

    def __init__(self, host: str):
        self._socket = socket.create_connection((host, GRIPPER_PORT), 2.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input, self._told, self._opening = b"", -1, 0.0
        self._open_questions, self._asked = 0, -math.inf
        self._socket.sendall(b"SET ACT 1\nSET GTO 1\n")
        self._ask()
        if not self._hear(2.0):
            raise OSError("the gripper does not answer")

    def opening(self) -> float:
        """0 closed to 1 open, as last heard; asks for the next."""
        self._hear(0.0)
        if time.monotonic() - self._asked > self.OLD:
            self._ask()
            self._hear(self.PATIENCE)
        elif not self._open_questions:
            self._ask()
        return self._opening

    def _ask(self) -> None:
        self._socket.sendall(b"GET POS\n")
        self._open_questions += 1
        self._asked = time.monotonic()

    def _hear(self, patience: float) -> bool:
        """Takes in answers; waits ``patience`` s for the last one. Whether it has come."""
        until = time.monotonic() + patience
        while True:
            left = max(0.0, until - time.monotonic())
            if select.select([self._socket], [], [], left if self._open_questions else 0.0)[0]:
                data = self._socket.recv(4096)
                if not data:
                    raise OSError("the gripper has gone")
                self._input += data
                while b"\n" in self._input:
                    line, self._input = self._input.split(b"\n", 1)
                    words = line.split()
                    if len(words) == 2 and words[0] == b"POS" and words[1].isdigit():
                        self._opening = 1.0 - int(words[1]) / 255.0
                        self._open_questions -= 1
            elif left == 0.0 or not self._open_questions:
                return not self._open_questions

    def move(self, opening: float) -> float:
        """Sends a new position; returns the opening as it is encoded."""
        steps = round(255 * (1.0 - opening))
        if steps != self._told:
            self._socket.sendall(b"SET POS %d\n" % steps)
            self._told = steps
        return 1.0 - steps / 255.0

    def disconnect(self) -> None:
        """Hangs up."""
        self._socket.close()


def _check_fields(host: str, fields: tuple[str, ...]) -> None:
    """Asks the controller for ``fields``: the client would not say which one it lacks."""

    def packet(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">HB", len(body) + 3, kind[0]) + body

    def answer(read: Callable[[int], bytes]) -> bytes:
        size, _ = struct.unpack(">HB", read(3))
        return read(size - 3)

    try:
        with socket.create_connection((host, 30004), 2.0) as connection:
            stream = connection.makefile("rb")
            connection.sendall(packet(b"V", struct.pack(">H", 2)))
            if answer(stream.read) != b"\x01":
                raise RobotFault(Fault.CONFIG, f"{host} does not speak RTDE protocol 2")
            connection.sendall(packet(b"O", struct.pack(">d", RATE) + ",".join(fields).encode()))
            types = answer(stream.read)[1:].decode().split(",")
    except (OSError, struct.error) as error:
        raise RobotFault(Fault.DISCONNECTED, f"{host}: {error}") from error
    lacking = [f for f, kind in zip(fields, types, strict=False) if kind == "NOT_FOUND"]
    if lacking:
        raise RobotFault(
            Fault.CONFIG, f"the controller at {host} has no {', '.join(lacking)}; update it"
        )
