"""Scenes that are named in words: what stands on the table is what was asked for, on every arm."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import cache

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals import Refusal, fill, parse, read
from reward_models.goals.formula import Atom, FormulaError, check, to_data
from reward_models.goals.margins import MarginEvaluator, NoMargin, formula_margins
from reward_models.goals.predicates import BY, PREDICATES, roles
from reward_models.programs import load
from robo_rl.commands.train import parse_train
from robo_rl.config.presets import with_presets
from robo_rl.config.train_config import TrainConfig
from robo_rl.goals.reading import formula_goal, judged_goal
from robo_rl.rewards.code import template_program
from sims import BatchEnv
from sims.core.terms import norm
from sims.randomization.domain_randomization import Randomize, RandomizedEnv
from sims.robots import robots_for_task
from sims.tasks.custom_tabletop import SLIT
from sims.tasks.scene.named_objects import COLOURS, MOST, SHAPES, objects_by_name, parse_object_list
from sims.tasks.scene.object_layout import ROOMS
from sims.truth import SuccessJudge

Array = np.ndarray
ARMS = pytest.mark.parametrize("robot", robots_for_task("tabletop"))
THINGS = "yellow ball, two red cubes, white plate"
ROWS = 128

item = st.tuples(
    st.sampled_from(["", "small "]),
    st.sampled_from([*COLOURS]),
    st.sampled_from([*SHAPES, "can", "box", "disc", "sphere"]),
).map(lambda words: f"{words[0]}{words[1]} {words[2]}")
lists = st.lists(item, min_size=1, max_size=5).map(", ".join)


def made(things: str, robot: str, rows: int = ROWS, seed: int = 1) -> BatchEnv:
    return sims.make("tabletop", rows, seed=seed, robot=robot, things=things, num_threads=1)


@cache
def card_of(things: str = THINGS, robot: str = "ur5e") -> TaskCard:
    return from_dict(sims.make_task("tabletop", things=things, robot=robot).card())


def placed(env: BatchEnv) -> tuple[Array, Array, int]:
    """(places (N, k, 2), radii (k,), how many of them are loose) of a tabletop."""
    task, v = env.task, env.views
    radii = [t.round for t in task.objects] + [f.points[0].half[0] for f in task.fixtures]
    spots = np.concatenate(
        [
            np.stack([p[:, :2] for p in v.thing_pos], axis=1)
            if v.thing_pos
            else np.zeros((env.num_envs, 0, 2)),
            v.mocap[:, :, :2],
        ],
        axis=1,
    )
    return spots, np.array(radii), len(task.objects)


def gaps(spots: Array, radii: Array) -> Array:
    """(N,) m, the least room between any two circles; infinite of one."""
    pairs = itertools.combinations(range(len(radii)), 2)
    apart = [norm(spots[:, i] - spots[:, j]) - radii[i] - radii[j] for i, j in pairs]
    return np.min(apart, axis=0) if apart else np.full(len(spots), np.inf)


# What is on the table.
@ARMS
@settings(max_examples=8, deadline=None)
@given(things=lists)
def test_named_objects_are_separated_reachable_and_on_the_card(robot: str, things: str) -> None:
    env = made(things, robot, rows=32)
    env.reset()
    spots, radii, _ = placed(env)
    place = env.task.arm.workspace
    from_shoulder = spots - (place.shoulder_x, 0.0)
    reach, angle = norm(from_shoulder), np.arctan2(from_shoulder[..., 1], from_shoulder[..., 0])
    assert (gaps(spots, radii) >= min(ROOMS) - 1e-6).all()
    assert (reach >= place.reach[0] - 1e-6).all() and (reach <= place.reach[1] + 1e-6).all()
    assert (np.abs(angle) <= place.sector + 1e-6).all()

    card = from_dict(json.loads(json.dumps(env.card)))
    asked = parse_object_list(things)
    entities = [e for e in card.entities if e.kind != "gripper"]
    assert len(entities) == len(asked) == len({e.name for e in entities})
    assert sorted((e.colour, e.kind) for e in entities) == sorted(
        (d.colour, d.shape) for d in asked
    )
    for entity in entities:
        geom = env.model.geom(entity.body)
        size, half = geom.size, entity.half
        flat = entity.kind == "plate"
        assert np.allclose(geom.rgba, COLOURS[entity.colour])
        assert np.isclose(half[0], size[0]) and (
            flat or np.isclose(half[2], size[({"cube": 2, "ball": 0, "cylinder": 1}[entity.kind])])
        )
        assert bool(geom.contype[0]) != flat
    env.scatter()
    spots, radii, loose = placed(env)
    there = np.abs(env.task.squeeze(env.views)) < 1e-9  # nothing is in the hand
    for pos, thing in zip(env.views.thing_pos, env.task.objects, strict=True):
        there &= np.abs(pos[:, 2] - thing.height) < 1e-6  # nor on something
    assert there.any()
    assert (gaps(spots[there, :loose], radii[:loose]) >= SLIT - 1e-6).all()
    env.close()


@ARMS
def test_custom_tabletop_env_is_batch_independent(robot: str) -> None:
    things = "six small red cubes"
    many = made(things, robot, rows=16)
    one = sims.make("tabletop", 1, seed=1, robot=robot, things=things, rows=[11])
    for _ in range(3):
        assert (many.reset()[11] == one.reset()[0]).all()
    many.scatter(), one.scatter()
    assert (many.state()[11] == one.state()[0]).all()


def test_layouts_differ_and_use_the_whole_table() -> None:
    env = made(
        "two large plates, two large cubes".replace("large cubes", "large red cubes").replace(
            "large plates", "large white plates"
        ),
        "so101",
        rows=256,
    )
    env.reset()
    spots, _, _ = placed(env)
    assert len(np.unique(np.round(spots[:, 0], 4), axis=0)) > 200
    angle = np.arctan2(spots[..., 1], spots[..., 0] - env.task.arm.workspace.shoulder_x)
    assert np.ptp(angle, axis=0).min() > 1.5 * env.task.arm.workspace.sector


def test_equal_objects_are_numbered_and_sizes_named() -> None:
    things, plates = objects_by_name(
        "a red cube, two small blue cans and the Gray box; two white discs"
    )
    assert [t.name for t in things] == [
        "red_cube",
        "small_blue_cylinder_1",
        "small_blue_cylinder_2",
        "grey_cube",
    ]
    assert [p.name for p in plates] == ["white_plate_1", "white_plate_2"]
    assert (
        things[1].size[0]
        < objects_by_name("blue can")[0][0].size[0]
        < objects_by_name("big blue can")[0][0].size[0]
    )


@pytest.mark.parametrize(
    ("things", "said"),
    [
        ("purple hexagon", "unknown object 'purple hexagon'.*purple, pink.*cube, ball"),
        ("red cub", "did you mean 'cube'"),
        ("mauve cube", "unknown object 'mauve cube'"),
        ("cube", "unknown object 'cube'.*a colour"),
        ("seven red cubes", f"1 to {MOST} objects, got 7"),
        ("99999999999 red cubes", f"1 to {MOST} objects"),
        ("four red cubes, 3 blue balls", "got 7"),
        (", and", "1 to 6 objects, got 0"),
        ("six large white plates", "do not fit side by side within reach of the so101"),
    ],
)
def test_impossible_object_lists_are_one_line_errors(things: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        sims.make_task("tabletop", robot="so101", things=things)


def test_things_option_error_names_tabletop() -> None:
    with pytest.raises(ValueError, match="'things'.*; task 'tabletop' has it"):
        sims.make_task("reach", things=THINGS)


# What can be said of it.
SENTENCES = {
    "push the yellow ball next to the white plate": "next_to(yellow_ball, white_plate)",
    "touch the left red cube": "touch(gripper, leftmost(red_cube_1, red_cube_2))",
    "touch the nearest red cube": "touch(gripper, nearest(gripper, red_cube_1, red_cube_2))",
    "touch red cube 2": "touch(gripper, red_cube_2)",
    "touch cube 2, then the disc": "then(touch(gripper, red_cube_2), touch(gripper, white_plate))",
    "push both red cubes next to the ball": (
        "and(next_to(red_cube_1, yellow_ball), next_to(red_cube_2, yellow_ball))"
    ),
    "touch any red cube": "or(touch(gripper, red_cube_1), touch(gripper, red_cube_2))",
    "push the ball between the two red cubes": "between(yellow_ball, red_cube_1, red_cube_2)",
    "lift the yellow sphere by 10 cm": "lifted(yellow_ball, height=10cm)",
    "put the ball on the dish": "on(yellow_ball, white_plate)",
    "stack red cube 1 on red cube 2": "on(red_cube_1, red_cube_2)",
    "stack the red cubes": "or(on(red_cube_1, red_cube_2), on(red_cube_2, red_cube_1))",
    "stack the red cubes on the plate": (
        "or(and(on(red_cube_1, white_plate), on(red_cube_2, red_cube_1)), "
        "and(on(red_cube_2, white_plate), on(red_cube_1, red_cube_2)))"
    ),
    "put one red cube on the other": "or(on(red_cube_1, red_cube_2), on(red_cube_2, red_cube_1))",
    "push a red cube next to the other one": "next_to(red_cube_1, red_cube_2)",
    "lift a red cube": "or(lifted(red_cube_1), lifted(red_cube_2))",
    "put one of the cubes on the plate": (
        "or(on(red_cube_1, white_plate), on(red_cube_2, white_plate))"
    ),
    "gather the red cubes": "next_to(red_cube_1, red_cube_2)",
    "hold the gripper 5 cm above the ball without touching the plate": (
        "and(above(gripper, yellow_ball, height=5cm), never(touch(gripper, white_plate)))"
    ),
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences_about_named_objects_are_parsed_and_rewarded(text: str) -> None:
    card = card_of()
    assert fill(read(text, card), card) == fill(parse(SENTENCES[text]), card)
    task = sims.make_task("tabletop", things=THINGS, robot="ur5e")
    judged, goal = judged_goal(task, text)
    assert goal.key and goal.understood
    assert load(template_program(judged, goal), goal.card)


CHOSEN = "leftmost(red_cube_1, red_cube_2)"


@pytest.mark.parametrize(
    "goal",
    [
        "moved({}, left=6cm)",
        "next_to({}, yellow_ball)",
        "lifted({})",
        "on({}, white_plate)",
        "then(touch(gripper, yellow_ball), lifted({}))",
        "on(yellow_ball, {})",
    ],
)
def test_chosen_object_is_rewarded_like_a_named_one(goal: str) -> None:
    task = sims.make_task("tabletop", things=THINGS, robot="ur5e")
    env = BatchEnv(formula_goal(task, goal.format(CHOSEN))[0], 32, seed=2)
    env.reset()
    env.scatter()
    before = {name: value.copy() for name, value in env.signals().items()}
    env.step(np.zeros((32, env.act_dim)))
    chosen = env.signals()["chosen_1"][:, 0]
    assert 0.2 < chosen.mean() < 0.8
    for number, name in enumerate(("red_cube_1", "red_cube_2")):
        rows = chosen == number
        values = []
        for who in (CHOSEN, name):
            made, read_as = formula_goal(task, goal.format(who))
            program = load(template_program(made, read_as), read_as.card)
            values.append(program(env.signals(), before=before)["level"][rows])
        assert np.allclose(*values), name
        assert np.ptp(values[0]) > 0.01
    env.close()


def test_sizes_distinguish_equal_objects() -> None:
    card = card_of("small red cube, large red cube, red cube")
    for text, name in (
        ("touch the small red cube", "small_red_cube"),
        ("touch the big cube", "large_red_cube"),
        ("touch the smallest cube", "small_red_cube"),
        ("touch the biggest red block", "large_red_cube"),
    ):
        assert read(text, card) == parse(f"touch(gripper, {name})"), text


def test_ambiguous_object_is_refused() -> None:
    with pytest.raises(Refusal, match="red_cube_1, red_cube_2"):
        read("touch the red cube", card_of())


@ARMS
def test_custom_tabletop_margins_agree_with_the_judge(robot: str) -> None:
    """Of scattered states farther than 3 mm from the border, all but one in 100."""
    env = made("yellow ball, large red cube, red cube, white plate, small green can", robot, 200)
    card, rng, judges = from_dict(env.card), np.random.default_rng(0), []
    env.reset()
    before = {name: value.copy() for name, value in env.signals().items()}
    for row in PREDICATES.values():
        for names in _named(row, card, rng):
            atom = Atom(row.name, names, _least(row))
            try:
                check(atom, card)
                of = formula_margins(fill(atom, card), card)
            except (NoMargin, FormulaError):
                continue  # two cubes' surfaces, a drawer that is not there
            judges.append((of, SuccessJudge(to_data(of.formula), env.task, env.batch, env.views)))
    env.scatter()
    after = env.signals()
    for of, judge in judges:
        judge.step(np.zeros(200, bool))
        signals = {**after, **of.remembered(of.begun(before), of.chosen(before))}
        margin = MarginEvaluator(of)(signals, before)[0][of.formula].min(axis=1)
        differ = ((margin >= 0) != judge.success()) & (np.abs(margin) > 0.003)
        assert differ.mean() <= 0.01, (of.formula, np.flatnonzero(differ)[:5])
    env.close()
    met = {of.formula.predicate for of, _ in judges}
    assert met >= {
        "touch",
        "above",
        "left_of",
        "behind",
        "near",
        "far",
        "next_to",
        "between",
        "in_line",
        "on",
        "lifted",
        "moved",
        "nearer",
        "at",
        "turned",
        "grasped",
        "on_left",
        "at_back",
        "in_middle",
    }


def _named(row, card: TaskCard, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Two samples of entities that a predicate may be about."""
    if not row.margin or row.by == "act" or any(n.unit == "m/s" for n in row.numbers):
        return []
    assert row.by in BY
    fitting = [[e.name for e in card.entities if fits & roles(e)] for fits in row.roles]
    every = [names for names in itertools.product(*fitting) if len({*names}) == len(names)]
    return [every[i] for i in rng.permutation(len(every))[:2]]


