"""Goals of bodies: the truth says yes to the very pose or movement, and no to what is near it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import sims
from sims import BatchEnv
from sims.core.task import TaskGoal
from sims.tasks.locomotion import up_axis_height

Array = np.ndarray


def begun(name: str, goal: str, rows: int = 1) -> tuple[BatchEnv, TaskGoal]:
    env = sims.make(name, rows, goal=goal, num_threads=1)
    env.reset()
    return env, env.task.goals()[goal]


def moved(env: BatchEnv) -> None:
    """Makes the views current after something was written into the state by hand."""
    env.batch.forward()
    env.task.after_step(env.views, np.arange(env.num_envs))


@pytest.mark.parametrize(("goal", "sign"), [("front_flip", 1), ("back_flip", -1)])
def test_flip_requires_a_full_airborne_turn_and_landing(goal: str, sign: int) -> None:
    env, truth = begun("hopper", goal, 5)
    v = env.views
    # Rows: a flip; the other way round; rolled on the floor; half a turn and back; fallen at last.
    for share in np.linspace(0, 1, 60):
        turn = 2 * np.pi * share
        v.qpos[:, 1] = 1.3
        v.qpos[2, 1] = 0.25 if 0.1 < share < 0.9 else 1.2
        v.qpos[4, 1] = 1.3 if share < 0.8 else 0.3
        v.qpos[:, 2] = sign * np.array([turn, -turn, turn, np.pi * np.sin(np.pi * share), turn])
        moved(env)
        if share < 0.85:
            assert not truth.success(v).any()
    assert truth.success(v).tolist() == [True, False, False, False, False]
    assert truth.distance(v)[0] == 0 and (truth.distance(v)[1:] > 0).all()
    env.reset()
    assert not truth.success(v).any()  # forgotten


def test_turning_the_right_way_in_the_air_is_rewarded() -> None:
    env, truth = begun("hopper", "front_flip", 2)
    env.views.qpos[:, 1] = 1.5
    env.views.qvel[:, 2] = 5.0, -5.0
    result = env.step(np.zeros((2, 3)))
    turn = result.info["reward/turn"]
    assert turn[0] > 3 and turn[1] < -3
    assert truth.distance(env.views)[0] < truth.distance(env.views)[1]


def test_wave_requires_three_swings_of_a_raised_foot() -> None:
    env, truth = begun("ant", "wave", 4)
    v = env.views
    swings = [0.4, -0.4, 0.4]
    for i, swing in enumerate(swings):
        v.qpos[:, 2] = 1.5
        v.qpos[:, 3:7] = (1.0, 0.0, 0.0, 0.0)
        # Rows: a wave; two legs taking turns; too small; put down in between.
        v.qpos[:, v.hips[0]] = swing, swing if i % 2 else 0.0, 0.1 * swing, swing
        v.qpos[1, v.hips[1]] = 0.0 if i % 2 else swing
        moved(env)
        if i == 1:
            v.qpos[3, 2] = 0.1
            moved(env)
    assert truth.success(v).tolist() == [True, False, False, False]
    v.qpos[0, 2] = 0.1
    moved(env)
    assert truth.success(v)[0]  # a wave has been waved, wherever the foot is now
    v.qpos[1:, 3:7] = (0.0, 1.0, 0.0, 0.0)
    for swing in swings:  # on its back, legs in the air
        v.qpos[1:, v.hips[2]] = swing
        moved(env)
    assert not truth.success(v)[1:].any()


def test_lying_down_requires_back_contact_at_rest() -> None:
    env, truth = begun("ant", "lie_down", 3)
    v = env.views
    v.qvel[:] = 0
    v.qpos[:, 3:7] = [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)]
    v.qvel[2, 0] = 1.0
    moved(env)
    assert np.allclose(up_axis_height(v.qpos[:, 3:7]), [-1, 1, -1])
    assert truth.success(v).tolist() == [True, False, False]


def test_standing_up_is_not_met_while_lying() -> None:
    lying, truth = begun("humanoid", "stand_up", 8)
    assert not truth.success(lying.views).any()
    height = up_axis_height(lying.views.qpos[:, 3:7])
    assert np.abs(height).max() < 0.1  # it starts on its back
    for _ in range(60):
        lying.step(np.zeros((8, 17)))
    assert lying.num_diverged == 0 and not truth.success(lying.views).any()
    assert (lying.views.qpos[:, 2] < 0.4).all()
    standing, _ = begun("humanoid", "kneel", 1)
    assert lying.task.goals()["stand_up"].success(standing.views).all()


def test_kneeling_requires_both_knees_and_upright_torso() -> None:
    env, truth = begun("humanoid", "kneel", 4)
    v = env.views
    assert not truth.success(v).any()  # it starts standing
    knees = [env.model.joint(f"{side}_knee").qposadr[0] for side in ("right", "left")]
    v.qpos[:, knees] = -np.pi / 2
    v.qpos[:, 2] = 0.95
    v.qpos[1, knees[0]] = -0.1  # a leg that is straight goes through the floor: not knelt on
    v.qpos[1, 2] = 1.2
    v.qpos[2, 2] = 1.6  # in the air
    v.qpos[3, 3:7] = np.cos(0.6), 0.0, np.sin(0.6), 0.0  # bent over
    moved(env)
    assert truth.success(v).tolist() == [True, False, False, False]


@pytest.mark.parametrize("name", ["humanoid", "ant"])
def test_random_starts_of_bodies_lie_stand_or_kneel(name: str) -> None:
    env = sims.BatchEnv(sims.make_task(name), 256, seed=3)
    env.scatter()
    model, data, lowest = env.model, mujoco.MjData(env.model), []
    for qpos in env.views.qpos:
        data.qpos[:] = qpos
        mujoco.mj_forward(model, data)
        gaps = [
            mujoco.mj_geomDistance(model, data, 0, geom, 9.0, None)
            for geom in range(1, model.ngeom)
        ]
        lowest.append(min(gaps))
    np.testing.assert_allclose(lowest, 0.0, atol=1e-9)
    upright = 1 - 2 * (env.views.qpos[:, 4:6] ** 2).sum(axis=1)
    assert (upright > 0.9).sum() > 100 and (upright < 0).sum() > 25
    if name == "humanoid":
        knees = env.task.limbs(env.views, "shin")[:, :, 2].max(axis=1)
        assert ((knees < 0.25) & (upright > 0.8)).sum() > 5


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d"])
def test_floor_is_rendered_far_from_the_origin(name: str) -> None:
    env = sims.make(name, 1, seed=3)
    env.reset()
    here, floor = env.state(), env.model.geom("floor").size[0]
    far, squares = here.copy(), env.model.material("MatPlane").texrepeat[0] / floor
    far[0, 1] += np.round(400.0 * squares) / squares  # a whole number of them
    frames = [env.render_states(state, size=(96, 96))[0].astype(int) for state in (here, far)]
    assert (np.abs(frames[0] - frames[1]).max(axis=-1) > 32).mean() < 0.02
    assert frames[0][-24:].std() > 40  # squares of a floor, and no sky
    env.close()


def test_random_starts_include_flips_in_progress() -> None:
    env = sims.BatchEnv(sims.make_task("hopper", goal="front_flip"), 128, seed=3, scattered=1.0)
    env.reset()
    v, goals = env.views, env.task.goals()
    flips = [goals[name].success for name in ("front_flip", "back_flip")]
    turn = np.stack([v.qpos[:, 2], -v.qpos[:, 2]], axis=1)
    tossed = np.abs(turn[:, 0]) > 0.2
    assert 0.3 < tossed.mean() < 0.7 and 0.25 < (turn[tossed, 0] > 0).mean() < 0.75
    assert (v.over == (turn > np.pi)).all() and v.over.any(axis=0).all()
    landed = np.stack([success(v) for success in flips], axis=1)
    assert not landed.any()  # who is over must still land
    for _ in range(40):
        env.step(np.zeros((128, 3)))
        landed |= np.stack([success(v) for success in flips], axis=1)
    assert ((0 < landed.sum(axis=0)) & (landed.mean(axis=0) < 0.25)).all() and (
        turn[landed] > 0
    ).all()


def test_raised_arms_requires_both_hands_above_the_head() -> None:
    env, truth = begun("humanoid", "arms_raised", 4)
    v, model = env.views, env.model
    assert not truth.success(v).any()
    signs = {"right": 1, "left": -1}

    def raise_arm(row: int, side: str) -> None:
        for joint, angle in (("shoulder1", -1.44), ("shoulder2", 0.4), ("elbow", -1.5)):
            sign = signs[side] if joint != "elbow" else 1
            v.qpos[row, model.joint(f"{side}_{joint}").qposadr[0]] = sign * angle

    for row, sides in enumerate((("right", "left"), ("right",), ("left",), ("right", "left"))):
        for side in sides:
            raise_arm(row, side)
    v.qpos[3, 2] = 0.6  # not on its feet
    moved(env)
    assert truth.success(v).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        (name, goal)
        for name in ("hopper", "ant", "humanoid")
        for goal in sims.make_task(name).goals()
    ],
)
def test_zero_action_reaches_no_body_goal(name: str, goal: str) -> None:
    env, _truth = begun(name, goal, 3)
    reached = np.zeros(3, bool)
    for _ in range(120):
        reached |= env.step(np.zeros((3, env.act_dim))).info["success"]
    assert not reached.any()


def test_only_gymnasiums_goal_terminates_early() -> None:
    for goal, ends in (("forward", True), ("front_flip", False)):
        env, _ = begun("hopper", goal)
        env.views.qpos[:, 1] = 0.3
        assert env.step(np.zeros((1, 3))).terminated.tolist() == [ends]


def test_body_signals_match_the_current_state() -> None:
    for name in ("ant", "humanoid"):
        env, twin = sims.make(name, 3, seed=2), sims.make(name, 3)
        env.reset()
        for _ in range(5):
            env.step(np.full((3, env.act_dim), 0.5))
        twin.set_state(env.state())
        for key, value in twin.signals().items():
            np.testing.assert_array_equal(env.signals()[key], value)
        # Asking does not change what comes next.
        asked, silent = (sims.make(name, 3, seed=2) for _ in range(2))
        for other in (asked, silent):
            other.reset()
        for _ in range(5):
            asked.signals()
            action = np.full((3, env.act_dim), -0.3)
            assert (asked.step(action).obs == silent.step(action).obs).all()
