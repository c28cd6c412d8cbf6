"""A language model that proposes formulas: held against the card, offered, not taken unasked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from openai_server import OpenAIServer

import sims
from benchmarks.labelled_sentences import card_of
from reward_models.base import TaskCard
from reward_models.goals import fill, parse, read
from reward_models.goals.predicates import PREDICATES
from reward_models.goals.suggestions.llm_reader import llm_candidates, messages
from reward_models.remote.transport import Endpoint, OpenAITransport
from robo_rl.cli import main
from robo_rl.commands.reading_offers import with_reading_offers
from robo_rl.goals.reading import NotRead, read_goal

SAID = "let the grabber loiter somewhat high over the ball"
ANSWER = """Here they are:
1. `above(gripper, blue_ball, height=12cm)`
2. above(gripper, blue_ball, height=0.12)
3. above(gripper, purple_ball)
4. touch(gripper)
and(above(gripper, blue_ball), always(slower(gripper)))
__import__('os').system('true')
hold(above(gripper, blue_ball), seconds=1)
far(gripper, blue_ball)
"""


@cache
def card(task: str = "reach") -> TaskCard:
    return card_of(task)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-this-test")


def test_llm_reader_accepts_only_valid_new_formulas() -> None:
    """Not what is no formula, of no thing of the card, said before, or more than three."""
    with OpenAIServer([ANSWER]) as server:
        found = llm_candidates(SAID, card(), OpenAITransport(Endpoint("m", server.url)))
    assert [str(formula) for formula in found] == [
        "above(gripper, blue_ball, height=0.12)",
        "and(above(gripper, blue_ball), always(slower(gripper)))",
        "hold(above(gripper, blue_ball), seconds=1)",
    ]
    with OpenAIServer(["none"]) as server:
        assert (
            llm_candidates("fry an egg", card(), OpenAITransport(Endpoint("m", server.url))) == []
        )


def test_llm_prompt_has_goal_language_and_task_card() -> None:
    told, said = (message["content"] for message in messages(SAID, card("drawer")))
    assert said == SAID and "drawer (drawer), handle (handle)" in told
    assert "open(x, share (1)): x is open (x: open)" in told
    assert "front_flip" not in told  # of no thing here
    assert sum(f"\n{name}(" in told for name in PREDICATES) > 15


def test_llm_suggestion_is_used_only_with_accept(tmp_path: Path) -> None:
    tape = tmp_path / "tape"
    said: list[list[str]] = []

    def command(argv: Sequence[str]) -> int:
        said.append(list(argv))
        if "--goal" in argv and SAID in argv:
            raise NotRead(read_goal(sims.make_task("reach"), SAID))
        return 0

    args = ["reach", "--goal", SAID, "--reader", "llm", "--reading.cassette", str(tape)]
    with OpenAIServer([ANSWER]) as server:
        model = ["--reading.model", "m", "--reading.base-url", server.url]
        with pytest.raises(ValueError, match="Or choose a suggestion with --accept N") as caught:
            with_reading_offers(command, [*args, *model])
        assert len(server.requests) == 1
    assert "Did you mean 1: the gripper is above the blue ball (height 12 cm" in str(caught.value)
    assert said == [["reach", "--goal", SAID]] and "secret" not in tape.read_text()
    # from the cassette, without a model
    assert with_reading_offers(command, [*args, "--accept", "3"]) == 0
    option, value = said[-1][1:]
    meant = parse(value) if option == "--formula" else read(value, card())
    assert str(fill(meant, card())).startswith("hold(above(gripper, blue_ball, height=0.055")


def test_missing_or_unknown_llm_is_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["train", "reach", "--goal", SAID, "--reader"]
    assert main([*args, "oracle"]) == 1
    assert "--reader: expected grammar or llm, got 'oracle'" in capsys.readouterr().err

    def command(argv: Sequence[str]) -> int:
        raise NotRead(read_goal(sims.make_task("reach"), SAID))

    with pytest.raises(ValueError, match="reader 'llm' needs a model: --reading.model NAME"):
        with_reading_offers(command, ["reach", "--goal", SAID, "--reader", "llm"])
