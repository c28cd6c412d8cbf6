"""ServoPort: a vendor's serial port with monotonic time-outs and errors that are faults.

What the vendors' own ports lack, which are one another's copies: whatever waits in the input is
thrown away before every request, time-outs are short and monotonic, waiting does not spin, and a
cable that is pulled becomes a fault and not a raw OSError.
"""

from __future__ import annotations

import contextlib
import select
import termios
import time
from collections.abc import Iterator

import serial

from real_robot.core.driver import Fault, RobotFault

WRITE_S = 0.1  # s for the adapter to take a request, unless replies are given longer: one that is
# stuck takes none, for ever
LINGER = 0.002  # s, that a request waits for replies which an earlier one gave up


class ServoPort:
    """Before a vendor's ``PortHandler``: its method names, our time-outs, input and errors."""

    def __init__(self, name: str, patience: float):
        super().__init__(name)
        self._patience = patience * 1000  # ms beyond the time on the wire
        self._write_s = max(WRITE_S, patience)
        self.written = 0  # bytes
        self.received = 0  # bytes since the last request
        self.owed = 0  # bytes of replies that were given up
        self._lingered = 0.0  # ms, that the request under way waited for those

    def getCurrentTime(self) -> float:
        """Monotonic ms."""
        return time.monotonic_ns() * 1e-6

    def setupPort(self, cflag_baud: int) -> bool:
        """The vendor's set-up, an end to writes that nobody takes, and no waiting for more bytes.

        An FTDI adapter (ROBOTIS' U2D2) keeps what came for 16 ms otherwise; others refuse.
        """
        done = super().setupPort(cflag_baud)
        self.ser.write_timeout = self._write_s
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self.ser.set_low_latency_mode(True)
        return done

    def closePort(self) -> None:
        """Closes at once: what was not taken is dropped, where the system would wait for 30 s."""
        with contextlib.suppress(OSError, termios.error, serial.SerialException):
            self.ser.reset_output_buffer()
        super().closePort()

    def setPacketTimeout(self, packet_length: int) -> None:
        """The time on the wire and our patience, for all replies to a request together."""
        patience = max(0.0, self._patience - self._lingered)
        self.setPacketTimeoutMillis(self.tx_time_per_byte * packet_length + patience)

    def clearPort(self) -> None:
        """Throws away what came too late, where the vendor's merely waits for the output."""
        with self._cable():
            self._linger()
            self.ser.reset_input_buffer()
        self.received = 0

    def _linger(self) -> None:
        """Waits for replies that were given up: what is still to come would spoil the next ones."""
        start, owed = self.getCurrentTime(), self.owed
        self.owed = 0
        while owed > 0 and (left := LINGER - (self.getCurrentTime() - start) / 1000) > 0:
            ready, _, _ = select.select([self.ser.fileno()], [], [], left)
            owed -= len(self.ser.read(owed)) if ready else 0
        self._lingered = self.getCurrentTime() - start

    def writePort(self, packet: list[int]) -> int:
        """Writes; returns the number of bytes."""
        with self._cable():
            done = self.ser.write(bytes(packet))
        self.written += done
        return done

    def readPort(self, length: int) -> bytes:
        """What has come, up to ``length`` bytes; sleeps until something has, or it is too late."""
        if length <= 0:
            return b""
        with self._cable():
            left = (self.packet_timeout - self.getTimeSinceStart()) / 1000
            if left > 0:
                select.select([self.ser.fileno()], [], [], left)
            data = self.ser.read(length)
        self.received += len(data)
        return data

    @contextlib.contextmanager
    def _cable(self) -> Iterator[None]:
        try:
            yield
        except serial.SerialTimeoutException as error:
            self.is_using = False
            raise RobotFault(
                Fault.DISCONNECTED,
                f"{self.port_name}: no bytes could be written for {self._write_s:g} s: the USB "
                "adapter is stuck (unplug it and plug it in again) or, with an emulated arm, "
                "the machine is too busy for the emulator process: close other programs",
            ) from error
        except (OSError, termios.error, serial.SerialException, TypeError, ValueError) as error:
            # pyserial raises TypeError and ValueError on a port that another thread closed.
            self.is_using = False
            raise RobotFault(Fault.DISCONNECTED, f"{self.port_name}: {error}") from error
