"""The contract of a task, checked for every task, robot and goal."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import mujoco
import numpy as np
import pytest

import sims
from reward_models.base import from_dict
from reward_models.goals import fill, parse
from reward_models.goals.formula import to_data
from sims import BatchEnv, robots
from sims.core import terms
from sims.core.step_result import StepResult
from sims.core.task import ObsPart, RangePart, Task
from sims.tasks.push import NEXT_TO
from sims.tasks.scene.manipulation import ManipulationTask
from sims.tasks.scene.scene_objects import THINGS
from sims.tasks.scene.tabletop import LEFT, Tabletop
from sims.truth import SuccessJudge

Array = np.ndarray


def has_robot(task: type[Task[Any]]) -> bool:
    return "robot" in {f.name for f in dataclasses.fields(task)}


# Every task on its first arm; on the others every third, and all of them in `make check`.
CASES = [
    pytest.param(
        name,
        robot,
        id=f"{name}-{robot}" if robot else name,
        marks=[pytest.mark.slow] if arm and (number + arm) % 3 else [],
    )
    for number, (name, task) in enumerate(sims.TASKS.items())
    for arm, robot in enumerate(robots.robots_for_task(name) if has_robot(task) else [None])
]
ALL_GOALS = [
    (name, robot, goal)
    for name, robot in (case.values for case in CASES)
    for goal in sims.make_task(name, robot=robot).goals()
]
# Every goal on the first arm; on the others every eighth, and all of them in `make check`.
FIRST = next(iter(sims.ROBOTS))
GOALS = [row for row in ALL_GOALS if row[1] in (None, FIRST)]
GOALS += [row for row in ALL_GOALS if row[1] not in (None, FIRST)][::8]
OTHER_GOALS = [pytest.param(*row, marks=pytest.mark.slow) for row in ALL_GOALS if row not in GOALS]
SOLVED = [row for row in GOALS if sims.TASKS[row[0]].has_expert]
UNSOLVED = [(name, goal) for name, robot, goal in GOALS if not sims.TASKS[name].has_expert]
EPISODES = 12  # of the expert; a thousand in `make check`
ROWS = 8  # environments of random play
LONG = 32  # steps of random play; episodes of bodies that run are a thousand steps long
ARMS = pytest.mark.parametrize("robot", sims.ROBOTS)


@functools.cache
def played(
    name: str, robot: str | None
) -> tuple[BatchEnv, list[StepResult], list[dict[str, Array]]]:
    """The env, results and signals of random play: smooth from the task's initial states, then
    rough from scattered ones."""
    env = sims.make(name, ROWS, seed=5, robot=robot)
    rng, results, signals = np.random.default_rng(0), [], []
    for rough in (False, True):
        env.scatter() if rough else env.reset()
        action = np.zeros((ROWS, env.act_dim))
        for step in range(min(env.max_steps, LONG)):
            if not rough:
                action = np.clip(0.9 * action + 0.5 * rng.normal(size=action.shape), -1, 1)
            elif step < LONG // 2 or step % 5 == 0:
                # The corners of the action box are the roughest that a policy can be.
                action = rng.choice([-1.0, 1.0], action.shape)
            results.append(env.step(action))
            if step % 10 == 0:
                signals.append(env.signals())
    return env, results, signals


def solve(
    name: str, robot: str | None, goal: str, episodes: int, seed: int
) -> tuple[BatchEnv, list[Any]]:
    """The expert's episodes: the env after the last step, and (success, distance, info) of each."""
    env = sims.make(name, episodes, seed=seed, robot=robot, goal=goal)
    env.reset()
    rng, trace = np.random.default_rng(0), []
    for _ in range(env.max_steps):
        result = env.step(env.task.expert(env.views, rng))
        trace.append((result.info["success"], env.distance(), result))
    return env, trace


# Shapes and types.
@pytest.mark.parametrize(("name", "robot"), CASES)
def test_obs_are_named_float32_columns(name: str, robot: str | None) -> None:
    env, results, _ = played(name, robot)
    for obs in (env.reset(), *(result.obs for result in results)):
        assert obs.dtype == np.float32 and obs.shape == (ROWS, env.obs_dim)
        assert np.isfinite(obs).all()
    assert len(set(env.obs_names)) == env.obs_dim == len(env.obs_names)


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_arms_declare_observation_parts_and_actions(name: str, robot: str | None) -> None:
    task = played(name, robot)[0].task
    assert bool(task.obs_parts()) == (robot is not None) == bool(task.action_doc())
    assert len(task.action_doc()) in (0, task.act_dim)


