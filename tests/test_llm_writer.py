"""The language-model writer against a server of the protocol: repair, budget, cassettes."""

from __future__ import annotations

import json
import logging
import textwrap
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer

import sims
from reward_models.base import from_dict
from reward_models.programs import Refused, load
from reward_models.remote.cassette import (
    CassetteError,
    CassettePlayer,
    CassetteRecorder,
    ModelReply,
)
from reward_models.remote.transport import (
    Budget,
    BudgetedTransport,
    BudgetSpent,
    Endpoint,
    ModelError,
    OpenAITransport,
    RetryingTransport,
)
from reward_models.writers.base import Evidence
from reward_models.writers.llm import LLMWriter, program_in, system_prompt, task_prompt
from reward_models.writers.llm_methods import METHODS, text2reward
from robo_rl.cli import main

pytest.importorskip("openai")
REPLIES = json.loads((Path(__file__).parent / "data/llm_replies.json").read_text())
CARD = from_dict(sims.make_task("reach").card())
GOAL = "the gripper touches the red cube"
KEY = "sk-test-THE-SECRET-1234"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBO_TEST_KEY", KEY)


def endpoint(server: OpenAIServer, **changes: Any) -> Endpoint:
    given = {"seconds": 20.0, "wait": 0.01, **changes}
    return Endpoint("test", base_url=server.url, key_variable="ROBO_TEST_KEY", **given)


def connected(e: Endpoint, budget: Budget | None = None) -> RetryingTransport:
    """As the commands do it: every attempt within the budget."""
    return RetryingTransport(BudgetedTransport(OpenAITransport(e), budget or Budget(), e), e)


def writer(transport: Any, method: str = "text2reward", **options: Any) -> LLMWriter:
    return LLMWriter(transport, METHODS[method], **options)


def test_llm_answer_becomes_a_program() -> None:
    with OpenAIServer([REPLIES["good"]]) as server:
        [draft] = writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
    assert set(load(draft.text, CARD).components) == {"near", "effort"}
    [request] = server.requests
    assert server.keys == [f"Bearer {KEY}"]
    asked = request["messages"][1]["content"]
    assert GOAL in asked and "red_cube_pos, 3, m" in asked and "success" not in asked.lower()


@pytest.mark.parametrize("bad", ["broken", "malicious", "units", "prose"])
def test_llm_program_is_repaired_from_findings(bad: str) -> None:
    with OpenAIServer([REPLIES[bad], REPLIES["good"]]) as server:
        [draft] = writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
    assert load(draft.text, CARD) and draft.notes == "repaired" and len(server.requests) == 2
    with pytest.raises(Refused) as refused:
        load(program_in(REPLIES[bad]), CARD)
    told = server.requests[1]["messages"][1]["content"]
    for finding in refused.value.diagnostics:
        assert str(finding) in told
    assert not Path("/tmp/robo_rl_was_here").exists()


def test_llm_repairs_stop_after_the_limit() -> None:
    with OpenAIServer([REPLIES["malicious"]]) as server:
        [draft] = writer(connected(endpoint(server)), repairs=2).propose(CARD, GOAL, 1)
    assert len(server.requests) == 3
    with pytest.raises(Refused):
        load(draft.text, CARD)


def test_truncated_llm_answer_is_repaired() -> None:
    cut = {"text": REPLIES["truncated"], "finish": "length"}
    with OpenAIServer([cut, REPLIES["good"]]) as server:
        [draft] = writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
    assert load(draft.text, CARD)
    with OpenAIServer([cut]) as server:
        [draft] = writer(connected(endpoint(server)), repairs=0).propose(CARD, GOAL, 1)
    assert "cut short at 1500 tokens" in draft.notes


def test_llm_endpoint_errors_are_retried() -> None:
    script = [{"status": 429}, {"status": 503}, {"raw": b"<html>not json</html>"}, REPLIES["good"]]
    with OpenAIServer(script) as server:
        [draft] = writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
    assert load(draft.text, CARD) and len(server.requests) == 4


