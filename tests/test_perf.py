"""The arithmetic of `make perf`, and that a measurement uses the checkout that it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import perf

ROOT = Path(__file__).parents[1]
RATE = perf.Measurement("steps/s", "", more=True)
TIME = perf.Measurement("us", "", more=False)


def test_sides_alternate_so_that_a_drift_meets_both() -> None:
    order: list[bool] = []

    def measure(ours: bool) -> float:
        order.append(ours)
        return 100.0 + len(order)  # whatever is measured, the machine gets slower

    found = perf.compare("drift", TIME, measure, pairs=4)
    assert "".join("BA"[ours] for ours in order) == "ABBAABBA"
    assert found.ours == [101, 104, 105, 108] and found.before == [102, 103, 106, 107]
    assert found.passed


@pytest.mark.parametrize(("change", "passed"), [(0.5, True), (1.09, True), (1.12, False)])
def test_a_time_more_than_a_tenth_longer_fails(change: float, passed: bool) -> None:
    # A machine that is busy for a while slows both of a pair.
    figures = iter([change, 1.0, 1.0, change, 9 * change, 9.0])
    found = perf.compare("loop", TIME, lambda ours: next(figures), pairs=3)
    assert found.ratios == pytest.approx([change] * 3)
    assert found.passed is passed
    assert ("slower" in found.line()) is not passed


def test_a_rate_that_falls_is_a_time_that_grows() -> None:
    figures = iter([800.0, 1000.0, 1000.0, 800.0])
    found = perf.compare("steps", RATE, lambda ours: next(figures), pairs=2)
    assert found.ratios == pytest.approx([1.25, 1.25]) and not found.passed
    assert "800 steps/s, before 1,000; time ratio 1.250 (1.250 to 1.250, 2 pairs)" in (found.line())


def test_a_figure_is_of_the_tree_that_is_given(tmp_path: Path) -> None:
    assert perf.figure_of("print(3.5)", ROOT) == 3.5
    (tmp_path / "sims").mkdir()
    (tmp_path / "sims" / "__init__.py").write_text("SPEED = 7")
    assert perf.figure_of("import sims; print(sims.SPEED)", tmp_path) == 7.0
    with pytest.raises(RuntimeError, match="a measurement failed in .*ZeroDivisionError"):
        perf.figure_of("1 / 0", ROOT)
