"""The process that owns an arm's port: whatever becomes of whom, no goal is ever a jump."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from arms import Arm, so101_bus, without

from real_robot import (
    Bus,
    BusConfig,
    Fault,
    NullDriver,
    RealClock,
    RobotFault,
    RunConfig,
    SafetyFilter,
    Target,
    VirtualClock,
)
from real_robot.bus.mailbox import Mailbox
from real_robot.bus.server import PortOwner
from real_robot.core.arm_numbers import ArmNumbers
from real_robot.core.manifest import Limits
from real_robot.core.pacing import Pacer
from real_robot.safety.guarded_driver import GuardedDriver
from sims import ROBOTS

SPEED = 0.4  # rad/s, that the filter lets through


@pytest.fixture
def arm() -> Iterator[Arm]:
    with so101_bus() as made:
        yield made


def test_torn_mailbox_write_keeps_the_previous_message() -> None:
    box = Mailbox(6)
    other, letter = Mailbox(6, os.dup(box.fd)), np.zeros((), box.goals.kind)
    assert other.goals.read() == (0, None)
    for k in range(1, 4):
        letter["qpos"] = k
        assert box.goals.write(letter) == k
        number, read = other.goals.read()
        assert number == k and (read["qpos"] == k).all()
    memory, at = box._memory, box.goals._at + box.goals._place  # where the third is
    memory[at + 30] ^= 1
    number, read = other.goals.read()
    assert number == 2 and (read["qpos"] == 2).all()
    # Who takes over goes on counting.
    assert Mailbox(6, os.dup(box.fd)).goals.write(letter) == 3
    assert other.goals.read()[0] == 3


@pytest.mark.parametrize(
    "driver", ["so101", "koch", "ur", pytest.param("franka", marks=without("fr3"))]
)
def test_bus_process_loads_no_simulation_filter_or_log(driver: str) -> None:
    heavy = ("mujoco", "torch", "ruckig", "cv2", "onnxruntime", "mcap", "gymnasium")
    code = (
        f"import sys, real_robot.bus.server, real_robot.drivers.{driver}\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bus_passes_options_and_returns_the_description(tmp_path: Path) -> None:
    file, joints = tmp_path / "arm.json", ROBOTS["so101"].actuators
    servo = {"drive_mode": 0, "homing_offset": 5, "range_min": 1948, "range_max": 2148}
    file.write_text(json.dumps({j: {"id": i + 1} | servo for i, j in enumerate(joints)}))
    bus = Bus(BusConfig(robot="so101", where="/dev/null", options={"calibration": file}))
    assert np.abs(bus.describe().position).max() < 0.16  # rad, 100 steps to either side
    with pytest.raises(RobotFault, match=r"cannot open|Inappropriate|/dev/null"):
        bus.connect()
    bus.close()
    wrong = Bus(BusConfig(robot="so101", where="/dev/null", options={"patience": -1, "no": 1}))
    with pytest.raises(ValueError, match="unexpected keyword argument 'no'"):
        wrong.describe()


@pytest.mark.slow
@pytest.mark.fault(62)
def test_unresponsive_bus_is_killed_and_arm_holds(arm: Arm) -> None:
    arm.up()
    bus, before = arm.driver, arm.driver.last_target()
    process = psutil.Process(bus.pid)
    process.suspend()
    begun = time.monotonic()
    with pytest.raises(RobotFault, match=r"did not answer within 2 s \(call: hold\)") as caught:
        bus.hold()
    assert caught.value.fault is Fault.BUS and time.monotonic() - begun < 4.0
    assert not process.is_running()
    for call in (bus.read, bus.last_target, bus.relax, bus.identify):
        with pytest.raises(RobotFault, match="call: hold"):
            call()
    assert all(arm.control.call("joints")["torque"])
    bus.connect()  # another process
    assert bus.identify().model and len(bus.joints_with_torque()) == 6
    np.testing.assert_allclose(bus.last_target().qpos, before.qpos)
    assert all(bus.relax().values()) and bus.joints_with_torque() == ()


@pytest.mark.slow
@pytest.mark.fault(23, 38)
@pytest.mark.parametrize("who", ["giver", "owner"])
def test_late_targets_brake_the_arm_without_jumps(arm: Arm, who: str) -> None:
    """Not those of a bridge that was late, nor those that waited for an owner who stood still."""
    arm.up()
    clock, config = RealClock(), RunConfig(max_retries=50, max_lost=1.0, max_spoilt=1.0)
    about = arm.driver.describe()
    slow = Limits(velocity=(SPEED,) * len(about.joints))
    safety = SafetyFilter.build(about, slow, max_age=3.0, patience=60.0)
    guarded = GuardedDriver(arm.driver, safety, clock, config)
    guarded.seed(stiff=True)
    pacer, start, braked = Pacer(about.period, clock), guarded.memory.qpos, 0
    process = psutil.Process(arm.driver.pid)
    for k in range(400):
        phase = 2.0 * about.period * k
        done = guarded.exchange(lambda state, p=phase: Target(start + 0.15 * np.sin(p), 0.5))
        braked += done is not None and done.state.braked is not None
        if k % 80 == 60:
            if who == "giver":
                time.sleep(0.12)
            else:
                process.suspend()
                for _ in range(10):  # one after the other, none of which is read
                    guarded.brake() if guarded.memory.moving else None
                    time.sleep(about.period)
                process.resume()
        pacer.wait()
    told = arm.control.call("traffic")
    # Ten goals in one would be ten times as fast; servos count in steps of 1.5 mrad.
    assert braked >= 3 and told["beyond_limits"] == 0
    assert 0.5 * SPEED < max(told["goal_step"][:-1]) / about.period <= SPEED + 0.16


def test_failed_rescue_process_frees_the_port() -> None:
    class Mute(NullDriver):
        closed = 0

        def relax(self) -> dict[str, bool]:
            raise RobotFault(Fault.DISCONNECTED, "no answer")

        def close(self) -> None:
            self.closed += 1

    driver, (end, _) = Mute(ROBOTS["so101"]), socket.socketpair()
    about = {"period": 0.02, "silence": 1.0, "clock": VirtualClock(), "rescue": {}, "bridge": 1}
    owner = PortOwner(driver, ArmNumbers.of("so101"), Mailbox(6), end, about)
    owner._helper, owner._stiff = subprocess.Popen(["true"]), True
    with pytest.raises(RobotFault):
        owner.do_relax()
    owner.do_close()
    assert not driver.closed and not owner._over
    driver.relax = lambda: {"elbow_flex": False}  # it was heard: another could do no more
    owner.do_relax()
    owner.do_close()
    assert driver.closed and owner._over and owner._stiff


@pytest.mark.slow
def test_arm_without_a_rescue_policy_is_held(arm: Arm) -> None:
    """A program of somebody's own, that says nothing of parking, leaves it stiff and says so."""
    code = (
        "import time, json, sys, numpy as np\n"
        "from real_robot import Bus, BusConfig, Target\n"
        f"bus = Bus(BusConfig(robot='so101', where={arm.driver._config.where!r},"
        " options={'patience': 0.2}, deadline=2.0, patience=20.0))\n"
        "bus.connect(); bus.identify(); bus.enable()\n"
        "print(json.dumps(bus.pid), flush=True)\n"
        "input()\n"
    )
    bridge = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    bus = psutil.Process(json.loads(bridge.stdout.readline()))
    os.kill(bridge.pid, signal.SIGKILL)
    bus.wait(20.0)
    assert "TORQUE IS STILL ON, it holds its last target" in bridge.stderr.read()
    assert all(arm.control.call("joints")["torque"])
    bridge.wait()
    # The port is free again, and the arm as it was.
    arm.driver.connect()
    arm.driver.identify()
    assert len(arm.driver.joints_with_torque()) == 6 and all(arm.driver.relax().values())
