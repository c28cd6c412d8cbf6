"""Goals that nothing could reach are refused before anything is trained on them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import sims
from real_robot.sim.scene import SimScene
from reward_models.goals import parse
from robo_rl.goals import feasibility
from robo_rl.goals.feasibility import DecidedAtStart, Unreachable, check_feasible
from robo_rl.goals.goal_task import GoalTask, make_goal_task
from sims.envs.batch_env import BatchEnv
from sims.truth.reachability import within_reach

CUBE, BALL = "gripper, red_cube", "gripper, blue_ball"


def asked(formula: str, task: str = "reach", robot: str = "so101") -> GoalTask:
    return make_goal_task(sims.make_task(task, robot=robot), parse(formula))


@pytest.fixture
def fewer_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks for a goal among a thousand states instead of four thousand."""
    monkeypatch.setattr(feasibility, "SCATTERED", 4)


@pytest.mark.parametrize("robot", ["so101", "ur5e"])
def test_unreachable_number_error_gives_the_limit(
    robot: str, request: pytest.FixtureRequest
) -> None:
    if robot == "ur5e":
        request.getfixturevalue("fewer_states")
    task = asked(f"then(touch({CUBE}), above({BALL}, height=50cm))", robot=robot)
    with pytest.raises(Unreachable, match=r"above the blue ball.*found: height 0\.\d+ m") as error:
        check_feasible(task)
    request.getfixturevalue("fewer_states")
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
@pytest.mark.usefixtures("fewer_states")
def test_contradictory_or_out_of_workspace_goals_are_refused(formula: str, task: str) -> None:
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
def test_reachable_goals_are_accepted(formula: str, task: str) -> None:
    check_feasible(asked(formula, task))


def test_goal_met_at_the_start_is_refused() -> None:
    with pytest.raises(DecidedAtStart, match="100 % of its episodes the goal is decided before"):
        check_feasible(asked(f"far({CUBE}, least=1cm)"))


@pytest.mark.usefixtures("fewer_states")
def test_training_of_an_unreachable_goal_leaves_no_run(tmp_path: Path, capsys) -> None:
    from robo_rl.cli import main

    args = ["train", "reach", "--formula", f"above({CUBE}, height=50cm)", "--reward", "offline"]
    assert main([*args, "--runs", str(tmp_path)]) != 0
    assert "found: height 0." in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("robot", ["so101", "ur5e", "fr3"])
def test_starts_with_an_unreachable_end_are_resampled(robot: str) -> None:
    """A cube at the left end of the table cannot go 15 cm further to the left; its row is drawn
    anew, by the simulator and by the bridge's scenes alike."""
    task = asked("moved(red_cube, left=15cm)", "push", robot)
    far = asked("moved(red_cube, left=3cm)", "push", robot)
    place = task.arm.workspace
    with closing(BatchEnv(task, 256, seed=5)) as env, closing(BatchEnv(far, 256, seed=5)) as same:
        env.reset(), same.reset()
        starts = [e.signals()["red_cube_pos"][:, :2] for e in (env, same)]
        ends = [start + [0.0, -0.15] for start in starts]
        assert within_reach(ends[0], place)[~env.held].all()
        lost = ~within_reach(ends[1], place)  # of the first draw
        assert 0 < lost.mean() < 1 and env.held.mean() < 0.02
        moved = (starts[0] != starts[1]).any(axis=1)
        assert (moved == lost).all()
    scenes = [SimScene(task, seed) for seed in range(8)]
    at = np.array([scene.poses()["red_cube"][0][:2] for scene in scenes])
    assert within_reach(at + [0.0, -0.15], place).all()


def test_goal_whose_end_is_always_unreachable_is_refused() -> None:
    with pytest.raises(DecidedAtStart, match="100 % of its episodes.*out of reach"):
        check_feasible(asked("then(touch(gripper, red_cube), moved(red_cube, left=50cm))", "push"))
