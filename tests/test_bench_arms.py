"""The table of policies on emulated arms: what it says, and what it will not take for its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_rl.experiments import arms
from robo_rl.runs import jsonable


def test_a_cell_says_share_interval_and_what_was_stopped() -> None:
    driven = {"successes": 96, "episodes": 100, "ended": {"done": 98, "safety_stop": 2}}
    row = {
        "task": "push", "goal": "red_cube_next_to_blue_ball", "arm": "ur5e",
        "simulation": {"success": 0.981, "low": 0.971, "high": 0.988},
        "without_limits": {"success": 0.972, "low": 0.96, "high": 0.981},
        "as it is": driven, "40 ms, 2 mm": driven | {"ended": {"done": 100}},
    }  # fmt: skip
    assert arms.markdown([row]).splitlines()[-1] == (
        "| push red_cube_next_to_blue_ball | ur5e | 98.1 (97.1-98.8) | "
        "97.2 (96.0-98.1) | "
        "96 (90-98, n=100, 2 stopped) | 96 (90-98, n=100) |  |"
    )


def test_a_run_of_other_settings_is_not_taken_for_this_one(tmp_path: Path) -> None:
    wanted = arms.config("push", "ur5e", tmp_path, seed=0)
    folder = tmp_path / wanted.name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(jsonable(wanted) | {"randomize": 0.0}))
    with pytest.raises(ValueError, match="other randomize; move it away"):
        arms._trained(wanted, None)
