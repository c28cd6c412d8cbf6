"""Calibrating an SO-101 fresh from the factory, with a hand that turns its joints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arms import so101

from real_robot import Target
from real_robot.drivers.calibration import Calibration
from real_robot.drivers.servo_setup import Setup, walk
from sims.robots import SO101


def test_a_fresh_arm_is_calibrated_and_then_measures_the_truth(tmp_path: Path) -> None:
    file = tmp_path / "arm.json"
    low = np.array([*-np.abs(SO101.joint_range).max(axis=1), SO101.gripper_range[0]])
    high = np.array([*np.abs(SO101.joint_range).max(axis=1), SO101.gripper_range[1]])
    middle = (low + high) / 2
    with so101(seed=6, calibrated=False) as arm:
        hand, asked, said = arm.emulator.hand, [], []

        def person(text: str) -> bool:
            asked.append(text)
            if "middle" in text:
                hand(list(middle))
                return True
            share = len(asked) - 2  # from stop to stop in four moves
            hand(list([middle, low, high, middle][min(share, 3)]))
            return share >= 4

        found = walk(Setup(arm.driver), file, said.append, person)
        assert said == ["Turn every joint from stop to stop, the gripper too."]
        arm.driver.close()
        arm.up()
        assert Calibration.load(file, arm.driver.joints).sha256 == found.sha256
        assert arm.driver.identify().calibration == found.sha256
        home = np.array([*SO101.home, 0.3])
        arm.driver.relax()
        hand(list(home))
        arm.wait(0.02)
        state = arm.driver.read()
        np.testing.assert_allclose(state.qpos, SO101.home, atol=0.003)
        opening = (0.3 - low[-1]) / (high[-1] - low[-1])
        assert state.gripper == pytest.approx(opening, abs=0.01)
        servo = arm.emulator.bus.servos[0]
        assert (servo.get("return_delay"), servo.get("p"), servo.get("lock")) == (0, 16, 1)
        arm.driver.enable()
        arm.driver.send(Target(SO101.home, 0.5))
        arm.wait(0.5)
        np.testing.assert_allclose(arm.truth()[:-1], SO101.home, atol=0.005)


def test_joints_that_were_not_turned_are_named(tmp_path: Path) -> None:
    with so101(calibrated=False) as arm:
        setup = Setup(arm.driver)
        setup.centre()
        setup.sweep()
        with pytest.raises(ValueError, match="shoulder_pan, .*gripper moved less than 300 steps"):
            setup.finish(tmp_path / "arm.json")
        assert not (tmp_path / "arm.json").exists()
