"""PolicyProcess: a bundle's policy in a process of its own, so that its death is not the arm's.

Bridge and policy talk over a private pair of sockets, one packet each way: there is no address at
which a second policy could join in. Every packet bears a number; an answer to another question
than the last is dropped. Silence, death and a traceback come out as SafetyStop.

Run as a program (``python -m real_robot.policy.process FOLDER FD``) this is the policy's side.
"""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from real_robot.core import child_process
from real_robot.core.driver import Fault
from real_robot.core.manifest import BundleError
from real_robot.policy.bundle import PolicyBundle
from real_robot.safety.stages.stage import SafetyStop
from sims.utils.versions import OtherEngine

Array = np.ndarray

_HEAD = struct.Struct("<cqi")  # kind, number of the question, columns of obs or action
_HELLO, _ACT, _BEAT, _ERROR = b"H", b"A", b"B", b"E"
_PACKET = 1 << 18  # bytes, more than any observation
_START_S = 30.0  # s for the policy to load and to answer its golden vectors


class PolicyLate(Exception):
    """No answer in time: the question stays open for the next tick."""


class PolicyProcess:
    """Answers as ``PolicyBundle.act`` does, from another process.

    ``budget`` s is what an answer may take; ``misses`` beats in a row may stay unanswered.

    Raises:
        BundleError: The process did not start, or loaded another bundle.
    """

    def __init__(self, bundle: PolicyBundle, folder: str | Path, *, budget: float, misses: int = 2):
        self.dropped = 0
        self.traceback = ""
        self._budget, self._misses = budget, misses
        self._width = bundle.manifest.action.dim
        self._seq = self._silent = 0
        self._child, self._socket = child_process.start_child(
            "real_robot.policy.process", str(Path(folder).absolute()), packet=_PACKET
        )
        try:
            kind, _, payload = self._receive(_START_S)
        except (SafetyStop, PolicyLate) as error:
            self.close()
            why = str(error) or f"no answer within {_START_S:g} s"
            raise BundleError(f"policy process did not start: {why}") from error
        if kind == _ERROR:
            raise BundleError(payload.decode().strip().splitlines()[-1])
        if payload.decode() != bundle.sha256:
            self.close()
            raise BundleError(
                f"policy process loaded another bundle: expected sha256 {bundle.sha256}, got "
                f"{payload.decode()}"
            )

    @property
    def pid(self) -> int:
        """The policy's process."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return self._child.poll() is None

    def __enter__(self) -> PolicyProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def act(self, obs: Array, state: Array | None = None) -> tuple[Array, Array | None]:
        """The action (act_dim,) f32 of ``obs`` (obs_dim,), and the policy's next state."""
        self._seq += 1
        obs = np.ascontiguousarray(obs, np.float32)
        after = b"" if state is None else np.ascontiguousarray(state, np.float32).tobytes()
        self._send(_HEAD.pack(_ACT, self._seq, len(obs)) + obs.tobytes() + after)
        deadline = time.monotonic() + self._budget
        while True:
            kind, seq, payload = self._receive(deadline - time.monotonic())
            if kind == _ACT and seq == self._seq:
                numbers = np.frombuffer(payload, np.float32)
                return numbers[: self._width], numbers[None, self._width :]
            self.dropped += kind == _ACT  # the answer to a question that is no longer asked

    def beat(self) -> None:
        """Between actions: asks for a sign of life and listens for those asked for before.

        Raises:
            SafetyStop: The process gave no sign of life, or has ended.
        """
        if self._silent >= self._misses:  # the last chance, and all the time there is
            self._listen(self._budget)
            if self._silent >= self._misses:
                raise SafetyStop(
                    Fault.POLICY_LOST,
                    f"the policy process sent no heartbeat for {self._silent} ticks",
                )
        self._send(_HEAD.pack(_BEAT, self._seq, 0))
        self._silent += 1
        self._listen(0.0)

    def close(self) -> None:
        """Ends the policy's process."""
        self._socket.close()
        try:
            self._child.wait(0.2)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _listen(self, seconds: float) -> None:
        try:
            while self._silent:
                kind, _, _ = self._receive(seconds)
                self.dropped += kind == _ACT
        except PolicyLate:
            pass

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.send(packet, socket.MSG_DONTWAIT)
        except BlockingIOError:
            raise SafetyStop(
                Fault.POLICY_LOST, "the policy process takes no more observations"
            ) from None
        except OSError:
            self._receive(0.0)  # what it said last
            raise SafetyStop(Fault.POLICY_LOST, "the policy process has ended") from None

    def _receive(self, seconds: float) -> tuple[bytes, int, bytes]:
        """The next packet: (kind, number, rest); PolicyLate after ``seconds``."""
        if not select.select([self._socket], [], [], max(seconds, 0.0))[0]:
            raise PolicyLate
        try:
            packet = self._socket.recv(_PACKET)
        except OSError:
            packet = b""
        if not packet:
            status = self._child.poll()
            raise SafetyStop(
                Fault.POLICY_LOST, f"the policy process has ended (exit status {status})"
            )
        kind, seq, _ = _HEAD.unpack_from(packet)
        self._silent = 0
        if kind == _ERROR and self._seq:
            self.traceback = packet[_HEAD.size :].decode()
            last = self.traceback.strip().splitlines()[-1]
            raise SafetyStop(Fault.POLICY_LOST, f"the policy failed: {last}\n{self.traceback}")
        return kind, seq, packet[_HEAD.size :]


def serve(folder: str, end: socket.socket) -> None:
    """The policy's side: answers until the bridge is gone."""
    warnings.simplefilter("ignore", OtherEngine)  # the bridge has said it
    try:
        bundle = PolicyBundle.load(folder)
        end.send(_HEAD.pack(_HELLO, 0, 0) + bundle.sha256.encode())
        width = bundle.manifest.obs_dim
        while packet := end.recv(_PACKET):
            kind, seq, columns = _HEAD.unpack_from(packet)
            if kind == _BEAT:
                end.send(packet)
                continue
            numbers = np.frombuffer(packet, np.float32, offset=_HEAD.size)
            if columns != width:
                raise ValueError(f"obs must have {width} columns, got {columns}")
            state = numbers[None, columns:] if len(numbers) > columns else None
            action, state = bundle.act(numbers[:columns], state)
            head = _HEAD.pack(_ACT, seq, len(action))
            end.send(head + action.astype(np.float32).tobytes() + state.tobytes())
    except (BrokenPipeError, ConnectionResetError):
        pass  # the bridge is gone
    except Exception:
        end.send(_HEAD.pack(_ERROR, 0, 0) + traceback.format_exc().encode()[-_PACKET // 2 :])


if __name__ == "__main__":
    serve(sys.argv[1], child_process.child_socket(sys.argv[2]))
