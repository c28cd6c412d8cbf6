"""Models behind a wire as judges: what they are asked, what counts as an answer, what it costs.

The models are local servers that look at the pictures they are sent: the lighter a frame, the
nearer the goal. No real model was asked.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from openai_server import OpenAIServer
from robometer_server import RobometerServer
from seeing_model import film, seeing, shades, words

from reward_models.remote import questions
from reward_models.remote.cache import Cache, CachingTransport
from reward_models.remote.cassette import CassettePlayer, CassetteRecorder, ModelReply
from reward_models.remote.questions import BadAnswer
from reward_models.remote.robometer import Robometer
from reward_models.remote.thread_pool import ask_in_parallel
from reward_models.remote.transport import (
    Budget,
    BudgetedTransport,
    BudgetSpent,
    Endpoint,
    ModelError,
    OpenAITransport,
    RetryingTransport,
    public_url,
)
from reward_models.remote.vlm_judge import NO_ANSWER, JudgeAnswer, VLMJudge
from robo_rl.cli import main
from robo_rl.labelling.store import Label, LabelStore, labelled_scene
from sims import make_task

pytest.importorskip("openai")
GOAL = "the gripper touches the red cube"
KEY = "sk-test-THE-SECRET-1234"


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROBO_TEST_KEY", KEY)
    monkeypatch.setenv("ROBO_RL_CACHE", str(tmp_path / "cache"))


def endpoint(server: OpenAIServer, **changes: Any) -> Endpoint:
    given = {"seconds": 20.0, "wait": 0.01, **changes}
    return Endpoint("test", server.url, "ROBO_TEST_KEY", temperature=0.0, **given)


def judge(server: OpenAIServer, budget: Budget | None = None, **options: Any) -> VLMJudge:
    e = endpoint(server)
    return VLMJudge(
        RetryingTransport(BudgetedTransport(OpenAITransport(e), budget or Budget(), e), e),
        **options,
    )


def test_vlm_comparison_is_independent_of_order() -> None:
    with OpenAIServer(seeing) as server:
        ours, first_shown = judge(server), Counter[bool]()
        for number in range(8):
            one, two = film(0.1, 0.2 + 0.05 * number), film(0.1, 0.4)
            said = ours.compare(one, two, GOAL)
            wanted = "tie" if number == 4 else "first" if number > 4 else "second"
            assert said == JudgeAnswer(wanted)
            describe, judged = server.requests[-2:]
            shown = shades(describe)
            first_shown[abs(shown[1] - one[-1].mean() / 250) < 0.01] += 1
            assert len(shown) == 4 and not shades(judged) and GOAL in words(judged)
            assert "Film 1 ends at" in words(judged)  # the description is what is judged
    assert min(first_shown.values()) >= 1 and len(first_shown) == 2
    assert server.requests[0]["temperature"] == 0.0


def test_vlm_tie_and_unsure_are_distinct() -> None:
    for said, wanted in (("tie", JudgeAnswer("tie")), ("unsure", JudgeAnswer(why="unsure"))):
        with OpenAIServer(["Two films.", f"ANSWER: {said}"]) as server:
            assert judge(server).compare(film(0.1), film(0.2), GOAL) == wanted
    with OpenAIServer(["ANSWER: unsure"]) as server:
        assert judge(server).rate(film(0.1), GOAL) == JudgeAnswer(why="unsure")


def test_vlm_progress_matches_the_shown_frames() -> None:
    frames = film(0.0, 0.3, 0.1, 0.9, 0.5, 0.7)
    with OpenAIServer(seeing) as server:
        ours = judge(server)
        found = ours.progress(frames, GOAL).value
        np.testing.assert_allclose(found, [0.0, 0.3, 0.1, 0.9, 0.5, 0.7], atol=0.02)
        shown = shades(server.requests[0])
        assert shown[0] == pytest.approx(frames[0].mean() / 250, abs=0.01)  # the start, by itself
        assert len(shown) == 7 and not np.allclose(shown[1:], frames.mean(axis=(1, 2, 3)) / 250)
        again = ours.progress(frames, GOAL)
        assert server.requests[0] == server.requests[1]  # the same order: it can be remembered
        np.testing.assert_array_equal(again.value, found)
        assert ours.rate(film(0.1, 0.5), GOAL) == JudgeAnswer(0.5)
        assert ours.rate(film(0.5, 0.97), GOAL) == JudgeAnswer(1.0)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("I would say that about half of the way is done.", "expected one line that begins with"),
        ("ANSWER: 10, 20\nI hope this helps.", "expected one line that begins with"),
        ("ANSWER: 1, 2\nANSWER: 10, 20", "expected one line that begins with"),
        ("ANSWER: 10, 20, 30", "expected 2 numbers, one for each picture, got 3"),
        ("ANSWER: 10, 120", "expected numbers from 0 to 100 and commas, got '120'"),
        ("ANSWER: 10, nan", "got 'nan'"),
        ("ANSWER: 10, 20%", "got '20%'"),
        ({"text": "ANSWER: 10, 20", "finish": "length"}, "cut at 800 tokens"),
        ("", "expected one line"),
    ],
)
def test_vlm_bad_answer_is_retried_with_the_error(bad: Any, says: str) -> None:
    frames = film(0.1, 0.2)
    with OpenAIServer([bad, bad, "ANSWER: 10, 20"]) as server:
        assert sorted(judge(server).progress(frames, GOAL).value) == [0.1, 0.2]
        first, second, third = (request["messages"] for request in server.requests)
        assert says in second[-1]["content"] and second[:1] == first and third[:3] == second
    with OpenAIServer([bad]) as server:
        assert judge(server, again=1).progress(frames, GOAL) == JudgeAnswer(why=NO_ANSWER)
        assert len(server.requests) == 2
        assert judge(server, again=0).rate(frames, GOAL) == JudgeAnswer(why=NO_ANSWER)


@pytest.mark.parametrize("said", ["6", "0", "3.5", "-1", "three", "3 of 5", "", "true"])
def test_vlm_rating_must_be_1_to_5(said: str) -> None:
    with pytest.raises(BadAnswer, match="from 1 to 5"):
        questions.parse_rating(f"ANSWER: {said}")
    for verdict in ("film 1", "12", "neither"):
        with pytest.raises(BadAnswer, match="1, 2, tie, unsure"):
            questions.parse_verdict(f"ANSWER: {verdict}")


def test_vlm_frames_are_evenly_spaced_with_both_ends() -> None:
    assert questions.evenly_spaced(51, 6).tolist() == [0, 10, 20, 30, 40, 50]
    assert questions.evenly_spaced(3, 8).tolist() == [0, 1, 2] and questions.evenly_spaced(
        1, 8
    ).tolist() == [0]
    large = np.zeros((1, 300, 400, 3), np.uint8)
    with OpenAIServer(seeing) as server:
        judge(server, side=200).rate(large, "{pictures} {goal}")
        [asked_] = server.requests
    content = asked_["messages"][0]["content"]
    assert "{pictures} {goal}" in content[0]["text"] and len(shades(asked_)) == 1
    data = base64.b64decode(content[1]["image_url"]["url"].split(",")[1])
    assert cv2.imdecode(np.frombuffer(data, np.uint8), 1).shape == (150, 200, 3)


# What it costs.
def test_call_budget_holds_for_concurrent_requests() -> None:
    """Slow answers, limits and broken ones among good ones: no request more than allowed."""
    odd = {3: {"status": 429}, 5: {"raw": b"<html>"}, 6: {"status": 503}}
    count = iter(range(1, 1000))

    def moody(request: dict[str, Any]) -> Any:
        number = next(count)
        return odd.get(number, {"text": "ANSWER: 3", "sleep": 0.05})

    budget, rated = Budget(calls=10), []
    with OpenAIServer(moody) as server:
        ours = judge(server, budget)
        with pytest.raises(BudgetSpent, match="budget of 10 calls is used up"):
            films = [film(k / 40) for k in range(40)]
            for _, said in ask_in_parallel(lambda one: ours.rate(one, GOAL), films, 4):
                rated.append(said)
        assert len(server.requests) == budget.used_calls == 10
    assert rated == [JudgeAnswer(0.5)] * 7  # what was answered is not lost


def test_token_budget_counts_images_and_pending_requests() -> None:
    """Of three at once that could take 2,000 tokens each, two fit at a time, and then no more."""
    under_way, most, lock, two = 0, 0, threading.Lock(), threading.Event()

    class Slow:
        model = "slow"

        def complete(self, messages: Any, max_tokens: int) -> ModelReply:
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
                if most == 2:
                    two.set()
            two.wait(30.0)
            time.sleep(0.05)  # in which a third would begin, were there room for it
            with lock:
                under_way -= 1
            return ModelReply("ANSWER: 3", 1100, 10)

    budget = Budget(tokens=5_000)
    metered = BudgetedTransport(Slow(), budget, Endpoint("slow", picture_tokens=1_000))
    ours, rated = VLMJudge(metered), []
    with pytest.raises(BudgetSpent, match="tokens are used; the next call may take"):
        for _, said in ask_in_parallel(lambda k: ours.rate(film(k / 20), GOAL), range(20), 3):
            rated.append(said)
    assert most == 2 and len(rated) == 3 and budget.used_tokens == 3 * 1110
    assert budget.held_tokens == 0


def test_image_cost_is_estimated_from_replies() -> None:
    class Dear:
        model = "dear"

        def complete(self, messages: Any, max_tokens: int) -> ModelReply:
            return ModelReply("ANSWER: 3", 9_000, 10)

    budget = Budget(money=0.2)
    e = Endpoint("dear", picture_tokens=100, prompt_price=10.0)
    ours = VLMJudge(BudgetedTransport(Dear(), budget, e))
    ours.rate(film(0.1), GOAL)
    ours.rate(film(0.2), GOAL)
    with pytest.raises(BudgetSpent, match="of 0.2 is used; the next call may cost 0.09"):
        ours.rate(film(0.3), GOAL)
    assert budget.used_money == pytest.approx(0.18)


@pytest.mark.parametrize(
    ("entry", "says", "cost"),
    [
        ({"sleep": 2.0}, r"no answer within 0\.2 s", 150),
        ({"drop": True}, "the connection broke", 150),
        ({"raw": b"{}"}, "not of the protocol", 150),
        ({"status": 429}, "status 429", 0),
        (None, "cannot connect", 0),
    ],
)
def test_lost_reply_counts_its_maximal_cost(entry: Any, says: str, cost: int) -> None:
    budget = Budget()
    with OpenAIServer([entry]) as server:
        e = endpoint(server, seconds=0.2 if "0" in says else 5.0, attempts=1)
        if entry is None:
            e = replace(e, base_url="http://127.0.0.1:9/v1")
        stack = RetryingTransport(BudgetedTransport(OpenAITransport(e), budget, e), e)
        with pytest.raises(ModelError, match=says):
            stack.complete([{"role": "user", "content": 300 * "x"}], 50)
    assert budget.used_tokens == cost and budget.held_tokens == 0 and budget.used_calls == 1


def test_models_without_temperature_or_with_other_limit_name() -> None:
    with OpenAIServer([{"status": 400}, "hello"]) as server:
        e = endpoint(server, limit="max_completion_tokens")
        with pytest.raises(ModelError, match="status 400: a model that takes no temperature, or"):
            OpenAITransport(e).complete([{"role": "user", "content": "x"}], 7)
        e = replace(e, temperature=None)
        OpenAITransport(e).complete([{"role": "user", "content": "x"}], 7)
    plain, bare = server.requests
    assert plain["temperature"] == 0.0 and plain["max_completion_tokens"] == 7
    assert "temperature" not in bare and "max_tokens" not in bare


def test_budget_ignores_rounding_residue() -> None:
    """0.22 + 0.42 - 0.22 - 0.42 is more than nothing."""
    budget = Budget(money=0.65)
    for money in (0.22, 0.42):
        budget.hold(0, money)
    for money in (0.22, 0.42):
        budget.settle((0, money), (0, 0.0))
    last = threading.Thread(target=budget.hold, args=(0, 0.65), daemon=True)
    last.start()
    last.join(5.0)
    assert not last.is_alive() and budget.used_calls == 3


# Several at once.
def test_vlm_requests_are_lazy_and_stop_on_error() -> None:
    made = []

    def films():
        for number in range(100):
            made.append(number)
            yield number

    answers = ask_in_parallel(lambda n: n * n, films(), 2)
    got = dict(next(answers) for _ in range(3))
    assert all(value == key * key for key, value in got.items()) and len(made) <= 3 + 2 * 2
    answers.close()

    def fails(number: int) -> int:
        if number == 5:
            raise ModelError("gone")
        return number

    seen = []
    with pytest.raises(ModelError, match="gone"):
        for number, _ in ask_in_parallel(fails, range(100), 3):
            seen.append(number)
    assert {0, 1, 2, 3, 4} <= {*seen} and len(seen) < 20
    assert sorted(n for n, _ in ask_in_parallel(lambda n: n, range(50), 7)) == list(range(50))


def test_ctrl_c_does_not_wait_for_requests_under_way() -> None:
    """An executor of concurrent.futures would: it joins its threads when the program ends."""
    program = (
        "import signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's & ignores it
        "from reward_models.remote.thread_pool import ask_in_parallel\n"
        "print('ready', flush=True)\n"
        "next(ask_in_parallel(lambda number: time.sleep(60), range(9), 3))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        assert child.wait(30) != 0


# What is kept.
def test_vlm_answers_are_cached_and_recorded(tmp_path: Path) -> None:
    one, two = film(0.1, 0.2), film(0.1, 0.7)
    cache, tape = Cache(tmp_path / "answers"), tmp_path / "tape.jsonl"
    with OpenAIServer(seeing) as server:
        inner = judge(server).transport
        ours = VLMJudge(CachingTransport(inner, cache))
        said = ours.compare(one, two, GOAL)
        assert VLMJudge(CachingTransport(inner, cache)).compare(one, two, GOAL) == said
        assert len(server.requests) == 2
        ours.compare(one, two, "something else")
        ours.compare(one, film(0.1, 0.71), GOAL)
        VLMJudge(CachingTransport(inner, cache), max_tokens=10).compare(one, two, GOAL)
        assert len(server.requests) == 8  # each differs in one thing
        recorded = VLMJudge(CassetteRecorder(CachingTransport(inner, cache), tape)).compare(
            one, two, GOAL
        )
        many = list(ask_in_parallel(lambda k: ours.rate(one, GOAL), range(6), 6))
        assert len(server.requests) == 9 and len({said.value for _, said in many}) == 1
    assert VLMJudge(CassettePlayer(tape)).compare(one, two, GOAL) == recorded == said
    [entry, *_] = cache.folder.iterdir()
    entry.write_text("{half")
    with pytest.raises(ValueError, match="delete it, and the model is queried again"):
        cache.get(entry.stem)


def store_of(folder: Path, count: int) -> LabelStore:
    """Open questions, the second film of which is the better one in every other."""
    store = LabelStore(folder)
    scene = labelled_scene(make_task("reach"), "front")
    for number in range(count):
        better, worse = film(0.1, 0.6 + 0.03 * number), film(0.1, 0.3)
        films = (worse, better) if number % 2 else (better, worse)
        store.append(Label(*map(store.keep, films), GOAL, scene))
    return store


def options(server: OpenAIServer) -> list[str]:
    return ["--model.base-url", server.url, "--model.key-variable", "ROBO_TEST_KEY"]


def test_killed_labelling_repeats_no_request(tmp_path: Path) -> None:
    store = store_of(tmp_path / "labels", 6)
    hang = threading.Event()

    def until_the_eighth(request: dict[str, Any]) -> Any:
        if len(server.requests) == 8:
            hang.set()
            return {"sleep": 60.0}
        return seeing(request)

    asked_ = [
        "reward",
        "label",
        str(store.folder),
        "--goal",
        "touch_red_cube",
        "--labeller",
        "vlm:test",
    ]
    with OpenAIServer(until_the_eighth) as server:
        command = [*asked_, *options(server), "--model.at-once", "1"]
        child = subprocess.Popen(
            [sys.executable, "-m", "robo_rl.cli", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ},
        )
        assert hang.wait(60)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert sum(bool(a.said) for a in store.read()) == 3
        server.script = seeing
        assert main(command) == 0
        assert len(server.requests) == 2 * 6 + 1  # the one more was never answered
        texts = [json.dumps(request) for request in server.requests]
        assert texts.count(texts[7]) == 2 and len(set(texts)) == 12
    said = {a.question: (a.said, a.by) for a in store.read() if a.said}
    wanted = [("second" if k % 2 else "first", "vlm:test") for k in range(6)]
    assert list(said.values()) == wanted


def everything_under(folder: Path) -> str:
    return "".join(p.read_bytes().decode("latin-1") for p in folder.rglob("*") if p.is_file())


def test_vlm_labelling_never_stores_the_api_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """With a server that quotes the key, in an error and in an answer's place."""
    caplog.set_level(logging.DEBUG)
    store = store_of(tmp_path / "labels", 5)
    count = iter(range(1000))

    def moody(request: dict[str, Any]) -> Any:
        number = next(count)
        if number in (0, 4):
            return {"status": 429, "headers": {"Retry-After": "0"}}
        if "Two short films" in words(request) and number > 7:
            return "I cannot decide."
        return seeing(request)

    asked_ = ["reward", "label", str(store.folder), "--goal", GOAL, "--labeller", "vlm:test"]
    with OpenAIServer(moody) as server:
        more = [*options(server), "--model.at-once", "1", "--model.again", "1"]
        assert main([*asked_, *more]) == 0
        out, err = capsys.readouterr()
        assert "vlm:test: first 2, second 1, tie 0, skip 0, no answer 2" in out
        counted = re.search(r"(\d+) calls, ([\d,]+) tokens", err)
        assert counted and int(counted[1]) == len(server.requests)
        assert {key for key in server.keys} == {f"Bearer {KEY}"}
        server.script = [{"status": 401}]
        other = [*asked_[:-1], "vlm:other", *more]
        assert main(other) == 1
        err += capsys.readouterr().err
        assert "vlm:other" not in out and "other did not answer: status 401. 0 of 5" in err
        tape = tmp_path / "tape.jsonl"
        server.script = seeing
        assert main([*other, "--model.cassette", str(tape), "--model.calls", "4"]) == 1
        assert (
            "budget of 4 calls is used up. 2 of 5 questions are answered and stored"
            in capsys.readouterr().err
        )
    assert tape.exists() and list((tmp_path / "cache" / "answers").iterdir())
    assert KEY not in everything_under(tmp_path) + out + err + caplog.text
    assert [a.said for a in store.read()].count("no answer") == 2


