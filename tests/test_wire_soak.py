"""Continuous running over each wire: on time, within limits, without growing."""

from __future__ import annotations

from typing import Any

import pytest
from wire_soak import PERIOD, SPEED, soak

# For a machine that is not idle: what a reply may take, what the controller's watchdog bears.
SLACK: dict[str, dict[str, Any]] = {
    "so101": {"patience": 0.2},
    "ur5e": {"watchdog": 0.5, "stale": 1.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("robot", SLACK)
def test_a_minute_of_continuous_running(robot: str) -> None:
    told = soak(robot, 60.0, **SLACK[robot])
    assert told["memory_growth_kB"] < 4096
    assert told["beyond_limits"] == 0 and told["relaxed"]
    # A skipped period makes the next step longer: as many periods as were missed in a row.
    assert told["periods"] > 0 and told["largest_step_rad"] >= 0.5 * SPEED * PERIOD
    if told["missed_by_an_empty_loop"] > 0.01 * told["empty_periods"]:
        pytest.skip(f"this machine is busy: an empty loop missed {told['missed_by_an_empty_loop']}")
    assert told["missed"] <= 1.5 * told["missed_by_an_empty_loop"] + 0.01 * told["periods"]
