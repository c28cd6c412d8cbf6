"""What a search is made of beside templates: fitted numbers, controls, a language model, replay."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from openai_server import OpenAIServer

import sims
from benchmarks import search as searches
from reward_models.analysis.metrics import paired_gain
from reward_models.base import from_dict
from reward_models.goals import read
from reward_models.programs import Program, load
from reward_models.writers.template_lines import TemplateNumbers
from reward_models.writers.template_writer import write_program
from robo_rl.cli import main
from robo_rl.reward_analysis.screening import archive_episodes
from robo_rl.runtime.sandbox import Job, preflight
from robo_rl.search.config import SearchConfig
from robo_rl.search.preference_fit import fit_numbers, preference_loss
from robo_rl.search.random_program import random_program
from robo_rl.search.run import search
from robo_rl.search.strategy import TemplateStrategy
from robo_rl.search.verdict import gains
from robo_rl.search.worker import pack_successes, unpack_successes

REPLIES = json.loads((Path(__file__).parent / "data/llm_replies.json").read_text())
REACH = sims.make_task("reach")
CARD = from_dict(REACH.card())
SENTENCE = CARD.goals["touch_red_cube"]
FORMULA = read(SENTENCE, CARD)


def made(numbers: TemplateNumbers) -> Program:
    return load(write_program(FORMULA, CARD, numbers), CARD)


def test_reward_numbers_are_fitted_to_archive_preferences() -> None:
    archive, _ = archive_episodes(REACH)
    spoilt = TemplateNumbers(
        wide=3.0, tight=1.5, bonus=0.01
    )  # slopes that hardly tell near from far
    found = fit_numbers(made, spoilt, archive, np.random.default_rng(0))
    assert found is not None and found.after < 0.8 * found.before
    assert found.before == preference_loss(made(spoilt), archive)
    assert found.after == preference_loss(made(found.numbers), archive)
    again = fit_numbers(made, spoilt, archive, np.random.default_rng(0))
    assert again == found
    asked = TemplateStrategy(FORMULA, CARD, SENTENCE, 6, 0, archive).ask(0)
    assert sum("numbers fitted, loss" in c.notes for c in asked) == 2
    assert "numbers fitted" not in " ".join(c.notes for c in asked[:2])


@pytest.mark.parametrize(("task", "goal"), [("reach", "touch_red_cube"), ("hopper", "forward")])
def test_random_control_program_has_the_winners_structure(task: str, goal: str) -> None:
    card = from_dict(sims.make_task(task).card())
    text = write_program(read(card.goals[goal], card), card)
    null = random_program(text, card, 3)
    assert null == random_program(text, card, 3) != random_program(text, card, 4)
    program = load(null, card)
    assert program.components == load(text, card).components and not program.warnings
    assert not preflight([Job(null)], card)[0]
    blind = random_program("def reward(action):\n    return {'a': effort(action)}\n", card)
    assert "action" not in load(blind, card).signals


def test_search_gain_interval_is_paired() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random((3, 200))  # how hard an episode is: what both must deal with
    a, b = hard < 0.6, hard < 0.5
    value, low, high = paired_gain(a, b)
    assert low < value < high and value == pytest.approx(0.1, abs=0.03) and low > 0.05
    alone = paired_gain(a, rng.random((3, 200)) < 0.5)
    assert alone[2] - alone[1] > 1.5 * (high - low)
    with pytest.raises(ValueError, match="trainings, episodes"):
        paired_gain(np.zeros(3), np.zeros(3))
    assert unpack_successes(pack_successes(a[0]), 200) == a[0].tolist()
    judged = [
        {"what": what, "index": k, "kind": "trained", "won": pack_successes(rows[k])}
        for what, rows in (("winner", a), ("dense", b))
        for k in range(3)
    ]
    assert gains(judged, 200) == {"dense": {"gain": value, "low": low, "high": high}}
    judged[0] = {"what": "winner", "index": 0, "kind": "nan"}  # a failed training won nothing
    assert gains(judged, 200)["dense"]["gain"] < 0.0
    assert gains([{k: v for k, v in j.items() if k != "won"} for j in judged], 200) == {}


ENDPOINT = ["--model.model", "test", "--model.key-variable", "TEST_KEY"]


def test_reward_write_uses_an_llm_with_repairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("TEST_KEY", "sk-very-secret")
    tape = tmp_path / "tape.jsonl"
    arguments = ["reward", "write", "--task", "reach", "--goal", SENTENCE, "--writer", "eureka"]
    with OpenAIServer([REPLIES["broken"], REPLIES["malicious"], REPLIES["good"]]) as server:
        online = [*ENDPOINT, "--model.base-url", server.url, "--model.cassette", str(tape)]
        assert main([*arguments, *online]) == 0
        assert len(server.requests) == 3
    out, err = capsys.readouterr()
    assert load(out, CARD).components == ("near", "effort") and "3 calls" in err
    assert main([*arguments, "--model.cassette", str(tape)]) == 0  # the same without a network
    assert capsys.readouterr().out == out
    with OpenAIServer([REPLIES["units"]]) as server:
        online = [*ENDPOINT, "--model.base-url", server.url, "--model.repairs", "1"]
        assert main([*arguments, *online]) == 1
    err = capsys.readouterr().err
    assert "after 1 repairs" in err and "adds metres and radians" in err
    assert "sk-very-secret" not in out + err + tape.read_text()


def test_card_writer_gets_screen_feedback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("TEST_KEY", "sk-very-secret")
    farming = "```python\ndef reward(action):\n    return {'move': mean(square(action))}\n```"
    with OpenAIServer([farming, REPLIES["good"]]) as server:
        online = [*ENDPOINT, "--model.base-url", server.url]
        goal = ["--task", "reach", "--goal", SENTENCE, "--writer", "card"]
        assert main(["reward", "write", *goal, *online]) == 0
        assert "aimless motion is paid" in server.requests[1]["messages"][1]["content"]
    assert load(capsys.readouterr().out, CARD).components == ("near", "effort")


SMALL = [
    "--candidates",
    "2",
    "--rounds",
    "2",
    "--rungs",
    "1",
    "--validation-episodes",
    "8",
    "--episodes",
    "16",
    "--workers",
    "2",
    "--name",
    "small",
    "--goal",
    SENTENCE,
]


@pytest.mark.slow
def test_search_with_an_llm_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The full loop: proposals, refusals, trainings, reflection in the next round's request."""
    monkeypatch.setenv("TEST_KEY", "sk-very-secret")
    other = REPLIES["good"].replace("0.05", "0.10")
    with OpenAIServer([REPLIES["good"], other, other, REPLIES["malicious"]]) as server:
        online = [*ENDPOINT, "--model.base-url", server.url, "--model.repairs", "0"]
        steps = ["--env-steps", "256", "--tuning.num-envs", "8", "--tuning.n-steps", "16"]
        options = ["--writer", "eureka", "--runs", str(tmp_path)]
        assert main(["search", "reach", *SMALL, *options, *online, *steps]) == 0
        asked = [r["messages"][1]["content"] for r in server.requests]
    assert len(asked) == 4 and "The best program so far" in asked[2]
    summary = json.loads((tmp_path / "small" / "search.json").read_text())
    kinds = [c["trainings"][0]["kind"] for c in summary["candidates"]]
    assert kinds == ["trained", "trained", "trained", "refused"]
    assert summary["spent"]["calls"] == 4
    for path in (tmp_path / "small").rglob("*"):
        if path.is_file():
            assert b"sk-very-secret" not in path.read_bytes(), path
    assert main(["search", "--resume", str(tmp_path / "small")]) == 0  # asks nobody
    assert "sk-very-secret" not in "".join(capsys.readouterr())