# Robometer.
def meter(server: RobometerServer, budget: Budget | None = None, **options: Any) -> Robometer:
    e = Endpoint(f"robometer at {public_url(server.url)}", server.url, seconds=5.0, wait=0.01)
    return Robometer(e, budget or Budget(), **options)


def test_empty_robometer_answer_is_not_cached(tmp_path: Path) -> None:
    frames, cache = film(0.2), Cache(tmp_path / "answers")
    with RobometerServer(script=[{}, None]) as server:
        asked_ = meter(server, cache=cache)
        with pytest.raises(ModelError, match="progress_pred"):
            asked_.progress(frames, GOAL)
        said = asked_.progress(frames, GOAL).value
        assert (asked_.progress(frames, GOAL).value == said).all() and len(server.asked) == 2


def test_robometer_labels_are_named_after_its_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path / "labels", 4)
    with RobometerServer() as server:
        asked_ = ["reward", "label", str(store.folder), "--goal", GOAL, "--labeller"]
        assert main([*asked_, f"robometer:{server.url}"]) == 0
    assert "robometer:light/Meter-1: first 2, second 2, tie 0" in capsys.readouterr().out
    assert {a.by for a in store.read() if a.said} == {"robometer:light/Meter-1"}
    for question, answers in store.answered().items():
        lights = [store.frames(names)[-1].mean() for names in question[:2]]
        assert answers[0].said == ("first" if lights[0] > lights[1] else "second")