def test_an_observation_part_is_scaled_or_a_share_of_a_range() -> None:
    sensed = {"a": np.array([[0.25, 2.0], [0.75, 4.0]]), "b": np.array([[1.0, 1.0], [2.0, 1.0]])}
    part = ObsPart("a", 1, 2.0, "b", offset=1.0)
    np.testing.assert_array_equal(part.value(sensed), [[-0.5], [-1.5]])
    share = RangePart("a", 1, 0.25, 0.75)
    np.testing.assert_array_equal(share.value(sensed), [[0.0], [1.0]])
    assert dataclasses.asdict(share) == dataclasses.asdict(ObsPart("a", 1, 2.0, offset=-0.5))


def test_a_task_without_observation_is_refused() -> None:
    hopper, reach = sims.TASKS["hopper"], sims.TASKS["reach"]
    task = type("NoObs", (hopper,), {"obs": Task.obs})()
    with pytest.raises(TypeError, match="'hopper' must define obs_parts or override obs"):
        BatchEnv(task, 1)
    parts = {"elbow": (ObsPart("elbow", 1),)}
    task = type("UnknownPart", (reach,), {"obs_parts": lambda self: parts})()
    with pytest.raises(ValueError, match="names elbow, which neither signal_readers nor"):
        BatchEnv(task, 1)


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_signals_match_their_documentation(name: str, robot: str | None) -> None:
    env, _, played_signals = played(name, robot)
    docs = {doc.name: doc for doc in env.task.signal_docs()}
    env.scatter()
    for signals in [*played_signals, env.signals()]:
        assert signals.keys() == docs.keys()
        for key, value in signals.items():
            low, high = docs[key].range
            slack = 0.05 * (high - low)  # joint limits are soft
            assert value.shape == (ROWS, *docs[key].shape), key
            assert np.isfinite(value).all(), key
            assert (value >= low - slack).all() and (value <= high + slack).all(), key


@pytest.mark.parametrize("name", ["lift", "drawer_then_place", "tabletop", "hopper", "ant"])
def test_random_starts_are_independent_of_other_envs(name: str) -> None:
    env = sims.make(name, 24, seed=3, scattered=0.5)
    plain = sims.make(name, 24, seed=3)
    first, usual = env.reset(), plain.reset()
    assert not env.held.any()  # no start has its goal met, and nobody has fallen yet
    assert not np.any(env.task.terminated(env.views))
    if name == "lift":
        held = env.task.held(env.views, 0)
        assert 0 < held.mean() < 0.5 and not plain.task.held(plain.views, 0).any()
    assert 0.2 < (np.abs(first - usual).max(axis=1) > 1e-6).mean()
    row = BatchEnv(env.task, 1, seed=3, rows=[7], scattered=0.5)
    np.testing.assert_array_equal(row.reset()[0], first[7])
    np.testing.assert_array_equal(row.reset()[0], env.reset()[7])


@pytest.mark.parametrize("robot", robots.robots_for_task("tabletop"))
def test_objects_pushed_off_the_table_land_in_bounds(robot: str) -> None:
    env = sims.make("tabletop", 3, seed=1, robot=robot)
    env.reset()
    place, task = env.task.arm.workspace, env.task
    ids, away = np.arange(3), place.table[1] + 0.03
    for thing, side in ((0, away), (1, -away), (2, away)):
        xy = np.column_stack([np.full(3, place.table_x + 0.05 * thing), [side, side, -side]])
        task.place_thing(env.views, ids, thing, xy, np.zeros(3))
    for _ in range(100):
        env.step(np.zeros((3, env.act_dim)))
    docs, signals = {doc.name: doc for doc in task.signal_docs()}, env.signals()
    for thing in task.objects:
        low, high = docs[f"{thing.name}_pos"].range
        spot = signals[f"{thing.name}_pos"]
        assert (spot >= low).all() and (spot <= high).all() and (spot[:, 2] < 0).all(), spot


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_task_card_is_plain_data(name: str, robot: str | None) -> None:
    env = played(name, robot)[0]
    card = from_dict(json.loads(json.dumps(env.card)))
    assert card.task == name and card.control_dt == env.control_dt
    assert dict(card.goals) == {key: goal.sentence for key, goal in env.task.goals().items()}
    assert len(set(card.goals.values())) == len(card.goals)
    known = {signal.name for signal in card.signals}
    assert {entity.pose_signal for entity in card.entities} <= known
    assert all(signal.doc and signal.unit and signal.frame for signal in card.signals)
    bodies = {env.model.body(i).name for i in range(env.model.nbody)}
    assert {entity.body for entity in card.entities} <= bodies


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_no_obs_column_is_constant(name: str, robot: str | None) -> None:
    if sims.TASKS[name].mirrors:
        pytest.skip("which columns there are is Gymnasium's choice")
    env, results, _ = played(name, robot)
    spread = np.concatenate([result.obs for result in results]).std(axis=0)
    still = [column for column, s in zip(env.obs_names, spread, strict=True) if s < 1e-4]
    assert not still


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_initial_states_are_random_and_random_starts_wider(name: str, robot: str | None) -> None:
    env = sims.make(name, 64, seed=6, robot=robot)
    first, second = env.reset(), env.reset()
    assert len(np.unique(first, axis=0)) == len(np.unique(second, axis=0)) == 64
    assert not (first == second).all(axis=1).any()
    assert np.linalg.norm(env.scatter().std(axis=0)) > np.linalg.norm(first.std(axis=0))


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_obs_are_the_same_for_every_goal(name: str, robot: str | None) -> None:
    first = sims.make(name, 2, robot=robot)
    obs, state = first.scatter(), first.state()
    for goal in first.task.goals():
        env = sims.make(name, 2, robot=robot, goal=goal)
        assert (env.set_state(state) == obs).all()


