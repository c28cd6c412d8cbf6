"""Goals that nothing could reach are refused before anything is trained on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import sims
from reward_models.goals import parse
from robo_rl.feasible import Decided, Unreachable, check_feasible
from robo_rl.goal_task import GoalTask, goal_task

CUBE, BALL = "gripper, red_cube", "gripper, blue_ball"


def asked(formula: str, task: str = "reach", robot: str = "so101") -> GoalTask:
    return goal_task(sims.make_task(task, robot=robot), parse(formula))


@pytest.mark.parametrize("robot", ["so101", "ur5e"])
def test_a_number_out_of_reach_says_how_far_it_may_go(robot: str) -> None:
    task = asked(f"then(touch({CUBE}), above({BALL}, height=50cm))", robot=robot)
    with pytest.raises(Unreachable, match=r"above the blue ball.*found: height 0\.\d+ m") as error:
        check_feasible(task)
    height = float(str(error.value).rpartition("height ")[2].split()[0])
    assert 0.1 < height < 0.4
    check_feasible(asked(f"above({BALL}, height={height - 0.03})", robot=robot))
    with pytest.raises(Unreachable):
        check_feasible(asked(f"above({BALL}, height={height + 0.06})", robot=robot))


@pytest.mark.parametrize(
    ("formula", "task"),
    [
        (f"and(left_of({CUBE}), right_of({CUBE}))", "reach"),
        (f"and(touch({CUBE}), always(far({CUBE})))", "reach"),
        (f"or(above({CUBE}, height=60cm), at_point(gripper, x=1.5, y=0))", "reach"),
        (f"hold(and(touch({CUBE}), not(touch({CUBE}, within=4cm))), seconds=1)", "reach"),
        ("until(still(gripper), far(red_cube, blue_ball, least=1.5))", "push"),
    ],
)
def test_what_excludes_itself_or_lies_outside_is_refused(formula: str, task: str) -> None:
    with pytest.raises(Unreachable, match="in none of"):
        check_feasible(asked(formula, task))


@pytest.mark.parametrize(
    ("formula", "task"),
    [
        (f"then(touch({CUBE}), touch({BALL}), hold(far({BALL}, least=15cm), seconds=1))", "reach"),
        (f"and(touch({CUBE}), never(touch({BALL})))", "reach"),
        (f"or(above({CUBE}, height=60cm), touch({BALL}))", "reach"),
        ("and(touch(gripper, red_cube), always(slower(gripper, speed=0.05)))", "reach"),
        ("moved(red_cube, left=8cm)", "push"),
        ("toppled(green_cylinder)", "push"),
        ("then(open(drawer), inside(red_cube, drawer), closed(drawer))", "drawer_then_place"),
    ],
)
def test_what_can_be_reached_is_not_refused(formula: str, task: str) -> None:
    check_feasible(asked(formula, task))


def test_a_goal_that_is_met_from_the_start_is_refused() -> None:
    with pytest.raises(Decided, match="100 % of its episodes the goal is decided before"):
        check_feasible(asked(f"far({CUBE}, least=1cm)"))


def test_training_refuses_and_leaves_no_run(tmp_path: Path, capsys) -> None:
    from robo_rl.cli import main

    args = ["train", "reach", "--formula", f"above({CUBE}, height=50cm)", "--reward", "offline"]
    assert main([*args, "--runs", str(tmp_path)]) != 0
    assert "found: height 0." in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())