def _least(row) -> tuple[tuple[str, float], ...]:
    """The numbers that have to be said."""
    needed = {n.name for n in row.numbers if n.default is None} | {*row.needs[:1]}
    return tuple((name, 0.06 if name != "angle" else 0.5) for name in sorted(needed))


# Where else it goes.
def test_custom_tabletop_from_gymnasium_and_python() -> None:
    env = gymnasium.make("robo/Tabletop-v0", things="two pink balls", robot="fr3")
    assert env.unwrapped.sim.task.things == "two pink balls"
    obs, _ = env.reset(seed=0)
    assert obs.shape == env.observation_space.shape
    env.close()


def test_custom_tabletop_with_randomization_steps() -> None:
    task = sims.make_task("tabletop", things="two pink balls, grey can")
    env = RandomizedEnv(task, 8, randomize=Randomize())
    env.reset()
    assert np.isfinite(env.step(np.zeros((8, env.act_dim))).obs).all()


def test_custom_tabletop_presets_fit_the_sentence() -> None:
    push = with_presets(TrainConfig(task="tabletop", things=THINGS, goal=next(iter(SENTENCES))))
    reach = with_presets(
        TrainConfig(task="tabletop", things=THINGS, goal="touch the left red cube")
    )
    assert push.reward == reach.reward == "offline"
    assert push.env_steps == 1_000_000 and reach.env_steps == 96_000
    assert (push.learner, reach.learner) == ("ensemble", "ppo")
    assert (push.stop_at, reach.stop_at) == (0.97, 0.0)
    said = TrainConfig(task="tabletop", things=THINGS, goal=next(iter(SENTENCES)))
    # Where nobody looks or judges who could say that it is learned, and where it is not asked for.
    for other in ({"eval_points": 0}, {"reward": "sparse"}, {"stop_at": 0.0}):
        assert with_presets(replace(said, **other)).stop_at == 0
    for reward in ("task", "clip"):
        typed = parse_train(["tabletop", "--reward", reward]).config_values
        assert with_presets(TrainConfig(**typed)).reward == reward
