"""A step test of an emulated servo finds what the emulator was told to be, within its interval."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arms import Arm, so101
from rich.console import Console

from real_robot import Fault, RobotFault, drivers
from real_robot.drivers.servo_identification import Estimate, identify_servo
from real_robot.drivers.servo_step_test import SIZES, StepTest, StepTestStopped
from real_robot.emulators.control_port import Control
from real_robot.safety.fault_latch import FaultLatch
from robo_rl.cli import main
from robo_rl.commands.calibrate_servo import CalibrateServoCommand, run, servos_of, training_advice

ELBOW, ROLL = 2, 4
KP, KV = 998.22, 2.731  # the simulated servo's, at gains of 16 and 32
SERVOS = servos_of("so101")


def examined(arm: Arm, joint: int, swing: float = 0.0) -> dict[str, Estimate]:
    arm.up()
    test = StepTest(arm.driver, joint, arm.clock, swing)
    steps = test.run()
    arm.driver.relax()
    return identify_servo(steps, test.settings, float(arm.driver.stall[joint]))


def holds(found: Estimate, truth: float) -> bool:
    return found.low is not None and found.low <= truth <= found.high


@pytest.mark.parametrize(
    ("stiffness", "d", "dead"), [(10.0, 32, 1), (18.0, 16, 1), (18.0, 96, 8), (100.0, 32, 1)]
)
def test_servo_fit_covers_true_stiffness_and_damping(stiffness: float, d: int, dead: int) -> None:
    with so101(seed=3) as arm:
        arm.emulator.soften(stiffness)
        for name, value in {"d": d, "cw_dead_zone": dead, "ccw_dead_zone": dead}.items():
            arm.emulator.register(ELBOW, name, value)
        found = examined(arm, ELBOW)
    assert holds(found["stiffness"], stiffness), found
    assert holds(found["damping"], KV * math.sqrt(stiffness / KP) * d / 32), found
    assert holds(found["dead_band"], dead), found
    # The intervals say something, too.
    assert found["stiffness"].high / found["stiffness"].low < 1.25
    assert found["dead_band"].high - found["dead_band"].low < 4
    assert (found["load_sign"].value, found["speed_sign"].value) == (1, 1)
    assert 0 <= found["dead_time"].low <= found["dead_time"].high <= 0.005
    assert found["first_motion"].value > found["dead_time"].value


def test_saturated_servo_gives_a_stiffness_bound() -> None:
    with so101(seed=3) as arm:
        found = examined(arm, ELBOW)
    stiffness = found["stiffness"]
    assert stiffness.high is None and stiffness.note.startswith("at least; it saturates within")
    assert 150 < stiffness.low <= KP
    assert found["damping"].value is None and found["dead_band"].value is None
    assert "cannot distinguish the two" in training_advice(stiffness, SERVOS, ELBOW)


@pytest.mark.parametrize(
    ("low", "value", "high", "said"),
    [
        (900.0, 950.0, 1100.0, "as stiff as the simulated one"),
        (17.0, 18.0, 19.0, "with --randomize 0.9: its softest environments have 15.8 N m/rad"),
        (9.0, 10.0, 11.0, "with --randomize 1: its softest environments have 10 N m/rad"),
        (
            4.0,
            5.0,
            6.0,
            "--randomize 1 does not cover it: its softest environments have 10 N m/rad",
        ),
        (1500.0, 1600.0, 1700.0, "the servo is stiffer than in training"),
    ],
)
def test_servo_report_names_the_training_options(
    low: float, value: float, high: float, said: str
) -> None:
    found = Estimate(value, low, high, 100, "N m/rad", "")
    told = training_advice(found, SERVOS, ELBOW)
    assert said in told and (f"train with --stiffness {value:g}" in told) == (value < 900)


def test_static_friction_is_found_without_gravity_load() -> None:
    with so101(seed=3) as arm:
        arm.emulator.soften(18.0)
        arm.emulator.register(ROLL, "startup_force", 24)
        force = examined(arm, ROLL)["start_up_force"]
    assert holds(force, 0.024), force


def test_long_steps_show_the_top_speed() -> None:
    with so101(seed=3) as arm:
        found = examined(arm, 0, swing=1.5)
        highest = float(arm.emulator.physics.highest_speed[0])
    speed = found["speed_at_saturation"]
    assert speed.low is not None and speed.low <= highest <= (speed.high or math.inf)
    assert speed.low > 3.0


@pytest.mark.parametrize("opposite", ["load", "speed"])
def test_reversed_servo_sign_is_reported(opposite: str) -> None:
    with so101(seed=3) as arm:
        arm.emulator.soften(18.0)
        usual = arm.driver.probe

        def turned(joint: int):
            probe = usual(joint)
            return probe._replace(**{opposite: -getattr(probe, opposite)})

        arm.driver.probe = turned
        found = examined(arm, ELBOW)
    assert found[f"{opposite}_sign"].value == -1
    assert holds(found["stiffness"], 18.0)


def test_servo_test_ends_when_blocked_stopped_or_out_of_range() -> None:
    with so101(seed=3) as arm:
        arm.up()
        _, high = arm.driver.room(ELBOW)
        test = StepTest(arm.driver, ELBOW, arm.clock)
        with pytest.raises(StepTestStopped):
            test.run(stop=lambda: True)
        arm.emulator.block(ELBOW)
        with pytest.raises(RobotFault, match="is it blocked") as caught:
            test.run()
        assert caught.value.fault is Fault.STALL
        arm.emulator.block(None)
        arm.emulator.register(ELBOW, "goal_position", high - SIZES[-1] + 1)
        with pytest.raises(ValueError, match="64 from both: turn it further in"):
            StepTest(arm.driver, ELBOW, arm.clock)


def test_servo_test_names_a_joint_that_keeps_torque(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    told = CalibrateServoCommand(
        port="/dev/ttyACM0", joint="elbow_flex", out=tmp_path / "servo.json"
    )
    with so101(seed=3) as arm:
        enable, relax = arm.driver.enable, arm.driver.relax
        arm.driver.enable = lambda: (enable(), os.kill(os.getpid(), signal.SIGINT))
        arm.driver.relax = lambda: relax() | {"wrist_flex": False}
        monkeypatch.setattr(drivers, "make", lambda *args, **options: arm.driver)
        with pytest.raises(ValueError, match="torque is still on: wrist_flex; cut the power"):
            run(told, lambda text: True, Console(quiet=True), arm.clock)
        arm.driver.relax = relax
        with pytest.raises(KeyboardInterrupt):
            run(told, lambda text: True, Console(quiet=True), arm.clock)


def test_servo_test_refuses_an_arm_with_a_latched_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever way its adapter was named: it is one arm."""
    adapter = SimpleNamespace(device="/dev/ttyACM7", serial_number="5A46083213")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [adapter])
    FaultLatch.of("so101", "5A46083213").set(Fault.OVERLOAD, "overload: elbow")
    for port in ("/dev/ttyACM7", "5A46083213"):
        assert main(["calibrate", "servo", "--port", port, "--joint", "elbow_flex"]) == 1
        assert "this arm has a latched fault: overload: elbow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--robot", "koch", "--joint", "elbow_flex"], "calibrate servo does not support koch"),
        (["--joint", "elbow"], "unknown joint 'elbow'; available: shoulder_pan, "),
        (["--joint", "elbow_flex", "--swing", "3"], "--swing must be from 0 to 1.57 rad"),
        (["--joint", "elbow_flex"], "so101 at /dev/nothing: disconnected: cannot open"),
    ],
)
def test_servo_test_errors_are_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "servo", "--port", "/dev/nothing", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("robo-rl: ") and words in said and said.count("\n") == 1


