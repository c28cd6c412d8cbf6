"""Experiments: rows are known by settings and code, kept, resumed, told apart from older ones."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sims
from benchmarks import (
    EXPERIMENTS,
    BenchmarkRow,
    Experiment,
    Options,
    experiment,
    fingerprint,
    runner,
)
from benchmarks.runner import RowJournal, run
from benchmarks.training import FRESH, policies, policy, table_text
from robo_rl.cli import main
from robo_rl.config.train_config import TrainConfig
from robo_rl.learners import PPOConfig

CACHED = ("path_of", "_parsed", "imports", "modules", "digest")  # functions of fingerprint
POLICIES = ("demo", "goals", "push", "dense", "bodies", "off-policy", "sentences")
Put = Callable[[Experiment], None]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts an experiment in the place of "push"."""
    return lambda made: monkeypatch.setattr(
        runner, "experiment", lambda name: made if name == "push" else experiment(name)
    )


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_unique_rows(name: str) -> None:
    rows = experiment(name).rows(Options())
    assert rows and len({row.name for row in rows}) == len(rows)
    prints = {fingerprint.fingerprint(row) for row in rows}
    assert len(prints) == len(rows)
    if name in (*POLICIES, "search", "arms"):  # a trial run of a row is not the row itself
        tiny = experiment(name).rows(Options(share=0.01))
        assert prints.isdisjoint(map(fingerprint.fingerprint, tiny))


@pytest.mark.parametrize("name", POLICIES)
def test_quoted_policies_are_trained_on_fresh_seeds(name: str) -> None:
    quoted, developed = (
        experiment(name).rows(Options(seeds=(0, 3), develop=develop)) for develop in (False, True)
    )
    for row, other in zip(quoted, developed, strict=True):
        task = sims.make_task(row.of.config.task, robot=row.of.config.robot or None)
        assert row.of.judged_as in task.goals()
        assert row.of.config.seed - FRESH == other.of.config.seed < FRESH
        assert (row.of.config.eval_seeds, other.of.config.eval_seeds) == ("test", "validation")
    assert {row.of.config.seed - FRESH for row in quoted} == {0, 3}


def test_off_policy_learners_are_named_with_their_settings() -> None:
    made = {row.name: row.of.config for row in experiment("off-policy").rows(Options())}
    assert len(made) == 8 and made["drawer open, td3, seed 0"].learner == "td3"
    assert {c.robot for c in made.values()} == {"ur5e", "so101"}


# What a row hangs on.
def test_code_hash_ignores_comments_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "sims/a.py": '"""Says."""\nfrom sims import b\n\ndef f(x):\n    "Says."\n    return x\n',
        "sims/b.py": "K = 1\nLATER = 'sims.d'\n",
        "sims/c.py": "K = 2\n",
        "sims/d.py": "K = 3\n",
        "sims/__init__.py": "",
    }
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)

    def hashed(**changed: str) -> str:
        for name in CACHED:  # what is known of our own files stays known to later tests
            function = getattr(fingerprint, name).__wrapped__
            monkeypatch.setattr(fingerprint, name, functools.cache(function))
        for name, text in (files | {f"sims/{k}.py": v for k, v in changed.items()}).items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert fingerprint.modules(("sims.a",)) == ["sims", "sims.a", "sims.b", "sims.d"]
        return fingerprint.fingerprint(BenchmarkRow("r", {"n": 1}, ("sims.a",)))

    first = hashed()
    assert hashed(a="import sims.b\nfrom sims import b\ndef f(x): return x\n") != first
    assert hashed(a="from sims import b\n# Says more.\ndef f(x):\n    return (x)\n") == first
    assert hashed(c="K = 4\n") == first != hashed(b="K = 4\nLATER = 'sims.d'\n")
    assert hashed(d="K = 4\n") != first
    (tmp_path / "sims/weights.npz").write_bytes(b"others")
    assert hashed() != first
    (tmp_path / "sims/tower.safetensors").write_bytes(b"taught")
    taught = hashed()
    (tmp_path / "sims/tower.json").write_text("{}")  # what was measured of it
    assert hashed() == taught != first
    (tmp_path / "sims/table.json").write_text("{}")
    assert hashed() != taught
    with pytest.raises(ValueError, match="'sims.e', which does not exist"):
        fingerprint.fingerprint(BenchmarkRow("r", {}, ("sims.e",)))


def test_row_hash_covers_task_learner_and_reward_code_only() -> None:
    rows = {row.name: row for row in experiment("sentences").rows(Options(seeds=(0,)))}
    dense, written = (rows[f"drawer open, {r}, seed 0"] for r in ("task", "offline"))
    hangs = fingerprint.modules(dense.code, dense.without)
    assert {"sims.tasks.drawer", "sims.envs.batch_env", "robo_rl.training.train"} <= {*hangs}
    assert {"robo_rl.learners.ppo", "robo_rl.rewards.code"} <= {*hangs}
    beside = (
        "robo_rl.training.report",
        "robo_rl.commands",
        "sims.tasks.push",
        "reward_models.vision",
        "robo_rl.learners.sac",
    )
    assert not [name for name in hangs if name.startswith(beside)]
    assert "reward_models.programs.lower" not in hangs
    assert "reward_models.programs.lower" in fingerprint.modules(written.code, written.without)
    program = replace(written.of, program=written.of.program.replace("0.", "1.", 1))
    assert fingerprint.fingerprint(replace(written, of=program)) != fingerprint.fingerprint(written)


