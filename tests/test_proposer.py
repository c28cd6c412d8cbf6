"""What a sentence that was not read may have meant: offered, never taken unasked."""

from __future__ import annotations

import io
import os
import pty
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sims
from benchmarks.labelled_sentences import SETS, UNSEEN, card_of, labelled
from benchmarks.proposer_sentences import lessons
from reward_models.base import TaskCard
from reward_models.goals import Refusal, fill, read
from reward_models.goals.suggestions.proposer import (
    NOTHING,
    WIDTH,
    Proposer,
    candidate_atoms,
    load_shipped,
)
from robo_rl.cli import main
from robo_rl.commands import reading_offers
from robo_rl.commands.reading_offers import with_reading_offers
from robo_rl.commands.train import parse_train
from robo_rl.goals.proposer_training import train_proposer
from robo_rl.goals.reading import NotRead, read_goal
from robo_rl.training import train

UNREAD = "get the grabber thingamajig 5 cm over the red block"


def card(task: str = "reach") -> TaskCard:
    return card_of(task)


@pytest.mark.parametrize(
    "task, text, wanted",
    [
        ("reach", "could the paw sort of loiter over that ball", "above(gripper, blue_ball)"),
        ("reach", "scooch the mitt to the can till they kiss", "touch(gripper, green_cylinder)"),
        ("reach", UNREAD, "above(gripper, red_cube, height=0.05)"),
        ("push", "shunt the brick so it ends snug by the ball", "next_to(red_cube, blue_ball)"),
        ("drawer", "haul that drawer out towards yourself, would you", "open(drawer)"),
        ("humanoid", "hands to the heavens, buddy", "raise_arms(humanoid)"),
        ("inverted_pendulum", "no wobbling over now, keep the stick vertical-ish", ""),
        (
            "reach",
            "jab the red cube, then loiter kinda over the ball",
            "then(touch(gripper, red_cube), above(gripper, blue_ball))",
        ),
        ("reach", "touch the bal", "touch(gripper, blue_ball)"),  # a slip of the pen
        # what goes along with a part is read as it was said
        (
            "reach",
            "whackity the ball without touching the cube",
            "and(touch(gripper, blue_ball), never(touch(gripper, red_cube)))",
        ),
        (
            "reach",
            "boop the ball while staying at least 10 cm from the can",
            "while(touch(gripper, blue_ball), far(gripper, green_cylinder, least=0.1))",
        ),
        (
            "reach",
            "touch the cube and boop the ball",
            "and(touch(gripper, red_cube), touch(gripper, blue_ball))",
        ),
        # a way that says no amount
        ("push", "push the red cube to the left", "moved(red_cube, left=0.05)"),
        ("push", "push the red cube to the left", "on_left(red_cube)"),
        (
            "push",
            "nudge the ball a few centimetres to the right, then touch the cube",
            "then(moved(blue_ball, left=-0.05), touch(gripper, red_cube))",
        ),
        ("push", "move the can forward a bit", "moved(green_cylinder, front=0.05)"),
        ("reach", "go left", "moved(gripper, left=0.05)"),
        ("reach", "boop the ball without booping the cube", ""),
        ("push", "shovel the cube to the ball without touching it", ""),  # touching which?
    ],
)
def test_suggestions_include_the_intended_goal(task: str, text: str, wanted: str) -> None:
    with pytest.raises(Refusal):
        read(text, card(task))
    offered = [str(formula) for formula in load_shipped().propose(text, card(task))]
    assert wanted in offered if wanted else offered == []  # "no" turns it round


@pytest.mark.parametrize(
    "text",
    [
        "dont go anywhere near the ball with that mitt",
        "the weather is lovely in june",
        "hover the mitt 5 cm over the ball and then 3 cm, no, 4 cm",
        "jab the red cube, then fry an egg",
        "always hover above the ball, then jabby the cube",
        "touch the ball for at most 1 s",
        "touch the ball over 2 seconds",
        "go -5 cm above the red cube",
        "",
    ],
)
def test_no_suggestion_omits_a_part_of_the_sentence(text: str) -> None:
    assert load_shipped().propose(text, card()) == []


def test_suggestions_split_sequences_like_the_grammar() -> None:
    offered = load_shipped().propose("tappity the ball, then next to the red cube kinda", card())
    assert offered and all(str(f).startswith("then(touch(gripper, blue_ball), ") for f in offered)
    offered = load_shipped().propose("whack the ball, after that cube kinda hover", card())
    assert offered and not any("then" in str(f) for f in offered)  # "that cube"


def test_suggestion_time_is_linear_in_parts() -> None:
    text = " then ".join(["loiter kinda over the ball"] * 16)
    offered = load_shipped().propose(text, card())
    assert len(offered) == 3 and str(offered[0]).count("above(gripper, blue_ball)") == 16


def test_invalid_suggestions_do_not_raise() -> None:
    """Touching within a second, always: what happens once is no state that is kept up."""
    assert load_shipped().propose("a s red always", card("reach")) == []


WORDS = "a gripper red cube ball can push paw over by then for 5 cm 2 s not go lift always".split()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["reach", "lift", "ant"]))
def test_suggestions_are_distinct_and_valid(words: list[str], task: str) -> None:
    found = load_shipped().propose(" ".join(words), card(task))
    assert len(found) <= 3 and len({fill(f, card(task)) for f in found}) == len(found)


