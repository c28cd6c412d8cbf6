"""What goes wrong with a UR controller, and what driver and bridge do about it, in real time."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import reach_bundle
import stage_ride
from arms import Arm, ur5e
from wall_ride import Ride

import sims
from real_robot import Bus, BusConfig, Ended, Fault, PolicyBundle, RobotFault, Target, drivers
from real_robot.emulators.ur5e import Ur5eEmulator
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.stage import closing
from robo_rl.cli import main
from sims.robots.robot import PUSH

Took = Callable[[float, str], None]
HOST = "127.0.0.1"
slow = pytest.mark.slow
TURN = np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])  # rad, the way is free


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> PolicyBundle:
    return reach_bundle.write(tmp_path_factory.mktemp("bundle"), "ur5e")


@pytest.fixture
def arm() -> Iterator[Arm]:
    with ur5e() as made:
        yield made


@slow
def test_deploy_starts_its_own_emulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reach_bundle.write(tmp_path, "ur5e")
    main(["deploy", str(tmp_path), "--emulate", "--robot", "ur5e", "--episodes", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["arm"] == "the emulated ur5e" and told["episodes"] == 1
    # Whether it keeps its period is the machine's affair; that it ends in order is ours.
    assert set(told["ended"]) <= {"done", "safety_stop", "fault"}


@slow
@pytest.mark.fault(44, 48, 63)
def test_ur_protective_stop_is_latched_until_an_operator_unlocks(
    arm: Arm, bundle: PolicyBundle, took: Took
) -> None:
    ride = Ride(arm, bundle, "protective_stop")
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, Fault.PROTECTIVE_STOP)
    took(ride.delay, "latched")
    arm.driver.connect()
    arm.driver.identify()
    assert arm.driver.read().fault is Fault.PROTECTIVE_STOP
    with pytest.raises(RobotFault, match=r"clear_fault\(\) first"):
        arm.driver.enable()
    time.sleep(6.0)  # the controller wants five seconds
    begun = time.monotonic()
    arm.driver.clear_fault()
    took(time.monotonic() - begun, "cleared (UR5e)")
    time.sleep(0.2)
    arm.driver.enable()
    qpos = arm.driver.read().qpos
    arm.driver.send(Target(qpos, 0.0))


@slow
@pytest.mark.fault(45)
@pytest.mark.parametrize(
    ("call", "fault"), [("emergency_stop", Fault.ESTOP), ("pendant", Fault.PROTECTIVE_STOP)]
)
def test_ur_emergency_button_and_pendant_have_priority(
    arm: Arm, bundle: PolicyBundle, took: Took, call: str, fault: Fault
) -> None:
    ride = Ride(arm, bundle, call)
    assert (ride.result.ended, ride.result.fault) == (Ended.FAULT, fault)
    took(ride.delay, f"{call} latched")
    arm.driver.connect()
    arm.driver.identify()
    if call == "emergency_stop":
        with pytest.raises(RobotFault, match="release the emergency stop button"):
            arm.driver.clear_fault()
    with pytest.raises(RobotFault) as caught:
        arm.driver.enable()
    assert caught.value.fault is (Fault.ESTOP if call == "emergency_stop" else Fault.CONFIG)


@slow
def test_ur_speed_slider_slows_the_bridge(arm: Arm) -> None:
    arm.up()
    assert arm.driver.read().derate == 1.0
    arm.control.call("slide", share=0.4)
    time.sleep(0.1)
    assert arm.driver.read().derate == pytest.approx(0.4)


@pytest.fixture(scope="module")
def stage() -> Iterator[EmulatedStage]:
    """On a compressed clock: times are the arm's own."""
    with closing(EmulatedStage(sims.make_task("reach", robot="ur5e"))) as made:
        yield made


@pytest.mark.fault(16, 17)
@pytest.mark.parametrize("joint", [0, 3])
def test_ur_external_push_stops_the_arm(
    stage: EmulatedStage, bundle: PolicyBundle, took: Took, joint: int
) -> None:
    control = stage._end._control
    control.call("block", joint=None)
    scene = stage.scene(1)
    ride = stage_ride.Ride(scene, bundle, lambda: control.call("block", joint=joint), steps=60)
    result = ride.result
    assert (result.ended, result.fault) == (Ended.SAFETY_STOP, Fault.COLLISION)
    assert f"N m on {scene.driver.describe().joints[joint]}, more than" in result.reason
    assert ride.delay < 0.4  # a joint that is wanted slowly takes until then to push
    took(ride.delay, "stopped (UR5e)")


