"""The emulated Dynamixel bus, held to the maker's example packets and to his client, unmodified."""

from __future__ import annotations

from collections.abc import Iterator

import dynamixel_sdk as sdk
import numpy as np
import pytest
from arms import Arm, koch

from real_robot.drivers.koch import DynamixelPackets
from real_robot.emulators.dynamixel import ALERT, crc, from_other_servo, packet
from real_robot.emulators.dynamixel_registers import BAD_LIMIT, BAD_RANGE, NO_ACCESS, TRIPPED, XL330
from real_robot.emulators.motion_profile import advance_profile
from real_robot.emulators.servo_base import UNIT

BUS = sdk.PacketHandler(2.0)
# ROBOTIS e-manual, "DYNAMIXEL Protocol 2.0": what it prints beside each instruction.
PRINTED = """
FF FF FD 00 01 03 00 01 19 4E
FF FF FD 00 01 07 00 55 00 06 04 26 65 5D
FF FF FD 00 FE 03 00 01 31 42
FF FF FD 00 02 07 00 55 00 06 04 26 6F 6D
FF FF FD 00 01 07 00 02 84 00 04 00 1D 15
FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0
FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89
FF FF FD 00 01 04 00 55 00 A1 0C
FF FF FD 00 01 09 00 04 68 00 C8 00 00 00 AE 8E
FF FF FD 00 01 03 00 05 02 CE
FF FF FD 00 01 03 00 08 2F 4E
FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA
FF FF FD 00 02 08 00 55 00 1F 08 00 00 BA BE
FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87
FF FF FD 00 FE 0A 00 8A 84 00 04 00 03 07 04 20 F2
"""
FAST = "FF FF FD 00 FE 11 00 55 00 01 D0 07 00 00 0C 83 00 02 09 00 00 00 11 40"


@pytest.fixture
def arm() -> Iterator[Arm]:
    with koch(seed=5) as made:
        yield made


@pytest.fixture
def port(arm: Arm) -> Iterator[sdk.PortHandler]:
    port = sdk.PortHandler(arm.emulator.where)
    assert port.openPort()
    port.setPacketTimeout = lambda n: port.setPacketTimeoutMillis(1000.0)  # a starved machine
    yield port
    port.closePort()


def address(name: str) -> int:
    return XL330[name].address


def write(port: sdk.PortHandler, servo: int, name: str, value: int) -> int:
    """The error number that a write earns."""
    at, size = XL330[name][:2]
    result, error = BUS.writeTxRx(
        port, servo, at, size, list((value % 256**size).to_bytes(size, "little"))
    )
    assert result == sdk.COMM_SUCCESS
    return error


def read(port: sdk.PortHandler, servo: int, name: str) -> int:
    at, size = XL330[name][:2]
    data, result, _ = BUS.readTxRx(port, servo, at, size)
    assert result == sdk.COMM_SUCCESS
    return int.from_bytes(bytes(data), "little")


def test_dynamixel_packets_match_the_manual() -> None:
    for line in PRINTED.strip().splitlines():
        whole = bytes.fromhex(line)
        assert packet(whole[4], whole[7:-2]) == whole, line
    fast = bytes.fromhex(FAST)  # each servo's sum goes over all that came before it
    assert crc(fast[:14]).to_bytes(2, "little") == fast[14:16]
    assert crc(fast[:-2]).to_bytes(2, "little") == fast[-2:]


def test_dynamixel_checksum_and_stuffing_match_the_sdk() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        # Bytes of headers, so that they come up by chance too.
        body = bytes([0x55, 0, *rng.choice([0xFF, 0xFF, 0xFD, 0x00, 7], rng.integers(0, 20))])
        ours = packet(9, body)
        theirs = BUS.addStuffing([0xFF, 0xFF, 0xFD, 0, 9, len(body) + 2, 0, *body, 0, 0])
        total = BUS.updateCRC(0, theirs, len(theirs) - 2)
        assert bytes(theirs[:-2]) == ours[:-2] and total.to_bytes(2, "little") == ours[-2:]
        assert bytes(DynamixelPackets().removeStuffing(list(ours)))[7:-2] == body
        other = from_other_servo(ours)
        assert other[4] == 10 and crc(other[:-2]).to_bytes(2, "little") == other[-2:]


