"""The emulated SO-101 bus as the vendor's own client, unmodified, sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
import scservo_sdk as sdk
from arms import Arm, so101

from real_robot.emulators.feetech import REGISTERS, checksum
from real_robot.emulators.servo_base import MIDDLE, UNIT

BUS = sdk.PacketHandler(0)


@pytest.fixture
def arm() -> Iterator[Arm]:
    with so101(seed=5) as made:
        yield made


@pytest.fixture
def port(arm: Arm) -> Iterator[sdk.PortHandler]:
    port = sdk.PortHandler(arm.emulator.where)
    assert port.openPort()
    port.setPacketTimeout = lambda n: port.setPacketTimeoutMillis(1000.0)  # a starved machine
    yield port
    port.closePort()


def address(name: str) -> int:
    return REGISTERS[name][0]


def test_feetech_sdk_finds_reads_and_writes_servos(arm: Arm, port: sdk.PortHandler) -> None:
    for servo in range(1, 7):
        assert BUS.ping(port, servo) == (777, sdk.COMM_SUCCESS, 0)
    position, result, error = BUS.read2ByteTxRx(port, 2, address("present_position"))
    assert (result, error) == (0, 0)
    assert position == MIDDLE + round(arm.truth()[1] / UNIT)
    assert BUS.write1ByteTxRx(port, 2, address("torque_enable"), 1) == (0, 0)
    assert BUS.read1ByteTxRx(port, 2, address("torque_enable"))[0] == 1
    groups = sdk.GroupSyncRead(port, BUS, address("present_position"), 2)
    for servo in range(1, 7):
        groups.addParam(servo)
    assert groups.txRxPacket() == sdk.COMM_SUCCESS
    assert groups.getData(2, address("present_position"), 2) == position


def test_feetech_registers_persist_by_kind(arm: Arm, port: sdk.PortHandler) -> None:
    gain, lock, goal = address("p"), address("lock"), address("goal_position")
    BUS.write1ByteTxRx(port, 1, gain, 20)
    assert BUS.read1ByteTxRx(port, 1, gain)[0] == 16  # EEPROM is locked
    BUS.write1ByteTxRx(port, 1, lock, 0)
    BUS.write1ByteTxRx(port, 1, gain, 20)
    BUS.write1ByteTxRx(port, 1, lock, 1)
    BUS.write2ByteTxRx(port, 1, goal, 2100)
    BUS.write2ByteTxRx(port, 1, address("present_position"), 7)  # read-only
    assert arm.emulator.bus.servos[0].refused == 3
    arm.emulator.reboot(0)
    arm.wait(0.2)
    assert BUS.read1ByteTxRx(port, 1, gain)[0] == 20
    assert BUS.read2ByteTxRx(port, 1, goal)[0] == 0
    assert BUS.read1ByteTxRx(port, 1, lock)[0] == 1


def test_feetech_registered_write_waits_for_the_action(arm: Arm, port: sdk.PortHandler) -> None:
    goal = address("goal_position")
    data = [sdk.SCS_LOBYTE(2200), sdk.SCS_HIBYTE(2200)]
    assert BUS.regWriteTxRx(port, 3, goal, 2, data) == (0, 0)
    assert BUS.read2ByteTxRx(port, 3, goal)[0] == 0
    BUS.action(port, sdk.BROADCAST_ID)
    assert BUS.read2ByteTxRx(port, 3, goal)[0] == 2200


def test_feetech_profile_respects_speed_and_acceleration(arm: Arm, port: sdk.PortHandler) -> None:
    for servo in range(1, 7):
        here = BUS.read2ByteTxRx(port, servo, address("present_position"))[0]
        BUS.write2ByteTxRx(port, servo, address("goal_position"), here)
        BUS.write1ByteTxRx(port, servo, address("torque_enable"), 1)
    BUS.write2ByteTxRx(port, 1, address("goal_velocity"), 400)
    BUS.write1ByteTxRx(port, 1, address("acceleration"), 20)
    start = arm.truth()[0]
    BUS.write2ByteTxRx(port, 1, address("goal_position"), here_of(port, 1) + 600)
    way = []
    for _ in range(60):
        arm.wait(0.05)
        way.append(arm.truth()[0] - start)
    speed = np.diff(way) / 0.05
    assert speed.max() == pytest.approx(400 * UNIT, rel=0.08)
    assert way[0] < 0.5 * 2000 * UNIT * 0.05**2 * 1.5  # it had to gather speed
    assert way[-1] == pytest.approx(600 * UNIT, abs=0.01)


def test_feetech_torque_without_a_goal_holds_position(arm: Arm, port: sdk.PortHandler) -> None:
    """As after LeRobot's ``connect()``, which stiffens the arm and writes no goal."""
    start = arm.truth()
    for servo in range(1, 7):
        assert BUS.write1ByteTxRx(port, servo, address("torque_enable"), 1) == (0, 0)
    arm.wait(2.0)
    np.testing.assert_allclose(arm.truth(), start, atol=0.01)