@pytest.mark.parametrize("who", ["expert", "random"])
def test_ur_normal_contact_is_not_a_collision(who: str) -> None:
    """Pushing things about, and brushing the table, takes less than half of what would be one."""
    task, robot = sims.make_task("push", robot="ur5e"), sims.ROBOTS["ur5e"]
    env = sims.BatchEnv(task, 16, seed=0)
    joints = [int(env.batch.model.joint(name).dofadr[0]) for name in robot.joints]
    against, rng = env.batch.qfrc_constraint, np.random.default_rng(0)
    env.reset()
    most = np.zeros(len(joints))
    for _ in range(round(task.episode_s / task.control_dt)):
        act = task.expert(env.views, rng) if who == "expert" else rng.uniform(-1, 1, (16, 3))
        env.step(act)
        most = np.maximum(most, np.abs(against[:, joints]).max(axis=0) / robot.effort_limit)
    assert most.max() < (0.05 if who == "expert" else 0.4) < PUSH


def test_ur_external_torque_is_estimated_from_currents(stage: EmulatedStage) -> None:
    """Of motors whose torque an ampere nobody knows but the controller's own model."""
    control = stage._end._control
    control.call("block", joint=None)
    scene = stage.scene(2)
    driver, clock = scene.driver, scene.clock
    driver.connect()
    driver.identify()
    driver.enable()
    home = driver.read().qpos
    for k in range(100):
        driver.send(Target(home + np.sin(0.06 * k) * TURN, 0.0))
        clock.sleep_until_ns(clock.now_ns() + 10_000_000)
        assert np.abs(driver.read().outside).max() < 0.5
    control.call("block", joint=2)
    held = driver.read().qpos
    for _ in range(30):  # a controller that hears nothing stops
        driver.send(Target(held - 0.02, 0.0))
        clock.sleep_until_ns(clock.now_ns() + 10_000_000)
    state, truth = driver.read(), control.call("joints")["effort"][2]
    assert abs(truth) > 30.0 and state.outside[2] == pytest.approx(truth, rel=0.03)
    driver.close()


@pytest.mark.fault(10, 50)
def test_ur_unsupported_controller_is_refused() -> None:
    host, task = "127.0.0.5", sims.make_task("reach", robot="ur5e")
    with Ur5eEmulator(task, host=host, software="URSoftware 3.15.8.106339").start() as emulator:
        driver = Bus(BusConfig(robot="ur5e", where=host, patience=20.0))

        def refused() -> str:
            with pytest.raises(RobotFault) as caught:
                driver.connect()
                driver.identify()
            driver.close()
            assert caught.value.fault is Fault.CONFIG
            return str(caught.value)

        assert "A CB3 arm has other limits" in refused()
        emulator.dashboard.software = "URSoftware 5.12.4.1101319"
        emulator.controller.payload = 0.0
        assert "is configured for a payload of 0.00 kg" in refused()
        emulator.controller.payload = 0.9
        emulator.gripper.status = {"STA": 0, "FLT": 0}
        assert "activate it on the pendant" in refused()
        emulator.gripper.status = {"STA": 3, "FLT": 0}
        driver.connect()
        assert driver.identify().firmware == "5.12.4.1101319"
        driver.close()


@slow
@pytest.mark.fault(64)
def test_ur_watchdog_stops_the_arm_after_a_killed_bridge(took: Took) -> None:
    code = (
        "import time, numpy as np\n"
        "from real_robot import drivers, Target\n"
        f"arm = drivers.make('ur5e', '{HOST}', stale=1.0)\n"
        "arm.connect(); arm.identify(); arm.enable(); q = arm.read().qpos\n"
        "print('up', flush=True)\n"
        "while True:\n"
        "    q = q + [0.002, 0, 0, 0, 0, 0]; arm.send(Target(q, 0.0)); time.sleep(0.005)\n"
    )
    with ur5e() as arm:
        bridge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert bridge.stdout.readline() == "up\n"
        time.sleep(0.1)
        os.kill(bridge.pid, signal.SIGKILL)
        begun = time.monotonic()
        while arm.control.call("traffic")["running"]:
            assert time.monotonic() < begun + 10.0
            time.sleep(0.005)
        took(time.monotonic() - begun, "stopped by the watchdog")
        assert "watchdog" in arm.control.call("traffic")["stops"][-1]
        time.sleep(0.5)
        before = arm.truth()
        time.sleep(0.3)
        np.testing.assert_allclose(arm.truth(), before, atol=1e-3)
        bridge.wait()


