"""Sentences of the task suite: which goal of its task each one means, and what is refused."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sims
from benchmarks.labelled_sentences import card_of, own_key, path_of
from benchmarks.reading import outcome
from reward_models.base import TaskCard
from reward_models.goals import Atom, Refusal, describe_vocabulary, paraphrases, parse, read
from reward_models.goals.formula import check
from reward_models.goals.grammar.refusals import known_words
from reward_models.goals.text import to_sentence
from robo_rl.goals.reading import read_card_goal, read_goal

ROWS_AT = Path(__file__).parent / "data"
ROWS = json.loads((ROWS_AT / "goal_sentences_suite_dev.json").read_text("utf-8"))
HANDLING = ("lift", "pick_place", "stack", "drawer", "button", "peg", "drawer_then_place")
BODIES = ("hopper", "half_cheetah", "walker2d", "ant", "humanoid")


def answer(text: str, card: TaskCard) -> str:
    try:
        return str(read(text, card))
    except Refusal as refusal:
        return f"refuse:{refusal.code}"


def outcomes(name: str) -> Counter[str]:
    """How often each outcome occurs in a set of sentences."""
    return Counter(map(outcome, json.loads(path_of(name).read_text("utf-8"))))


@pytest.mark.parametrize("name", sorted({r["task"] for r in ROWS}))
def test_action_corpus_is_parsed_correctly(name: str) -> None:
    for row in ROWS:
        if row["task"] != name:
            continue
        assert read_card_goal(card_of(name), row["sentence"]).key == own_key(row), row["sentence"]


def test_conversational_goals_are_never_misread() -> None:
    found = outcomes("suite_talk")
    assert found.total() == 45 and found["right"] >= 43 and found["wrong_accepted"] == 0


@pytest.mark.parametrize(
    ("part", "refused"), [("wide_dev", 104), ("wide_near", 6), ("typed_dev", 0)]
)
def test_no_goal_is_parsed_as_another(part: str, refused: int) -> None:
    """Of talk some are still refused; of what is typed and of near misses hardly any."""
    found = outcomes(part)
    assert found["wrong_accepted"] == 0, found
    assert found["refused_wrongly"] <= refused, found


@pytest.mark.parametrize("text", ["touch #red_cube", "# touch it", "please push # to the ball #"])
def test_internal_grammar_markers_cannot_be_typed(text: str) -> None:
    for task in ("reach", "push", "humanoid"):
        assert not read_goal(sims.make_task(task), text).key


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("drawer", "go to the open drawer"),
        ("drawer", "push the closed drawer"),
        ("lift", "reach the cube in the air"),
        ("stack", "go to the red cube on the blue cube"),
        ("stack", "go to the tower with the red cube on the blue cube"),
        ("pick_place", "aim for the cube on the target"),
        ("peg", "try the peg in the hole"),
        ("drawer_then_place", "go to the cube in the drawer"),
        ("reach", "go to the hand above the cube"),
        ("push", "move the hand and the ball next to the cube"),
        ("push", "take the ball, go next to the cube"),
    ],
)
def test_descriptions_of_objects_are_not_goals(task: str, text: str) -> None:
    assert not read_goal(sims.make_task(task), text).key


@pytest.mark.parametrize(
    ("task", "text", "key"),
    [
        ("reach", "hover above the ball but don't touch it", ""),
        ("reach", "touch the ball without touching it", ""),
        ("reach", "hover over the ball without touching the cube", ""),
        ("walker2d", "walk forward without falling over", "forward"),
        ("walker2d", "walk forward until you fall", ""),
        ("half_cheetah", "run as fast as possible", "forward"),
        ("half_cheetah", "run backwards as fast as possible", ""),
        ("pick_place", "put the cube on the marked disc and let go", "cube_at_target"),
        ("lift", "lift the cube and let go", ""),
        ("lift", "lift the cube and hold it", "lift_cube"),
        ("stack", "put the red cube on the blue cube and hold it", ""),
        ("lift", "lift the cube and don't drop it", "lift_cube"),
        ("drawer", "open the drawer completely", "open"),
        ("drawer", "open the drawer halfway", ""),
        ("button", "press and hold the button", "press"),
        ("button", "press the button and let go", ""),
    ],
)
def test_implied_conditions_are_accepted_and_others_refused(task: str, text: str, key: str) -> None:
    assert read_goal(sims.make_task(task), text).key == key


@pytest.mark.parametrize(
    ("task", "text", "key"),
    [
        ("drawer", "drawer closed", "close"),  # as under a picture
        ("drawer", "the drawer closed", ""),  # tells what happened
        ("peg", "peg inserted in the block", "insert"),
        ("push", "push the cube towards the ball until they touch", "red_cube_next_to_blue_ball"),
        ("push", "push the cube towards the ball until they are far apart", ""),
        ("stack", "stack the cubes with the red one on top", "red_on_blue"),
        ("stack", "stack the cubes with the blue one on top", ""),
        ("inverted_pendulum", "don't let the pole fall", "balance"),
        ("inverted_pendulum", "let the pole fall", ""),
        ("drawer_then_place", "first open the drawer, then put the cube in", "cube_in_drawer"),
        ("drawer_then_place", "open the drawer, push the cube away", ""),
    ],
)
def test_typed_variants_of_goals_are_parsed(task: str, text: str, key: str) -> None:
    assert read_card_goal(card_of(task), text).key == key


CARDS = {task: card_of(task) for task in sorted(sims.TASKS)}
SPOKEN = sorted(known_words())
SAID = st.sampled_from(
    [
        "the cube",
        "the red cube",
        "the blue ball",
        "the drawer",
        "the target",
        "the hole",
        "it",
        "the robot",
        "you",
        "not",
        "never",
        "do not",
        "without",
        ",",
        "?",
        "and",
        "then",
        "#",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    words=st.lists(st.one_of(st.sampled_from(SPOKEN), SAID), max_size=40),
    task=st.sampled_from(sorted(CARDS)),
)
def test_any_text_is_parsed_or_refused_quickly(words: list[str], task: str) -> None:
    began = time.process_time()
    try:
        formula = read(" ".join(words), CARDS[task])
    except Refusal:
        pass
    else:
        check(formula, CARDS[task]) if isinstance(formula, Atom) else None
    assert time.process_time() - began < 5  # some hundred times what a sentence takes


def test_negation_is_never_ignored() -> None:
    rows = json.loads((ROWS_AT / "goal_sentences_wide_dev.json").read_text("utf-8"))
    tried = 0
    for i, row in enumerate(r for r in rows if "goal" in r):
        card = card_of(row["task"])
        if answer(row["sentence"], card).startswith("refuse:"):
            continue
        tried += 1
        said = f"{('not', 'never', 'do not')[i % 3]} {row['sentence']}"
        assert answer(said, card).startswith("refuse:"), said
    assert tried > 250


def test_outcomes_of_a_corpus() -> None:
    def counted(**row: str) -> str:
        return outcome({"task": "drawer", **row})

    assert counted(sentence="open the drawer", goal="drawer/open") == "right"
    assert counted(sentence="open the drawer", goal="drawer/close") == "wrong_accepted"
    assert counted(sentence="caress the drawer", goal="drawer/open") == "refused_wrongly"
    assert counted(sentence="caress the drawer", refuse="true") == "right"
    assert counted(sentence="open the drawer", refuse="true") == "wrong_accepted"
    # A formula that the task has no ground truth for is no refusal.
    assert counted(sentence="touch the handle", refuse="true") == "wrong_accepted"


@pytest.mark.parametrize("name", (*BODIES, *HANDLING))
def test_goal_sentence_parses_to_its_formula(name: str) -> None:
    card = card_of(name)
    formulas = [read(sentence, card) for sentence in card.goals.values()]
    assert len(set(map(str, formulas))) == len(formulas)
    for formula in formulas:
        check(formula, card)
        assert parse(str(formula)) == formula


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
        ("humanoid", "the humanoid knelt", "refuse:unsupported"),
        ("humanoid", "kneel and raise your arms", "refuse:ambiguous"),  # not at once
        ("humanoid", "kneel or stand up", "or(kneel(humanoid), stand_up(humanoid))"),
        ("ant", "don't walk forward", "refuse:unsupported"),
        ("ant", "walk backward", "backward(ant)"),
        ("ant", "walk forward slowly", "refuse:unsupported"),
        ("ant", "walk forward ten metres", "refuse:unsupported"),
        ("ant", "walk to the wall", "refuse:unknown_object"),
        ("ant", "wave all your legs", "refuse:unsupported"),
        ("ant", "lie down on your belly", "refuse:unsupported"),
        ("ant", "walk forward without waving a leg", "and(forward(ant), never(wave(ant)))"),
        ("hopper", "do two front flips", "refuse:unsupported"),
        ("hopper", "do a flip", "refuse:unsupported"),
        ("hopper", "the ant walks forward", "refuse:unknown_word"),
        ("hopper", "please", "refuse:no_goal"),
    ],
)
def test_sentences_for_bodies(task: str, text: str, got: str) -> None:
    assert answer(text, card_of(task)) == got


@pytest.mark.parametrize(
    ("task", "text", "got"),
    [
        ("lift", "would you mind lifting the cube?", "lifted(red_cube)"),
        ("lift", "I want the red cube in the air", "lifted(red_cube)"),
        ("lift", "the gripper should lift the cube", "lifted(red_cube)"),
        ("lift", "touch the cube", "touch(gripper, red_cube)"),
        ("lift", "you can lift the cube", "refuse:ambiguous"),
        ("lift", "the cube was lifted", "refuse:unsupported"),
        ("lift", "is the cube lifted?", "refuse:no_goal"),
        ("lift", "grasp the cube", "grasped(red_cube)"),
        ("lift", "lift the cube then put it down", "refuse:unsupported"),
        ("lift", "lift the blue cube", "refuse:unknown_object"),
        ("lift", "lift the cube slowly", "and(lifted(red_cube), always(slower(gripper)))"),
        ("lift", "lift it", "refuse:ambiguous"),
        ("push", "lift the cube", "refuse:unsupported"),
        ("pick_place", "lift the cube and put it on the target", "on(red_cube, target)"),
        (
            "pick_place",
            "lift the cube, then put it on the target",
            "then(lifted(red_cube), on(red_cube, target))",
        ),
        (
            "pick_place",
            "put the cube on the target, then lift it",
            "then(on(red_cube, target), lifted(red_cube))",
        ),
        ("pick_place", "put the cube on the target and lift it", "refuse:ambiguous"),
        ("pick_place", "push the cube to the disc", "on(red_cube, target)"),
        ("pick_place", "move the target next to the cube", "refuse:unsupported"),
        ("pick_place", "put the target on the cube", "refuse:unsupported"),
        ("pick_place", "take the cube off the target", "refuse:unsupported"),
        ("pick_place", "move the cube next to the target", "next_to(red_cube, target)"),
        ("stack", "place blue on red", "on(blue_cube, red_cube)"),
        (
            "stack",
            "build a tower with the red cube below and the blue cube above",
            "on(blue_cube, red_cube)",
        ),
        ("stack", "put the cube on the cube", "refuse:ambiguous"),
        ("stack", "put the red cube on the table", "refuse:unknown_object"),
        ("drawer", "open the drawer then close it", "then(open(drawer), closed(drawer))"),
        ("drawer", "close the drawer and open it", "refuse:ambiguous"),
        ("drawer", "open the drawer by pulling the handle", "open(drawer)"),
        ("drawer", "keep the drawer closed", "closed(drawer)"),
        ("drawer", "pull the drawer", "refuse:unsupported"),
        ("drawer", "open the handle", "refuse:unsupported"),
        ("drawer", "push the drawer to the handle", "refuse:ambiguous"),
        ("drawer", "open the drawer halfway", "open(drawer, share=0.5)"),
        ("drawer", "the drawer was open", "refuse:unsupported"),
        ("drawer", "if the drawer is closed, open it", "refuse:unsupported"),
        ("button", "press the button and keep it pressed", "pressed(button)"),
        ("button", "the gripper is pressing the button", "pressed(button)"),
        ("button", "touch the button", "touch(gripper, button)"),
        ("button", "push the button to the left", "refuse:ambiguous"),
        ("button", "press the button twice", "refuse:unsupported"),
        ("peg", "take the peg out of the hole", "refuse:unsupported"),
        ("peg", "put the hole in the peg", "refuse:unsupported"),
        ("drawer_then_place", "put the cube on the drawer", "refuse:unsupported"),
        (
            "drawer_then_place",
            "put the cube in the drawer and close it",
            "and(inside(red_cube, drawer), closed(drawer))",
        ),
    ],
)
def test_sentences_about_articulated_objects(task: str, text: str, got: str) -> None:
    card = card_of(task)
    assert answer(text, card) == got
    if not got.startswith("refuse:"):
        check(parse(got), card)


def test_captions_of_articulated_objects_parse_back() -> None:
    for task in HANDLING:
        card = card_of(task)
        for sentence in card.goals.values():
            formula = read(sentence, card)
            assert isinstance(formula, Atom)
            said = paraphrases(formula, card) if formula.object else (to_sentence(formula, card),)
            for text in said:
                assert read(text, card) == formula, text


def test_object_must_afford_the_action() -> None:
    card = card_of("drawer_then_place")
    for text in ("open(red_cube)", "inside(drawer, red_cube)", "on(red_cube, drawer)"):
        with pytest.raises(ValueError, match="must be"):
            check(parse(text), card)
    assert "the drawer is open" in describe_vocabulary(card)


def test_an_action_has_no_plan_of_captions() -> None:
    goal = read_goal(sims.make_task("ant"), "walk forward")
    assert goal.key == "forward"
    with pytest.raises(ValueError, match="--reward task"):
        _ = goal.plan