@pytest.mark.slow
def test_servo_test_command_in_real_time(tmp_path: Path) -> None:
    """Waits for Enter, writes its file whole, and lets go; Ctrl-C lets go, too."""
    emulator = subprocess.Popen(
        [sys.executable, "-m", "robo_rl.cli", "emulate", "so101", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        told = json.loads(emulator.stdout.readline())
        control = Control(told["control"])
        control.call("soften", stiffness=18.0)
        out = tmp_path / "servo.json"
        command = [
            sys.executable,
            "-m",
            "robo_rl.cli",
            "calibrate",
            "servo",
            "--port",
            told["where"],
            "--joint",
            "elbow_flex",
            "--out",
            str(out),
        ]
        environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "COLUMNS": "160"}
        done = subprocess.run(
            command, input="\n", capture_output=True, text=True, env=environment, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert "elbow_flex will turn by up to 6 degrees" in done.stderr
        found = json.loads(out.read_text())["found"]["stiffness"]
        assert found["low"] <= 18.0 <= found["high"], found
        assert "train with --randomize 0.9" in done.stdout and not list(tmp_path.glob("*.new"))
        assert not any(control.call("joints")["torque"])

        stopped = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        stopped.stdin.write("\n")
        stopped.stdin.flush()
        for _ in range(200):
            if np.all(control.call("joints")["torque"]):
                break
            signal.sigtimedwait([], 0.1)
        stopped.send_signal(signal.SIGINT)
        _, said = stopped.communicate(timeout=30)
        assert stopped.returncode == 130 and "stopped by Ctrl-C" in said
        assert not any(control.call("joints")["torque"])
        control.close()
    finally:
        emulator.send_signal(signal.SIGINT)
        emulator.wait(30)