@pytest.mark.parametrize(("name", "robot"), CASES)
def test_random_actions_keep_the_simulation_finite(name: str, robot: str | None) -> None:
    env, results, _ = played(name, robot)
    assert all(np.isfinite(result.reward).all() for result in results)
    assert env.num_diverged == 0


# Goals.
@pytest.mark.parametrize(("name", "robot", "goal"), SOLVED)
def test_expert_reaches_the_goal_and_judge_is_consistent(
    name: str, robot: str | None, goal: str
) -> None:
    env, trace = solve(name, robot, goal, EPISODES, seed=8)
    assert trace[-1][0].sum() >= EPISODES - 2
    terms_seen = None
    for success, distance, result in trace:
        assert success.dtype == bool and success.shape == distance.shape == (EPISODES,)
        assert (distance >= 0).all() and np.isfinite(distance).all()
        assert (distance[success] <= 0.02).all()
        rewards = {k: v for k, v in result.info.items() if k.startswith("reward/")}
        assert rewards and (terms_seen is None or rewards.keys() == terms_seen)
        terms_seen = rewards.keys()
        assert all(v.shape == (EPISODES,) and np.isfinite(v).all() for v in rewards.values())
        assert np.allclose(result.reward, sum(rewards.values()), atol=1e-5)
    # A reward worth learning from is higher where the expert ends than where it begins.
    assert trace[-1][2].reward.mean() > trace[0][2].reward.mean() + 0.1
    if isinstance(env.task, ManipulationTask):
        success = np.stack([row[0] for row in trace])
        reward = np.stack([row[2].reward for row in trace])
        assert reward[success].max() > reward[~success].max(), "the best reward is a success's"
    assert trace[-1][2].truncated.all() and not trace[-2][2].truncated.any()
    assert not trace[-1][2].terminated.any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "robot", "goal"), [row for row in ALL_GOALS if sims.TASKS[row[0]].has_expert]
)
def test_expert_reaches_the_goal_in_1000_episodes(name: str, robot: str | None, goal: str) -> None:
    assert solve(name, robot, goal, 1000, seed=9)[1][-1][0].mean() >= 0.95


