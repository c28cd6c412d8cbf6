"""Hostile actions through filter, driver and wire: what the device end was told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hostile import Hostile

import sims
from real_robot import Clearance, SafetyFilter, SafetyStop
from real_robot.core.config import RunConfig
from real_robot.drivers.calibration import UNIT
from real_robot.safety.guarded_driver import GuardedDriver
from robo_rl.arm.emulated import EmulatedStage
from robo_rl.arm.stage import closing

TICK = {"so101": UNIT, "ur5e": 1e-9, "koch": UNIT}  # rad, that a target is rounded to


def traffic(stage: EmulatedStage, robot: str) -> dict[str, Any]:
    """What the device end has seen; the UR's is another process."""
    end = stage._end
    return end._control.call("traffic") if robot == "ur5e" else end._now().traffic()


@pytest.mark.parametrize(
    "robot", ["so101", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ur5e", "koch"))]
)
@pytest.mark.parametrize("actions", [200, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.fault(18, 19, 21, 23, 24)
def test_hostile_actions_over_the_wire_stay_within_limits(robot: str, actions: int) -> None:
    task, hostile = sims.make_task("reach", robot=robot), Hostile(sims.ROBOTS[robot], 2)
    with closing(EmulatedStage(task)) as stage:
        scene = stage.scene(1)
        driver, clock = scene.driver, scene.clock
        driver.connect()
        driver.identify()
        driver.enable()
        about = driver.describe()
        safety = SafetyFilter.build(about, clearance=Clearance.of(task), patience=1e9)
        arm = GuardedDriver(driver, safety, clock, RunConfig())
        arm.seed()
        before = traffic(stage, robot)  # UR's program is told the present pose as it starts
        stops, sent = [], []
        for k in range(actions):
            try:
                arm.exchange(lambda state, k=k: hostile(k, arm.memory.qpos))
            except SafetyStop as stop:
                stops.append((k, stop))
                arm.brake()
            sent.append(arm.sent.qpos)
            clock.sleep_until_ns(clock.now_ns() + round(about.period * 1e9))
        told = traffic(stage, robot)
        driver.relax()
        driver.close()
    n, sent = len(about.joints), np.array(sent)
    low, high, step = (
        np.array(told[f"goal_{name}"], float)[:n] for name in ("low", "high", "step")
    )
    first = (np.array(before[f"goal_{name}"], float)[:n] for name in ("low", "high"))
    print(  # shown with pytest -s
        f"{robot}: {actions} actions, {len(stops)} stops, "
        f"fastest {(step / about.period / about.velocity).max():.3f} of the limit"
    )
    assert [k for k, _ in stops] == [k for k in range(actions) if hostile.bad(k)], stops
    # Position: exactly what was sent, all of it within the joints' limits.
    np.testing.assert_allclose(low, np.fmin(sent.min(axis=0), next(first)), atol=1e-9)
    np.testing.assert_allclose(high, np.fmax(sent.max(axis=0), next(first)), atol=1e-9)
    assert (low >= about.position[:, 0]).all() and (high <= about.position[:, 1]).all()
    assert told.get("beyond_limits", 0) == 0
    assert (step <= about.velocity * about.period + TICK[robot]).all()
    assert np.ptp(sent, axis=0).max() > 0.5 or actions < 1000  # it was not just frozen
