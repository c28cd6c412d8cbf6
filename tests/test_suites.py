"""Suites: what is finished is not done again, and the table says what each row cost."""

from __future__ import annotations

import json

import pytest

import sims
from robo_rl.config import TrainConfig
from robo_rl.experiments import suites
from robo_rl.goals import read_goal


@pytest.mark.parametrize("name", suites.SUITES)
def test_every_entry_names_a_task_that_judges_its_goal(name):
    entries = suites.SUITES[name][0](TrainConfig())
    assert len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        task = sims.make_task(entry.config.task, robot=entry.config.robot or None)
        key = read_goal(task, entry.config.goal).key
        assert (entry.judged_as or key) in task.goals()


@pytest.mark.slow
def test_an_interrupted_suite_goes_on_where_it_stopped(tmp_path, monkeypatch):
    base = TrainConfig(
        runs=tmp_path, task="button", robot="so101", goal="press", reward="task", env_steps=7_680,
        episodes=20, checkpoint_every=3_840,
    )  # fmt: skip
    rows = [suites.Entry("trained", base), suites.Entry("expert", base, "expert")]
    monkeypatch.setitem(suites.SUITES, "two", (lambda base: rows, "two rows"))
    table = suites.run_suite("two", base).read_text()
    trained, expert = json.loads((tmp_path / "two.json").read_text())["rows"]
    assert trained["env_steps"] == 7_680 and expert["evaluation"]["success"] > 0.9
    assert trained["seconds"]["processor"] > 0 and table.count("\n") == 4

    (tmp_path / "two" / f"{expert['config_hash'][:12]}.json").unlink()
    result = tmp_path / "two" / trained["config_hash"][:12] / "result.json"
    before = result.stat().st_mtime_ns
    assert suites.run_suite("two", base).read_text() == table
    assert result.stat().st_mtime_ns == before
