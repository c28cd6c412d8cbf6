"""The emulated FR3 by itself: bytes on its wire, and what it does not let a client do."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pytest

import sims
from real_robot.core.pacing import VirtualClock
from real_robot.emulators import fci
from real_robot.emulators.fci import Mode, MoveStatus, Status
from real_robot.emulators.fci_controller import LOST, FciController
from real_robot.emulators.fr3 import Fr3Emulator
from real_robot.emulators.franka_hand import EmulatedHand
from real_robot.emulators.physics import ArmPhysics
from sims.robots.fr3 import FR3

TASK = sims.make_task("reach", robot="fr3")
HOST = "127.0.0.31"


class Line:
    """A connection to the robot or its hand, and the port to which that tells its state."""

    def __init__(self, port: int, header: struct.Struct):
        self._header = header
        self._socket = socket.create_connection((HOST, port), 30.0)
        self.states = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.states.bind(("127.0.0.1", 0))
        self.states.settimeout(30.0)
        self.file = self._socket.makefile("rb")

    def ask(self, command: int, body: bytes = b"", call: int = 7) -> bytes:
        self._socket.sendall(self._header.pack(command, call, self._header.size + len(body)) + body)
        return self.hear(command, call)

    def hear(self, command: int, call: int = 7) -> bytes:
        told, number, size = self._header.unpack(self.file.read(self._header.size))
        assert (told, number) == (command, call)
        return self.file.read(size - self._header.size)

    def close(self) -> None:
        for end in (self._socket, self.states):
            end.close()

    @property
    def port(self) -> int:
        return self.states.getsockname()[1]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Fr3Emulator]:
    with Fr3Emulator(TASK, host=HOST).start() as running:
        yield running


def test_fci_packets_have_the_vendors_sizes() -> None:
    assert (fci.STATE.itemsize, fci.COMMAND.itemsize) == (1377, 371)
    assert (fci.MOVE.size, fci.COLLISION.size, fci.HAND_STATE.size) == (113, 416, 23)


def test_fci_emulator_answers_robot_commands(emulator: Fr3Emulator) -> None:
    line = Line(fci.ROBOT_PORT, fci.ROBOT_HEADER)
    ask = line.ask
    assert ask(fci.FciCommand.CONNECT, struct.pack("<HH", 9, 1)) == struct.pack("<BH", 1, 10)
    assert ask(fci.FciCommand.CONNECT, struct.pack("<HH", 10, line.port)) == struct.pack(
        "<BH", 0, 10
    )
    first, second = (np.frombuffer(line.states.recv(4096), fci.STATE)[0] for _ in range(2))
    assert second["message_id"] > first["message_id"] and first["robot_mode"] == Mode.IDLE
    np.testing.assert_allclose(first["q"], first["q_d"], atol=0.01)
    np.testing.assert_allclose(first["tau_ext_hat_filtered"], 0.0, atol=2.0)
    model = ask(fci.FciCommand.GET_ROBOT_MODEL)
    assert model[0] == Status.SUCCESS
    robot = ElementTree.fromstring(model[1:])
    joints = [joint for joint in robot.findall("joint") if joint.get("type") == "revolute"]
    assert [joint.get("name") for joint in joints] == list(FR3.joints)
    assert robot.find("link[@name='link8']") is not None
    for joint, (low, high) in zip(joints, FR3.joint_range, strict=True):
        limit = joint.find("limit")
        assert float(limit.get("lower")) <= low and float(limit.get("upper")) >= high
    torque = fci.MOVE.pack(2, 4, *[0.0] * 6, False, *[0.0] * 7)
    assert ask(fci.FciCommand.MOVE, torque) == bytes([MoveStatus.INVALID])
    assert ask(fci.FciCommand.STOP_MOVE) == bytes([Status.NOT_POSSIBLE])
    joint = fci.MOVE.pack(0, 0, *[0.0] * 6, False, *[0.0] * 7)
    assert ask(fci.FciCommand.MOVE, joint) == bytes([MoveStatus.STARTED])
    assert ask(fci.FciCommand.MOVE, joint, call=8) == bytes([MoveStatus.NOT_POSSIBLE])
    line._socket.sendall(fci.ROBOT_HEADER.pack(fci.FciCommand.STOP_MOVE, 9, 12))
    assert line.hear(fci.FciCommand.MOVE) == bytes([MoveStatus.PREEMPTED])
    assert line.hear(fci.FciCommand.STOP_MOVE, 9) == bytes([Status.SUCCESS])
    line.close()


def test_fci_gripper_answers_when_done(emulator: Fr3Emulator) -> None:
    line = Line(fci.HAND_PORT, fci.HAND_HEADER)
    ask, command = line.ask, fci.HandCommand
    assert ask(command.CONNECT, struct.pack("<HH", 3, line.port)) == struct.pack("<HH", 0, 3)
    most = fci.HAND_STATE.unpack(line.states.recv(64))[2]
    assert most == pytest.approx(0.08)
    begun = time.monotonic()
    assert ask(command.MOVE, struct.pack("<2d", most, 0.4)) == struct.pack("<H", 0)
    assert ask(command.MOVE, struct.pack("<2d", 0.02, 0.4)) == struct.pack("<H", 0)
    assert time.monotonic() - begun > 0.12  # 6 cm at 0.4 m/s take 0.15 s
    assert emulator.hand_server.width == pytest.approx(0.02, abs=0.002)
    assert ask(command.MOVE, struct.pack("<2d", 1.0, 0.1)) == struct.pack("<H", 1)
    # An empty hand that shall have grasped something as wide as a cube has not.
    grasp = struct.pack("<5d", 0.0, 0.0, 0.0, 0.1, 30.0)
    assert ask(command.GRASP, grasp) == struct.pack("<H", 2)
    line.close()


def test_fci_gripper_grasps_or_stops_at_objects() -> None:
    clock, heard = VirtualClock(1000.0), []
    physics = ArmPhysics(TASK, clock)
    physics.torque[:] = 1.0
    hand = EmulatedHand(physics, lambda call, status: heard.append((call, status)))

    def until_done() -> None:
        for _ in range(3000):
            if heard:
                return
            clock.advance(0.001)
            hand.cycle(0.001)
            physics.advance(lambda dt: None)
        raise AssertionError("the hand is not done after 3 s")

    hand.begin(1, fci.HandCommand.MOVE, 0.06, 0.1)
    until_done()
    assert heard.pop() == (1, fci.HandStatus.SUCCESS)
    physics.block(len(physics.joints) - 1)  # something is between the fingers
    hand.begin(2, fci.HandCommand.MOVE, 0.01, 0.1)
    until_done()
    assert heard.pop() == (2, fci.HandStatus.UNSUCCESSFUL) and not hand.grasped
    hand.begin(3, fci.HandCommand.GRASP, 0.0, 0.08, 0.08, 0.1, 30.0)
    until_done()
    assert heard.pop() == (3, fci.HandStatus.SUCCESS) and hand.grasped
    hand.begin(4, fci.HandCommand.GRASP, 0.0, 0.08, 0.08, 0.1, 30.0)
    hand.begin(5, fci.HandCommand.STOP)
    assert heard == [(4, fci.HandStatus.ABORTED), (5, fci.HandStatus.SUCCESS)]


def command(q: np.ndarray) -> np.ndarray:
    made = np.zeros((), fci.COMMAND)
    made["q_c"] = q
    return made


@pytest.mark.fault(49)
@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([0.01], "joint_position_motion_generator_start_pose_invalid"),
        ([0.0, 5e-6, 5e-5], "joint_motion_generator_velocity_discontinuity"),
        ([0.0, 8e-6], "joint_motion_generator_acceleration_discontinuity"),
        ([0.0, np.nan], "joint_motion_generator_position_limits_violation"),
    ],
)
def test_fci_invalid_command_is_a_reflex(steps: list[float], error: str) -> None:
    ended: list[tuple[int, MoveStatus]] = []
    controller = FciController(
        ArmPhysics(TASK, VirtualClock(1000.0)), lambda *told: ended.append(told)
    )
    assert controller.move(3, 0, 0, False) is MoveStatus.STARTED
    start = controller.q.copy()
    for step in steps:
        controller.cycle(command(start + step))
    assert controller.mode is Mode.REFLEX and controller.errors == {error}
    assert ended == [(3, MoveStatus.REFLEX_ABORTED)]
    assert controller.move(4, 0, 0, False) is MoveStatus.NOT_POSSIBLE
    assert controller.recover() is Status.SUCCESS
    for _ in range(300):
        controller.cycle(None)
    assert controller.mode is Mode.IDLE and not controller.errors
    assert controller.move(5, 0, 0, False) is MoveStatus.STARTED


@pytest.mark.fault(49)
def test_fci_extrapolates_missing_commands_then_reflex() -> None:
    controller = FciController(ArmPhysics(TASK, VirtualClock(1000.0)), lambda *told: None)
    controller.move(1, 0, 0, False)
    start, ramp = controller.q.copy(), 0.0
    for k in range(50):  # up to 0.05 rad/s at 1 rad/s^2
        ramp += 1e-6 * k
        controller.cycle(command(start + ramp))
    before, speed = controller.q.copy(), controller.dq.copy()
    for _ in range(LOST):
        controller.cycle(None)
    assert controller.mode is Mode.MOVE and controller.lost == LOST
    np.testing.assert_allclose(controller.dq, speed + LOST * 1e-3, rtol=1e-3)
    assert (controller.q > before).all()
    controller.cycle(None)
    assert controller.errors == {"communication_constraints_violation"}
    for _ in range(200):  # it brakes by itself
        controller.cycle(None)
    assert not controller.dq.any()


@pytest.mark.fault(17, 49)
def test_fci_push_above_threshold_is_a_reflex() -> None:
    clock = VirtualClock(1000.0)
    physics = ArmPhysics(TASK, clock)
    controller = FciController(physics, lambda *told: None)
    controller.collision = np.full(7, 10.0)
    controller.move(1, 0, 0, False)
    physics.block(0)
    start, ramp = controller.q.copy(), 0.0
    for k in range(2000):
        ramp += 1e-6 * min(k, 50)
        controller.cycle(command(start + ramp * (np.arange(7) == 0)))
        clock.advance(0.001)
        physics.advance(lambda dt: None)
        if controller.mode is Mode.REFLEX:
            break
    assert controller.errors == {"joint_reflex"}
    state = np.frombuffer(controller.state(), fci.STATE)[0]
    assert state["joint_collision"][0] and not state["joint_collision"][1:].any()
    assert 10.0 < abs(state["tau_ext_hat_filtered"][0]) < 15.0


def test_fci_user_stop_prevents_motion() -> None:
    controller = FciController(ArmPhysics(TASK, VirtualClock(1000.0)), lambda *told: None)
    controller.user_stop(True)
    assert controller.move(1, 0, 0, False) is MoveStatus.NOT_POSSIBLE
    assert controller.recover() is Status.RECOVERY_STOPPED
    controller.user_stop(False)
    assert controller.move(1, 0, 0, False) is MoveStatus.STARTED
