"""`make results`: the tables of docs/results/tables, one page for each journal in docs/data.

python -m benchmarks.pages
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import EXPERIMENTS, experiment
from benchmarks.table import footnote
from robo_rl.runs.run_dir import atomic_write
from robo_rl.runtime.checkout import ROOT
from sims.utils.process import start_user_program

DATA, TABLES = ROOT / "docs" / "data", ROOT / "docs" / "results" / "tables"
# Journals that are not named as their experiment.
EXPERIMENT_OF = {"told_arms": "arms"}
MEASURED = "| measured | "


@dataclass(frozen=True)
class JournalPage:
    """A journal and the page of its table."""

    journal: Path
    experiment: str

    @property
    def path(self) -> Path:
        """The page."""
        return TABLES / f"{self.journal.stem}.md"

    def markdown(self, measured: str) -> str:
        """The page.

        Args:
            measured: commit and date of the journal, which git knows.
        """
        stored = json.loads(self.journal.read_text())
        rows = newest(stored["rows"])
        shown = self.journal.relative_to(ROOT)
        replaced = len(stored["rows"]) - len(rows)
        lines = [
            f"# {self.journal.stem}: {stored['title']}",
            "",
            "Generated from the journal by `make results`; do not edit.",
            "",
            "| | |",
            "|---|---|",
            f"| command | `robo-rl bench {self.experiment} --journal {shown}` |",
            f"{MEASURED}{measured} |",
            f"| machines | {_counts(row.get('machine') or 'not noted' for row in rows)} |",
            f"| seeds | {', '.join(seeds(rows)) or 'of each row'} |",
            f"| rows | {len(rows)}; {replaced} older ones of the same names are in the journal |",
            "",
            experiment(self.experiment).table(rows),
            footnote(rows),
        ]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def newest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The last row of each name, in the order in which the names came first."""
    return list({row["name"]: row for row in rows}.values())


def seeds(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The training seeds that rows have in their names."""
    found = {m[1] for row in rows if (m := re.search(r"\b(?:seed|search|draw) (\d+)", row["name"]))}
    return sorted(found, key=int)


def _counts(texts: Any) -> str:
    return "; ".join(f"{text} ({count} rows)" for text, count in Counter(texts).items())


def journals() -> list[JournalPage]:
    """The journals in docs/data, by name."""
    found = []
    for path in sorted(DATA.glob("*.json")):
        name = EXPERIMENT_OF.get(path.stem, path.stem.replace("_", "-"))
        if name in EXPERIMENTS:
            found.append(JournalPage(path, name))
    return found


def index() -> str:
    """The page that lists the tables."""
    lines = [
        "# Tables from journals",
        "",
        "`make results` writes these pages from the journals in `docs/data`, in which `robo-rl "
        "bench` stores each row with machine and versions. Success is the simulator's verdict with "
        "a 95 % interval. Tables on the other pages of Results are written by hand; their text "
        "names command and commit.",
        "",
        "| table | what it shows |",
        "|---|---|",
    ]
    for page in journals():
        title = json.loads(page.journal.read_text())["title"]
        lines.append(f"| [{page.journal.stem}]({page.path.name}) | {title} |")
    return "\n".join(lines) + "\n"


def last_change(path: Path) -> str:
    """``f944bc5, 2026-11-20``: the commit that last changed a file, and its day."""
    about = ("-1", "--follow", "--diff-filter=AM", "--format=%h, %as")
    process = start_user_program("git", "log", *about, "--", str(path), stdout=subprocess.PIPE)
    found = process.communicate()[0].decode().strip()
    return f"journal of commit {found}" if found else "journal not committed"


def main() -> None:
    """Writes all pages."""
    TABLES.mkdir(parents=True, exist_ok=True)
    atomic_write(TABLES / "index.md", index().encode())
    for page in journals():
        atomic_write(page.path, page.markdown(last_change(page.journal)).encode())


if __name__ == "__main__":
    main()
