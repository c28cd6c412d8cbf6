"""What goes wrong on an SO-101's bus, and what driver and bridge do about it.

The clock is compressed: times taken are the arm's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reach_bundle
from arms import PATIENCE, Arm, so101
from servo_ride import GOOD, Ride, torque

from real_robot import Clearance, Ended, Fault, Phase, PolicyBundle, RobotFault, Target, drivers
from real_robot.core.driver import Sent
from real_robot.drivers import servo_port
from real_robot.drivers.calibration import Calibration
from real_robot.drivers.so101 import FeetechPort
from real_robot.session.rescue import rescue

Took = Callable[[float, str], None]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    return reach_bundle.write(tmp_path_factory.mktemp("bundle"), "so101")


@pytest.fixture
def arm() -> Iterator[Arm]:
    with so101() as made:
        yield made


# Trouble on the wire.
@pytest.mark.fault(1, 3, 5, 6)
@pytest.mark.parametrize(
    "kind", ["drop", "corrupt", "truncate", "wrong_id", "duplicate", "garbage"]
)
def test_so101_one_bad_reply_costs_at_most_a_tick(
    arm: Arm, bundle: PolicyBundle, kind: str
) -> None:
    ride = Ride(arm, bundle, lambda: arm.emulator.wire(kind))
    assert (ride.result.ended, ride.result.reason) == (Ended.DONE, "")
    assert arm.emulator.bus.wire.played[kind] == 1 and ride.result.retries <= 1
    assert ride.phases == GOOD and ride.success and all(ride.result.acks.values())


@pytest.mark.fault(4)
def test_so101_late_reply_is_never_used_as_fresh(took: Took) -> None:
    with so101(patience=0.03) as arm:
        for _ in range(20):  # a starved machine may be slow where this test is not about it
            try:
                arm.up()
                break
            except RobotFault:
                arm.driver.close()
        start, served, lost, healed = arm.driver.read().qpos, 0, 0, []
        tick = 0
        while served < 40 and tick < 600:
            tick += 1
            try:
                arm.driver.send(Target(start + 0.2 * np.sin(0.02 * tick), 0.0))
                arm.wait(0.01)
                if tick in (10, 30):
                    arm.emulator.wire("delay", seconds=0.08, count=3)
                state = arm.driver.read()
            except RobotFault as error:
                assert error.fault in (Fault.COMM_TIMEOUT, Fault.COMM_CORRUPT)
                lost += 1
                continue
            served += 1
            healed.append(tick)
            # At 0.4 rad/s a reading one period old is 0.004 rad off.
            np.testing.assert_allclose(state.qpos, arm.truth()[:-1], atol=0.0016)
            assert state.t_host == pytest.approx(arm.clock.now_ns() * 1e-9)
        assert lost >= 2 and served == 40
        took(0.01 * (min(t for t in healed if t > 10) - 10), "fresh again")


@pytest.mark.fault(4)
@pytest.mark.parametrize("lingers", [True, False])
def test_so101_late_reply_costs_one_measurement(
    lingers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who does not wait for what is still owed loses the next one to it as well."""
    monkeypatch.setattr(servo_port, "LINGER", 0.5 * lingers)
    with so101(patience=0.5) as arm:
        arm.up()
        arm.emulator.wire("delay", seconds=0.55)
        with pytest.raises(RobotFault) as caught:
            arm.driver.read()
        assert caught.value.fault is Fault.COMM_TIMEOUT
        arm.emulator.wire("delay", seconds=0.1, count=6)
        with contextlib.nullcontext() if lingers else pytest.raises(RobotFault):
            np.testing.assert_allclose(arm.driver.read().qpos, arm.truth()[:-1], atol=0.0016)


@pytest.mark.fault(4, 5)
@pytest.mark.parametrize("kind", ["duplicate", "delay"])
def test_so101_old_reply_is_not_used_for_identification(kind: str) -> None:
    """Whenever it comes: the delays end about where the driver gives up and asks again."""
    with so101(patience=0.3) as arm:  # s, that a starved machine keeps too
        arm.driver.connect()
        for late in np.linspace(0.3, 0.31, 4):
            arm.emulator.wire(kind, device=3, **({"seconds": late} if kind == "delay" else {}))
            assert arm.driver.identify().model == "SO-101, 6 x STS3215"


