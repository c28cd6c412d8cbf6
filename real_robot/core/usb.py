"""USB adapters: found by serial number, named by it."""

from __future__ import annotations

from pathlib import Path

from real_robot.core.driver import Fault, RobotFault


def find_port(where: str) -> str:
    """The device path of ``where``: a path as it is, else a USB adapter's serial number.

    Raises:
        RobotFault: No USB adapter has that serial number.
    """
    if "/" in where or where.upper().startswith("COM"):
        return where
    from serial.tools import list_ports

    known = {port.serial_number: port.device for port in list_ports.comports()}
    if where not in known:
        raise RobotFault(
            Fault.DISCONNECTED,
            f"no USB adapter has the serial number {where!r}; present: "
            f"{', '.join(f'{s} ({d})' for s, d in known.items() if s) or 'none'}",
        )
    return known[where]


def serial_of(path: str) -> str:
    """The serial number of the USB adapter at ``path``; the path itself where it has none."""
    from serial.tools import list_ports

    real = str(Path(path).resolve())
    numbers = {port.device: port.serial_number for port in list_ports.comports()}
    return numbers.get(real) or path