def test_feetech_goal_write_enables_torque(arm: Arm, port: sdk.PortHandler) -> None:
    """Seen on hardware: huggingface/lerobot issue 3585."""
    BUS.write2ByteTxRx(port, 3, address("goal_position"), here_of(port, 3))
    assert BUS.read1ByteTxRx(port, 3, address("torque_enable"))[0] == 1


def here_of(port: sdk.PortHandler, servo: int) -> int:
    return BUS.read2ByteTxRx(port, servo, address("present_position"))[0]


def test_feetech_overload_lasts_until_torque_off(arm: Arm, port: sdk.PortHandler) -> None:
    enable = address("torque_enable")
    for servo in range(1, 7):
        BUS.write2ByteTxRx(port, servo, address("goal_position"), here_of(port, servo))
        BUS.write1ByteTxRx(port, servo, enable, 1)
    # The table is in the way.
    BUS.write2ByteTxRx(port, 2, address("goal_position"), here_of(port, 2) + 500)
    arm.wait(1.0)
    assert BUS.ping(port, 2)[2] == 0
    load, _, _ = BUS.read2ByteTxRx(port, 2, address("present_load"))
    assert load & 0x3FF > 900 and not load & 1 << 10  # at almost full torque
    arm.wait(2.0)
    assert BUS.ping(port, 2)[2] == 32
    load, _, _ = BUS.read2ByteTxRx(port, 2, address("present_load"))
    assert load & 0x3FF <= 210  # down to the protective torque
    BUS.write1ByteTxRx(port, 2, enable, 0)
    assert BUS.ping(port, 2)[2] == 0


def test_feetech_bus_resynchronises_after_garbage(arm: Arm, port: sdk.PortHandler) -> None:
    rng = np.random.default_rng(0)
    ping = bytes([0xFF, 0xFF, 1, 2, 1])
    ping += bytes([checksum(ping[2:])])
    for _ in range(200):
        noise = rng.integers(0, 255, rng.integers(0, 12)).astype(np.uint8).tobytes()
        with arm.emulator.lock:
            arm.emulator.bus.feed(noise)
            # A length in the noise may swallow some packets, never all.
            assert any(arm.emulator.bus.feed(ping) for _ in range(50))
    assert BUS.ping(port, 2)[1] == sdk.COMM_SUCCESS


def test_our_port_drops_stale_replies_unlike_the_sdk(arm: Arm, port: sdk.PortHandler) -> None:
    """The defect that the driver's port cures, on this bus: one late reply, and all are old."""
    arm.emulator.wire("delay", seconds=0.05)
    port.setPacketTimeout = lambda n: port.setPacketTimeoutMillis(1.0)
    first, second = address("firmware_major"), address("model")
    for _ in range(5):
        if BUS.readTxRx(port, 1, first, 1)[1] == sdk.COMM_RX_TIMEOUT:
            break
    else:
        pytest.fail("the delayed reply came in time")
    time.sleep(0.3)
    port.setPacketTimeout = lambda n: port.setPacketTimeoutMillis(1000.0)
    data, result, _ = BUS.readTxRx(port, 1, second, 1)
    assert result == sdk.COMM_SUCCESS and data == [3]  # the answer to the first question