def test_our_packets_avoid_the_sdk_stuffing_bug() -> None:
    """The defect that the driver's packets cure: it looks at bytes that it has moved already."""
    body = bytes.fromhex("55 00 FF FF FD 07 FF FD FD 01")
    lost = bytes(BUS.removeStuffing(list(packet(1, body))))[7 : 7 + len(body)]
    assert lost != body
    assert bytes(DynamixelPackets().removeStuffing(list(packet(1, body))))[7:-2] == body


def test_motion_profile_ends_at_its_goal() -> None:
    """However it is limited; without a limit of acceleration it once divided nothing by nothing."""
    for top, push in ((400.0, 0.0), (0.0, 2000.0), (400.0, 2000.0), (0.0, 0.0)):
        setpoint, speed, fastest = 0.0, 0.0, 0.0
        for _ in range(1000):
            setpoint, speed = advance_profile(setpoint, speed, 600.0, top, push, 0.005)
            fastest = max(fastest, speed)
        assert setpoint == pytest.approx(600.0, abs=1.0)
        assert fastest <= (top or np.inf) + 1e-9


def test_vendor_sdk_finds_reads_and_writes_servos(arm: Arm, port: sdk.PortHandler) -> None:
    models = [BUS.ping(port, servo) for servo in range(1, 7)]
    assert models == [(n, sdk.COMM_SUCCESS, 0) for n in (1060, 1060, 1200, 1200, 1200, 1200)]
    found, result = BUS.broadcastPing(port)
    assert result == sdk.COMM_SUCCESS and {i: m for i, (m, _) in found.items()} == {
        i + 1: m[0] for i, m in enumerate(models)
    }
    count = arm.emulator.bus.servos[1].count(arm.truth()[1])
    assert read(port, 2, "present_position") == round(count)
    for fast in (False, True):
        group = sdk.GroupSyncRead(port, BUS, address("present_position"), 4)
        for servo in range(1, 7):
            group.addParam(servo)
        assert (group.fastSyncRead() if fast else group.txRxPacket()) == sdk.COMM_SUCCESS
        assert group.getData(2, address("present_position"), 4) == round(count)


def test_register_access_rules_are_enforced(arm: Arm, port: sdk.PortHandler) -> None:
    assert write(port, 1, "homing_offset", -5) == 0
    assert write(port, 1, "torque_enable", 1) == 0
    assert write(port, 1, "homing_offset", 7) == NO_ACCESS  # EEPROM, and it is stiff
    assert write(port, 1, "present_position", 7) == NO_ACCESS
    assert write(port, 1, "torque_enable", 2) == BAD_LIMIT
    assert write(port, 1, "goal_current", 100) == NO_ACCESS  # an XL430 has none
    assert write(port, 6, "goal_current", 1800) == BAD_LIMIT
    assert arm.emulator.bus.servos[0].refused == 4
    assert write(port, 1, "goal_position", 2100) == 0
    assert BUS.reboot(port, 1) == (sdk.COMM_SUCCESS, 0)
    assert BUS.ping(port, 1)[1] == sdk.COMM_RX_TIMEOUT
    arm.wait(0.3)
    assert read(port, 1, "homing_offset") == 2**32 - 5
    assert read(port, 1, "goal_position") == read(port, 1, "torque_enable") == 0


def test_registered_write_waits_for_the_action_packet(arm: Arm, port: sdk.PortHandler) -> None:
    goal = address("goal_position")
    assert BUS.regWriteTxRx(port, 3, goal, 4, list((2200).to_bytes(4, "little"))) == (0, 0)
    assert read(port, 3, "goal_position") == 0 and read(port, 3, "pending") == 1
    BUS.action(port, sdk.BROADCAST_ID)
    assert read(port, 3, "goal_position") == 2200 and read(port, 3, "pending") == 0


def test_status_return_level_limits_replies(arm: Arm, port: sdk.PortHandler) -> None:
    BUS.write1ByteTxOnly(port, 4, address("status_level"), 0)
    port.setPacketTimeout = lambda n: port.setPacketTimeoutMillis(50.0)
    assert BUS.ping(port, 4)[1] == sdk.COMM_SUCCESS
    assert BUS.read1ByteTxRx(port, 4, 64)[1] == sdk.COMM_RX_TIMEOUT
    assert BUS.write1ByteTxRx(port, 4, 65, 1)[0] == sdk.COMM_RX_TIMEOUT


