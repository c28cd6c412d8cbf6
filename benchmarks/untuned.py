"""Twelve goals that no preset, template or test was tuned for: numbers, order, constraints."""

from __future__ import annotations

from benchmarks import BenchmarkRow, Options
from benchmarks.training import policies, seeded
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import TrainConfig

SEEDS = (0, 1, 2)
RED, BLUE, GREEN = (f"touch(gripper, {n})" for n in ("red_cube", "blue_ball", "green_cylinder"))
BACK = (
    "and(moved(red_cube, left=0, front=0, tolerance=3cm), not(lifted(red_cube, height=1cm)), "
    "released(red_cube))"
)
GOALS = {
    "5 cm above the cylinder": ("reach", "above(gripper, green_cylinder, height=5cm)"),
    "red, then blue": ("reach", f"then({RED}, {BLUE})"),
    "each of three in turn": ("reach", f"then({RED}, {BLUE}, {GREEN})"),
    "red without blue": ("reach", f"and({RED}, never({BLUE}))"),
    "beside the ball for a second": ("reach", "hold(left_of(gripper, blue_ball), seconds=1)"),
    "between two things": ("reach", "between(gripper, red_cube, blue_ball)"),
    "15 cm from the ball": ("reach", "far(gripper, blue_ball, least=15cm)"),
    "the cube 8 cm to the left": ("push", "moved(red_cube, left=8cm)"),
    "the cube between ball and cylinder": ("push", "between(red_cube, blue_ball, green_cylinder)"),
    "cube and ball 20 cm apart": ("push", "far(red_cube, blue_ball, least=20cm)"),
    "pushed without touching the third": (
        "push",
        f"and(next_to(red_cube, blue_ball), never({GREEN}))",
    ),
    "lifted by 10 cm and put back": ("lift", f"then(lifted(red_cube, height=10cm), {BACK})"),
}


def rows(options: Options) -> list[BenchmarkRow]:
    """Each with its program from templates, by presets alone."""
    cases = {
        name: with_presets(TrainConfig(task=task, formula=formula, reward="offline"))
        for name, (task, formula) in GOALS.items()
    }
    return seeded(options, SEEDS, cases)


EXPERIMENT = policies(rows)