def test_robometer_gives_progress_success_and_preference(tmp_path: Path) -> None:
    frames = film(0.0, 0.5, 0.97)
    with RobometerServer() as server:
        cache = Cache(tmp_path / "answers")
        ours = meter(server, cache=cache)
        assert ours.health()["status"] == "healthy" and ours.name == "robometer:light/Meter-1"
        said = ours.progress(frames, GOAL)
        np.testing.assert_allclose(said.value, frames.mean(axis=(1, 2, 3)) / 255)
        np.testing.assert_array_equal(said.more["success_prob"], [0, 0, 1])
        [([sample], steps)] = server.asked
        assert sample["trajectory"]["task"] == GOAL and not steps
        np.testing.assert_array_equal(sample["trajectory"]["frames"], frames)
        assert ours.rate(frames, GOAL).value == pytest.approx(0.95, abs=0.01)
        assert len(server.asked) == 1  # remembered
        assert ours.compare(film(0.2, 0.9), film(0.2, 0.4), GOAL) == JudgeAnswer("first")
        assert ours.compare(film(0.2), film(0.2, 0.4), GOAL) == JudgeAnswer("second")
        assert meter(server, tie=0.4).compare(film(0.4), film(0.41), GOAL) == JudgeAnswer("tie")
        by_steps = meter(server, cache=cache, steps=True)
        assert len(by_steps.progress(frames[:1], GOAL).value) == 1 and server.asked[-1][1]
        other_order = {"prediction_probs": [0.9], "preference_labels": [0]}
        server.script = [{"outputs_preference": other_order}]
        assert meter(server).compare(frames, frames, GOAL) == JudgeAnswer("second")
    with RobometerServer(heads=()) as server:
        assert meter(server).progress(frames, GOAL).more == {}


