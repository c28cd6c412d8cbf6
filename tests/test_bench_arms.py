"""The table of policies on emulated arms."""

from __future__ import annotations

from robo_rl.experiments import arms


def test_a_cell_says_share_interval_and_what_was_stopped() -> None:
    driven = {"successes": 96, "episodes": 100, "ended": {"done": 98, "safety_stop": 2}}
    row = {
        "task": "push", "goal": "red_cube_next_to_blue_ball", "arm": "ur5e",
        "simulation": {"success": 0.981, "low": 0.971, "high": 0.988},
        "without_limits": {"success": 0.972, "low": 0.96, "high": 0.981},
        "as it is": driven, "40 ms, 2 mm": driven | {"ended": {"done": 100}},
    }  # fmt: skip
    assert arms.shown([row]).splitlines()[-1] == (
        "| push red_cube_next_to_blue_ball | ur5e | 98.1 (97.1-98.8) | "
        "97.2 (96.0-98.1) | "
        "96 (90-98, n=100, 2 stopped) | 96 (90-98, n=100) |"
    )