@pytest.mark.fault(47)
def test_ur_missing_rtde_field_is_named() -> None:
    task = sims.make_task("reach", robot="ur5e")
    with Ur5eEmulator(task, host="127.0.0.2", missing=("target_moment",)).start():
        driver = drivers.make("ur5e", "127.0.0.2")
        with pytest.raises(RobotFault, match="has no target_moment") as caught:
            driver.connect()
        assert caught.value.fault is Fault.CONFIG


def test_ur_emulator_has_every_field_of_the_vendors_recorder() -> None:
    """``record_configuration.xml`` of its RTDE client and its guide; and inputs read back."""
    fields = {
        "timestamp": "DOUBLE",
        "target_q": "VECTOR6D",
        "target_current": "VECTOR6D",
        "joint_control_output": "VECTOR6D",
        "actual_TCP_pose": "VECTOR6D",
        "joint_mode": "VECTOR6INT32",
        "safety_mode": "INT32",
        "safety_status": "INT32",
        "actual_momentum": "DOUBLE",
        "actual_digital_output_bits": "UINT64",
        "runtime_state": "UINT32",
        "joint_position_deviation_ratio": "DOUBLE",
        "payload_cog": "VECTOR3D",
        "script_control_line": "UINT32",
        "output_bit_registers0_to_31": "UINT32",
        "output_bit_register_64": "BOOL",
        "tool_mode": "UINT32",
        "tool_temperature": "DOUBLE",
        "input_int_register_19": "INT32",
        "input_double_register_3": "DOUBLE",
        "input_bit_register_70": "BOOL",
        "no_such_field": "NOT_FOUND",
    }
    inputs = "input_int_register_19,input_double_register_3,input_bit_register_70"
    host, task = "127.0.0.6", sims.make_task("reach", robot="ur5e")
    with (
        Ur5eEmulator(task, host=host).start(),
        socket.create_connection((host, 30004), 30.0) as connection,
    ):
        stream = connection.makefile("rb")

        def ask(kind: bytes, body: bytes) -> bytes:
            connection.sendall(struct.pack(">HB", len(body) + 3, kind[0]) + body)
            while True:
                size, told = struct.unpack(">HB", stream.read(3))
                answer = stream.read(size - 3)
                if told == kind[0]:
                    return answer

        assert ask(b"V", struct.pack(">H", 2)) == b"\x01"
        types = ask(b"O", struct.pack(">d", 125.0) + ",".join(fields).encode())[1:]
        assert dict(zip(fields, types.decode().split(","), strict=True)) == fields
        ask(b"O", struct.pack(">d", 125.0) + inputs.encode())
        recipe = ask(b"I", inputs.encode())
        ask(b"S", b"")
        told = struct.pack(">Bid?", recipe[0], -7, 2.5, True)
        connection.sendall(struct.pack(">HB", len(told) + 3, ord("U")) + told)
        for _ in range(50):
            size, kind = struct.unpack(">HB", stream.read(3))
            body = stream.read(size - 3)
            if kind == ord("U") and struct.unpack(">id?", body[1:]) == (-7, 2.5, True):
                return
        raise AssertionError("what was written to the input registers is not read back")


def test_ur_gripper_and_dashboard_protocols() -> None:
    task = sims.make_task("reach", robot="ur5e")
    with Ur5eEmulator(task, host="127.0.0.4").start() as emulator:

        def talk(port: int, *lines: str) -> list[str]:
            connection = socket.create_connection(("127.0.0.4", port), 30.0)
            with connection, connection.makefile("rw") as file:
                greeting = [file.readline()] if port == 29999 else []
                out = []
                for line in lines:
                    file.write(line + "\n")
                    file.flush()
                    out.append(file.readline().strip())
                return [*map(str.strip, greeting), *out]

        assert talk(29999, "get robot model", "robotmode", "nonsense") == [
            "Connected: Universal Robots Dashboard Server",
            "UR5",
            "Robotmode: RUNNING",
            "could not understand: 'nonsense'",
        ]
        assert talk(29999, "version", "get loaded program", "isProgramSaved")[1:] == [
            "5.12.4.1101319",
            "No program loaded",
            "true <unnamed>",
        ]
        assert talk(63352, "SET POS 0", "GET PRE") == ["ack", "PRE 0"]
        deadline = time.monotonic() + 20.0
        while talk(63352, "GET POS") != ["POS 0"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with emulator.lock:
            opened = emulator.physics.robot.gripper_range[1]
            assert emulator.physics.qpos[-1] == pytest.approx(opened, abs=0.002)
