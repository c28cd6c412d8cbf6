"""Archive screens: rewards that lead to success pass, rewards that look like work do not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sims
from benchmarks import RowFolder
from benchmarks.screens import TASKS, bad_programs, measure, table_text
from reward_models.analysis.screens import (
    BINS,
    SCREENS,
    ArchiveEpisodes,
    outcome_correlation,
    screen_reward,
)
from reward_models.base import Segment, from_dict
from reward_models.programs import load
from robo_rl.cli import main
from robo_rl.reward_analysis.screening import ROWS, archive_episodes, screen_program

KIND = np.array(["expert"] * 4 + ["short"] * 3 + ["still"] * 2 + ["random", "swing"])


def made_up(steps: int = 40) -> tuple[ArchiveEpisodes, np.ndarray]:
    """(archive, progress (T, N)): the expert gets there in the second half, the others never."""
    end = np.where(KIND == "expert", 1.0, np.where(KIND == "short", 0.6, 0.0))
    progress = np.minimum(np.linspace(0.0, 2.0, steps)[:, None], 1.0) * end
    valid = np.ones(progress.shape, bool)
    segment = Segment({}, lambda camera, where: np.zeros(0), np.zeros((*valid.shape, 1)), valid)
    return ArchiveEpisodes(segment, progress >= 1.0, KIND), progress


def test_progress_passes_every_screen() -> None:
    archive, progress = made_up()
    found = screen_reward(progress, archive)
    assert not found.diagnostics and found.figures.keys() == SCREENS.keys()
    assert found.figures["preference"] == 1.0 and found.figures["hack"] == pytest.approx(0.6)
    assert found.figures["living"] == 1.0 and found.figures["order"] == 0.0


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("preference", lambda r, k: np.where(k == "expert", 0.5 * r, r)),
        ("hack", lambda r, k: np.where(k == "short", r / 0.6, r)),
        ("farming", lambda r, k: r + 0.8 * (k == "swing")),
        ("living", lambda r, k: 1.0 + 0.01 * r),
        ("order", lambda r, k: np.where((r > 0.5) & (r < 1.0), 0.1, r)),
    ],
)
def test_each_screen_catches_its_fault(name: str, spoilt: object) -> None:
    archive, progress = made_up()
    reward = spoilt(progress, KIND[None])  # type: ignore[operator]
    codes = {d.code for d in screen_reward(reward, archive).diagnostics}
    assert name in codes and all(d.hint for d in screen_reward(reward, archive).diagnostics)


def test_living_screen_catches_rewarded_termination() -> None:
    archive, progress = made_up()
    early = replace(archive, terminates=True)
    assert "living" in {d.code for d in screen_reward(progress - 0.5, early).diagnostics}
    assert not screen_reward(
        progress - 0.5, archive
    ).diagnostics  # where nothing ends, signs do not matter


def test_screens_without_data_do_not_judge() -> None:
    archive, progress = made_up()
    failed = replace(archive, success=np.zeros_like(archive.success))
    found = screen_reward(progress, failed)
    assert not found.figures and [d.code for d in found.diagnostics] == ["not_judged"]
    assert found.diagnostics[0].severity == "warning"
    short = made_up(BINS)[0]
    assert SCREENS["order"](made_up(BINS)[1], short) is None


def test_goodhart_screen_of_a_trained_policy() -> None:
    rng = np.random.default_rng(0)
    outcome = rng.normal(size=200)
    value, finding = outcome_correlation(outcome + 0.1 * rng.normal(size=200), outcome) or (
        0.0,
        None,
    )
    assert value > 0.9 and finding is None
    value, finding = outcome_correlation(-outcome, outcome) or (0.0, None)
    assert value == pytest.approx(-1.0) and finding is not None and finding.code == "goodhart"
    assert outcome_correlation(np.zeros(5), np.arange(5.0)) is None


def test_archive_has_episodes_of_its_policies() -> None:
    archive, dense = archive_episodes(sims.make_task("reach"))
    assert len(archive.kind) == sum(ROWS.values()) and dense.shape == archive.success.shape
    won = archive.succeeded
    assert won[archive.kind == "expert"].all()
    assert not won[np.isin(archive.kind, ("still", "swing"))].any()
    still = archive.segment.action[:, archive.kind == "still"]
    assert not still.any() and np.abs(archive.segment.action).max() <= 1.0
    hopper, _ = archive_episodes(sims.make_task("hopper"))
    assert hopper.terminates and not (hopper.kind == "expert").any()


def test_screens_catch_bad_rewards_of_reach() -> None:
    rows = measure("reach", RowFolder(Path()))["rewards"]
    assert all(row["passes"] is row["expected"] for row in rows), rows
    assert len([r for r in rows if not r["expected"]]) == 6
    assert "| dense | 4 | 4 |" in table_text([{"rewards": rows}])


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_screens_separate_good_from_bad_rewards(task: str) -> None:
    wrong = [
        row
        for row in measure(task, RowFolder(Path()))["rewards"]
        if row["passes"] is not row["expected"]
    ]
    assert not wrong


def test_reward_check_screens_with_a_goal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = from_dict(sims.make_task("reach").card())
    files = []
    for name, text in list(bad_programs(card).items())[:2]:
        files.append(tmp_path / f"{len(files)}.py")
        files[-1].write_text(text)
        assert screen_program(load(text, card), sims.make_task("reach")).diagnostics, name
    arguments = ["reward", "check", *map(str, files), "--task", "reach"]
    assert main(arguments) == 0
    capsys.readouterr()
    assert main([*arguments, "--goal", "touch the red cube", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [f["ok"] for f in found] == [False, False]
    assert {d["code"] for f in found for d in f["diagnostics"]} <= {*SCREENS, "not_judged"}
    assert main([*arguments, "--goal", "touch the moon"]) == 1
