"""Margins against the truth: today's success of every goal on the table, and the judge of each
predicate, which share no code with them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import sims
from reward_models.base import from_dict
from reward_models.goals.formula import Formula, fill, parse, to_data
from reward_models.goals.margins import MarginEvaluator, NoMargin, formula_margins
from reward_models.goals.predicates import PREDICATES
from robo_rl.goals.reading import read_goal
from sims.truth import SuccessJudge

Array = np.ndarray
ROWS = 120
BAND = 0.003  # m, of a margin: nearer to the border two ways to measure may differ
TABLE = {
    "push": (
        "touch(gripper, red_cube)",
        "touch(red_cube, blue_ball, within=4cm)",
        "touch(green_cylinder, blue_ball)",
        "touch(blue_ball, red_cube)",
        "above(gripper, blue_ball, height=8cm)",
        "above(red_cube, blue_ball)",
        "below(gripper, red_cube)",
        "left_of(gripper, red_cube)",
        "right_of(red_cube, blue_ball, gap=2cm, most=8cm)",
        "in_front_of(gripper, green_cylinder)",
        "behind(blue_ball, red_cube)",
        "near(gripper, red_cube)",
        "far(red_cube, blue_ball)",
        "next_to(red_cube, blue_ball)",
        "between(gripper, red_cube, blue_ball)",
        "between(green_cylinder, red_cube, blue_ball)",
        "in_line(red_cube, green_cylinder, blue_ball)",
        "at(gripper, red_cube, within=6cm)",
        "at_point(red_cube, x=0.2, y=0, within=0.1)",
        "upright(green_cylinder)",
        "toppled(green_cylinder)",
        "released(red_cube)",
        "near(gripper, nearest(gripper, red_cube, blue_ball), within=5cm)",
        "far(red_cube, leftmost(blue_ball, green_cylinder))",
        "moved(red_cube, left=1cm, tolerance=2cm)",
        "displaced(red_cube, least=1cm)",
        "turned(red_cube, angle=5deg)",
        "still(gripper, speed=0.1)",
        "slower(red_cube, speed=0.05)",
        "faster(gripper, speed=0.1)",
        "at_height(gripper, least=6cm, most=12cm)",
        "raised(gripper, height=2cm)",
        "raised(gripper, height=-3cm, tolerance=3cm)",
        "on_left(gripper)",
        "on_right(red_cube, share=0.5)",
        "at_front(gripper, share=0.6)",
        "at_back(blue_ball)",
        "in_middle(gripper, share=0.5)",
        "nearer(gripper, red_cube, by=1cm)",
        "nearer(red_cube, blue_ball, by=2mm)",
    ),
    "drawer_then_place": ("inside(red_cube, drawer)", "open(drawer)", "closed(drawer)"),
    "button": ("pressed(button)", "touch(gripper, button, within=6cm)"),
    "lift": ("lifted(red_cube)", "grasped(red_cube)"),
    "pick_place": ("on(red_cube, target)",),
    "stack": ("on(red_cube, blue_cube)",),
    "peg": ("inserted(peg, hole)", "upright(peg)"),
}
PAIRS = [(task, text) for task, texts in TABLE.items() for text in texts]


@cache
def scene(task: str) -> tuple[sims.BatchEnv, list[Array], list[dict[str, Array]]]:
    """States of an episode that begins scattered, half of it played by the expert: (T, N, nstate)
    and their signals."""
    env = sims.make(task, ROWS, seed=3)
    env.scatter()
    rng = np.random.default_rng(0)
    states, signals = [env.state()], [env.signals()]
    for _ in range(4 if task == "push" else 12):
        action = np.array(env.task.expert(env.views, rng))
        action[::2] = rng.uniform(-1.0, 1.0, action[::2].shape)
        env.step(action)
        states.append(env.state())
        signals.append(env.signals())
    return env, states, signals


def margins(task: str, formula: Formula) -> Array:
    """(T, N) m, the least of the formula's only predicate at every step."""
    env, _, signals = scene(task)
    of = formula_margins(formula, from_dict(env.card))
    measures, found, before = MarginEvaluator(of), [], signals[0]
    remembered = of.remembered(of.begun(signals[0]), of.chosen(signals[0]))
    for now in signals:
        [margin], _ = (
            list(m.values()) if i == 0 else m
            for i, m in enumerate(measures({**now, **remembered}, before))
        )
        found.append(margin.min(axis=1))
        before = now
    return np.stack(found)


def judged(task: str, formula: Formula) -> Array:
    """(T, N) bool, what the judge says at every step."""
    env, states, _ = scene(task)
    env.set_state(states[0])
    judge = SuccessJudge(to_data(formula), env.task, env.batch, env.views)
    for state in states[1:]:
        env.set_state(state)
        judge.step(np.zeros(ROWS, bool))
    return judge.course().done


@pytest.mark.parametrize(("task", "text"), PAIRS)
def test_margin_sign_agrees_with_the_judge(task: str, text: str) -> None:
    formula = fill(parse(text), from_dict(sims.make_task(task).card()))
    margin, truth = margins(task, formula), judged(task, formula)
    clear = np.abs(margin) > BAND
    wrong = ((margin >= 0) != truth) & clear
    assert wrong.sum() <= 0.005 * clear.sum(), (int(wrong.sum()), margin[wrong][:5])


def test_every_margin_is_tested_against_the_judge() -> None:
    held = {text.partition("(")[0] for _, text in PAIRS}
    assert held == {name for name, row in PREDICATES.items() if row.margin}
    card = from_dict(sims.make_task("hopper").card())
    with pytest.raises(
        NoMargin, match=r"front_flip has no margin \(.*\): give the goal as a sentence"
    ):
        formula_margins(parse("front_flip(hopper)"), card)


def test_missing_margin_names_the_signal_that_the_task_lacks() -> None:
    card = from_dict(sims.make_task("humanoid").card())
    signals = tuple(s for s in card.signals if s.name != "torso_up")
    with pytest.raises(NoMargin, match="'humanoid' does not give signal torso_up or pitch"):
        formula_margins(parse("upright(humanoid)"), replace(card, signals=signals))


KNOWN = [
    (task, key)
    for task in (
        "reach",
        "push",
        "lift",
        "pick_place",
        "stack",
        "drawer",
        "button",
        "peg",
        "drawer_then_place",
    )
    for key in sims.make_task(task).goals()
]


@pytest.mark.parametrize(("task", "key"), KNOWN)
def test_goal_formulas_match_handwritten_success(task: str, key: str) -> None:
    """Its formula's margin against the success that its task wrote by hand, without a band: both
    read the same measurements."""
    goal = read_goal(sims.make_task(task), key)
    assert goal.formula is not None
    env, states, _ = scene(task)
    truth = []
    for state in states:
        env.set_state(state)
        truth.append(np.array(env.task.goals()[key].success(env.views)))
    margin = margins(task, goal.formula)
    wrong = ((margin >= 0) != np.stack(truth)) & (np.abs(margin) > 1e-6)
    # Which way a peg leans is no signal.
    assert wrong.sum() <= (0.001 * wrong.size if task == "peg" else 0), margin[wrong][:5]