# The runner.
def counted(ran: list[str], code: str = "sims.core.rng") -> Experiment:
    """Rows that are measured at once."""

    def one(of: int, place: Any) -> dict[str, Any]:
        ran.append(str(of))
        return {"value": 10 * of}

    def rows(options: Options) -> list[BenchmarkRow]:
        return [BenchmarkRow(f"row {k}", k, (code,)) for k in options.seeds]

    return Experiment(rows, one, lambda rows: "".join(f"{r['name']}: {r['value']}\n" for r in rows))


def test_journal_separates_current_and_older_rows(tmp_path: Path, put: Put) -> None:
    ran: list[str] = []
    put(counted(ran))
    book = tmp_path / "kept.json"

    def told(seeds: tuple[int, ...], only: str = "", **more: bool) -> Any:
        options = Options(seeds=seeds, only=only)
        return run("push", options, runs=tmp_path / "runs", journal=book, **more)

    with pytest.raises(ValueError, match="no row name of push contains 'col'"):
        told((1, 2), only="col")
    assert [row["name"] for row in told((1, 2), only="2").current] == ["row 2"]
    ran.clear()
    book.unlink()
    assert told((1, 2)).markdown().startswith("row 1: 10\nrow 2: 20\n")
    assert told((2, 3)).markdown().startswith("row 2: 20\nrow 3: 30\n")
    assert ran == ["1", "2", "3"]
    kept = told((1, 2), only="1", stored=True)
    assert [row["name"] for row in kept.older] == ["row 3"]  # 2 is of today, if not asked for
    made = tmp_path / "runs" / "push" / kept.current[0]["hash"][:12] / "result.json"
    made.parent.mkdir(parents=True)
    made.touch()
    told((1,), again=True)
    assert (
        not made.exists()
        and ran == ["1", "2", "3", "1"]
        and len(json.loads(book.read_text())["rows"]) == 3
    )
    put(counted(ran, "sims.core.terms"))  # other code
    old = told((1,), stored=True)
    assert len(ran) == 4 and old.missing == 1 and not old.current and len(old.older) == 3
    assert "1 rows are not measured yet" in old.markdown()
    assert "Kept, of an older version or of other settings than today's:" in old.markdown()
    new = told((1,))
    assert len(ran) == 5 and [row["name"] for row in new.current] == ["row 1"] and not new.older
    both = told((1,), stored=True).as_dict()["rows"]
    assert [row["current"] for row in both] == [True, False, False, False]
    assert all(row["versions"] and row["machine"] for row in both)
    book.write_text("[]")
    with pytest.raises(ValueError, match="not a journal of an experiment; move it away"):
        told((1,))


def test_two_processes_share_a_journal(tmp_path: Path) -> None:
    first, second = RowJournal(tmp_path / "a.json"), RowJournal(tmp_path / "a.json")
    first.add("t", {"hash": "1"})
    second.add("t", {"hash": "2"})
    assert list(first.rows()) == ["1", "2"]


