"""`robo-rl search`: what it asks, what it survives, what it counts, and what it may quote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sims
from reward_models.base import from_dict
from reward_models.goals import read
from reward_models.programs import load
from reward_models.writers.template_writer import (
    CHOICES,
    TemplateNumbers,
    TemplateStructure,
    write_program,
)
from robo_rl.cli import main
from robo_rl.config.presets import preset
from robo_rl.evaluation.evaluate import TEST_SEED, VALIDATION_SEED
from robo_rl.rollout.vec_env import SimulationDiverged
from robo_rl.search.config import SearchConfig
from robo_rl.search.executor import TrainingLimits, TrainingPool
from robo_rl.search.failures import failure_summary, refusals
from robo_rl.search.journal import JournalError, SearchJournal
from robo_rl.search.strategy import INSIDE, Candidate, CandidateResult, TemplateStrategy
from robo_rl.search.verdict import verdict
from robo_rl.search.worker import curves, failure_kind

CARD = from_dict(sims.make_task("push").card())
SENTENCE = CARD.goals["red_cube_next_to_blue_ball"]
FORMULA = read(SENTENCE, CARD)
JOB = {
    "name": "job",
    "text": "def reward(tip):\n    return {'up': tip[2] / 0.1}\n",
    "task": "reach",
    "robot": "",
    "goal": "touch_red_cube",
    "tuning": {"num_envs": 8, "n_steps": 16},
    "seed": 1,
    "env_steps": 64,
    "judge_seed": VALIDATION_SEED,
    "episodes": 4,
}


def strategy(count: int = 6, seed: int = 0) -> TemplateStrategy:
    return TemplateStrategy(FORMULA, CARD, SENTENCE, count, seed)


def told(candidate: Candidate, success: float, **curves: tuple[float, ...]) -> CandidateResult:
    return CandidateResult(candidate, (0.0, success, 0.0), curves)


# Ask and tell.
def test_every_template_structure_is_valid_and_distinct() -> None:
    standard = write_program(FORMULA, CARD)
    for name, values in CHOICES.items():
        assert values[0] == getattr(TemplateStructure(), name)
        for value in values[1:]:
            text = write_program(FORMULA, CARD, None, TemplateStructure(**{name: value}))
            assert not load(text, CARD).warnings
            assert (text != standard) == (name != "slopes"), name  # a push has no slopes
    reach = read("the gripper touches the red cube", CARD)
    assert (
        len(
            {
                write_program(reach, CARD, None, TemplateStructure(slopes=s))
                for s in CHOICES["slopes"]
            }
        )
        == 3
    )


def test_search_varies_structure_then_numbers() -> None:
    asked = strategy(6).ask(0)
    outside = 6 // INSIDE
    assert asked[0].text == strategy().standard()
    assert asked[0].structure != asked[1].structure
    assert {c.structure for c in asked[outside:]} == {c.structure for c in asked[:outside]}
    assert all(c.numbers == TemplateNumbers() for c in asked[:outside])
    assert all(c.numbers != TemplateNumbers() for c in asked[outside:])
    assert len({c.text for c in asked}) == 6


def test_search_children_are_new_and_from_the_best() -> None:
    one = strategy(6)
    first = one.ask(0)
    for index, candidate in enumerate(first):
        one.tell(told(candidate, index / 10, behind=(0.0, 0.01)))
    one.tell(CandidateResult(first[5], (), {}))  # what failed has no children
    second = one.ask(1)
    assert {c.parents for c in second} <= {("c04",), ("c03",)}
    assert not {c.text for c in second} & {c.text for c in first}
    assert second[0].numbers.behind_scale == 1.5 * first[4].numbers.behind_scale
    assert "reflection on behind_scale" in second[0].notes


def test_search_proposals_are_deterministic() -> None:
    def both(seed: int, remembered: bool) -> list[Candidate]:
        one = strategy(4, seed)
        first = strategy(4, seed).ask(0) if remembered else one.ask(0)
        if remembered:
            stored = json.loads(json.dumps([_json(c) for c in first]))
            one.remember([Candidate.from_json(c) for c in stored])
        for index, candidate in enumerate(first):
            one.tell(told(candidate, index / 10))
        return first + one.ask(1)

    assert both(3, False) == both(3, True) != both(4, False)


def _json(candidate: Candidate) -> dict:
    from robo_rl.runs.run_dir import jsonable

    return jsonable(candidate)


# The journal.
def test_search_journal_drops_a_torn_line_and_refuses_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = SearchJournal(path)
    journal.append("begun", seed=np.int64(3))
    with pytest.raises(JournalError, match="another process is writing"):
        SearchJournal(path)
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"event": "answered", "na')
    again = SearchJournal(path)
    assert again.events == [{"event": "begun", "seed": 3}]
    again.append("finished")
    again.close()
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == [
        "begun",
        "finished",
    ]
    path.write_text('{"event": "begun"}\nnot an event\n{"event": "x"}\n')
    with pytest.raises(JournalError, match="line 2 is not a journal event"):
        SearchJournal(path)


# Failures.
def test_search_kills_a_training_at_its_time_limit(tmp_path: Path) -> None:
    pool = TrainingPool(tmp_path, limits=TrainingLimits(seconds=0.5))
    [(_, answer)] = pool.run([JOB | {"env_steps": 10**9}])
    assert answer == {"kind": "timed_out", "message": "not done in 0.5 s", "env_steps": 0}
    assert not _alive(tmp_path)


def test_search_kills_a_stalled_training(tmp_path: Path) -> None:
    pool = TrainingPool(tmp_path, limits=TrainingLimits(seconds=300, stall_s=1.0))
    frozen = False

    def freeze(steps: int) -> None:
        nonlocal frozen
        for pid in [] if frozen else _alive(tmp_path):
            os.kill(pid, signal.SIGSTOP)
            frozen = True

    [(_, answer)] = pool.run([JOB | {"env_steps": 10**9}], freeze)
    assert frozen and answer["kind"] == "timed_out" and "no sign of life" in answer["message"]
    assert not _alive(tmp_path)


def test_search_training_over_its_memory_limit_fails_alone(tmp_path: Path) -> None:
    pool = TrainingPool(tmp_path, limits=TrainingLimits(memory_bytes=300 << 20))
    [(_, answer)] = pool.run([JOB])
    assert answer["kind"] == "crashed" and answer["message"]


def test_search_failures_have_kinds() -> None:
    assert failure_kind(SimulationDiverged("too many rows")) == "diverged"
    assert failure_kind(ValueError("loc tensor([[nan, nan]])")) == "nan"
    assert failure_kind(FloatingPointError("x")) == "nan"
    assert failure_kind(ValueError("no information on the finance of nancy")) == "crashed"


def test_search_refusal_names_its_reason_and_is_counted() -> None:
    texts = [
        "def reward(gripper_pos):\n    return {'a': gripper_pos[2]}\n",
        write_program(FORMULA, CARD),
    ]
    found = refusals(texts, CARD)
    assert "gripper_pos" in found[0] and not found[1]
    answers = {
        ("c00", 0): {"kind": "refused", "message": found[0]},
        ("c01", 0): {"kind": "refused", "message": found[0].replace("line 1", "line 9")},
        ("c02", 0): {"kind": "trained"},
        ("c02", 1): {"kind": "timed_out", "message": "not done in 60 s"},
        ("c03", 0): {"kind": "trained"},
    }
    said = failure_summary(["c00", "c01", "c02", "c03"], answers)
    assert said.startswith("3 of 4 candidates failed: 2 refused (") and "gripper_pos" in said
    assert "other reasons" not in said and "1 timed out (not done in 60 s)" in said


def test_failed_search_training_counts_as_zero_success() -> None:
    good = {"kind": "trained", "evaluation": {"successes": 90}, "seed": 1, "env_steps": 5}
    bad = {"kind": "nan", "message": "no", "seed": 2, "env_steps": 3}
    found = verdict([good, bad], 100)
    assert found["success"] == 0.45 and found["episodes"] == 200 and found["failed"] == 1


def test_search_curves_keep_each_component() -> None:
    rows = [{"reward/near": float(i), "other": 1.0} for i in range(16)]
    assert curves(rows) == {"near": [0.5, 2.5, 4.5, 6.5, 8.5, 10.5, 12.5, 14.5]}
    assert curves([]) == {}


def _alive(folder: Path) -> list[int]:
    """Processes that work on a job in ``folder``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


