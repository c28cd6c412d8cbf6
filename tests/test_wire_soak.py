"""Continuous running over each wire: on time, within limits, without growing."""

from __future__ import annotations

import pytest
from wire_soak import PATIENT, SPEED, soak


@pytest.mark.slow
@pytest.mark.parametrize("robot", PATIENT)
def test_wire_soak_one_minute(robot: str) -> None:
    told = soak(robot, 60.0, patient=True)
    assert told["memory_growth_kB"] < 4096
    assert told["beyond_limits"] == 0 and told["relaxed"]
    assert told["room_to_joint_limits_rad"] > 0 and told["share_of_speed_limit"] <= 1.0
    assert told["periods"] > 0 and told["highest_speed_rad_s"] >= 0.5 * SPEED  # it did move
    if told["missed_by_an_empty_loop"] > 0.01 * told["empty_periods"]:
        pytest.skip(f"this machine is busy: an empty loop missed {told['missed_by_an_empty_loop']}")
    assert told["missed"] <= 1.5 * told["missed_by_an_empty_loop"] + 0.01 * told["periods"]
