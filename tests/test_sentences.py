"""The suite of sentences: its rows outlive a sitting, and a changed configuration runs again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.config import TrainConfig
from robo_rl.experiments import suites
from robo_rl.experiments.sentences import (
    SEEDS,
    WRITTEN,
    markdown,
    row_name,
    share_interval,
    verdicts,
)
from robo_rl.learners.config import PPOConfig

TINY = TrainConfig(episodes=8, tuning=PPOConfig(num_envs=8))
ENDS = ("distance_median", "distance_p90")  # of an evaluation, m


def rows(offline: float, dense: float, seeds: int = 3, goal: int = 0) -> list[dict[str, Any]]:
    return [
        {"name": row_name(WRITTEN[goal], reward, seed),
         "evaluation": {"successes": round(1000 * rate), "episodes": 1000}, "env_steps": 96_000}
        for seed in SEEDS[:seeds]
        for reward, rate in (("offline", offline), ("task", dense))
    ]  # fmt: skip


def test_the_suite_holds_ten_goals_at_equal_steps() -> None:
    entries = suites.sentences(TrainConfig())
    assert len(entries) == 10 * 2 * 3 and len({e.name for e in entries}) == 60
    for offline, dense in zip(entries[::2], entries[1::2], strict=True):
        assert offline.config == replace(dense.config, reward="offline")
    assert len({suites.config_hash(e) for e in entries}) == 60


@pytest.mark.parametrize(
    ("offline", "dense", "counts", "words"),
    [(0.95, 1.0, True, "reached"), (0.5, 0.9, True, "missed"), (0.7, 0.7, False, "-")],
)
def test_a_goal_counts_only_where_the_dense_reward_is_good(
    offline: float, dense: float, counts: bool, words: str
) -> None:
    entry = verdicts(rows(offline, dense))[0]
    assert entry["counts"] is counts and entry["reached"] is (offline >= 0.9 * dense)
    assert entry["share"]["low"] < offline / dense < entry["share"]["high"]
    line = markdown(rows(offline, dense)).splitlines()[2]
    assert line.endswith(f"{'yes' if counts else 'no'} | {words} |")
    part = markdown(rows(offline, dense, seeds=1)).splitlines()
    assert "(1 of 3 seeds)" in part[2] and part[3].endswith("| not run |")


def test_the_share_is_wider_where_seeds_differ() -> None:
    tried = np.full((3, 2), 1000)
    alike = share_interval(np.array([[900, 1000]] * 3), tried)
    apart = share_interval(np.array([[1000, 1000], [900, 1000], [800, 1000]]), tried)
    assert alike[0] == pytest.approx(apart[0]) == 0.9
    assert apart[2] - apart[1] > 3 * (alike[2] - alike[1])


def test_rows_are_kept_from_sitting_to_sitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two(base: TrainConfig) -> list[suites.Entry]:
        return [
            suites.Entry(row_name(WRITTEN[0], reward, 0), replace(base, reward=reward), "expert")
            for reward in ("offline", "task")
        ]

    ran: list[str] = []
    real = suites._row

    def counted(entry: suites.Entry, config: TrainConfig, console: Any) -> dict[str, Any]:
        ran.append(entry.name)
        return real(entry, config, console)

    monkeypatch.setitem(suites.SUITES, "sentences", (two, "two rows"))
    monkeypatch.setattr(suites, "_row", counted)
    journal = tmp_path / "rows.json"
    base = replace(TINY, goal="touch_red_cube", runs=tmp_path / "first")
    table = suites.run_suite("sentences", base, journal=journal)
    assert len(ran) == 2 and "touch_red_cube" in table.read_text()
    again = replace(base, runs=tmp_path / "second")  # another sitting: the runs are gone
    suites.run_suite("sentences", again, journal=journal)
    assert len(ran) == 2
    changed = replace(again, seed=1)
    suites.run_suite("sentences", changed, journal=journal)
    assert len(ran) == 4
    kept = json.loads(journal.read_text())["rows"]
    assert len(kept) == 2 and all(r["versions"] for r in kept)
    assert len({p.name for p in (tmp_path / "second" / "sentences").iterdir()}) == 2


def test_rows_side_by_side_are_the_rows_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def three(base: TrainConfig) -> list[suites.Entry]:
        return [
            suites.Entry(f"seed {seed}", replace(base, seed=seed), kind)
            for seed, kind in ((0, "expert"), (1, "untrained"), (2, "expert"))
        ]

    monkeypatch.setitem(suites.SUITES, "sentences", (three, "three rows"))
    monkeypatch.setattr(suites, "TABLES", {})
    base = replace(TINY, goal="touch_red_cube")
    rows = []
    for jobs in (1, 2):
        table = suites.run_suite("sentences", replace(base, runs=tmp_path / f"{jobs}"), jobs=jobs)
        rows.append(json.loads(table.with_suffix(".json").read_text())["rows"])
    # A network's last digits depend on its process's threads.
    ends = [[r["evaluation"].pop(k) for r in done for k in ENDS] for done in rows]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)
    assert rows[0] == rows[1] and [r["name"] for r in rows[0]] == ["seed 0", "seed 1", "seed 2"]
