"""The committed tables of docs/results/tables are those of the journals in docs/data."""

from __future__ import annotations

import pytest

from benchmarks.pages import DATA, MEASURED, TABLES, JournalPage, index, journals, newest, seeds

STALE = "is stale: run `make results` and commit what it writes"


@pytest.mark.parametrize("page", journals(), ids=lambda page: page.journal.stem)
def test_table_matches_its_journal(page: JournalPage) -> None:
    stored = page.path.read_text()
    # The commit is known to git alone, and not in a shallow clone.
    measured = stored.partition(MEASURED)[2].partition(" |")[0]
    assert measured.startswith("journal of commit ")
    assert stored == page.markdown(measured), f"{page.path} {STALE}"


def test_every_journal_has_a_page() -> None:
    assert len(journals()) == len(list(DATA.glob("*.json")))
    assert {p.name for p in TABLES.iterdir()} == {"index.md", *(p.path.name for p in journals())}
    assert (TABLES / "index.md").read_text() == index(), f"index.md {STALE}"


def test_later_rows_replace_earlier_ones_of_the_same_name() -> None:
    rows = [{"name": "b, seed 1", "x": 1}, {"name": "a, seed 0"}, {"name": "b, seed 1", "x": 2}]
    assert newest(rows) == [{"name": "b, seed 1", "x": 2}, {"name": "a, seed 0"}]
    assert seeds(rows) == ["0", "1"]