# The whole.
OPTIONS = [
    "search",
    "reach",
    "--goal",
    "the gripper touches the red cube",
    "--writer",
    "offline",
    "--candidates",
    "2",
    "--rounds",
    "1",
    "--rungs",
    "2",
    "--env-steps",
    "256",
    "--validation-episodes",
    "8",
    "--episodes",
    "16",
    "--tuning.num-envs",
    "8",
    "--tuning.n-steps",
    "16",
    "--workers",
    "2",
    "--name",
    "small",
]


@pytest.mark.slow
def test_killed_search_resumes_and_evaluates_on_fresh_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "small"
    journal = folder / "journal.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "robo_rl.cli", *OPTIONS, "--runs", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while not (journal.exists() and b'"answered"' in journal.read_bytes()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = journal.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    with journal.open("ab") as file:
        file.write(b'{"event": "answered", "name": "c0')  # what a crash may leave

    assert main(["search", "--resume", str(folder), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    whole = journal.read_bytes()
    assert whole.startswith(before)  # appended to, not rewritten
    events = [json.loads(line) for line in whole.splitlines()]
    trained = [(e["name"], e["rung"]) for e in events if e["event"] == "answered"]
    assert len(trained) == len(set(trained)) == 2 + 1  # nothing twice; the better half went on
    assert [e["event"] for e in events].count("begun") == 1
    assert events[-1] == {"event": "finished", "winner": summary["winner"]}

    seeds = [set(group) for group in summary["seeds"].values()]
    assert len(set().union(*seeds)) == sum(map(len, seeds)) == 4
    assert summary["seeds"]["test"] == [TEST_SEED]
    judged = {e["what"]: e for e in events if e["event"] == "judged"}
    compared = {"winner", "sentence", "dense", "null"}
    assert judged.keys() == summary["verdict"].keys() == compared
    assert summary["gains"].keys() == compared - {"winner"}
    assert {e["evaluation"]["seed"] for e in judged.values()} == {TEST_SEED}
    # Equal steps: half of all for the candidates, half for the winner.
    assert {e["env_steps"] for e in judged.values()} == {summary["search_env_steps"]} == {512}
    chosen = [e for e in events if e["event"] == "answered"]
    assert {e["evaluation"]["seed"] for e in chosen} == {VALIDATION_SEED}
    assert summary["search_env_steps"] == sum(e["env_steps"] for e in chosen) == 2 * 128 + 256
    best = max(summary["candidates"], key=lambda c: _order(c["trainings"][0]["evaluation"]))
    assert [len(c["trainings"]) for c in summary["candidates"]].count(2) == 1
    assert summary["winner"] == best["name"] and len(best["trainings"]) == 2
    assert (folder / "winner.py").read_text() == best["text"]
    report = (folder / "report.md").read_text()
    assert all(c["text"].rstrip() in report for c in summary["candidates"])
    assert "0 of 2 candidates failed" in report
    assert not _alive(tmp_path)

    done = json.loads((folder / "search.json").read_text())
    assert main(["search", "--resume", str(folder)]) == 0  # a finished search is only told again
    assert capsys.readouterr().out.startswith(f"{summary['winner']} ")
    assert journal.read_bytes() == whole
    assert json.loads((folder / "search.json").read_text()) == done
    assert main(["search", *OPTIONS[1:], "--runs", str(tmp_path)]) == 1
    assert "already holds a search; continue it with --resume" in capsys.readouterr().err


def _order(evaluation: dict) -> tuple[float, float]:
    return evaluation["success"], -evaluation["distance_median"]


def test_search_without_a_trained_candidate_explains_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*OPTIONS, "--runs", str(tmp_path), "--minutes", "0.005"]
    assert main(options) == 1
    said = capsys.readouterr().err
    assert "2 of 2 candidates failed: 2 timed out (not done in 0.3 s)" in " ".join(said.split())
    assert not (tmp_path / "small" / "winner.py").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--goal", "the gripper touches the green dragon"], "dragon"),
        (["--writer", "oracle"], "unknown writer 'oracle'; available: offline, llm, text2reward"),
        (["--writer", "eureka"], "writer 'eureka' needs a model: --model.model NAME"),
        (["--relabel"], "relabel needs a learner with a replay buffer; ppo has none"),
        (["--learner", "sarsa"], "unknown learner 'sarsa'"),
        (["--resume", "nowhere"], "no search in nowhere"),
        (["--candidates", "0"], "candidates must be at least 1, got 0"),
        (["--final-env-steps", "-1"], "final_env_steps must be at least 0, got -1"),
        (["--goal", "the red cube is far from the blue ball"], "no ground truth"),
    ],
)
def test_search_option_errors_are_one_line(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["search", "reach", *args, "--runs", str(tmp_path)]) != 0
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_search_in_an_unwritable_folder_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*OPTIONS, "--runs", str(tmp_path / "file")]) != 0
    err = capsys.readouterr().err
    assert "is not a writable folder" in err and err.count("\n") == 1


def test_search_refuses_a_goal_of_another_body(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goal = ["--goal", "do a front flip"]
    assert main(["search", "walker2d", *goal, "--runs", str(tmp_path)]) == 1
    assert "front_flip does not apply to the walker" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_search_config_rung_steps() -> None:
    config = SearchConfig(env_steps=96_000, rungs=3)
    assert config.ladder == [24_000, 48_000, 96_000]
    # Six at the first rung, three at the second, two at the last, in two rounds.
    assert config.search_steps == 2 * (6 * 24_000 + 3 * 48_000 + 2 * 96_000)
    assert config.judged_steps == config.search_steps
    assert SearchConfig(final_env_steps=5).judged_steps == 5


def test_search_command_uses_the_preset_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[SearchConfig] = []

    def stopped(config: SearchConfig, **_: object) -> Path:
        asked.append(config)
        raise ValueError("enough")

    monkeypatch.setattr("robo_rl.commands.search.search", stopped)
    options = ["search", "push", "--candidates", "4", "--rungs", "2", "--runs", str(tmp_path)]
    assert main(options) == main([*options, "--env-steps", "5000"]) == 1
    assert asked[0].search_steps == asked[0].judged_steps == preset("push").env_steps
    assert asked[1].env_steps == 5000
