"""The judge: operators against a literal reading of the goal language, known goals against the
success that their tasks wrote by hand, and episodes whose outcome is known."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_formula import CARDS, formulas

import sims
from reward_models.goals.formula import Formula, FormulaError, fill, to_data
from sims import BatchEnv
from sims.truth import SuccessJudge
from sims.truth.temporal import EpisodeRecord, completion_times

Array = np.ndarray
DT = 0.05


# A literal reading, row by row and step by step: (done, failed) of a formula that begins at ``a``.
def held(node: Any, t: int, facts: dict[str, list[bool]]) -> bool:
    name, parts, _ = node
    if name == "not":
        return not held(parts[0], t, facts)
    if name == "and":
        return all(held(p, t, facts) for p in parts)
    if name == "or":
        return any(held(p, t, facts) for p in parts)
    return facts[name][t]


def state(node: Any) -> bool:
    name, parts, _ = node
    return all(map(state, parts)) if name in ("and", "or", "not") else name in "pqr"


def done(node: Any, a: int, t: int, facts: dict[str, list[bool]], cut: int) -> bool:
    """``cut``: the step at which the task ended the episode early, or -1."""
    name, parts, numbers = node
    if t < a:
        return False
    if state(node):
        return held(node, t, facts)
    if name == "and":
        return all(done(p, a, t, facts, cut) for p in parts)
    if name == "or":
        return any(done(p, a, t, facts, cut) for p in parts)
    if name == "once":
        return any(held(parts[0], u, facts) for u in range(a, t + 1))
    if name == "hold":
        k = max(1, math.ceil(round(numbers["seconds"] / DT, 6)))
        runs = (range(u, u + k) for u in range(a, t - k + 2))
        return any(all(held(parts[0], u, facts) for u in run) for run in runs)
    if name == "then":
        for part in parts:
            ends = [u for u in range(a, t + 1) if done(part, a, u, facts, cut)]
            if not ends:
                return False
            a = ends[0] + 1
        return True
    if name == "within":
        k = math.floor(round(numbers["seconds"] / DT, 6))
        return any(done(parts[0], a, u, facts, cut) for u in range(a, min(t, a + k) + 1))
    if name in ("while", "until"):
        goal, kept = parts if name == "while" else parts[::-1]
        ends = [u for u in range(a, t + 1) if done(goal, a, u, facts, cut)]
        if not ends:
            return False
        return all(held(kept, u, facts) for u in range(a, ends[0] + (name == "while")))
    if name == "never":
        return not any(held(parts[0], u, facts) for u in range(t + 1))
    assert name == "always"
    return all(held(parts[0], u, facts) for u in range(t + 1)) and t != cut


STATES = st.recursive(
    st.sampled_from("pqr").map(lambda name: [name, [], {}]),
    lambda part: st.one_of(
        part.map(lambda p: ["not", [p], {}]),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(part, min_size=2, max_size=3)).map(
            lambda made: [made[0], made[1], {}]
        ),
    ),
    max_leaves=4,
)
SECONDS = st.sampled_from([0.0, 0.05, 0.1, 0.12, 0.2]).map(lambda s: {"seconds": s})
FORMULAS = st.recursive(
    STATES,
    lambda part: st.one_of(
        STATES.map(lambda p: ["once", [p], {}]),
        st.tuples(STATES, SECONDS).map(lambda made: ["hold", [made[0]], made[1]]),
        st.tuples(part, SECONDS).map(lambda made: ["within", [made[0]], made[1]]),
        st.tuples(part, STATES).map(lambda made: ["while", list(made), {}]),
        st.tuples(STATES, part).map(lambda made: ["until", list(made), {}]),
        st.tuples(
            st.sampled_from(["and", "or", "then"]), st.lists(part, min_size=2, max_size=3)
        ).map(lambda made: [made[0], made[1], {}]),
    ),
    max_leaves=5,
)
WHOLE = st.one_of(
    FORMULAS,
    st.tuples(st.sampled_from(["never", "always"]), STATES, FORMULAS).map(
        lambda made: ["and", [[made[0], [made[1]], {}], made[2]], {}]
    ),
)


@settings(max_examples=200, deadline=None)
@given(WHOLE, st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=9), st.booleans())
def test_judge_operators_match_the_documentation(
    node: Any, steps: list[tuple[bool, ...]], cut: bool
) -> None:
    facts = {name: [bool(step[i]) for step in steps] for i, name in enumerate("pqr")}
    last = np.array([len(steps) - 1])
    of = EpisodeRecord(lambda n: np.array(facts[n[0]])[:, None], last, np.array([cut]), DT)
    found = completion_times(node, np.zeros(1, int), of)
    for t in range(len(steps)):
        expected = done(node, 0, t, facts, len(steps) - 1 if cut else -1)
        assert found.done[t, 0] == expected, (node, facts, t)
        # What has failed is never done afterwards.
        if found.failed[t, 0]:
            assert not found.done[t:, 0].any(), (node, facts, t)


# task, goal's key, formula as docs/reference/goal-language.md has it.
TOUCH, MEANT = {"within": 0.02}, {"height": 0.055, "tolerance": 0.035, "over": 0.025}
BESIDE = {"gap": 0.05, "most": 2.0, "abreast": 0.05}
KNOWN: list[tuple[str, str, list[Any]]] = [
    ("reach", "touch_red_cube", ["touch", ["gripper", "red_cube"], TOUCH]),
    ("reach", "touch_blue_ball", ["touch", ["gripper", "blue_ball"], TOUCH]),
    ("reach", "touch_green_cylinder", ["touch", ["gripper", "green_cylinder"], TOUCH]),
    ("reach", "above_blue_ball", ["above", ["gripper", "blue_ball"], MEANT]),
    ("reach", "left_of_red_cube", ["left_of", ["gripper", "red_cube"], BESIDE]),
    ("reach", "right_of_blue_ball", ["right_of", ["gripper", "blue_ball"], BESIDE]),
    ("reach", "far_from_green_cylinder", ["far", ["gripper", "green_cylinder"], {"least": 0.18}]),
    (
        "push",
        "red_cube_next_to_blue_ball",
        ["next_to", ["red_cube", "blue_ball"], {"within": 0.065, "standing": 0.01}],
    ),
    ("lift", "lift_cube", ["lifted", ["red_cube"], {"height": 0.05, "hand": 0.06}]),
    (
        "pick_place",
        "cube_at_target",
        ["on", ["red_cube", "target"], {"aside": 0.03, "tolerance": 0.006, "clear": 0.005}],
    ),
    (
        "stack",
        "red_on_blue",
        ["on", ["red_cube", "blue_cube"], {"aside": 0.02, "tolerance": 0.006, "clear": 0.005}],
    ),
    ("drawer", "open", ["open", ["drawer"], {"share": 0.8}]),
    ("drawer", "close", ["closed", ["drawer"], {"share": 0.1}]),
    ("button", "press", ["pressed", ["button"], {"share": 2 / 3}]),
    (
        "peg",
        "insert",
        ["inserted", ["peg", "hole"], {"aside": 0.005, "deep": 0.015, "upright": 0.97}],
    ),
    (
        "drawer_then_place",
        "cube_in_drawer",
        ["inside", ["red_cube", "drawer"], {"below": 0.035, "clear": 0.005}],
    ),
]


@pytest.mark.parametrize(("task", "key", "goal"), KNOWN, ids=[f"{t}-{k}" for t, k, _ in KNOWN])
def test_listed_goals_are_judged_like_handwritten_success(
    task: str, key: str, goal: list[Any]
) -> None:
    """On states of the expert, of an expert with noise and of random play."""
    made = sims.make_task(task, goal=key)
    env = BatchEnv(made, 9, seed=5)
    env.reset()
    judge = SuccessJudge(goal, made, env.batch, env.views)
    rng = np.random.default_rng(0)
    noise = np.repeat([0.0, 0.5, 3.0], 3)[:, None]
    things, numbers = [thing.name for thing in made.objects], goal[2]
    border = numbers.get("clear", numbers["within"] if goal[0] == "touch" else None)
    for step in range(env.max_steps):
        action = made.expert(env.views, rng) + noise * rng.normal(size=(9, env.act_dim))
        result = env.step(action)
        judge.step(result.terminated)
        differ = judge.success() != result.info["success"]
        if border is not None:  # from the fingers to a surface: two measures, 3 mm apart at most
            thing = things.index(goal[1][goal[0] == "touch"])
            differ &= np.abs(made.surface_distance(env.views, thing) - border) > 0.003
        assert not differ.any(), f"step {step}: environments {np.flatnonzero(differ)}"
    assert result.info["success"][:3].any()  # there was something to judge


BODIES: list[tuple[str, str, list[Any]]] = [
    ("hopper", "forward", ["forward", ["hopper"], {"pace": 1.0}]),
    ("hopper", "front_flip", ["front_flip", ["hopper"], {}]),
    ("hopper", "back_flip", ["back_flip", ["hopper"], {}]),
    ("ant", "forward", ["forward", ["ant"], {"pace": 1.0}]),
    ("ant", "wave", ["wave", ["ant"], {"swings": 3}]),
    ("ant", "lie_down", ["lie_down", ["ant"], {"cosine": -0.9, "speed": 0.3}]),
    ("humanoid", "stand_up", ["stand_up", ["humanoid"], {"height": 1.2, "speed": 0.5}]),
    ("humanoid", "kneel", ["kneel", ["humanoid"], {"speed": 0.5}]),
    ("humanoid", "arms_raised", ["raise_arms", ["humanoid"], {"speed": 0.5}]),
]


def lively(env: BatchEnv, rng: np.random.Generator) -> None:
    """Starts that random play does not find: flung about, laid down, arms up, near their end."""
    v, n = env.views, env.num_envs
    name, key = env.task.name, env.task.goal
    if key.endswith("_flip"):
        v.qvel[:, 1] = rng.uniform(3, 6, n)
        v.qvel[:, 2] = rng.uniform(6, 14, n) * (1 if key == "front_flip" else -1)
    elif name == "ant" and key == "lie_down":
        v.qpos[:, 3:7] = (0.0, 1.0, 0.0, 0.0)
        v.qpos[:, 2] = rng.uniform(0.25, 0.6, n)
    elif name == "humanoid":
        v.qpos[:] = env.model.qpos0
        if key == "kneel":
            v.qpos[:, 2] = rng.uniform(0.4, 1.1, n)
        if key == "arms_raised":
            for joint in ("shoulder1", "shoulder2", "elbow"):
                for side in ("right", "left"):
                    one = env.model.joint(f"{side}_{joint}")
                    v.qpos[:, one.qposadr[0]] = rng.uniform(*one.range, n)
    elif key == "forward":
        v.qvel[:, 0] = rng.uniform(0, 3, n)
    env.batch.forward()
    env.task.after_reset(v, np.arange(n))


@pytest.mark.parametrize(("task", "key", "goal"), BODIES, ids=[f"{t}-{k}" for t, k, _ in BODIES])
def test_body_goals_are_judged_like_handwritten_success(
    task: str, key: str, goal: list[Any]
) -> None:
    made = sims.make_task(task, goal=key)
    if key == "forward":
        made = sims.make_task(task, goal=key, episode_s=made.control_dt * 40)
    env = BatchEnv(made, 24, seed=5)
    env.reset()
    rng = np.random.default_rng(0)
    lively(env, rng)
    judge = SuccessJudge(goal, made, env.batch, env.views)
    hit = seen = 0
    over = np.zeros(24, bool)
    for step in range(120 if key.endswith("_flip") else 40):
        action = rng.normal(size=(24, env.act_dim))
        result = env.step(action)
        judge.step(result.terminated)
        ended = result.terminated | result.truncated
        looked = ~over
        found = judge.success()
        differ = looked & (found != result.info["success"])
        if key == "forward":  # by hand from x = 0, by the formula from the start, 0.1 m around it
            differ &= np.abs(env.views.qpos[:, 0] - made.episode_s) > 0.1
        assert not differ.any(), f"step {step}: environments {np.flatnonzero(differ)}"
        hit, seen = hit + found[looked].sum(), seen + looked.sum()
        over |= ended
    assert 0 < hit < seen or key in NOT_BY_CHANCE, "nothing was told apart"


NOT_BY_CHANCE = ("kneel", "forward", "wave")


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(CARDS)).flatmap(
        lambda task: st.tuples(st.just(task), formulas(CARDS[task]))
    )
)
def test_judge_accepts_every_formula(asked: tuple[str, Formula]) -> None:
    task, said = asked
    env = ENVS.setdefault(task, sims.make(task, 4, seed=1))
    try:
        goal = to_data(fill(said, CARDS[task]))
    except FormulaError:
        return  # a size that the card does not say
    env.reset()
    try:
        judge = SuccessJudge(json.loads(json.dumps(goal)), env.task, env.batch, env.views)
    except ValueError as error:
        assert "cannot be judged in" in str(error) and task in BODY_TASKS
        return
    for _ in range(3):
        judge.step(env.step(np.zeros((4, env.act_dim))).terminated)
    done, failed = judge.success(), judge.failed()
    assert done.shape == failed.shape == (4,) and done.dtype == failed.dtype == bool
    assert not (done & failed).any()


BODY_TASKS = ("ant", "hopper")
ENVS: dict[str, BatchEnv] = {}


def test_batch_is_judged_by_its_formula() -> None:
    """Touch one, then the other, and never the third: by two experts, one after the other."""
    pair = [
        "then",
        [["touch", ["gripper", "red_cube"], TOUCH], ["touch", ["gripper", "blue_ball"], TOUCH]],
        {},
    ]
    shun = ["never", [["touch", ["gripper", "green_cylinder"], {"within": 0.004}]], {}]
    goal = ["and", [pair, shun], {}]
    env = sims.make_task("reach", goal=goal, episode_s=5.0)
    env = BatchEnv(env, 12, seed=3)
    guides = [sims.make_task("reach", goal=f"touch_{thing}") for thing in ("red_cube", "blue_ball")]
    env.reset()
    rng = np.random.default_rng(0)
    halves = []
    for guide in guides:
        for _ in range(50):
            result = env.step(guide.expert(env.views, rng))
        halves.append(result.info["success"].mean())
    assert halves[0] == 0.0 and halves[1] > 0.6 and np.isnan(result.reward).all()
    # In the other order it is another goal.
    assert env.judge.at_last(env.judge.course(["then", pair[1][::-1], {}]).done).mean() < 0.5
    # What is saved goes on as it was; a start that is met already is drawn anew.
    again = BatchEnv(env.task, 12, seed=9)
    again.load_state_dict(env.state_dict())
    assert (again.judge.success() == env.judge.success()).all()
    near = ["near", ["gripper", "red_cube"], {"within": 0.15}]
    plain = BatchEnv(sims.make_task("reach"), 64, seed=0)
    drawn = BatchEnv(sims.make_task("reach", goal=near), 64, seed=0)
    plain.reset(), drawn.reset()
    tip, cube = (drawn.signals()[name] for name in ("tip", "red_cube_pos"))
    assert not drawn.held.any() and (np.linalg.norm(tip - cube, axis=1) > 0.15).all()
    same = (plain.state() == drawn.state()).all(axis=1)
    assert 0 < same.sum() < 64  # only those whose goal was met


def test_judge_refuses_invalid_formulas() -> None:
    for goal, said in (
        ('["touch"', "a goal that is a formula must be JSON"),
        (["tuch", ["gripper", "red_cube"], {}], "'tuch' cannot be judged in task reach"),
        (["touch", ["gripper", "sun"], {"within": 0.1}], "unknown entity 'sun' in task reach"),
    ):
        with pytest.raises(ValueError, match=said):
            sims.BatchEnv(sims.make_task("reach", goal=goal), 1)
