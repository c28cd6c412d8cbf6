"""UR's clients (ur_rtde) behind ``UrDriver``: what they answer, as plain numbers.

The client is used as it is; what it leaves open is closed here. It goes on returning the last
measurement after the link has died, so a measurement counts by the controller's own timestamp: the
same one twice is waited for, and then stale. It answers commands with booleans, so False after a
command is a fault. Before it connects, the controller is asked for the fields, since the client
would not say which one it lacks.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import dashboard_client
import rtde_control
import rtde_receive

from real_robot.core.driver import Fault, RobotFault

FIELDS = (
    "timestamp",
    "actual_q",
    "actual_qd",
    "target_moment",
    "target_current",
    "actual_current",
    "robot_mode",
    "safety_mode",
    "runtime_state",
    "robot_status_bits",
    "safety_status_bits",
    "target_speed_fraction",
    "payload",
)
PROGRAM = 2  # robot status bit: a program is running
RTDE = 30004  # port
CONNECT_S = 0.3  # s for a connection to be taken


class UrClient:
    """Dashboard, stream and program of the controller at ``host``."""

    def __init__(self, host: str, rate: float):
        self._host, self._rate = host, rate
        self._dashboard = dashboard_client.DashboardClient(host)
        self._receive: Any = None
        self._control: Any = None

    def connect(self) -> None:
        """Opens dashboard and stream; nothing moves."""
        _check_fields(self._host, self._rate, FIELDS)
        self._dashboard.connect()
        self._receive = rtde_receive.RTDEReceiveInterface(self._host, self._rate, list(FIELDS))

    def identify(self) -> list[str]:
        """Model, serial number ("" where the software tells none) and software."""
        dashboard = self._dashboard
        model, software = dashboard.getRobotModel(), dashboard.polyscopeVersion()
        try:
            return [model, dashboard.getSerialNumber(), software]
        except RuntimeError:  # before 5.6
            return [model, "", software]

    def newest(self) -> float:
        """The controller's time of the newest measurement, s."""
        return self._receive.getTimestamp()

    def measure(self, seen: float | None, wait: float) -> list[Any] | None:
        """A measurement other than that of controller time ``seen``, waited for ``wait`` s, None if
        there is none: [timestamp s, angles rad, speeds rad/s, moments N m and currents A as its
        model asks for, measured currents A, state as of ``state``].

        Raises:
            RobotFault: The controller closed the connection.
        """
        receive, deadline = self._receive, time.monotonic() + wait
        while True:
            stamp = receive.getTimestamp()
            if stamp != seen:
                told = (
                    receive.getActualQ(),
                    receive.getActualQd(),
                    receive.getTargetMoment(),
                    receive.getTargetCurrent(),
                    receive.getActualCurrent(),
                )
                if receive.getTimestamp() == stamp:  # not torn between two packages
                    return [stamp, *told, self.state()]
            elif time.monotonic() > deadline:
                if not receive.isConnected():
                    raise RobotFault(Fault.DISCONNECTED, "the controller closed the connection")
                return None
            else:
                time.sleep(0.0005)

    def state(self) -> list[float]:
        """[safety status bits, safety mode, whether a program runs, robot mode, connected, share of
        full speed that the pendant's slider allows, payload kg]."""
        receive = self._receive
        return [
            receive.getSafetyStatusBits(),
            receive.getSafetyMode(),
            bool(receive.getRobotStatus() & PROGRAM),
            receive.getRobotMode(),
            receive.isConnected(),
            receive.getTargetSpeedFraction(),
            receive.getPayload(),
        ]

    def remote(self) -> bool:
        """Whether the pendant leaves the arm to us."""
        return self._dashboard.isInRemoteControl()

    def start(self, watchdog: float, patience: float) -> list[float]:
        """The program runs, and ends after 1 / ``watchdog`` s of silence; the angles then, rad.

        Raises:
            RobotFault: The program did not start, or the controller refused the watchdog.
        """
        if self._control is None:
            self._control = rtde_control.RTDEControlInterface(self._host, self._rate)
        elif not self._control.isProgramRunning():
            self._control.reuploadScript()
            deadline = time.monotonic() + patience
            while not self._control.isProgramRunning():
                if time.monotonic() > deadline:
                    raise RobotFault(
                        Fault.CONFIG, "the client's control program did not start on the controller"
                    )
                time.sleep(0.005)
        if not self._control.setWatchdog(watchdog):
            raise RobotFault(Fault.CONFIG, "the controller refused the watchdog")
        return self._receive.getActualQ()

    def kick(self) -> None:
        """The controller hears of us."""
        self._control.kickWatchdog()

    def servo(self, qpos: Sequence[float], dt: float, lookahead: float, gain: float) -> bool:
        """One servoj to ``qpos`` rad; whether the controller took it."""
        return self._control.servoJ(qpos, 0.0, 0.0, dt, lookahead, gain)

    def brake(self, deceleration: float) -> bool:
        """Servoing ends, at ``deceleration`` rad/s^2; whether the controller took it."""
        return self._control.servoStop(deceleration)

    def stop(self, patience: float) -> bool:
        """Ends the program; whether it has ended ``patience`` s later."""
        if self._control is not None and self._control.isProgramRunning():
            self._control.stopScript()
            deadline = time.monotonic() + patience
            while self._receive.getRobotStatus() & PROGRAM and time.monotonic() < deadline:
                time.sleep(0.002)
        return not self._receive.getRobotStatus() & PROGRAM

    def unlock(self) -> None:
        """Ends a protective stop, as the dashboard does."""
        self._dashboard.closeSafetyPopup()
        self._dashboard.unlockProtectiveStop()

    def disconnect(self) -> None:
        """Ends the program and hangs up."""
        for part in (self._control, self._receive, self._dashboard):
            if part is not None:
                with contextlib.suppress(RuntimeError, OSError):
                    part.disconnect()


def _check_fields(host: str, rate: float, fields: tuple[str, ...]) -> None:
    """Refuses a controller without one of ``fields``."""

    def packet(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">HB", len(body) + 3, kind[0]) + body

    def answer(read: Callable[[int], bytes]) -> bytes:
        size, _ = struct.unpack(">HB", read(3))
        return read(size - 3)

    try:
        with socket.create_connection((host, RTDE), CONNECT_S) as connection:
            stream = connection.makefile("rb")
            connection.sendall(packet(b"V", struct.pack(">H", 2)))
            if answer(stream.read) != b"\x01":
                raise RobotFault(Fault.CONFIG, f"{host} does not speak RTDE protocol 2")
            connection.sendall(packet(b"O", struct.pack(">d", rate) + ",".join(fields).encode()))
            types = answer(stream.read)[1:].decode().split(",")
    except (OSError, struct.error) as error:
        raise RobotFault(Fault.DISCONNECTED, str(error)) from error
    lacking = [f for f, kind in zip(fields, types, strict=False) if kind == "NOT_FOUND"]
    if lacking:
        text = f"the controller at {host} has no {', '.join(lacking)}; update it"
        raise RobotFault(Fault.CONFIG, text)