@pytest.mark.parametrize(
    ("entry", "says", "calls"),
    [
        ({"status": 401}, "status 401", 1),
        ({"status": 429}, "status 429", 2),
        ({"sleep": 1.0}, "no answer within 0.2 s", 2),
        ({"raw": b"{}"}, "not of the protocol", 2),
    ],
)
def test_api_key_is_in_no_error_log_or_file(
    entry: dict[str, Any], says: str, calls: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with OpenAIServer([entry]) as server:
        transport = connected(
            endpoint(server, attempts=2, seconds=0.2 if "sleep" in entry else 20.0)
        )
        cassette = tmp_path / "cassette.jsonl"
        with pytest.raises(ModelError, match=says) as failed:
            writer(CassetteRecorder(transport, cassette)).propose(CARD, GOAL, 1)
        assert len(server.requests) == calls
        ours = writer(CassetteRecorder(connected(endpoint(server)), cassette))
        server.script = [REPLIES["good"]]
        ours.propose(CARD, GOAL, 1)
    text = "".join(traceback.format_exception(failed.value)) + caplog.text + repr(transport)
    assert KEY not in text and KEY not in cassette.read_text()
    at_the_bottom = transport.inner.inner
    assert KEY not in repr(vars(transport)) + repr(vars(at_the_bottom))


def test_no_request_without_an_api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROBO_TEST_KEY")
    with OpenAIServer([REPLIES["good"]]) as server:
        with pytest.raises(ModelError, match="set the environment variable ROBO_TEST_KEY"):
            writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
    assert not server.requests


@pytest.mark.parametrize(
    ("budget", "says", "calls"),
    [
        (Budget(tokens=9000), "tokens are used", 2),
        (Budget(calls=2), "budget of 2 calls is used up", 2),
        (Budget(money=0.05), "the next call may cost", 2),
        (Budget(tokens=100), "0 of 100 tokens", 0),
    ],
)
def test_llm_budgets_stop_before_they_are_exceeded(budget: Budget, says: str, calls: int) -> None:
    with OpenAIServer([REPLIES["broken"]]) as server:
        e = endpoint(server, prompt_price=10.0, completion_price=10.0)
        if "calls" in says or "tokens" in says:
            e = endpoint(server)
        metered = connected(e, budget)
        with pytest.raises(BudgetSpent, match=says):
            writer(metered, repairs=1000).propose(CARD, GOAL, 1)
    if calls:
        assert len(server.requests) >= calls
    else:
        assert not server.requests
    assert budget.used_tokens <= budget.tokens and budget.used_money <= budget.money


@pytest.mark.parametrize("entry", [{"status": 429}, {"status": 503}, {"sleep": 0.5}])
def test_every_attempt_counts_against_the_call_budget(entry: dict[str, Any]) -> None:
    with OpenAIServer([entry]) as server:
        e = endpoint(server, seconds=0.1 if "sleep" in entry else 20.0)
        with pytest.raises(BudgetSpent, match="budget of 2 calls is used up"):
            writer(connected(e, Budget(calls=2))).propose(CARD, GOAL, 1)
        assert len(server.requests) == 2


def test_retry_after_header_is_respected() -> None:
    limited = {"status": 429, "headers": {"Retry-After": "0.3"}}
    with OpenAIServer([limited, REPLIES["good"]]) as server:
        began = time.monotonic()
        [draft] = writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
        assert load(draft.text, CARD) and time.monotonic() - began >= 0.3
    with OpenAIServer([{"status": 429, "headers": {"Retry-After": "3600"}}]) as server:
        with pytest.raises(ModelError, match="asks to wait 3600 s"):
            writer(connected(endpoint(server))).propose(CARD, GOAL, 1)
        assert len(server.requests) == 1


def test_token_use_is_estimated_without_usage_data() -> None:
    """Local servers often say no usage; a budget of tokens is to hold there too."""
    bare = {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": REPLIES["broken"]},
            }
        ],
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
    }
    budget = Budget(tokens=9000)
    with OpenAIServer([{"raw": json.dumps(bare).encode()}]) as server:
        with pytest.raises(BudgetSpent, match="tokens are used"):
            writer(connected(endpoint(server), budget), repairs=1000).propose(CARD, GOAL, 1)
    assert 0 < budget.used_tokens <= 9000