@pytest.mark.parametrize(
    ("script", "says", "asked_"),
    [
        ([422], "/evaluate_batch_npy did not answer: status 422", 1),
        ([503, 503, 503, 503], r"status 503 \(attempt 4\)", 4),
        ([b"<html>"] * 4, "the answer is not JSON", 4),
        ([b"[1]"], "expected an object, got", 1),
        ([{"outputs_progress": None}], "expected progress_pred, 3 numbers, got", 1),
        ([{"outputs_progress": {"progress_pred": [[0.1, 0.2]]}}], "3 numbers", 1),
        ([{"outputs_progress": {"progress_pred": [[0.1, 0.2, None]]}}], "3 numbers", 1),
        ([{"outputs_progress": {"progress_pred": [["a", 0.2, 0.3]]}}], "3 numbers", 1),
    ],
)
def test_incomplete_robometer_reply_is_a_one_line_error(
    script: list[Any], says: str, asked_: int
) -> None:
    with RobometerServer(script) as server:
        with pytest.raises(ModelError, match=says):
            meter(server).progress(film(0.1, 0.2, 0.3), GOAL)
        assert len(server.asked) == asked_


def test_robometer_handles_limits_delays_and_absence() -> None:
    with RobometerServer([503]) as server:
        server.headers = {"Retry-After": "0"}
        budget = Budget(calls=2)
        assert meter(server, budget).progress(film(0.5), GOAL).value == pytest.approx(
            0.49, abs=0.01
        )
        with pytest.raises(BudgetSpent, match="budget of 2 calls is used up"):
            meter(server, budget).progress(film(0.6), GOAL)
        assert len(server.asked) == 2
        server.status = "starting"
        with pytest.raises(ModelError, match="is not healthy"):
            meter(server).health()
    nowhere = Endpoint("robometer", "http://127.0.0.1:9", attempts=2, wait=0.01)
    with pytest.raises(ModelError, match="robometer did not answer: cannot connect"):
        Robometer(nowhere, Budget()).health()


