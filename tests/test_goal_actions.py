"""Sentences of the task suite: which goal of its task each one means, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sims
from reward_models.base import TaskCard, from_dict
from reward_models.goals import Refusal, parse_formula, read
from reward_models.goals.predicates import check
from robo_rl.goals import read_goal

ROWS = json.loads(
    (Path(__file__).parent / "data" / "goal_sentences_suite_dev.json").read_text("utf-8")
)
# The corpus was written before these tasks: its key -> the task's own.
OWN_KEYS = {"ant/wave_leg": "wave", "humanoid/raise_arms": "arms_raised"}
BODIES = ("hopper", "half_cheetah", "walker2d", "swimmer", "ant", "humanoid")


def card_of(task: str) -> TaskCard:
    return from_dict(sims.make_task(task).card())


def answer(text: str, card: TaskCard) -> str:
    try:
        return str(read(text, card))
    except Refusal as refusal:
        return f"refuse:{refusal.code}"


@pytest.mark.parametrize("name", sorted({r["task"] for r in ROWS} & {*BODIES, "reach", "push"}))
def test_the_suite_corpus(name: str) -> None:
    task = sims.make_task(name)
    for row in ROWS:
        if row["task"] != name:
            continue
        goal = row.get("goal", "")
        key = OWN_KEYS.get(goal, goal.removeprefix(f"{name}/"))
        assert read_goal(task, row["sentence"]).key == key, row["sentence"]


@pytest.mark.parametrize("name", BODIES)
def test_a_goal_of_a_body_is_read_from_its_own_sentence(name: str) -> None:
    card = card_of(name)
    formulas = [read(sentence, card) for sentence in card.goals.values()]
    assert len(set(map(str, formulas))) == len(formulas)
    for formula in formulas:
        check(formula, card)
        assert parse_formula(str(formula)) == formula


@pytest.mark.parametrize(
    ("task", "text", "got"),
    [
        ("ant", "Could you please run forward?", "forward(ant)"),
        ("ant", "I want the ant to lie down on its back", "lie_down(ant)"),
        ("ant", "wave one of your legs about", "wave(ant)"),
        ("hopper", "make sure that the hopper does a backflip", "back_flip(hopper)"),
        ("hopper", "your goal is to hop forward", "forward(hopper)"),
        (
            "hopper",
            "hop forward, then do a front flip",
            "then(forward(hopper), front_flip(hopper))",
        ),
        ("humanoid", "robot, get up on your feet", "stand_up(humanoid)"),
        ("humanoid", "keep both arms raised above your head", "raise_arms(humanoid)"),
        ("humanoid", "you should be kneeling", "kneel(humanoid)"),
        ("humanoid", "hold your arms", "refuse:unsupported"),
        ("humanoid", "raise one arm", "refuse:unknown_word"),
        ("humanoid", "is the humanoid kneeling?", "refuse:no_goal"),
        ("humanoid", "the humanoid knelt", "refuse:unknown_word"),
        ("humanoid", "kneel and raise your arms", "refuse:unsupported"),
        ("humanoid", "kneel or stand up", "refuse:unsupported"),
        ("ant", "don't walk forward", "refuse:unsupported"),
        ("ant", "walk backward", "refuse:unsupported"),
        ("ant", "walk forward slowly", "refuse:unsupported"),
        ("ant", "walk forward ten metres", "refuse:unsupported"),
        ("ant", "walk to the wall", "refuse:unknown_word"),
        ("ant", "wave all your legs", "refuse:unsupported"),
        ("ant", "lie down on your belly", "refuse:unknown_word"),
        ("ant", "walk forward without waving a leg", "refuse:unsupported"),
        ("hopper", "do two front flips", "refuse:unsupported"),
        ("hopper", "do a flip", "refuse:unsupported"),
        ("hopper", "the ant walks forward", "refuse:unknown_word"),
        ("hopper", "please", "refuse:no_goal"),
    ],
)
def test_a_sentence_for_a_body(task: str, text: str, got: str) -> None:
    assert answer(text, card_of(task)) == got


def test_an_action_has_no_plan_of_captions() -> None:
    goal = read_goal(sims.make_task("ant"), "walk forward")
    assert goal.key == "forward"
    with pytest.raises(ValueError, match="--reward task"):
        _ = goal.plan