@pytest.mark.slow
def test_search_relabels_replay_for_the_next_candidate(tmp_path: Path) -> None:
    options = ["--learner", "sac", "--relabel", "--env-steps", "256", "--runs", str(tmp_path)]
    tuning = [
        "--tuning.num-envs",
        "8",
        "--tuning.batch-size",
        "32",
        "--tuning.learning-starts",
        "64",
        "--tuning.gradient-steps",
        "1",
    ]
    assert main(["search", "reach", *SMALL, *options, *tuning]) == 0
    folder = tmp_path / "small" / "trainings"
    jobs = [json.loads(p.read_text()) for p in sorted(folder.glob("c0?-0.json"))]
    assert ["replay" in job for job in jobs] == [False, False, True, True]
    with np.load(jobs[2]["keep_replay"]) as later, np.load(jobs[2]["replay"]) as first:
        paid, acted = (later[f"ring/{name}/00000"] for name in ("rewards", "actions"))
        old = slice(0, len(first["ring/rewards/00000"]))
        assert len(paid) == 2 * old.stop == 2 * 256 // 8
        assert np.array_equal(acted[old], first["ring/actions/00000"])
        program = load(jobs[2]["text"], CARD)
        after = {
            n: later[f"trace/after/{n}/00000"][old].reshape(256, -1)
            for n in program.signals
            if n != "action"
        }
        reward = sum(program(after, acted[old].reshape(256, -1)).values())
        assert np.allclose(paid[old].reshape(-1), reward, atol=1e-6)


@pytest.mark.slow
def test_search_baselines_can_get_equal_total_steps(tmp_path: Path) -> None:
    folder = search(
        SearchConfig(
            goal="touch the red cube",
            candidates=1,
            rounds=1,
            rungs=1,
            env_steps=512,
            final_env_steps=1024,
            validation_episodes=16,
            episodes=16,
            equal_total="all",
            runs=tmp_path,
        )
    )
    told = json.loads((folder / "search.json").read_text())
    alone = {"winner", "sentence", "dense", "null"}
    assert told["verdict"].keys() == alone | {"sentence_total", "dense_total"}
    jobs = (folder / "trainings").glob("*.json")
    steps = {path.stem: json.loads(path.read_text())["env_steps"] for path in jobs}
    assert steps["c00-0"] == 512
    both = 1024 + told["search_env_steps"]
    assert {steps[f"final-{what}-0"] for what in alone} == {1024}
    assert {steps[f"final-{what}_total-0"] for what in ("sentence", "dense")} == {both}


@pytest.mark.slow
def test_bench_search_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["bench", "search", "--runs", str(tmp_path), "--share", "0.001", "--jobs", "2"]
    assert main([*options, "--json", "--seeds", "0"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["task"] for r in rows] == ["reach", "push"]
    assert all(r["verdict"].keys() == set(searches.KINDS) for r in rows)
    assert all(len(r["won"]) == 5 for r in rows)
    journals = {p: p.read_bytes() for p in tmp_path.rglob("journal.jsonl")}
    (tmp_path / "search.json").unlink()
    assert main([*options, "--seeds", "0"]) == 0  # told again, nothing done again
    assert "winner's gain" in capsys.readouterr().out
    assert {p: p.read_bytes() for p in journals} == journals and len(journals) == 2
