"""Programs of sentences beside dense rewards: equal steps, verdicts by intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import Options, experiment
from benchmarks.sentences import SEEDS, WRITTEN, case, compared, share_interval, verdicts
from reward_models.analysis.metrics import wilson


def done(rate: float) -> dict[str, Any]:
    won = round(1000 * rate)
    low, high = wilson(won, 1000)
    return {"successes": won, "episodes": 1000, "success": rate, "low": low, "high": high}


def rows(offline: Any, dense: Any, seeds: int = 3) -> list[dict[str, Any]]:
    """Rows of the first goal; a rate for each seed, or one for all."""
    return [
        {
            "name": f"{case(WRITTEN[0], reward)}, seed {seed}",
            "evaluation": done(rate[seed] if isinstance(rate, tuple) else rate),
            "env_steps": 96_000,
            "frames": {},
            "seconds": {"reward": 0, "train": 1},
        }
        for seed in SEEDS[:seeds]
        for reward, rate in (("offline", offline), ("task", dense))
    ]


def test_sentences_experiment_has_ten_goals_at_equal_steps() -> None:
    made = experiment("sentences").rows(Options())
    assert len(made) == 10 * 2 * 3
    for offline, dense in zip(made[::2], made[1::2], strict=True):
        assert offline.of.config == replace(dense.of.config, reward="offline")
        assert offline.of.program and not dense.of.program


@pytest.mark.parametrize(
    ("offline", "dense", "counts", "words"),
    [
        (0.95, 1.0, True, "reached"),
        (0.5, 0.9, True, "missed"),
        (0.7, 0.7, False, "-"),
        ((1.0, 0.95, 0.8), 1.0, True, "open"),  # .92 in all, but .8 to 1.0 over seeds
        ((0.95, 0.9, 0.8), 1.0, True, "open"),  # .88 in all: not shown to miss it either
    ],
)
def test_sentences_count_goals_only_with_good_dense_reward(
    offline: Any, dense: float, counts: bool, words: str
) -> None:
    entry = verdicts(rows(offline, dense))[0]
    assert entry["counts"] is counts and entry["verdict"] == words
    assert entry["share"]["low"] < np.mean(offline) / dense < entry["share"]["high"]
    line = compared(rows(offline, dense)).splitlines()[2]
    assert line.endswith(f"{'yes' if counts else 'no'} | {words} |")
    part = compared(rows(offline, dense, seeds=1)).splitlines()
    assert "(1 of 3 seeds)" in part[2] and part[3].endswith("| not run |")


def test_rate_interval_widens_with_seed_variance() -> None:
    apart = verdicts(rows((1.0, 0.0, 1.0), 1.0))[0]["offline"]
    alike = verdicts(rows((0.667, 0.667, 0.667), 1.0))[0]["offline"]
    assert apart["success"] == pytest.approx(alike["success"], abs=0.001)
    assert apart["high"] - apart["low"] > 0.3 and alike["high"] - alike["low"] < 0.05


def test_ratio_interval_widens_with_seed_variance() -> None:
    tried = np.full((3, 2), 1000)
    alike = share_interval(np.array([[900, 1000]] * 3), tried)
    apart = share_interval(np.array([[1000, 1000], [900, 1000], [800, 1000]]), tried)
    assert alike[0] == pytest.approx(apart[0]) == 0.9
    assert apart[2] - apart[1] > 3 * (alike[2] - alike[1])