@pytest.mark.parametrize(("name", "current", "older"), [("sentences", 0, 96), ("search", 0, 9)])
def test_journals_of_the_docs_are_readable_but_not_current(
    name: str, current: int, older: int, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Path(__file__).parents[1] / f"docs/data/{name}.json"
    assert main(["bench", name, "--journal", str(kept), "--stored", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert sum(row["current"] for row in rows) == current and len(rows) == older


def expert(name: str, options: Options, seed: int = 0) -> BenchmarkRow:
    config = TrainConfig(
        task="button",
        robot="so101",
        goal="press",
        reward="task",
        env_steps=7_680,
        episodes=20,
        checkpoint_every=3_840,
        tuning=PPOConfig(num_envs=64),
    )
    return policy(name, config, options, seed, kind="expert")


def test_parallel_rows_equal_sequential_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import reading

    made = reading.EXPERIMENT
    some = [row for row in made.rows(Options()) if row.of["set"] in ("suite_talk", "suite_dev")]
    monkeypatch.setattr(reading, "EXPERIMENT", replace(made, rows=lambda _: some))
    one, two = (
        run("reading", Options(), runs=tmp_path / f"{jobs}", jobs=jobs).current for jobs in (1, 2)
    )
    assert [(r["hash"], r["counts"]) for r in one] == [(r["hash"], r["counts"]) for r in two]


@pytest.mark.slow
def test_interrupted_row_resumes(tmp_path: Path, put: Put) -> None:
    def rows(options: Options) -> list[BenchmarkRow]:
        one = expert("expert", options)
        return [replace(one, name="trained", of=replace(one.of, kind="train")), one]

    put(policies(rows))
    table = run("push", Options(), runs=tmp_path).markdown()
    trained, best = json.loads((tmp_path / "push.json").read_text())["rows"]
    assert trained["evaluation"]["floors"] == best["evaluation"]["floors"]
    assert "| doing nothing, untrained |" in table
    assert trained["env_steps"] == 7_680 and best["evaluation"]["success"] > 0.9
    assert trained["seconds"]["processor"] > 0
    (tmp_path / "push.json").unlink()
    result = tmp_path / "push" / trained["hash"][:12] / "result.json"
    before = result.stat().st_mtime_ns
    assert run("push", Options(), runs=tmp_path).markdown() == table
    assert result.stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "push", "off-policy"])
def test_a_trial_run_of_each_kind_of_row(name: str, tmp_path: Path, put: Put) -> None:
    made = experiment(name)
    seen: set[tuple[str, ...]] = set()

    def some(options: Options) -> list[BenchmarkRow]:
        """One row of each reward, learner and kind."""
        found = []
        for row in made.rows(options):
            c = row.of.config
            distilled = c.reward == "clip" and c.scoring.distill  # a scene takes minutes
            kind = (c.reward, c.learner, row.of.kind, row.of.judged_as)
            if kind not in seen and not distilled:
                seen.add(kind)
                found.append(row)
        return found

    put(replace(made, rows=some))
    found = run("push", Options(seeds=(0,), share=0.005), runs=tmp_path)
    assert found.current and not found.missing
    assert table_text(found.current) in found.markdown()


def test_quoted_clones_use_fresh_demonstrations() -> None:
    quoted, developed = (experiment("residual").rows(Options(develop=d)) for d in (False, True))
    assert [row.of.policy.config.seed for row in quoted[::6]] == [FRESH + n for n in range(5)]
    assert {row.of.demos.seed for row in quoted[::2]}.isdisjoint(
        row.of.demos.seed for row in developed[::2]
    )


def test_scorer_experiment_has_a_time_baseline(tmp_path: Path) -> None:
    asked = Options(seeds=(0,), share=0.01, only="button, time, judged")
    [row] = run("scorers", asked, runs=tmp_path).current
    to_truth = row["worth"]["starc"]
    assert to_truth["sparse"][0] == pytest.approx(0.5, abs=1e-9)  # it tells one state of no other
    assert row["worth"]["voc"][:2] == [1.0, 1.0]  # forth and back alike
    assert "button, time, judged, seed 0" in experiment("scorers").table([row])


@pytest.mark.slow
def test_residual_experiment_also_evaluates_its_clone(tmp_path: Path) -> None:
    asked = Options(seeds=(0,), share=0.004, only="lift, residual")
    found = run("residual", asked, runs=tmp_path)
    (row,) = found.current
    assert row["base"]["episodes"] == 8 and row["evaluation"]["seed"] == row["base"]["seed"]
    assert "| base |" in found.markdown()
    again = run("residual", asked, runs=tmp_path, again=True)  # its base is found there
    assert again.current[0]["base"] == row["base"]


# The command.
def test_bench_command_lists_and_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == EXPERIMENTS
    for args, said in (
        (["pish"], "Did you mean 'push'?"),
        (["push", "--seeds", "0,x"], "seeds must be whole numbers, as in 0,1,2; got '0,x'"),
        (["push", "--share", "2"], "share must be in (0, 1]"),
        (["all", "--journal", "a.json"], "--journal needs one experiment"),
    ):
        assert main(["bench", *args]) == 1
        assert said in capsys.readouterr().err


def test_learn_table_compares_with_our_run_of_the_same_seed() -> None:
    from benchmarks import learn

    def row(kind: str, seed: int, seconds: float, reached: bool) -> dict[str, Any]:
        return {
            "name": f"reach, {kind}, seed {seed}",
            "task": "reach",
            "kind": kind,
            "target": 0.9,
            "reached": reached,
            "env_steps": 1000,
            "processor_s": seconds,
            "worth": 0.9,
        }

    lines = learn.table_text(
        [
            row(learn.OURS, 0, 60.0, True),
            row(learn.OURS, 1, 900.0, False),
            row(learn.ROWS, 0, 600.0, True),
            row(learn.ROWS, 1, 450.0, True),
        ]
    ).splitlines()[2:]
    assert [line.split("|")[-2].strip() for line in lines] == ["1.0", "", "10.0", ""]


def test_row_hash_covers_learning_from_demonstrations(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import prior

    def told() -> str:
        made = prior.rows(Options(seeds=(0,)))
        named = f" {prior.FIRST}, seed 0"
        return fingerprint.fingerprint(next(row for row in made if row.name.endswith(named)))

    before = told()
    monkeypatch.setitem(prior.WAYS, prior.FIRST, {"clone_updates": 3, "demo_share": 0.0})
    assert told() != before
