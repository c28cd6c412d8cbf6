"""The comparison of two commits' results finds every value that differs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.equality import compare

SPEC = {"ignored": ["seconds"], "renamed": {"looks": "evaluations"}}


@pytest.fixture
def works(tmp_path: Path) -> list[Path]:
    """Two folders of results of one command that agree but for times and a renamed key."""
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder, key, seconds in zip(folders, ("looks", "evaluations"), (1.0, 2.0), strict=True):
        (folder / "run").mkdir(parents=True)
        result = {key: [0.5, float("nan")], "seconds": seconds}
        (folder / "run" / "result.json").write_text(json.dumps(result))
        (folder / "run" / "metrics.csv").write_text(f"step,seconds\n1,{seconds}\n")
        np.savez(folder / "run" / "state.npz", weights=np.arange(3, dtype=np.float32))
        (folder / "stdout1.json").write_text("{}")
    return folders


def differences(works: list[Path]) -> list[str]:
    return compare(1, {"results": ["run"]}, works, SPEC)["differences"]


def test_equal_results_have_no_difference(works: list[Path]) -> None:
    result = compare(1, {"results": ["run"]}, works, SPEC)
    assert result == {"files": 4, "values": 4, "new": 0, "differences": []}


def test_one_bit_of_a_weight_is_a_difference(works: list[Path]) -> None:
    weights = np.arange(3, dtype=np.float32)
    weights[2] = np.nextafter(weights[2], np.float32(9))
    np.savez(works[1] / "run" / "state.npz", weights=weights)
    (place,) = differences(works)
    assert place.startswith("run/state.npz weights: array (3,)")


def test_another_type_of_array_is_a_difference(works: list[Path]) -> None:
    np.savez(works[1] / "run" / "state.npz", weights=np.arange(3, dtype=np.float64))
    assert len(differences(works)) == 1


def test_a_figure_of_a_table_is_a_difference(works: list[Path]) -> None:
    (works[1] / "run" / "metrics.csv").write_text("step,seconds\n2,1.0\n")
    assert differences(works) == ["run/metrics.csv /0/step: '1' -> '2'"]


def test_a_further_value_is_new(works: list[Path]) -> None:
    (works[1] / "stdout1.json").write_text('{"baseline": 0.0}')
    result = compare(1, {"results": ["run"]}, works, SPEC)
    assert (result["new"], result["differences"]) == (1, [])


def test_a_missing_file_is_a_difference(works: list[Path]) -> None:
    (works[1] / "run" / "metrics.csv").unlink()
    assert differences(works) == ["run/metrics.csv: not in after"]