@pytest.mark.parametrize(("name", "goal"), UNSOLVED)
def test_judge_is_consistent_for_goals_without_expert(name: str, goal: str) -> None:
    env = sims.make(name, 8, seed=8, goal=goal)
    env.reset()
    with pytest.raises(ValueError, match=f"'{name}' has no scripted expert; train a policy: robo-"):
        env.task.expert(env.views, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    for _ in range(LONG):
        result = env.step(rng.uniform(-1, 1, (8, env.act_dim)))
        success, distance = result.info["success"], env.distance()
        assert success.dtype == bool and success.shape == distance.shape == (8,)
        assert (distance >= 0).all() and np.isfinite(distance).all()
        assert ((distance == 0) == success).all()
        rewards = {k: v for k, v in result.info.items() if k.startswith("reward/")}
        assert all(v.shape == (8,) and np.isfinite(v).all() for v in rewards.values())
        assert np.allclose(result.reward, sum(rewards.values()), atol=1e-5)


@pytest.mark.parametrize(("name", "robot", "goal"), GOALS + OTHER_GOALS)
def test_no_episode_starts_with_its_goal_met(name: str, robot: str | None, goal: str) -> None:
    env = sims.make(name, 256, seed=10, robot=robot, goal=goal)
    env.reset()
    assert not env.held.any() and not env.task.goals()[goal].success(env.views).any()


@pytest.mark.parametrize("name", [name for name, task in sims.TASKS.items() if task.has_expert])
def test_zero_action_reaches_no_goal(name: str) -> None:
    """From three starts of each goal, all in one batch."""
    goals, starts = sims.make_task(name).goals(), []
    for goal in goals:
        env = sims.make(name, 3, seed=10, goal=goal)
        env.reset()
        starts.append(env.state())
    env = sims.make(name, 3 * len(goals))
    env.set_state(np.concatenate(starts))
    for _ in range(env.max_steps):
        result = env.step(np.zeros((env.num_envs, env.act_dim)))
    assert result.truncated.all()
    for number, goal in enumerate(env.task.goals().values()):
        assert not goal.success(env.views)[3 * number :][:3].any(), goal.sentence


# The tabletop's geometry.
def standing(n: int = 1, robot: str = FIRST, **spots: tuple[float, float]) -> BatchEnv:
    """A reach env with objects standing at ``spots`` {name: (x, y) m}, the others far away."""
    env = sims.make("reach", n, robot=robot)
    env.reset()
    for i, thing in enumerate(THINGS):
        x, y = spots.get(thing.name, (0.5, 0.2 * i))
        env.task.place_thing(env.views, np.arange(n), i, np.full((n, 2), (x, y)), np.zeros(n))
    env.batch.forward()
    return env


@ARMS
def test_surface_distance_matches_mujoco_within_3_mm(robot: str) -> None:
    env = sims.make("reach", 300, seed=11, robot=robot)
    env.scatter()
    env.batch.forward()
    data, fingers = mujoco.MjData(env.model), robots.get(robot).finger_geoms
    theirs = np.empty((300, 3))
    for row, state in enumerate(env.state()):
        mujoco.mj_setState(env.model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_kinematics(env.model, data)
        for i, thing in enumerate(THINGS):
            there = env.model.geom(thing.name).id
            theirs[row, i] = min(
                mujoco.mj_geomDistance(env.model, data, env.model.geom(f).id, there, 1.0, None)
                for f in fingers
            )
    ours = np.stack([env.task.surface_distance(env.views, i) for i in range(3)], axis=1)
    assert np.abs(ours - np.maximum(theirs, 0.0)).max() < 0.003
    assert (ours < 0.01).any()  # some do touch


@ARMS
@pytest.mark.parametrize("end", (0, 1))
def test_left_and_right_follow_the_front_camera(robot: str, end: int) -> None:
    here = np.array([robots.get(robot).workspace.reach[end], 0.0])
    sides = {"red_cube": here + 0.06 * LEFT[:2], "blue_ball": here - 0.06 * LEFT[:2]}
    env = standing(robot=robot, **sides)
    picture = env.render(camera="front")[0].astype(int)
    red, green, blue = np.moveaxis(picture, -1, 0)
    cube = np.argwhere((red > 2 * green) & (red > 2 * blue) & (red > 60))
    ball = np.argwhere((blue > 2 * red) & (blue > 2 * green) & (blue > 60))
    assert len(cube) > 10 and len(ball) > 10
    assert cube[:, 1].mean() < ball[:, 1].mean() - 5


def test_next_to_uses_centre_distance_and_standing() -> None:
    env = sims.make("push", 4, goal="red_cube_next_to_blue_ball")
    env.reset()
    v, goal = env.views, env.task.goals()["red_cube_next_to_blue_ball"]
    spots = np.array([[0.2, 0.0]] * 4)
    env.task.place_thing(v, np.arange(4), 0, spots, np.zeros(4))
    spots[:, 1] = NEXT_TO - 1e-4, NEXT_TO + 1e-4, 0.05, 0.05
    env.task.place_thing(v, np.arange(4), 1, spots, np.zeros(4))
    ball = env.model.joint("blue_ball").qposadr[0]
    v.all_qpos[2, ball + 2] -= 0.1  # below the table
    v.all_qpos[3, ball + 2] += 0.02  # lifted
    env.batch.forward()
    assert goal.success(v).tolist() == [True, False, False, False]
    assert np.allclose(goal.distance(v), [0.0, 1e-4, 0.0, 0.0], atol=1e-9)


@ARMS
@pytest.mark.parametrize("goal", sims.make_task("push").goals())
def test_push_starts_separated_with_a_clear_path(robot: str, goal: str) -> None:
    env = sims.make("push", 512, seed=12, robot=robot, goal=goal)
    env.reset()
    names = goal.split("_next_to_")
    order = [[t.name for t in THINGS].index(name) for name in names]
    mover, other, third = (env.views.thing_pos[i][:, :2] for i in (*order, 3 - sum(order)))
    gap = terms.norm(mover - other)
    assert gap.min() > NEXT_TO + 0.01 and gap.max() < 0.16
    assert min(terms.norm(third - mover).min(), terms.norm(third - other).min()) > 0.07
    touch = min(env.task.surface_distance(env.views, i).min() for i in range(3))
    assert touch > 0.001  # the arm starts clear of everything


@ARMS
def test_layouts_keep_the_minimum_gap(robot: str) -> None:
    env, place = sims.make("reach", 512, seed=13, robot=robot), robots.get(robot).workspace
    env.reset()
    at = np.stack(env.views.thing_pos, axis=1)[..., :2]
    assert terms.norm(at - np.roll(at, 1, axis=1)).min() > 0.07
    radius = np.hypot(at[..., 0] - place.shoulder_x, at[..., 1])
    assert (radius > place.reach[0]).all() and (radius < place.reach[1]).all()
    low, high = np.reshape(place.area, (2, 2)).T
    room = 0.25 * (high - low)  # the rectangle is about them, and not much larger
    assert (at >= low).all() and (at <= high).all() and env.card["area"] == place.area
    assert (at.min((0, 1)) < low + room).all() and (at.max((0, 1)) > high - room).all()


def test_distances_to_solids() -> None:
    point = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 5.0]])
    assert np.allclose(terms.box_distance(point, np.array([1.0, 1, 1])), [0, 2, np.hypot(2, 3), 4])
    assert np.allclose(terms.sphere_distance(point, 1.0), [0, 2, 4, 4])
    assert np.allclose(terms.cylinder_distance(point, 1.0, 2.0), [0, 2, 4, 3])
    assert np.allclose(terms.outside(np.array([-1.0, 0.5, 3.0]), 0, 1), [1, 0, 2])
    assert np.allclose(terms.near(np.array([0.0, 0.1]), 0.1), [1, np.exp(-1)])


