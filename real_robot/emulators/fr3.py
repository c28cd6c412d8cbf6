"""An emulated FR3: the Franka Control Interface of arm and hand in front of their controllers.

The robot's port is 1337, the hand's 1338, and states go out over UDP: the arm's a thousand times a
second, the hand's thirty. A state that the client has not answered a millisecond later counts as a
lost command. An emulator that was starved makes up for its cycles one by one and waits for each
answer, since a device is late for nobody.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from real_robot.core.pacing import Clock
from real_robot.emulators import fci
from real_robot.emulators.controller_emulator import ControllerEmulator
from real_robot.emulators.fci import FciCommand, HandCommand, HandStatus, MoveStatus, Status
from real_robot.emulators.fci_controller import CYCLE, FciController
from real_robot.emulators.fci_ports import FciPeer, Ports
from real_robot.emulators.franka_hand import EmulatedHand
from sims.core.task import Task

CYCLE_NS = round(CYCLE * 1e9)
MOST = 250  # cycles made up for at once
HAND_CYCLES = 33  # between two states of the hand
PATIENCE = 5.0  # s for an answer, where time waits
SIGN = 0.02  # s between two signs of life, where it does
SETTERS = (
    FciCommand.SET_JOINT_IMPEDANCE,
    FciCommand.SET_CARTESIAN_IMPEDANCE,
    FciCommand.SET_EE_TO_K,
    FciCommand.SET_NE_TO_EE,
    FciCommand.SET_LOAD,
)


class Fr3Emulator(ControllerEmulator):
    """The arm of ``task`` on the ports of a robot at ``host``.

    On a VirtualClock time stands still but for ``until``, in which each cycle waits for its answer.
    While nothing of the client's moves the arm, its states go on, so that the client can connect
    and begin.
    """

    controller: FciController

    def __init__(
        self,
        task: Task[Any],
        *,
        clock: Clock | None = None,
        seed: int = 0,
        host: str = "127.0.0.1",
        version: int = fci.ROBOT_VERSION,  # of its server
        model: str = "fr3",  # as its URDF is called
    ):
        super().__init__(task, clock=clock, seed=seed, host=host)
        self._version, self._urdf = version, fci.urdf(model).encode()
        self.controller = FciController(self.physics, self._moved)
        self.hand_server = EmulatedHand(self.physics, self._handled)
        self._mover: FciPeer | None = None  # whose motion is under way
        self._calls: dict[int, tuple[FciPeer, int]] = {}  # the hand's that are under way
        self._command: np.ndarray | None = None  # the newest, since the last cycle
        self._lose = 0  # commands to come that are lost
        self._cycles = 0
        self._due = self.clock.now_ns()  # of the next cycle, where time waits
        self._signed = 0.0

    def open(self) -> None:
        """Opens all ports."""
        self._ports = Ports(self._host, self._answer, self._gone, self._take)
        self._next = time.monotonic()

    def shut(self) -> None:
        """Closes all ports."""
        self._ports.close()

    # Time.
    def serve(self) -> None:
        """A cycle, or as many as are due."""
        self._listen(max(0.0, self._next - time.monotonic()))
        now = time.monotonic()
        if now < self._next:
            return
        if self.instant:
            with self.lock:
                self._stand_still(now)
            self._next = now + CYCLE
            return
        due = 1 + int((now - self._next) / CYCLE)
        self._next += due * CYCLE
        for left in reversed(range(min(due, MOST))):
            with self.lock:
                self._cycle()
            if left:
                self._await(CYCLE)
        self.controller.time += max(0, due - MOST)

    def _stand_still(self, now: float) -> None:
        """Time does not pass, but for a client that is about to begin or to end something."""
        if self.controller.motion is None or self._beginning:
            self._cycle()
        elif now - self._signed > SIGN:
            self._tell(self.controller.state(), fci.ROBOT_PORT)  # no news: the client waits on
        if now - self._signed > SIGN:
            self._signed = now
            self._tell(self.hand_server.state(self.controller.time), fci.HAND_PORT)

    @property
    def _beginning(self) -> bool:
        """Whether a client has begun to move the arm and has not yet said where to."""
        motion = self.controller.motion
        return motion is not None and not motion.commanded

    def until(self, t: int) -> float:
        """Lets compressed time pass until ``t`` ns; the robot's own time then, s."""
        self._compressed()
        patience = time.monotonic() + PATIENCE
        while self._beginning and time.monotonic() < patience:
            self._cycle()
            self._listen(CYCLE)
        self._due = max(self._due, self.clock.now_ns())
        while self._due + CYCLE_NS <= t:
            self._due += CYCLE_NS
            self.clock.sleep_until_ns(self._due)
            self._cycle()
            self._await(PATIENCE)
        self.clock.sleep_until_ns(t)
        self.advance()
        self._tell(self.hand_server.state(self.controller.time), fci.HAND_PORT)
        return self.controller.time / 1000

    def _cycle(self) -> None:
        """A millisecond of arm and hand, and what they then tell."""
        command, self._command = self._command, None
        if command is not None and self._lose:
            self._lose, command = self._lose - 1, None
        self.controller.cycle(command)
        self.hand_server.cycle(CYCLE)
        self.advance()
        self._tell(self.controller.state(), fci.ROBOT_PORT)
        self._cycles += 1
        if not self.instant and self._cycles % HAND_CYCLES == 0:
            self._tell(self.hand_server.state(self.controller.time), fci.HAND_PORT)

    def _await(self, patience: float) -> None:
        """Listens until the client has answered the newest state."""
        until = time.monotonic() + patience
        while (left := until - time.monotonic()) > 0:
            if self.controller.motion is None or self._beginning or self._command is not None:
                return
            if self._listen(left) == 0:
                return

    def _tell(self, state: bytes, port: int) -> None:
        if time.monotonic() >= max(self._muted, self._silent):
            self._ports.tell(port, state)

    def _listen(self, wait: float) -> int:
        """Hears what comes within ``wait`` s; how much it was."""
        if (left := self._silent - time.monotonic()) > 0:
            time.sleep(min(wait, left))
            return 0
        keys = self._ports.select(wait)
        with self.lock:
            self._ports.hear(keys)
        return len(keys)

    def _take(self, command: np.ndarray) -> None:
        """A joint command counts where it answers the newest state."""
        if command["message_id"] == self.controller.time:
            self._command = command

    def _gone(self, peer: FciPeer) -> None:
        if peer is self._mover:
            self._mover = None
            self.controller.end(MoveStatus.ABORTED, "its client has gone")

    def _answer(self, peer: FciPeer, command: int, call: int, body: bytes) -> None:
        (self._robot if peer.port == fci.ROBOT_PORT else self._hand)(peer, command, call, body)

    # The robot's commands.
    def _robot(self, peer: FciPeer, command: int, call: int, body: bytes) -> None:
        controller, status = self.controller, Status.NOT_POSSIBLE
        if command == FciCommand.CONNECT:
            self._ports.reply(peer, command, call, peer.connected(body, self._version, "<BH"))
            return
        if command == FciCommand.GET_ROBOT_MODEL:
            self._ports.reply(peer, command, call, bytes([Status.SUCCESS]) + self._urdf)
            return
        if command == FciCommand.MOVE:
            kind, generator, *_, asynchronous = fci.MOVE.unpack(body)[:9]
            status = controller.move(call, kind, generator, asynchronous)
            if status is MoveStatus.STARTED:
                self._mover = peer
        elif command == FciCommand.STOP_MOVE:
            status = controller.stop()
        elif command == FciCommand.AUTOMATIC_ERROR_RECOVERY:
            status = controller.recover()
        elif command == FciCommand.SET_COLLISION_BEHAVIOR and controller.motion is None:
            torques = np.reshape(fci.COLLISION.unpack(body)[:28], (4, 7))
            controller.contact, controller.collision = torques[2], torques[3]
            status = Status.SUCCESS
        elif command in SETTERS and controller.motion is None:
            status = Status.SUCCESS
        self._ports.reply(peer, command, call, bytes([status]))

    def _moved(self, call: int, status: MoveStatus) -> None:
        """A motion is over."""
        self._ports.reply(self._mover, FciCommand.MOVE, call, bytes([status]))
        self._mover = None

    # The hand's.
    def _hand(self, peer: FciPeer, command: int, call: int, body: bytes) -> None:
        if command == HandCommand.CONNECT:
            self._ports.reply(peer, command, call, peer.connected(body, fci.HAND_VERSION, "<HH"))
            return
        form = {HandCommand.GRASP: fci.HAND_GRASP, HandCommand.MOVE: fci.HAND_MOVE}
        known = HandCommand(command)
        given = form[known].unpack(body) if known in form else ()
        self._calls[call] = peer, command
        self.hand_server.begin(call, known, *given)

    def _handled(self, call: int, status: HandStatus) -> None:
        """A command of the hand's is done."""
        peer, command = self._calls.pop(call)
        self._ports.reply(peer, command, call, struct.pack("<H", status))

    # The stage.
    def reset(self, seed: int) -> None:
        """The start of the scene; a client's motion ends."""
        self.controller.end(MoveStatus.ABORTED, "the scene was reset")
        super().reset(seed)

    def rest(self) -> None:
        """Arm and hand stay where the scene has them."""
        self.controller.rest()
        self.hand_server.rest()

    def commands(self) -> dict[str, Callable[..., Any]]:
        """The stage, and what can happen to a robot."""
        return super().commands() | self._offered(
            self.reflex, self.user_stop, self.guide, self.lose, self.cut_hand
        )

    def reflex(self, error: str = "joint_reflex", manual: bool = False) -> None:
        """The robot stops by itself; ``manual``: only someone at the arm can recover it."""
        self.controller.reflex(error)
        self.controller.manual = manual

    def user_stop(self, pressed: bool = True) -> None:
        """Someone presses the button, or releases it."""
        self.controller.user_stop(pressed)

    def guide(self, guided: bool = True) -> None:
        """Someone guides the arm by its hand, or lets go."""
        self.controller.guide(guided)

    def lose(self, count: int) -> None:
        """The next ``count`` commands do not come through."""
        self._lose = count

    def cut_hand(self) -> None:
        """The hand hangs up and takes no more calls."""
        self._ports.refused.add(fci.HAND_PORT)
        self._ports.hang_up(fci.HAND_PORT)

    def hang_up(self) -> None:
        """All connections are cut."""
        self._ports.hang_up(fci.ROBOT_PORT, fci.HAND_PORT)

    def heal(self) -> None:
        """Everything works again, except what a person must clear."""
        super().heal()
        self._lose, self.controller.manual = 0, False
        self._ports.refused.clear()

    def traffic(self) -> dict[str, Any]:
        """Joint commands as they came, how many were lost, why motions ended."""
        controller = self.controller
        return {
            **controller.joint_targets.summary(),
            "running": controller.motion is not None,
            "mode": controller.mode.name,
            "lost": controller.lost,
            "hardest": controller.hardest,
            "q_d": controller.q,
            "stops": controller.stops,
            "hand": self.hand_server.count,
        }
