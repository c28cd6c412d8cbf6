"""The goal grammar: what it reads, what it refuses, and that it never guesses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.labelled_sentences import path_of
from benchmarks.reading import flat, outcome, score, to_refuse
from reward_models.base import TaskCard, from_dict
from reward_models.goals import (
    Atom,
    Plan,
    Refusal,
    describe_vocabulary,
    paraphrases,
    parse,
    read,
    stages,
)
from reward_models.goals.formula import atoms, check
from reward_models.goals.grammar.refusals import known_words
from reward_models.goals.predicates import PREDICATES, role
from reward_models.goals.refusal import CODES
from reward_models.goals.text import to_sentence

DATA = Path(__file__).parent / "data"


def make_card(*entities: tuple[str, tuple[str, ...], str, str]) -> TaskCard:
    """A card with these (name, aliases, colour, kind) and nothing else."""
    return from_dict(
        {
            "task": "test",
            "signals": [],
            "entities": [
                {
                    "name": name,
                    "aliases": list(aliases),
                    "colour": colour,
                    "kind": kind,
                    "affordances": [],
                    "body": name,
                    "pose_signal": f"{name}_pose",
                }
                for name, aliases, colour, kind in entities
            ],
            "goals": {},
            "cameras": ["front"],
            "control_dt": 0.05,
            "episode_s": 2.5,
        }
    )


TABLE = make_card(
    ("gripper", ("gripper", "hand", "claw", "fingers", "arm", "robot"), "", "gripper"),
    ("red_cube", ("cube", "block", "box", "brick"), "red", "cube"),
    ("blue_ball", ("ball", "sphere"), "blue", "ball"),
    ("green_cylinder", ("cylinder", "can", "tube"), "green", "cylinder"),
)
KITCHEN = make_card(
    ("left_arm", ("gripper", "pincer"), "", "gripper"),
    ("yellow_box", ("box", "crate"), "yellow", "box"),
    ("white_mug", ("mug", "cup"), "white", "mug"),
    ("grey_mug", ("mug", "cup"), "gray", "mug"),
    ("drawer_handle", ("handle",), "", "handle"),
)
CARDS = (TABLE, KITCHEN)


def answer(text: str, card: TaskCard = TABLE) -> str:
    try:
        return str(read(text, card))
    except Refusal as refusal:
        return f"refuse:{refusal.code}"


def all_atoms(card: TaskCard) -> list[Atom]:
    return [
        Atom.of(p.name, a.name, b.name)
        for p in PREDICATES.values()
        for a in card.entities
        for b in card.entities
        if role(a) in p.spoken and role(b) == "object" and a != b
    ]


ATOMS = [(atom, card) for card in CARDS for atom in all_atoms(card)]
DEV = [row["text"] for row in json.loads((DATA / "goal_sentences_dev.json").read_text("utf-8"))]
DEV_GOALS = [text for text in DEV if not answer(text).startswith("refuse:")]


# ------------------------------------------------------------------------------------- corpora


@pytest.mark.parametrize(
    ("part", "sayable", "every"),
    [
        ("dev", 0, 1),
        ("extra", 0, 1),
        ("probe", 0, 3),
        ("heldout", 2, 1),
        ("fresh", 5, 1),
        pytest.param("probe", 0, 1, marks=pytest.mark.slow),
    ],
)
def test_goal_corpus_is_parsed_correctly(part: str, sayable: int, every: int) -> None:
    """No goal is read as another. Some sentences kept out are labelled as to be refused because no
    goal could say them then ("go behind the ball"); as many as that are read as formulas now."""
    lines = json.loads(path_of(part).read_text("utf-8"))[::every]
    found = Counter((to_refuse(line), outcome(line)) for line in lines)
    assert found[False, "wrong_accepted"] == 0, found
    assert found[True, "wrong_accepted"] <= sayable, found
    right = found[False, "right"] + found[True, "right"]
    least = 0.88 if part == "fresh" else 0.95  # as measured: tests/data/README.md
    assert right >= least * len(lines), found


def test_corpus_score_counts_outcomes_and_suggestions() -> None:
    lines = json.loads(path_of("dev").read_text("utf-8"))
    counts = score("dev")
    for part in ("goals", "refusals"):
        own = [outcome(line) for line in lines if to_refuse(line) == (part == "refusals")]
        assert counts[part]["total"] == len(own)
        for kind in ("right", "wrong_accepted", "refused_wrongly"):
            assert counts[part][kind] == own.count(kind)
        assert counts[part]["offered"] <= counts[part]["refused_wrongly"]
        assert counts[part]["needless"] <= counts[part]["right"]
    assert counts["all"]["total"] == len(lines)


def test_equivalent_sequences_compare_equal() -> None:
    a, b, c = "touch(gripper, red_cube)", "touch(gripper, blue_ball)", "far(gripper, red_cube)"
    together = f"then({a}, {b}, {c})"
    assert flat(f"then({a}, then({b}, {c}))") == flat(f"then(then({a}, {b}), {c})") == together
    assert flat(f"and({a}, then({b}, {c}))") != flat(f"then({a}, and({b}, {c}))") != together
    assert flat(f"then({b}, {a}, {c})") != together


# ------------------------------------------------------------------------- reading and refusing


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("can you touch the can", "touch(gripper, green_cylinder)"),
        ("touch the can, can you?", "touch(gripper, green_cylinder)"),
        ("move to the cube\u2019s left-hand side", "left_of(gripper, red_cube)"),
        ("the tip of the robot's arm has to be over the ball", "above(gripper, blue_ball)"),
        ("I want the red cube touched", "touch(gripper, red_cube)"),
        ("the ball is touched by the hand", "touch(gripper, blue_ball)"),
        ("the ball is left of the gripper", "right_of(gripper, blue_ball)"),
        ("push the cube until it touches the ball", "next_to(red_cube, blue_ball)"),
        ("keep the cube and the ball far apart", "far(red_cube, blue_ball)"),
        (
            "push the ball with the claw to the left of the can",
            "left_of(blue_ball, green_cylinder)",
        ),
        (
            "touch the red cube, then push it next to the ball",
            "then(touch(gripper, red_cube), next_to(red_cube, blue_ball))",
        ),
        (
            "touch the red cube after the blue ball",
            "then(touch(gripper, blue_ball), touch(gripper, red_cube))",
        ),
        (
            "after touching the cube, go left of the ball",
            "then(touch(gripper, red_cube), left_of(gripper, blue_ball))",
        ),
        (
            "make sure the cube is next to the ball, then touch the can",
            "then(next_to(red_cube, blue_ball), touch(gripper, green_cylinder))",
        ),
        (
            "the cube is next to the ball and touches the can",
            "and(next_to(red_cube, blue_ball), next_to(red_cube, green_cylinder))",
        ),
        (
            "the ball is left of the gripper and right of the cube",
            "and(right_of(gripper, blue_ball), right_of(blue_ball, red_cube))",
        ),
        (
            "after the cube touches the ball, go left of the can",
            "then(next_to(red_cube, blue_ball), left_of(gripper, green_cylinder))",
        ),
        (
            "hover over the cube, then proceed to the ball",
            "then(above(gripper, red_cube), touch(gripper, blue_ball))",
        ),
        ("keep some distance between the cube and the ball", "far(red_cube, blue_ball)"),
        ("raise the hand above the ball", "above(gripper, blue_ball)"),
        (
            "touch the cube, the ball and the can",
            "and(touch(gripper, red_cube), touch(gripper, blue_ball), "
            "touch(gripper, green_cylinder))",
        ),
        (
            "push the cube next to the ball and left of the can",
            "and(next_to(red_cube, blue_ball), left_of(red_cube, green_cylinder))",
        ),
        (
            "touch the ball while staying left of the cube, then hover over the can",
            "then(and(touch(gripper, blue_ball), left_of(gripper, red_cube)), "
            "above(gripper, green_cylinder))",
        ),
    ],
)
def test_grammar_parses_sentence(text: str, formula: str) -> None:
    assert answer(text) == formula


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_goal"),
        ("?!", "no_goal"),
        ("thank you", "no_goal"),
        ("the red cube", "no_goal"),
        ("the gripper is above the ball?", "no_goal"),
        ("do you see the ball", "no_goal"),
        ("caress the ball", "unknown_word"),
        ("touch the bll", "unknown_word"),
        ("touch the cube \N{GRINNING FACE}", "unknown_word"),
        ("touch the teapot", "unknown_object"),
        ("touch the yellow cube", "unknown_object"),
        ("touch the blue block", "unknown_object"),
        ("touch the thing", "ambiguous"),
        ("touch the red", "ambiguous"),
        ("touch", "ambiguous"),
        ("go left", "ambiguous"),
        ("first touch the cube", "ambiguous"),
        ("touch the cube, touch the ball", "ambiguous"),  # at once, or in turn?
        ("go above the ball and touch it", "ambiguous"),
        ("hand over the ball", "ambiguous"),
        ("push the cube by the ball", "unsupported"),
        ("the gripper is too far from the cube", "unsupported"),
        ("touch the ball and the cube left of the can", "ambiguous"),
        ("hover over the ball and then the cube touching the can", "ambiguous"),
        ("the ball is left of the gripper and the cube", "ambiguous"),
        ("the cube is touched by the hand and the ball", "ambiguous"),
        ("the cube should be left of the ball and touch the can", "ambiguous"),
        ("the cube is left of the ball and the ball is left of the cube", "ambiguous"),
        ("touch the ball after that cube", "ambiguous"),
        ("touch the cube, before that the ball", "ambiguous"),
        ("touch the cube later, the ball now", "ambiguous"),
        ("touch the cube after the ball and go left of the can", "ambiguous"),
        ("stay far from the can while touching the cube and then the ball", "ambiguous"),
        ("push the cube until the ball is left of the can", "unsupported"),
        ("move the cube in order to touch the ball", "ambiguous"),
        ("move the hand to the cube, then make it touch the ball", "ambiguous"),
        ("push the ball with the hand right of the can", "unsupported"),
        ("the hand might touch the ball", "ambiguous"),
        ("touch the cube and stay far from the cube", "ambiguous"),
        ("push the cube to the ball, then touch it", "ambiguous"),
        ("the gripper goes to the cube and it touches the ball", "ambiguous"),
        ("make the cube touch the ball and stay left of the can", "ambiguous"),
        ("push the cube to the ball and the can", "ambiguous"),
        ("do not touch the cube", "unsupported"),
        ("don't go left of the cube", "unsupported"),
        ("touch the cube twice", "unsupported"),
        ("touch the cubes", "unsupported"),
        ("touch one cube", "unsupported"),
        ("stay 1.5 m from the cube", "ambiguous"),  # at least, or at most?
        ("touch the cube gently", "unsupported"),
        ("if you touch the cube", "unsupported"),
        ("grab the cube", "unsupported"),
        ("put the cube on the ball", "unsupported"),
        ("the cube is above the ball", "unsupported"),
        ("the gripper is next to the cube", "unsupported"),
        ("bring the cube to the gripper", "unsupported"),
        ("push the cube next to the cube", "unsupported"),
        ("touch the left side of the cube", "unsupported"),
        ("touch the ball left of the cube", "unsupported"),
        ("use the gripper to the ball next to the cube", "unsupported"),
        ("go to the ball next to the cube", "unsupported"),
        ("come to the ball next to the cube", "unsupported"),
        ("I want to get to the ball beside the cube", "unsupported"),
        ("come over to the cube by the cylinder", "unsupported"),
        ("head for the ball next to the cube", "unsupported"),
        ("aim for the ball next to the cube", "unsupported"),
        ("reach the ball beside the cube", "unsupported"),
        ("touch the ball next to the cube", "unsupported"),
        ("look at the ball on the left", "unsupported"),
        ("move the hand to the ball next to the cube", "unsupported"),
        ("bring the hand to the ball next to the cube", "unsupported"),
        ("push the cube left of the ball to the can", "unsupported"),
        ("the gripper touched the cube", "unsupported"),
        ("touch the cube now and then", "ambiguous"),
        ("touch the cube " * 60, "unsupported"),
    ],
)
def test_grammar_refuses_sentence(text: str, code: str) -> None:
    assert answer(text) == f"refuse:{code}"


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("touch the yellow one", "touch(left_arm, yellow_box)"),
        ("push the crate to the white mug", "next_to(yellow_box, white_mug)"),
        ("move the pincer to the left of the grey cup", "left_of(left_arm, grey_mug)"),
        ("go above the drawer handle", "above(left_arm, drawer_handle)"),
        (
            "touch the handle, then the gray one",
            "then(touch(left_arm, drawer_handle), touch(left_arm, grey_mug))",
        ),
        ("touch the mug", "refuse:ambiguous"),
        ("touch the yellow mug", "refuse:unknown_object"),
        ("touch the red cube", "refuse:unknown_object"),
        ("touch the cylinder", "refuse:unknown_object"),
    ],
)
def test_grammar_works_with_another_task_card(text: str, got: str) -> None:
    assert answer(text, KITCHEN) == got


def test_refusal_is_one_line_with_a_suggestion() -> None:
    with pytest.raises(Refusal) as caught:
        read("hovr over\nthe ball", TABLE)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("'hovr'", "'hover'", "the gripper touches", "the green cylinder", "is next to"):
        assert part in message
    with pytest.raises(Refusal, match="negation"):
        read("never touch the ball", TABLE)


def test_sentences_of_task_card_without_gripper_are_refused() -> None:
    with pytest.raises(Refusal, match="neither one gripper nor one known body"):
        read("touch the ball", make_card(("blue_ball", ("ball",), "blue", "ball")))


# ---------------------------------------------------------------------------------- properties

SOUP = st.lists(
    st.sampled_from(
        sorted(known_words()) + sorted({w for t in DEV for w in t.split()}) + [",", "?"]
    ),
    max_size=12,
).map(" ".join)


@settings(max_examples=200, deadline=None)
@example(text="A", card=CARDS[0])  # once an IndexError
@given(text=st.one_of(st.text(max_size=80), SOUP), card=st.sampled_from(CARDS))
def test_any_text_is_parsed_or_refused(text: str, card: TaskCard) -> None:
    try:
        formula = read(text, card)
    except Refusal as refusal:
        assert refusal.code in CODES
        assert "\n" not in str(refusal)
    else:
        check(formula, card)


@pytest.mark.parametrize(("atom", "card"), ATOMS, ids=str)
def test_captions_and_paraphrases_parse_back(atom: Atom, card: TaskCard) -> None:
    check(atom, card)
    assert read(to_sentence(atom, card), card) == atom
    wordings = paraphrases(atom, card)
    assert 6 <= len(set(wordings)) <= 10
    assert wordings[0] == to_sentence(atom, card)
    for wording in wordings:
        assert read(wording, card) == atom, wording


def test_canonical_captions() -> None:
    said = {
        "touch(gripper, red_cube)": "the gripper touches the red cube",
        "above(gripper, red_cube)": "the gripper is above the red cube",
        "left_of(gripper, red_cube)": "the gripper is left of the red cube",
        "far(gripper, red_cube)": "the gripper is far from the red cube",
        "next_to(red_cube, blue_ball)": "the red cube is next to the blue ball",
        "right_of(red_cube, blue_ball)": "the red cube is right of the blue ball",
    }
    for formula, sentence in said.items():
        assert to_sentence(next(atoms(parse(formula))), TABLE) == sentence
    assert describe_vocabulary(TABLE).count("\n") == 0


@settings(max_examples=100, deadline=None)
@given(
    text=st.sampled_from(DEV + [to_sentence(a, TABLE) for a in all_atoms(TABLE)]),
    upper=st.booleans(),
    space=st.sampled_from([" ", "  ", "\t", "\n "]),
    end=st.sampled_from(["", ".", "!", " ...", " "]),
)
def test_case_spaces_and_full_stops_are_ignored(
    text: str, upper: bool, space: str, end: str
) -> None:
    changed = space.join((text.upper() if upper else text).split()) + end
    assert answer(changed) == answer(text)


@settings(max_examples=120, deadline=None)
@given(
    text=st.sampled_from(DEV_GOALS + [to_sentence(a, TABLE) for a in all_atoms(TABLE)]),
    word=st.text("bcdfghjklmnpqrstvwxz", min_size=5, max_size=9),
    at=st.floats(0, 1),
)
def test_an_unknown_word_anywhere_is_refused(text: str, word: str, at: float) -> None:
    words = text.split()
    words.insert(round(at * len(words)), word)
    assert answer(" ".join(words)).startswith("refuse:unknown_")


@pytest.mark.parametrize(("word", "first"), [("grab", 0), ("three", 1), ("if", 2)])
def test_a_known_but_unsupported_word_anywhere_is_refused(word: str, first: int) -> None:
    """Each word in every place of a sixth of the sentences."""
    for text in DEV_GOALS[first::6]:
        words = text.split()
        for i in range(len(words) + 1):
            if word == "if" and words[i : i + 1] == ["you"]:
                continue  # "if you please"
            assert answer(" ".join([*words[:i], word, *words[i:]])).startswith("refuse:")


# -------------------------------------------------------------------------------------- stages


def plan(text: str) -> list[list[str]]:
    return [[str(atom) for atom in step] for step in stages(parse(text), TABLE).steps]


def test_stages() -> None:
    touch = Atom.of("touch", "gripper", "red_cube")
    assert stages(touch, TABLE) == Plan(((touch,),), (0,))
    assert plan("next_to(red_cube, blue_ball)") == [
        ["touch(gripper, red_cube)"],
        ["next_to(red_cube, blue_ball)"],
    ]
    assert plan("then(above(gripper, red_cube), far(red_cube, blue_ball))") == [
        ["above(gripper, red_cube)"],
        ["touch(gripper, red_cube)"],
        ["far(red_cube, blue_ball)"],
    ]
    twice = "and(left_of(gripper, red_cube), far(gripper, blue_ball), left_of(gripper, red_cube))"
    assert plan(twice) == [["left_of(gripper, red_cube)", "far(gripper, blue_ball)"]]
    several = "next_to(red_cube, blue_ball), left_of(green_cylinder, blue_ball)"
    assert plan(f"and({several}, far(gripper, blue_ball))") == [
        ["touch(gripper, red_cube)"],
        ["next_to(red_cube, blue_ball)", "touch(gripper, green_cylinder)"],
        [
            "next_to(red_cube, blue_ball)",
            "left_of(green_cylinder, blue_ball)",
            "far(gripper, blue_ball)",
        ],
    ]
    with pytest.raises(ValueError, match="a sequence of relations"):
        plan("and(then(far(gripper, red_cube), far(gripper, b)), far(gripper, c))")


def test_goals_load_no_torch() -> None:
    code = "import sys, reward_models.goals; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