# Errors.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "reech"},
            r"unknown task 'reech'; available tasks: reach.*Did you mean 'reach'\?",
        ),
        ({"robot": "so100"}, r"unknown robot 'so100'; available robots: .*so101"),
        ({"name": "lift", "robot": "koch"}, r"'koch' is for reach, push; for lift: so101, ur5e"),
        ({"goal": "touch_cube"}, r"no goal 'touch_cube'\. Did you mean '.*'\? Available: touch"),
        ({"control_dt": 0.0123}, r"0.0123 s is not a whole number of 0.005 s steps; nearest is"),
    ],
)
def test_task_errors_list_available_names(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BatchEnv(sims.make_task(**({"name": "reach"} | arguments)), 1)


def test_unknown_task_parameter_error_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"no parameter 'speed'; available: goal, control_dt"):
        sims.make_task("reach", speed=2)


def test_robots_share_the_tabletop() -> None:
    assert all(issubclass(task, Tabletop) for task in sims.TASKS.values() if has_robot(task))


@ARMS
def test_left_is_left_in_every_arms_front_camera(robot: str) -> None:
    place = robots.get(robot).workspace
    np.testing.assert_array_equal(-place.front.axes()[0], LEFT)


@pytest.mark.parametrize("robot", ["so101", "ur5e", "fr3"])
@pytest.mark.parametrize(
    ("name", "atoms"),
    [
        ("lift", ["grasped(red_cube)", "lifted(red_cube)", "touch(gripper, red_cube)"]),
        ("pick_place", ["on(red_cube, target)", "grasped(red_cube)"]),
        ("stack", ["on(red_cube, blue_cube)", "on(blue_cube, red_cube)", "grasped(blue_cube)"]),
        ("drawer_then_place", ["inside(red_cube, drawer)", "open(drawer)", "closed(drawer)"]),
        ("peg", ["inserted(peg, hole)"]),
        ("button", ["pressed(button)", "touch(gripper, button)"]),
    ],
)
def test_random_starts_cover_goal_states(name: str, robot: str, atoms: list[str]) -> None:
    task = sims.make_task(name, robot=robot)
    card = from_dict(task.card())
    env = sims.BatchEnv(task, 256, seed=8)
    judges = [
        SuccessJudge(to_data(fill(parse(text), card)), task, env.batch, env.views) for text in atoms
    ]
    env.reset()
    for judge in judges:
        judge.begin(np.arange(256))
    env.scatter()
    for text, judge in zip(atoms, judges, strict=True):
        judge.step(np.zeros(256, bool))
        assert 0.01 < judge.success().mean() < 0.9, text
    env.close()
