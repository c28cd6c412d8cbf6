"""THIRD_PARTY.md names the licence of every dependency."""

from __future__ import annotations

import email
import tomllib
from importlib.metadata import distribution

import pytest

from benchmarks import licences

PYPROJECT = tomllib.loads((licences.ROOT / "pyproject.toml").read_text())


def test_every_dependency_is_listed_with_its_licence() -> None:
    rows = licences.rows_of(licences.FILE.read_text())
    asked = licences.direct(PYPROJECT)
    missing = sorted(set(asked) - set(rows))
    assert not missing, f"run python -m benchmarks.licences: no row for {', '.join(missing)}"
    wrong = [name for name, by in asked.items() if rows[name][2] != by]
    assert not wrong, f"run python -m benchmarks.licences: extras differ for {', '.join(wrong)}"
    unstated = [name for name, (_, licence, _) in rows.items() if not licence]
    assert not unstated, f"write the licence of {', '.join(unstated)} into THIRD_PARTY.md"


def test_a_dependency_that_is_new_is_noticed() -> None:
    project = {"dependencies": ["Ruckig>=1", "new_package; python_version > '3'"]}
    asked = licences.direct({"project": {**project, "optional-dependencies": {"x": ["ruckig"]}}})
    assert asked == {"ruckig": "base, x", "new-package": "base"}
    rows = licences.rows_of(licences.FILE.read_text())
    assert "new-package" not in rows and rows["ruckig"][1].startswith("MIT")


def test_a_row_keeps_what_was_written_by_hand() -> None:
    asked = {"project": {"dependencies": ["no-such-package"], "optional-dependencies": {}}}
    before = {"no-such-package": ["no-such-package", "MIT", "x"]}
    assert licences.dependencies(asked, before) == [["no-such-package", "MIT", "base"]]
    assert licences.dependencies(asked, {}) == [["no-such-package", "", "base"]]


def test_a_package_states_its_licence() -> None:
    assert licences.licence_of(distribution("numpy")).startswith("BSD-3-Clause")
    assert "typing-extensions" in licences.needed(distribution("gymnasium"))
    with pytest.raises(ValueError, match="name no licence"):
        licences.licence_of(Unlicensed())


class Unlicensed:
    """A distribution whose metadata say nothing of a licence."""

    metadata = email.message_from_string("Name: unlicensed\nLicense: UNKNOWN\n")