@pytest.mark.fault(3)
def test_so101_corruption_of_3_percent_stops_and_parks(
    arm: Arm, bundle: PolicyBundle, took: Took
) -> None:
    def spoil() -> None:
        if ride_ticks() % 25 == 20:
            arm.emulator.wire("corrupt")

    ticks = [0]

    def ride_ticks() -> int:
        ticks[0] += 1
        return ticks[0]

    ride = Ride(arm, bundle, spoil, every=True)
    assert (ride.result.ended, ride.result.fault) == (Ended.SAFETY_STOP, Fault.COMM_CORRUPT)
    assert (
        "3 measurements were corrupt within one second, at most 2 are allowed" in ride.result.reason
    )
    assert ride.phases == GOOD and all(ride.result.acks.values())
    assert ride.result.retries == 3
    took(0.01, "held after the third")


@pytest.mark.fault(60)
def test_so101_losing_four_of_five_replies_stops_the_arm(
    arm: Arm, bundle: PolicyBundle, took: Took
) -> None:
    """Never five in a row."""
    ticks = [0]

    def lose() -> None:
        ticks[0] += 1
        if ticks[0] % 5:
            arm.emulator.wire("drop", count=1, device=1)

    ride = Ride(arm, bundle, lose, at=1, every=True, steps=100)
    assert (ride.result.ended, ride.result.fault) == (Ended.SAFETY_STOP, Fault.COMM_TIMEOUT)
    assert "51 measurements were lost in the last 2 s, at most 50 are allowed" in ride.result.reason
    assert all(ride.result.acks.values()) and ride.delay < 1.1
    took(ride.delay, "held (SO-101)")


@pytest.mark.fault(61)
def test_so101_missing_a_third_of_periods_stops_the_arm(
    arm: Arm, bundle: PolicyBundle, took: Took
) -> None:
    ticks = [0]

    def late() -> None:
        ticks[0] += 1
        arm.wait(0.018 * (ticks[0] % 2))  # every other tick takes two periods

    ride = Ride(arm, bundle, late, at=1, every=True, steps=100)
    assert (ride.result.ended, ride.result.fault) == (Ended.SAFETY_STOP, Fault.DEADLINE)
    assert "missed 51 periods in the last 2 s, at most 50 are allowed" in ride.result.reason
    assert all(ride.result.acks.values()) and ride.delay < 2.0
    took(ride.delay, "held (SO-101)")


@pytest.mark.fault(58)
def test_so101_blocked_adapter_is_a_fault_and_closes_at_once() -> None:
    master, slave = os.openpty()
    port = FeetechPort(os.ttyname(slave), 0.005)
    port.openPort()
    try:
        begun = time.monotonic()
        with pytest.raises(RobotFault) as caught:
            while time.monotonic() < begun + 10.0:
                port.writePort([0] * 1024)
        assert caught.value.fault is Fault.DISCONNECTED
        assert "no bytes could be written for 0.1 s: the USB adapter is stuck" in str(caught.value)
        assert "too busy" in str(caught.value)
        begun = time.monotonic()
        port.closePort()
        assert time.monotonic() - begun < 10.0  # the system itself would wait for 30 s
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.fault(7)
def test_so101_pulled_cable_is_a_fault_at_once(arm: Arm, bundle: PolicyBundle, took: Took) -> None:
    ride = Ride(arm, bundle, arm.emulator.unplug)
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.DISCONNECTED)
    assert ride.delay <= 0.01 and not any(ride.result.acks.values())
    assert any("torque is still on" in note for note in ride.result.notes)
    took(ride.delay, "latched")


@pytest.mark.fault(8)
def test_so101_reconnect_under_another_name_needs_identify(tmp_path: Path) -> None:
    with so101(link=tmp_path / "usb-1a86_USB_Single_Serial_5A46083062-if00") as arm:
        arm.up()
        old = arm.emulator.port
        keeper = open(old, "rb", buffering=0)  # keeps the old name taken
        arm.emulator.unplug()
        with pytest.raises(RobotFault) as caught:
            arm.driver.read()
        assert caught.value.fault is Fault.DISCONNECTED
        arm.driver.close()
        assert arm.emulator.plug() != old
        keeper.close()
        arm.driver.connect()
        with pytest.raises(RobotFault, match=r"call identify\(\) first"):
            arm.driver.read()
        arm.driver.identify()
        assert arm.driver.read().fault is Fault.NONE
        with pytest.raises(RobotFault, match=r"call enable\(\) first"):
            arm.driver.send(Target(np.zeros(5), 0.0))