@pytest.mark.parametrize("address", ["http://u:{}@h:1", "http://{}@h/v1", "http://h/v1?key={}"])
def test_url_with_a_secret_is_refused_and_not_shown(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cv2.imwrite(str(tmp_path / "0.png"), film(0.2)[0])
    score = ["reward", "score", str(tmp_path), "--goal", GOAL, "--scorer"]
    url = address.format(KEY)
    for args in ([*score, f"robometer:{url}"], [*score, "vlm:x", "--model.base-url", url]):
        assert main(args) == 1
        err = capsys.readouterr().err
        assert "pass the key through --model.key-variable" in err and KEY not in err


# On the command line.
def test_reward_score_scores_videos_with_a_vlm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    light = [0.0, 0.2, 0.5, 0.4, 0.9]
    (tmp_path / "images").mkdir()
    for number, frame in enumerate(film(*light, side=32)):
        cv2.imwrite(str(tmp_path / "images" / f"{number:03d}.png"), frame)
    mp4 = cv2.VideoWriter(str(tmp_path / "film.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 10, (32, 32))
    for frame in film(*np.linspace(0, 1, 30), side=32):
        mp4.write(frame)
    mp4.release()
    sources = [str(tmp_path / "images"), str(tmp_path / "film.mp4")]
    asked_ = ["reward", "score", *sources, "--goal", GOAL, "--json"]
    with OpenAIServer(seeing) as server:
        wire = [*asked_, "--scorer", "vlm:test", *options(server)]
        assert main([*wire, "--frames", "5"]) == 0
        images, mp4_ = json.loads(capsys.readouterr().out)["episodes"]
        np.testing.assert_allclose(images["score"], light, atol=0.02)
        assert mp4_["at"] == [0, 7, 14, 22, 29] and mp4_["spearman_with_time"] == 1.0
        assert images["spearman_with_time"] == pytest.approx(0.9) and "success" not in images
        assert main([*wire[:2], sources[0], *wire[4:], "--ask", "rating"]) == 0
        rated = json.loads(capsys.readouterr().out)
        assert rated["score"] == [1.0] and rated["at"] == [4] and rated["scorer"] == "vlm:test"
        server.script = ["no idea"]
        assert main([*wire, "--frames", "4"]) == 0
        for figures in json.loads(capsys.readouterr().out)["episodes"]:
            assert figures["said"] == "no answer" and figures["score"] == []
    with RobometerServer() as server:
        assert main([*asked_[:-1], "--scorer", f"robometer:{server.url}"]) == 0
        out = capsys.readouterr().out
        assert "robometer:light/Meter-1" in out and "   4 +0.8" in out and "#####" in out


def test_vlm_option_errors_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cv2.imwrite(str(tmp_path / "0.png"), film(0.2)[0])
    score = ["reward", "score", str(tmp_path), "--goal", GOAL, "--scorer"]
    label = ["reward", "label", str(tmp_path / "labels"), "--labeller"]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for args, says in (
        ([*score, "llm:x"], "unknown scorer 'llm:x'; available: clip, vlm:MODEL, robometer:http"),
        ([*score, "vlm:"], "no model name: expected vlm:MODEL"),
        ([*score, "vlm:x"], "set the environment variable OPENAI_API_KEY"),
        ([*score, "robometer:here"], "expected the server address as http://HOST:PORT, got 'here'"),
        ([*label, "robometer:"], "expected the server address as http://HOST:PORT, got ''"),
        (["reward", "score", "--goal", GOAL], "no source given; expected any of: "),
        (["reward", "score", str(tmp_path), "--scorer", "vlm:x"], "no goal sentence: give --goal"),
    ):
        assert main(args) == 1
        err = capsys.readouterr().err
        assert err.count("robo-rl: ") == 1 and says in err.replace("\n", " "), err
    assert not (tmp_path / "labels").exists()
