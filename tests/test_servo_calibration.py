"""Calibrating an arm of servos fresh from the factory, with a hand that turns its joints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arms import ARMS

import sims
from real_robot import RobotFault, Target
from real_robot.drivers.calibration import Calibration
from real_robot.drivers.servo_setup import ServoCalibration, run_calibration
from robo_rl.cli import main

SET = {
    "so101": {"return_delay": 0, "p": 16, "lock": 1},
    "koch": {"return_delay": 0, "drive_mode": 0, "operating_mode": 4},
}


@pytest.mark.parametrize("name", SET)
def test_calibration_of_a_new_arm_gives_true_angles(tmp_path: Path, name: str) -> None:
    file, robot = tmp_path / "arm.json", sims.ROBOTS[name]
    low, high = np.array([*robot.joint_range, robot.gripper_range]).T
    if name == "so101":  # the zero of its joints is the middle of their travel
        low[:-1], high[:-1] = np.array([-1, 1])[:, None] * np.abs(robot.joint_range).max(axis=1)
    middle = (low + high) / 2
    with ARMS[name](seed=6, calibrated=False) as arm:
        hand, asked, said = arm.emulator.hand, [], []

        def person(text: str) -> bool:
            asked.append(text)
            if "middle" in text:
                hand(list(middle))
                return True
            share = len(asked) - 2  # from stop to stop in four moves
            hand(list([middle, low, high, middle][min(share, 3)]))
            return share >= 4

        found = run_calibration(ServoCalibration(arm.driver), file, said.append, person)
        assert said == ["Turn every joint from stop to stop, the gripper too."]
        arm.driver.close()
        arm.up()
        assert Calibration.load(file, arm.driver.joints).sha256 == found.sha256
        assert arm.driver.identify().calibration == found.sha256
        home = np.array([*robot.home, 0.3])
        arm.driver.relax()
        hand(list(home))
        arm.wait(0.02)
        state = arm.driver.read()
        np.testing.assert_allclose(state.qpos, robot.home, atol=0.003)
        opening = (0.3 - low[-1]) / (high[-1] - low[-1])
        assert state.gripper == pytest.approx(opening, abs=0.01)
        servo = arm.emulator.bus.servos[0]
        assert {register: servo.get(register) for register in SET[name]} == SET[name]
        arm.driver.enable()
        arm.driver.send(Target(robot.home, 0.5))
        arm.wait(0.5)
        np.testing.assert_allclose(arm.truth()[:-1], robot.home, atol=0.006)


def test_calibration_keeps_the_range_of_an_endless_joint(tmp_path: Path) -> None:
    """The Koch's wrist has no stop: what it reads then was once taken for the other end."""
    robot = sims.ROBOTS["koch"]
    low, high = np.array([*robot.joint_range, robot.gripper_range]).T
    with ARMS["koch"](seed=6, calibrated=False) as arm:
        middle = (low + high) / 2
        arm.emulator.hand(list(middle))
        setup = ServoCalibration(arm.driver)
        setup.centre()
        for share in (-1.0, 1.0, 0.0):
            turned = middle + share * (high - low) / 2
            turned[4] = middle[4] + share * 0.52 * 2 * np.pi
            arm.emulator.hand(list(turned))
            setup.sweep()
        wrist = setup.finish(tmp_path / "arm.json").joints["wrist_roll"]
        assert (wrist.range_min, wrist.range_max) == (0, 4095)


@pytest.mark.parametrize("name", SET)
def test_interrupted_calibration_leaves_no_calibration(tmp_path: Path, name: str) -> None:
    """Its zero is new, and its ranges would be those of the old one."""
    robot = sims.ROBOTS[name]
    low, high = np.array([*robot.joint_range, robot.gripper_range]).T
    with ARMS[name](seed=6) as arm:
        arm.up()
        arm.driver.relax()
        arm.emulator.hand(list((low + high) / 2))

        def person(text: str) -> bool:
            if "middle" in text:
                return True
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_calibration(ServoCalibration(arm.driver), tmp_path / "arm.json", print, person)
        arm.driver.close()
        arm.driver.connect()
        with pytest.raises(
            RobotFault, match="is not calibrated: calibration was not finished; run robo-rl"
        ):
            arm.driver.identify()


def test_calibration_names_joints_that_did_not_move(tmp_path: Path) -> None:
    with ARMS["so101"](calibrated=False) as arm:
        setup = ServoCalibration(arm.driver)
        setup.centre()
        setup.sweep()
        with pytest.raises(ValueError, match="shoulder_pan, .*gripper moved fewer than 300 steps"):
            setup.finish(tmp_path / "arm.json")
        assert not (tmp_path / "arm.json").exists()


@pytest.mark.parametrize("name", SET)
def test_calibrate_with_a_missing_port_is_a_one_line_error(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", name, "--port", "/dev/nothing"]) == 1
    said = capsys.readouterr().err
    assert f"robo-rl: {name} at /dev/nothing: disconnected: cannot open" in said
    assert "Traceback" not in said
