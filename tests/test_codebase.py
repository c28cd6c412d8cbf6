"""What benchmarks/codebase.py counts."""

from __future__ import annotations

import ast

import pytest

from benchmarks import codebase

FILE = '''"""Two lines
of docstring."""

import numpy as np  # a comment

Array = np.ndarray


class Pose:
    """A docstring."""

    def mean(self, rows: Array) -> Array:
        """The mean (3,) of ``rows`` (N, 3)."""
        # A comment.
        return rows.mean(
            axis=0,
        )

    def checked(self, size: int) -> int:
        """Returns ``size``; ValueError where it is negative."""
        if size < 0:
            raise ValueError("negative")
        return size

    def _hidden(self, rows: Array) -> None:
        raise KeyError


def bare(rows: Array) -> None:
    raise TypeError(f"{rows}")
'''


def test_code_lines_leave_out_docstrings_comments_and_blank_lines() -> None:
    # Two at the top, class, mean 4, checked 4, hidden 2, bare 2.
    assert codebase.code_lines(FILE) == 2 + 1 + 4 + 4 + 2 + 2
    assert codebase.code_lines('TEXT = """one\n\ntwo"""\n') == 3  # a string is code
    # Layout does not change how many statements there are.
    assert codebase.statements(ast.parse(FILE)) == 2 + 1 + 2 + 4 + 2 + 2
    assert codebase.statements(ast.parse(ast.unparse(ast.parse(FILE)))) == 13


def test_counts_of_a_small_tree() -> None:
    files = {
        "sims/__init__.py": "",
        "sims/a/x.py": "from sims.b import y\n",
        "sims/b/y.py": "import sims.a.x\nclass Pose: ...  # fmt: skip\n",
        "robo_rl/pose.py": FILE,
        "robo_rl/experiments/rows.py": "ROWS = 1\n",
        "real_robot/emulators/arm.py": "PORT = 1\n",
    }
    counted = codebase.count(files)
    assert counted.lines["sims"] == 3 and counted.lines["robo_rl"] == 16
    assert (counted.benchmarks, counted.emulators) == (1, 1)
    assert counted.files == 6 and counted.flat == 1
    assert (counted.cycles, counted.in_cycles) == (1, 2)
    assert (counted.classes, counted.definitions) == (1, 2)
    assert (counted.shapes, counted.arrays) == (1, 2)
    assert (counted.errors, counted.raising) == (1, 2)
    assert counted.unformatted == 1
    lines = codebase.table({"abc": counted}).splitlines()
    assert "| public functions that raise: docstring names the error | 1 of 2 (50 %) |" in lines
    assert len({line.count("|") for line in lines}) == 1


def test_a_commit_that_git_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="git cannot read commit 'no-such-commit'"):
        codebase.files_at("no-such-commit")
