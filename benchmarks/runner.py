"""The runner: measures what is missing of an experiment and keeps it in a journal.

A journal is one JSON file, replaced whole. It forgets no row: one counts as current where its hash
is that of the settings and the code of today (``fingerprint.py``); every other one stands apart.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import EXPERIMENTS, BenchmarkRow, Options, RowFolder, experiment
from benchmarks.fingerprint import fingerprint
from benchmarks.table import footnote
from robo_rl.runs.run_dir import jsonable, versions, write_json
from robo_rl.runtime.threads import cores
from robo_rl.runtime.workers import run_in_workers


class RowJournal:
    """Finished rows in a file, by hash, in the order in which they were finished."""

    def __init__(self, path: Path):
        self.path = path
        if path.is_dir():
            raise ValueError(f"expected a file for the journal, got the directory {path}")

    def rows(self) -> dict[str, dict[str, Any]]:
        """{hash: row}; rows of before code counted have a hash that no row of today has."""
        if not self.path.exists():
            return {}
        try:
            rows = json.loads(self.path.read_text())["rows"]
            return {row.get("hash") or row["config_hash"]: row for row in rows}
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{self.path} is not a journal of an experiment; move it away"
            ) from None

    def add(self, title: str, row: dict[str, Any]) -> None:
        """Adds a row to what is in the file by now, whoever wrote it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            rows = self.rows() | {row["hash"]: row}
            write_json(self.path, {"title": title, "rows": list(rows.values())})
        finally:
            os.close(folder)


@dataclass(frozen=True)
class Results:
    """What is known of an experiment."""

    name: str
    current: list[dict[str, Any]]  # rows of today's settings and code, in the experiment's order
    older: list[dict[str, Any]]  # rows of others, never counted among the current ones
    missing: int

    def markdown(self) -> str:
        """Tables, and what they were measured with."""
        table, parts = experiment(self.name).table, []
        if self.current or not self.older:
            parts.append(table(self.current) + footnote(self.current))
        if self.missing:
            parts.append(f"{self.missing} rows are not measured yet.\n")
        if self.older:
            parts.append("Kept, of an older version or of other settings than today's:\n")
            parts.append(table(self.older) + footnote(self.older))
        return "\n".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Returns the rows as JSON-able data; each says whether it is ``current``."""
        rows = [row | {"current": True} for row in self.current]
        rows += [row | {"current": False} for row in self.older]
        return {
            "name": self.name,
            "title": EXPERIMENTS[self.name],
            "rows": rows,
            "missing": self.missing,
        }


def run(
    name: str,
    options: Options,
    *,
    runs: Path,
    journal: Path | None = None,
    jobs: int = 1,
    again: bool = False,
    stored: bool = False,
    console: Console | None = None,
) -> Results:
    """Measures the rows that the journal lacks, ``jobs`` side by side in processes of their own.

    ``again`` measures every row again; ``stored`` measures nothing and reports what is stored.
    """
    made = experiment(name)
    every = made.rows(options)
    selected = [row for row in every if options.only in row.name]
    if not selected:
        raise ValueError(f"no row name of {name} contains {options.only!r}")
    rows = {fingerprint(row, machine() if made.rate else ""): row for row in selected}
    book = RowJournal(journal or runs / f"{name}.json")
    known = book.rows()
    missing = {key: row for key, row in rows.items() if again or key not in known}
    say = console.print if console else lambda *_: None
    if not stored:
        say(
            f"{name}: {len(rows) - len(missing)} of {len(rows)} rows are in {book.path}"
            + (", --again measures them again" if len(missing) < len(rows) else "")
        )
        folder = runs / name
        for key in missing:
            if again:  # what was made of it, too: a finished run would only be opened
                shutil.rmtree(folder / key[:12], ignore_errors=True)
        work = _measured(name, missing, folder, 1 if made.rate else jobs, console)
        for number, (key, row) in enumerate(work, 1):
            marks = {"name": rows[key].name, "hash": key, "machine": machine()}
            known[key] = jsonable({**marks, **row, "versions": versions()})
            book.add(EXPERIMENTS[name], known[key])
            say(f"{name} {number}/{len(missing)} done: {rows[key].name}")
    current = [known[key] | {"name": row.name} for key, row in rows.items() if key in known]
    older = []
    if stored:
        today = {fingerprint(row, machine() if made.rate else "") for row in every}
        older = [row for key, row in known.items() if key not in today]
    return Results(name, current, older, len(rows) - len(current))


def _measured(
    name: str, rows: dict[str, BenchmarkRow], runs: Path, jobs: int, console: Console | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(hash, figures) of every row, as they are finished."""
    if jobs == 1:
        for key, row in rows.items():
            if console is not None:
                console.rule(row.name)
            yield key, measure(name, row, runs / key[:12], console)
        return
    given = {key: (name, row, runs / key[:12]) for key, row in rows.items()}
    yield from run_in_workers(measure, given, jobs)


def measure(
    name: str, row: BenchmarkRow, folder: Path, console: Console | None = None
) -> dict[str, Any]:
    """The figures of one row."""
    return experiment(name).measure(row.of, RowFolder(folder, console))


def machine() -> str:
    """``2 cores of AMD EPYC, x86_64``."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    kind = versions()["platform"]
    return f"{cores()} cores of {names[0] if names else 'a processor'}, {kind}"