def test_held_out_sentences_are_not_training_data() -> None:
    taught = {text for text, _, _ in lessons()}
    kept = {text for name in list(SETS)[:UNSEEN] for text, _, _ in labelled(name)}
    assert len(taught) > 4000 and len(kept) > 1000 and not taught & kept


def test_proposer_learns_from_labelled_sentences(tmp_path: Path) -> None:
    """Words that neither the reader nor the shipped weights know."""
    other = card("drawer")
    atoms = {atom.predicate: atom for atom in candidate_atoms(other)}
    opened, closed = atoms["open"], atoms["closed"]
    rows = [(f"{w} zorble {w}", other, opened) for w in "abcdefgh"]
    rows += [(f"{w} quix {w}", other, closed) for w in "abcdefgh"]
    rows += [(f"{w} blah", other, None) for w in "abcdefgh"]
    path = tmp_path / "proposer.safetensors"
    path.write_bytes(train_proposer(rows).save())
    made = Proposer.load(path)
    assert made.propose("zorble it now", other)[0] == opened
    assert made.propose("quix it now", other)[0] == closed


def test_invalid_proposer_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected weights \(8192, kinds\)"):
        Proposer([NOTHING], np.zeros((WIDTH, 2)), np.zeros(1))
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"no such thing")
    with pytest.raises(ValueError, match="does not hold proposer weights"):
        Proposer.load(path)


# ---------------------------------------------------------------------------- at the command line


def test_unparsed_goal_without_a_terminal_trains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["train", "reach", "--reward", "offline", "--runs", str(tmp_path), "--goal", UNREAD]
    assert main(args) == 1
    told = capsys.readouterr().err
    assert "Did you mean 1: the gripper is above the red cube (height 5 cm" in told
    assert "--accept N" in told and "Available:" not in told and not list(tmp_path.iterdir())
    assert main([*args, "--accept", "7"]) == 1
    assert "--accept 7, but only 3 were suggested" in capsys.readouterr().err
    assert main([*args, "--accept", "one"]) == 1
    assert "expected the number of a suggestion" in capsys.readouterr().err


class Training(Exception):
    """Everything is set up, and the training would begin."""


def test_accepted_suggestion_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def begin(training: train._Training, run: object) -> None:
        begun.append(training.config)
        raise Training

    monkeypatch.setattr(train._Training, "learn", begin)
    args = [
        "train",
        "reach",
        "--reward",
        "offline",
        "--goal",
        UNREAD,
        "--accept=1",
        "--env-steps",
        "64",
        "--episodes",
        "4",
        "--runs",
        str(tmp_path),
    ]
    with pytest.raises(Training):
        main(args)
    [config] = begun
    said = config.formula or config.goal
    meant = read_goal(sims.make_task("reach"), said).formula if config.goal else None
    assert (str(meant) if meant else said).startswith("above(gripper, red_cube, height=0.05")


@pytest.mark.parametrize(
    "text, task, goal",
    [
        ("push the red cube to the left", "reach", "moved(red_cube, left=0.05"),
        ("schlep the red cube into the drawer", "drawer_then_place", "the red cube is in the draw"),
        (UNREAD, "reach", "above(gripper, red_cube, height=0.05"),
    ],
)
def test_accept_works_with_a_sentence_as_task(text: str, task: str, goal: str) -> None:
    def command(argv: Sequence[str]) -> int:
        parsed = parse_train(argv)
        assert parsed.task == task and (parsed.formula or parsed.goal).startswith(goal)
        return 7

    assert with_reading_offers(command, [text, "--reward", "offline", "--accept", "1"]) == 7


@pytest.mark.parametrize("answer, taken", [("2\n", 2), ("\n", 0), ("9\n", 0), ("", 0)])
def test_terminal_user_is_asked_for_a_suggestion(
    answer: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = read_goal(sims.make_task("reach"), UNREAD)
    runs: list[list[str]] = []

    def command(argv: object) -> int:
        runs.append(list(argv))  # type: ignore[call-overload]
        if len(runs) == 1:
            raise NotRead(goal)
        return 0

    monkeypatch.setattr(reading_offers, "_is_interactive", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    if not taken:
        with pytest.raises(ValueError, match="--accept N"):
            with_reading_offers(command, ["reach", "--goal", UNREAD])
        assert len(runs) == 1
        return
    offer = goal.offers()[taken - 1]
    for said in (["reach", f"--goal={UNREAD}"], ["reach", "--goal", UNREAD], [UNREAD]):
        runs.clear()
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        assert with_reading_offers(command, said) == 0
        assert runs[1] == ["reach", offer.option, offer.value]


def test_terminal_detection_needs_stdin_and_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = pty.openpty()
    with open(here), open(there) as terminal, open(os.devnull) as nobody:
        for stdin, stderr in ((terminal, terminal), (nobody, terminal), (terminal, nobody)):
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stdin", stdin)
                patch.setattr(sys, "stderr", stderr)
                found = reading_offers._is_interactive()
            assert found == (nobody not in (stdin, stderr))