@pytest.mark.fault(8)
def test_so101_adapter_serial_number_finds_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the USB host lists is played: no adapter is here. The port behind it is real."""
    from types import SimpleNamespace

    from serial.tools import list_ports

    plugged: list[SimpleNamespace] = []
    monkeypatch.setattr(list_ports, "comports", lambda: plugged)
    with so101() as arm:
        found = drivers.make("so101", "5A46083062", clock=arm.clock, patience=PATIENCE)
        with pytest.raises(RobotFault, match="no USB adapter has the serial number '5A46083062'"):
            found.connect()
        for _ in range(2):
            plugged[:] = [SimpleNamespace(device=arm.emulator.port, serial_number="5A46083062")]
            found.connect()
            assert found.identify().serial == "5A46083062"
            found.close()
            arm.emulator.unplug()
            arm.emulator.plug()


@pytest.mark.fault(9)
def test_so101_port_is_locked_to_one_process(arm: Arm) -> None:
    from real_robot import drivers

    arm.driver.connect()
    other = drivers.make("so101", arm.emulator.where)
    with pytest.raises(RobotFault, match="in use by another process") as caught:
        other.connect()
    assert caught.value.fault is Fault.CONFIG
    arm.driver.close()
    other.connect()
    other.close()


# The wrong arm.
@pytest.mark.fault(11)
def test_so101_calibration_of_another_arm_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "arm.json"
    with so101(seed=1) as arm:
        arm.driver.connect()
        first = arm.driver.identify()
        arm.driver._calibration.save(file)
        names = arm.driver.joints
        assert Calibration.load(file, names).sha256 == first.calibration
    with so101(seed=1, driver={"calibration": file}) as arm:
        arm.driver.connect()
        assert arm.driver.identify().calibration == first.calibration
    with so101(seed=2, driver={"calibration": file}) as arm:
        arm.driver.connect()
        with pytest.raises(RobotFault, match="the file is another arm's"):
            arm.driver.identify()
    with so101(calibrated=False) as arm:
        arm.driver.connect()
        with pytest.raises(RobotFault, match="is not calibrated; run robo-rl calibrate so101"):
            arm.driver.identify()
    data = json.loads(file.read_text())
    data["gripper"]["range_max"] = 9000
    file.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="range_min < range_max < 4096"):
        Calibration.load(file, names)


@pytest.mark.fault(11)
def test_a_bundle_for_another_arms_calibration_never_makes_this_one_stiff(
    arm: Arm, bundle: PolicyBundle, tmp_path: Path
) -> None:
    reach_bundle.write(tmp_path, "so101")
    other = replace(bundle.manifest, calibration="0" * 64)
    policy = (tmp_path / "policy.onnx").read_bytes()
    ride = Ride(arm, PolicyBundle(other, policy), lambda: None)
    assert (ride.result.ended, ride.result.fault) == (Ended.SAFETY_STOP, Fault.CONFIG)
    assert "the bundle was trained for the arm with calibration 0000" in ride.result.reason
    assert ride.phases == "CONNECTED OFFLINE" and not any(torque(arm))


# Trouble in the servos.
@pytest.mark.fault(14)
def test_so101_warm_servo_slows_the_arm(arm: Arm, bundle: PolicyBundle) -> None:
    arm.emulator.register(2, "present_temperature", 64)
    ride = Ride(arm, bundle, lambda: None)
    assert ride.result.ended is Ended.DONE and ride.result.limited["dial"].max() > 0.9
    arm.up()
    assert arm.driver.read().derate == pytest.approx(0.4)  # 6 of the last 15 degrees are left


@pytest.mark.fault(12)
def test_so101_encoder_jump_is_rejected(arm: Arm, bundle: PolicyBundle, took: Took) -> None:
    ride = Ride(arm, bundle, lambda: arm.emulator.glitch(2, readings=2))
    assert (ride.result.ended, ride.result.retries, ride.success) == (Ended.DONE, 2, True)
    arm.emulator.reset(1)
    ride = Ride(arm, bundle, lambda: arm.emulator.glitch(2, readings=3))
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.ENCODER)
    assert all(ride.result.acks.values()) and ride.delay <= 0.03
    took(ride.delay, "latched")


@pytest.mark.fault(42)
def test_so101_joint_with_wrong_torque_state_is_named(
    arm: Arm, bundle: PolicyBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    servo = arm.emulator.bus.servos[3]
    usual = type(servo).write

    def stuck(self: Any, address: int, data: bytes) -> None:
        if self is not servo or address != 40:
            usual(self, address, data)

    with monkeypatch.context() as patch:
        patch.setattr(type(servo), "write", stuck)
        ride = Ride(arm, bundle, lambda: None)
        assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.TORQUE)
        assert "servo 4" in ride.result.reason
        assert all(ride.result.acks.values())  # those that were stiff already have let go
    ride = Ride(arm, bundle, lambda: monkeypatch.setattr(type(servo), "write", stuck))
    joints = arm.driver.joints
    assert ride.result.acks == {joint: joint != joints[3] for joint in joints}
    assert torque(arm) == [0, 0, 0, 1, 0, 0]


@pytest.mark.fault(37)
def test_so101_wall_clock_changes_have_no_effect(
    arm: Arm, bundle: PolicyBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = time.time

    def set_back() -> None:
        monkeypatch.setattr(time, "time", lambda: usual() - 3600.0)

    ride = Ride(arm, bundle, set_back)
    assert (ride.result.ended, ride.result.retries, ride.success) == (Ended.DONE, 0, True)


@pytest.mark.fault(41)
def test_so101_torque_on_keeps_the_hand_moved_pose(arm: Arm) -> None:
    driver = arm.up().driver
    driver.relax()
    moved = arm.truth()
    moved[:2] += (0.5, -0.3)
    arm.emulator.hand(list(moved))
    arm.wait(0.05)
    arm.emulator.bus.joint_targets.step[:] = 0.0
    driver.enable()
    arm.wait(0.3)
    np.testing.assert_allclose(arm.truth(), moved, atol=0.01)
    state = driver.read()
    driver.send(Target(state.qpos, state.gripper))
    assert arm.emulator.bus.joint_targets.step.max() < 0.01


@pytest.mark.fault(65)
@pytest.mark.parametrize("stiffness", [10.0, 100.0, 998.0])
def test_so101_soft_arm_does_not_sink_while_held(arm: Arm, stiffness: float, took: Took) -> None:
    """Nor by being taken over: every goal set to where a soft joint hangs would lower it again."""
    arm.emulator.soften(stiffness)
    driver = arm.up().driver
    home = np.array(arm.emulator.physics.robot.home)
    for part in np.linspace(0.0, 1.0, 60):
        driver.send(Target((1 - part) * arm.truth()[:-1] + part * home, 0.5))
        arm.wait(0.02)
    arm.wait(2.0)
    hung = arm.truth()
    for _ in range(3):
        driver.hold()
        arm.wait(0.3)
    np.testing.assert_allclose(arm.truth()[:-1], hung[:-1], atol=0.004)
    driver.close()
    heir = drivers.make("so101", arm.emulator.where, clock=arm.clock, patience=PATIENCE)
    arm.clock.follow(lambda: heir.bytes_written, lambda: arm.emulator.bytes_heard)
    heir.connect()
    at_rest, begun = [], arm.clock.now_ns()
    let_go = heir.relax
    heir.relax = lambda: (at_rest.append(arm.truth()), let_go())[1]
    result = rescue(heir, tuple(home), clock=arm.clock)
    assert result.ended is Ended.DONE and all(result.acks.values())
    assert result.notes == ()  # parked, as near as it bears
    np.testing.assert_allclose(at_rest[0][:-1], hung[:-1], atol=0.01)
    took((arm.clock.now_ns() - begun) * 1e-9, f"taken over, parked, limp ({stiffness:g} N m/rad)")


def test_so101_arm_in_contact_parks_from_its_pose(arm: Arm) -> None:
    """Its goal is 2 cm in the table: a way from there would go on pressing until motors give up."""
    driver = arm.up().driver
    home = np.array(arm.emulator.physics.robot.home)
    down, aside = home + [0.0, 0.45, 0.0, 0.0, 0.0], home + [1.4, 0.0, 0.0, 0.0, 0.0]
    for part in np.linspace(0.0, 1.0, 60):
        driver.send(Target((1 - part) * arm.truth()[:-1] + part * home, 0.5))
        arm.wait(0.02)
    for part in np.linspace(0.0, 1.0, 60):
        driver.send(Target((1 - part) * home + part * down, 0.5))
        arm.wait(0.01)
    arm.wait(1.0)
    leans = np.abs(driver.read().effort) > 0.9 * driver.describe().overload
    assert leans.any() and arm.truth()[1] < down[1] - 0.03
    driver.close()
    heir = drivers.make("so101", arm.emulator.where, clock=arm.clock, patience=PATIENCE)
    arm.clock.follow(lambda: heir.bytes_written, lambda: arm.emulator.bytes_heard)
    heir.connect()
    efforts, read = [], heir.read
    heir.read = lambda: (state := read(), efforts.append(np.abs(state.effort[:5]).max()))[0]
    result = rescue(heir, tuple(aside), clock=arm.clock)
    assert result.ended is Ended.DONE and result.notes == (), result
    assert Phase.RELAX in [t.after for t in result.history]
    pressed = driver.describe().period * np.sum(
        np.array(efforts) > 0.9 * driver.describe().overload[0]
    )
    assert pressed < 0.3  # s


def test_so101_arm_resting_on_an_object_parks(arm: Arm) -> None:
    driver = arm.up().driver
    home = np.array(arm.emulator.physics.robot.home)
    low = home + [0.0, 0.46, 0.0, 0.0, 0.0]  # 2 cm in the table, of which nobody knows here
    driver.close()
    heir = drivers.make("so101", arm.emulator.where, clock=arm.clock, patience=PATIENCE)
    arm.clock.follow(lambda: heir.bytes_written, lambda: arm.emulator.bytes_heard)
    heir.connect()
    begun = arm.clock.now_ns()
    result = rescue(heir, tuple(low), clock=arm.clock)
    assert result.ended is Ended.DONE and result.notes == (), result
    assert (arm.clock.now_ns() - begun) * 1e-9 < np.abs(low - home).max() / 0.5 + 3.0
    assert all(result.acks.values())


@pytest.mark.parametrize("known", [True, False])
def test_so101_rescue_parks_clear_of_the_table(arm: Arm, known: bool) -> None:
    """The straight way from here to the park pose leads 8 mm into it."""
    arm.up().driver.relax()
    arm.emulator.hand([-1.16, 0.06, 1.39, -1.14, -0.57, 0.0])
    arm.driver.enable()
    clearance = Clearance.of(arm.emulator.physics.scene.task)
    rooms, send = [], arm.driver.send

    def sending(target: Target) -> Sent:
        rooms.append(clearance.near(target.qpos, target.gripper).room)
        return send(target)

    arm.driver.send = sending
    home = tuple(arm.emulator.physics.robot.home)
    result = rescue(arm.driver, home, clock=arm.clock, clearance=clearance if known else None)
    assert all(result.acks.values()) and len(rooms) > 100
    assert (min(rooms) >= 0.0) == known, min(rooms)
    assert not any(note.startswith("park") for note in result.notes), result.notes


@pytest.mark.fault(22)
def test_so101_servo_range_registers_are_respected(
    arm: Arm, bundle: PolicyBundle, took: Took
) -> None:
    """Known once they were asked, and not from the model of such an arm; who goes on asking for
    more is stopped."""
    for name, tick in {"min_position": 1950, "max_position": 2144}.items():
        arm.emulator.register(0, name, tick)
    pose = arm.truth()
    pose[0] = 0.0
    arm.emulator.hand(list(pose))
    ride = Ride(arm, bundle, lambda: None, steps=120)  # the cube lies farther to the side
    assert (ride.result.ended, ride.result.fault) == (Ended.SAFETY_STOP, Fault.LIMIT)
    assert "shoulder_pan was limited by range" in ride.result.reason
    assert all(ride.result.acks.values()) and ride.phases == GOOD
    begun = next(change.t for change in ride.result.history if change.after is Phase.RUN)
    took(ride.stopped - begun, "stopped (SO-101), the way there included")
    traffic = arm.emulator.traffic()
    assert traffic["beyond_limits"] == 0
    assert -0.149 + 0.019 <= traffic["goal_low"][0] and traffic["goal_high"][0] <= 0.149 - 0.019


def test_so101_torque_enable_is_retried_until_read_back(arm: Arm) -> None:
    arm.driver.connect()
    arm.driver.identify()
    arm.emulator.wire("drop", count=2, device=1)
    arm.driver.enable()  # three tries, read back
    assert torque(arm) == [1] * 6