def stiffen(arm: Arm, port: sdk.PortHandler) -> None:
    for servo in range(1, 7):
        write(port, servo, "goal_position", read(port, servo, "present_position"))
        assert write(port, servo, "torque_enable", 1) == 0


def test_motion_profile_respects_profile_velocity(arm: Arm, port: sdk.PortHandler) -> None:
    stiffen(arm, port)
    write(port, 1, "profile_velocity", 40)
    start, way = arm.truth()[0], []
    write(port, 1, "goal_position", read(port, 1, "present_position") + 600)
    for _ in range(40):
        arm.wait(0.05)
        way.append(arm.truth()[0] - start)
    assert (np.diff(way) / 0.05).max() == pytest.approx(40 * 0.229 * 2 * np.pi / 60, rel=0.08)
    assert way[-1] == pytest.approx(600 * UNIT, abs=0.02)


def test_bus_watchdog_stops_the_servo(arm: Arm, port: sdk.PortHandler) -> None:
    stiffen(arm, port)
    write(port, 1, "profile_velocity", 40)
    write(port, 1, "bus_watchdog", 5)
    write(port, 1, "goal_position", read(port, 1, "present_position") + 600)
    for _ in range(20):
        arm.wait(0.09)
        assert read(port, 2, "bus_watchdog") == 0  # spoken to another, and the first one minds
        if read(port, 1, "bus_watchdog") == TRIPPED:
            pytest.fail("stopped though it was spoken to")
    write(port, 1, "goal_position", read(port, 1, "present_position") - 600)
    arm.wait(0.15)
    stopped = arm.truth()
    arm.wait(0.5)
    np.testing.assert_allclose(arm.truth(), stopped, atol=0.01)  # all of them are stiff
    assert read(port, 1, "bus_watchdog") == TRIPPED
    assert write(port, 1, "goal_position", 2000) == BAD_RANGE
    assert write(port, 1, "bus_watchdog", 0) == 0
    assert write(port, 1, "goal_position", read(port, 1, "present_position") - 300) == 0
    arm.wait(1.5)
    assert arm.truth()[0] == pytest.approx(stopped[0] - 300 * UNIT, abs=0.02)


def test_overload_turns_torque_off_until_reboot(arm: Arm, port: sdk.PortHandler) -> None:
    stiffen(arm, port)
    arm.emulator.block(2)
    write(port, 3, "goal_position", read(port, 3, "present_position") + 300)
    arm.wait(1.0)
    assert BUS.ping(port, 3)[2] == 0
    assert read(port, 3, "present_load") > 1300  # mA, of 1470 that stall it
    arm.wait(2.0)
    assert BUS.ping(port, 3)[2] == ALERT
    assert (read(port, 3, "hardware_error"), read(port, 3, "torque_enable")) == (32, 0)
    assert write(port, 3, "torque_enable", 1) == NO_ACCESS | ALERT
    arm.emulator.block(None)
    BUS.reboot(port, 3)
    arm.wait(0.3)
    assert BUS.ping(port, 3)[2] == 0 and write(port, 3, "torque_enable", 1) == 0


def test_emulated_bus_resynchronises_after_garbage(arm: Arm, port: sdk.PortHandler) -> None:
    rng = np.random.default_rng(0)
    ping = packet(1, b"\1")
    for _ in range(200):
        noise = rng.choice([0xFF, 0xFD, 0x00, 1, 2, 9], rng.integers(0, 16)).astype(np.uint8)
        with arm.emulator.lock:
            arm.emulator.bus.feed(noise.tobytes())
            # A length in the noise may swallow some packets, never all.
            assert any(arm.emulator.bus.feed(ping) for _ in range(120))
    assert BUS.ping(port, 2)[1] == sdk.COMM_SUCCESS


def test_our_client_rejects_short_replies_unlike_the_sdk(arm: Arm, port: sdk.PortHandler) -> None:
    """A read that is refused has no data; two bytes of it are then the reply's own checksum."""
    data, result, error = BUS.readTxRx(port, 1, 300, 2)
    assert result == sdk.COMM_SUCCESS and len(data) == 2 and error == NO_ACCESS
    arm.driver.connect()
    with pytest.raises(Exception, match="servo 1: reply has the wrong length"):
        arm.driver.ask(0, 300, 2)