def test_llm_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ROBO_TEST_KEY")
    asked = ["reward", "write", "--task", "reach", "--goal", GOAL, "--writer", "llm"]
    at = ["--model.model", "m", "--model.base-url", "http://127.0.0.1:9/v1"]
    for more, says in (
        (["--model.key-variable", "ROBO_TEST_KEY"], "set the environment variable ROBO_TEST_KEY"),
        (["--model.key-variable", "PATH", "--model.calls", "0"], "budget of 0 calls is used up"),
    ):
        assert main([*asked, *at, *more]) == 1
        err = capsys.readouterr().err
        assert err.count("robo-rl: ") == 1 and says in err


def test_cassette_replays_without_a_server(tmp_path: Path) -> None:
    cassette = tmp_path / "cassette.jsonl"
    script = [REPLIES["broken"], REPLIES["good"], REPLIES["units"], REPLIES["good"]]
    with OpenAIServer(script) as server:
        recorded = writer(CassetteRecorder(connected(endpoint(server)), cassette)).propose(
            CARD, GOAL, 2
        )
    played = writer(CassettePlayer(cassette)).propose(CARD, GOAL, 2)
    assert [d.text for d in played] == [d.text for d in recorded]
    lines = [json.loads(line) for line in cassette.read_text().splitlines()]
    assert len(lines) == 4 and all(line["source"] == "recorded" for line in lines)
    with pytest.raises(CassetteError, match="record the cassette again"):
        writer(CassettePlayer(cassette)).propose(CARD, "the gripper is above the blue ball", 1)
    cassette.write_text("not json\n")
    with pytest.raises(CassetteError, match="line 1"):
        CassettePlayer(cassette)


class Echo:
    """A transport that keeps what it was asked."""

    model = "echo"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, messages: Any, max_tokens: int) -> ModelReply:
        self.asked.append(messages[1]["content"])
        return ModelReply(REPLIES["good"], 1, 1, source="by hand")


@pytest.mark.parametrize("method", METHODS)
def test_llm_methods_prompt_with_their_context(method: str) -> None:
    echo = Echo()
    ours = writer(echo, method)
    [first] = ours.propose(CARD, GOAL, 1)
    found = load(first.text.replace('"effort": 0.01 *', '"effort": 0.0000001 *'), CARD).warnings
    evidence = [Evidence(first, {"near": (0.1, 0.3, 0.7)}, found), Evidence(first, {})]
    [second] = ours.propose(CARD, GOAL, 1, evidence)
    asked = echo.asked[-1]
    if method == "text2reward":
        assert "attempt" not in asked
    else:
        assert "near: 0.10, 0.30, 0.70" in asked and "success" not in asked.lower()
        assert ("The evaluator found" in asked) == (method == "card")
        assert second.parents and len(second.parents[0]) == 64


def test_few_shot_prompt_excludes_the_goal_itself() -> None:
    examples = {GOAL: "ITSELF", "the gripper touches the blue ball": "LIKE", "walk forward": "FAR"}
    asked = text2reward(examples, shots=1)(CARD, GOAL, 0, ())
    assert "LIKE" in asked and "ITSELF" not in asked and "FAR" not in asked


def test_prompts_are_generated_from_the_tables() -> None:
    text = system_prompt()
    assert "near(distance, scale)" in text and "arctan2" in text and "{functions}" not in text
    shown = textwrap.dedent(text[text.index("    def reward") :].split("\n\n")[0])
    assert load(shown.replace("cube_pos", "red_cube_pos"), CARD)
    assert "qpos, 5, rad" in task_prompt(CARD, GOAL)


def test_handwritten_replies_are_marked() -> None:
    assert REPLIES["source"].startswith("by hand")
