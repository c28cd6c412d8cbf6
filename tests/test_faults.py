"""The table of faults is made of what ran, and says what did not."""

from __future__ import annotations

from faults import FAULTS, Shown


def test_fault_table_is_generated_from_executed_tests() -> None:
    shown = Shown()
    shown.add([18, 19], "test_a.py::test_x", True, [(0.001, "held"), (0.004, "held")])
    shown.add([19], "test_b.py::test_y", False, [])
    rows = shown.page("pytest").splitlines()
    assert f"1 of {len(FAULTS)} faults" in shown.page("pytest")
    assert (
        "| 18 | NaN in an action | never sent; hold | `test_a.py::test_x` | held 4.0 ms |" in rows
    )
    assert any(row.startswith("| 19 |") and "FAILED" in row for row in rows)
    assert any(row.startswith("| 20 |") and "not shown yet" in row for row in rows)


def test_faults_are_numbered_without_gaps() -> None:
    assert list(FAULTS) == list(range(1, len(FAULTS) + 1))
